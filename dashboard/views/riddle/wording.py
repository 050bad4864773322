"""Sentences of the riddle, in the language of the lessons: from `riddle.toml` of their texts."""

from collections.abc import Sequence

from attention_sieve.core.word_links.pronouns import LEAST_EXCESS, PronounSentence
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.languages import RIDDLE, language, phrases, say
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.text.simple_patterns import SimplePattern

Links = Sequence[tuple[PronounSentence, float]]
"""Sentences, with the attention from the pronoun to its antecedent."""


def words(name: str, /, **values: object) -> str:
    return say(language(), name, RIDDLE, **values)


def question(n_heads: int, asked: PronounSentence) -> str:
    return words("question", heads=f"{n_heads:,}", pronoun=plain(asked.pronoun), sentence=plain(asked.sentence))


def how_to_read(asked: PronounSentence) -> str:
    """How to read a square, after what the sentence means in the reader's language if that is not English."""
    means = phrases(language(), RIDDLE).get(asked.sentence)
    said = words("how_to_read", pronoun=plain(asked.pronoun), antecedent=plain(asked.antecedent))
    return f"({means}) {said}" if means else said


def picture(asked: PronounSentence) -> str:
    return words("picture", pronoun=asked.pronoun, antecedent=asked.antecedent)


def cell(pronoun: str, key: str, share: float) -> str:
    return words("cell", pronoun=pronoun, key=key, share=percent(share, 0))


def grid(name: str, asked: PronounSentence) -> str:
    return words("grid", name=name, sentence=asked.sentence)


def found_in(n_clicks: int) -> str:
    return words("found_in_one" if n_clicks == 1 else "found_in", clicks=f"{n_clicks:,}")


def found(n_clicks: int, asked: PronounSentence, share: float) -> str:
    """What the card says of the head, beside what it does elsewhere."""
    names = {"pronoun": asked.pronoun, "antecedent": asked.antecedent}
    return words("found", found_in=found_in(n_clicks), share=percent(share, 0), **names)


def once_more(is_close: bool) -> str:
    """After a first guess that is not right, without the answer."""
    return words("once_more_close" if is_close else "once_more")


def hint(layer: int) -> str:
    return words("hint", layer=layer)


def elsewhere(found: Links, missed: Links) -> str:
    """What the head does in the other sentences: those in which it follows the pronoun, and those in which not."""
    others = len(found) + len(missed)
    if not found:
        return words("elsewhere_none", others=others)
    said = words("elsewhere", count=len(found), others=others, links=_joined("link", found))
    return f"{said} {words('elsewhere_not', count=len(missed), links=_joined('link', missed))}" if missed else said


def _joined(name: str, links: Links) -> str:
    return ", ".join(
        words(name, pronoun=plain(each.pronoun), antecedent=plain(each.antecedent), share=percent(share, 0))
        for each, share in links
    )


def on_own(head: str, found: Links, missed: Links) -> str:
    """What the head of the riddle does with the pronouns of a sentence of the reader's own, of which one is there."""
    said = [words("on_own_finds", links=_joined("own_link", found))] if found else []
    said += [words("on_own_not" if found else "on_own_none", links=_joined("own_link", missed))] if missed else []
    return words("on_own", head=head, said="; ".join(said), points=f"{100 * LEAST_EXCESS:.0f}")


def nothing_to_find(head: str) -> str:
    return words("nothing_to_find", head=head)


def of_head(head: str, asked: PronounSentence, share: float, greatest_other: float) -> str:
    names = {"pronoun": plain(asked.pronoun), "antecedent": plain(asked.antecedent)}
    return words("of_head", head=head, share=percent(share, 0), greatest=percent(greatest_other, 0), **names)


def of_column(
    guess: str, antecedent: str, share: float, others: Sequence[tuple[str, float]], *, is_everywhere: bool
) -> str:
    """What a guess does that looks at the antecedent from other words as well; `others` are those that give most."""
    given = ", ".join(words("of_word", share=percent(part, 0), word=plain(word)) for word, part in others)
    name = "of_column_everywhere" if is_everywhere else "of_column"
    return words(name, guess=guess, antecedent=plain(antecedent), share=percent(share, 0), given=given)


def of_other(guess: str, share: float, does: str) -> str:
    return words("of_other", guess=guess, share=percent(share, 0), does=does)


def mostly(pattern: SimplePattern, share: float, signs: Sequence[str]) -> str:
    """What a head mostly does in the sentence; it rests on `signs`, special tokens or else the first token."""
    if pattern != "rests":
        return words(pattern.replace(" ", "_"), share=percent(share, 0))
    name = "rests" if len(signs) > 1 else "rests_one"
    return words(name, signs=words("and").join(map(plain, signs)), share=percent(share, 0))


def instead(pronoun: str, key: str, share: float) -> str:
    return words("instead", share=percent(share, 0), pronoun=plain(pronoun), key=plain(key))
