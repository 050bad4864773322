"""Sentences of the riddle."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.word_links.pronouns import LEAST_EXCESS, PronounSentence
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.text.simple_patterns import SimplePattern

DOES: Final[dict[SimplePattern, str]] = {
    "previous word": "it looks at the previous word",
    "next word": "it looks one word ahead",
    "same word": "each word looks at itself",
    "rests": "it rests on",
}

SECOND: Final = "Second riddle: what does a model say without a head?"


def question(n_heads: int, asked: PronounSentence) -> str:
    return (
        f"One of these {n_heads:,} squares finds whom :blue-background[{plain(asked.pronoun)}] means in "
        f"“{plain(asked.sentence)}” Find it."
    )


def how_to_read(asked: PronounSentence) -> str:
    return (
        "A square is one attention head of the model. Down its side stand the words that look, across its top the "
        "words looked at; the stronger a field, the more it looks there. Click the square that you think looks from "
        f"*{plain(asked.pronoun)}* to *{plain(asked.antecedent)}*."
    )


def picture(asked: PronounSentence) -> str:
    return f"A square enlarged: the row of “{asked.pronoun}” and the column of “{asked.antecedent}” meet in one field."


def cell(pronoun: str, key: str, share: float) -> str:
    return f"{pronoun} looks most at {key}, {percent(share, 0)}."


def grid(name: str, asked: PronounSentence) -> str:
    return f"Heads of {name}: where they look in “{asked.sentence}”"


def right(head: str) -> str:
    return f"Found it: {head}."


def found_in(n_clicks: int) -> str:
    return f"I found it in {counted(n_clicks, 'click')}"


def found(n_clicks: int, asked: PronounSentence, share: float) -> str:
    """What the card says of the head, beside what it does elsewhere."""
    return f"{found_in(n_clicks)}: {asked.pronoun} → {asked.antecedent}, {percent(share, 0)}"


def also_right(guess: str, head: str) -> str:
    return f"{guess} finds it, too. The strongest is {head}."


def once_more(is_close: bool) -> str:
    """After a first guess that is not right, without the answer."""
    return f"{'Close' if is_close else 'Not that one'}: one more try."


def hint(layer: int) -> str:
    return f"A hint: it is in layer {layer}. The next click shows the answer."


def close(head: str) -> str:
    return f"Close! The one is {head}."


def wrong(head: str) -> str:
    return f"Not that one. It is {head}."


def elsewhere(found: Sequence[tuple[PronounSentence, float]], missed: Sequence[tuple[PronounSentence, float]]) -> str:
    """What the head does in the other sentences: those in which it follows the pronoun, and those in which not."""
    others = counted(len(found) + len(missed), "other sentence")
    if not found:
        return f"It follows the pronoun in none of {others}: one proves nothing yet."
    without = f" In {len(missed)} it does not: {_named(missed)}." if missed else ""
    return f"It follows the pronoun in {len(found)} of {others}, too: {_named(found)}.{without}"


def _named(links: Sequence[tuple[PronounSentence, float]]) -> str:
    return ", ".join(
        f"*{plain(each.pronoun)}* to *{plain(each.antecedent)}* ({percent(share, 0)})" for each, share in links
    )


def on_own(
    head: str, found: Sequence[tuple[PronounSentence, float]], missed: Sequence[tuple[PronounSentence, float]]
) -> str:
    """What the head of the riddle does with the pronouns of a sentence of the reader's own, of which one is there."""
    said = [_finds(found)] if found else []
    said += [f"{'not' if found else 'does not find'} {_finds(missed, '')}"] if missed else []
    return (
        f"**{head}**, the head of the riddle, {'; '.join(said)}. (It finds a pronoun if it joins it to a word before "
        f"with at least {100 * LEAST_EXCESS:.0f} points more than it gives that word from any other. Whether the word "
        "is the one that is meant, you can tell.)"
    )


def _finds(links: Sequence[tuple[PronounSentence, float]], verb: str = "finds ") -> str:
    return verb + ", ".join(
        f"*{plain(each.pronoun)}*: {plain(each.antecedent)} {percent(share, 0)}" for each, share in links
    )


def nothing_to_find(head: str) -> str:
    return (
        f"**{head}**, the head of the riddle, has nothing to find here: there is no English pronoun such as *he* or "
        "*her* with a word before it that it could stand for."
    )


def of_head(head: str, asked: PronounSentence, share: float, greatest_other: float) -> str:
    return (
        f"From *{plain(asked.pronoun)}*, **{head}** gives {percent(share, 0)} of its attention to "
        f"*{plain(asked.antecedent)}*; from any other word, at most {percent(greatest_other, 0)}."
    )


def of_column(
    guess: str, antecedent: str, share: float, others: Sequence[tuple[str, float]], *, is_everywhere: bool
) -> str:
    """What a guess does that looks at the antecedent from other words as well; `others` are those that give most."""
    given = ", ".join(f"{percent(part, 0)} of *{plain(word)}*" for word, part in others)
    looks = f"looks at *{plain(antecedent)}* from {'everywhere' if is_everywhere else 'other words, too'}"
    return f"Your **{guess}** gives {percent(share, 0)}, but it {looks}: {given}."


def of_other(guess: str, share: float, does: str) -> str:
    return f"Your **{guess}** gives {percent(share, 0)}: {does}."


def mostly(pattern: SimplePattern, share: float, signs: Sequence[str]) -> str:
    """What a head mostly does in the sentence; it rests on `signs`, special tokens or else the first token."""
    on = (
        "" if pattern != "rests" else (" the added signs " if len(signs) > 1 else " ") + " and ".join(map(plain, signs))
    )
    return f"{DOES[pattern]}{on} ({percent(share, 0)} of its attention)"


def instead(pronoun: str, key: str, share: float) -> str:
    return f"it gives {percent(share, 0)} of *{plain(pronoun)}* to *{plain(key)}*"
