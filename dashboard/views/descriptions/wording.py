"""Sentences that describe a head, built from facts."""

from typing import Final

from attention_sieve.core.descriptions import accuracies
from attention_sieve.core.descriptions.describe import is_mostly
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.wording import DEPENDENT_AND_HEAD, FROM_EVERYWHERE, NOT_SETTLED, beside_others

NOTHING: Final = "shows no clear pattern on these texts"
EXAMPLES: Final = (
    "Seen most clearly in these texts: bold words look at underlined ones. Click a text to put it on screen."
)
EXAMPLE_TEXTS: Final = "the English example texts on coreference"
"""Name of the example texts with mentions."""
VARIED: Final = "varied sample texts"
"""Name of the other texts on which descriptions over sample texts are judged."""
SHOW_RESTS: Final = "Show it in three texts"
BETWEEN_SEGMENTS: Final = " / "
ASK: Final = "Describe each head in a sentence"
ASK_RELATIONS: Final = "Add the grammatical relations that each head finds"
ASK_HELP: Final = "Runs the corpus through the model once more, and through spaCy's parser. The results are kept."
AT: Final[dict[accuracies.Target, str]] = {
    "self": "the token itself",
    "previous": "the previous token",
    "next": "the next token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "full stops and commas",
    "first": "the first token",
}
OF_OTHER_TEXT: Final = " of the source text"
RESTS: Final = ("cls", "sep", "first")
"""Targets that are not words of the text, on which attention rests."""
IN_SHARES: Final = "delimiter"
"""The role whose target is already in the shares."""


def does(description: accuracies.HeadDescription) -> str:
    facts, sight = description.facts, description.sight
    shares = [fact for fact in facts if isinstance(fact, accuracies.ShareFact)]
    most = [fact for fact in shares if is_mostly(fact)]
    some = [fact for fact in shares if not is_mostly(fact)][:2]
    parts = [f"mostly {_looks_at(fact, sight)} ({_part(fact)} of its attention{_beyond(fact)})" for fact in most[:1]]
    parts += [_joining(fact, sight, follows=bool(parts)) for fact in facts if isinstance(fact, accuracies.RelationFact)]
    parts += [_following(fact, follows=bool(parts)) for fact in facts if isinstance(fact, accuracies.MentionFact)]
    if parts and some:
        parts.append(f"otherwise at {at(some[0], sight)} ({_part(some[0])} of its attention{_beyond(some[0])})")
    elif some:
        phrases = (f"{_part(fact)} of its attention{_beyond(fact)} to {at(fact, sight)}" for fact in some)
        parts.append("gives " + " and ".join(phrases))
    if roles := [
        role_named(fact.role).expects
        for fact in facts
        if isinstance(fact, accuracies.RoleFact) and fact.role != IN_SHARES
    ]:
        looks = "by its role, it looks" if parts and not most else "looks, by its role,"
        parts.insert(0 if most else len(parts), f"{looks} at {' and '.join(roles)}")
    parts += [
        f"spreads its attention almost evenly (entropy {percent(fact.ratio, 0)} of that of even attention)"
        for fact in facts
        if isinstance(fact, accuracies.SpreadFact)
    ]
    return f"{'; '.join(parts) or NOTHING}."


def over(description: accuracies.HeadDescription) -> str:
    of_corpus = f"the {counted(description.n_texts, 'text')} of the corpus"
    if not description.n_others:
        return f"Over {of_corpus}"
    return f"Chosen on {of_corpus} and judged on {description.n_others} {VARIED}:"


def at(fact: accuracies.ShareFact, sight: accuracies.Sight) -> str:
    return AT[fact.target] + (OF_OTHER_TEXT if sight == "across" else "")


def rest_examples(fact: accuracies.ShareFact, sight: accuracies.Sight) -> str:
    return (
        f"Seen most clearly in these texts: bold words give most of their attention to {at(fact, sight)}, underlined "
        "ones least. Click a text to put it on screen."
    )


def gives(word: str, fact: accuracies.ShareFact, share: float) -> str:
    return f"{word} gives {percent(share, 0)} to {AT[fact.target]}"


def tip(description: accuracies.HeadDescription) -> str:
    return f"In {VARIED if description.n_others else 'these texts'}: {does(description)}"


def evidence(description: accuracies.HeadDescription, relations: str = "") -> str:
    """The evidence behind the numbers of the description.

    Args:
        relations: source of the relations of the texts.
    """
    parts = [text for fact in description.facts if (text := _evidence(fact))]
    has_relation = any(isinstance(fact, accuracies.RelationFact) for fact in description.facts)
    by = f" Relations: {relations}." if relations and has_relation else ""
    texts = f"{over(description).removesuffix(':')}.{by}"
    return f"{'; '.join(parts)}. {texts}" if parts else texts


def _looks_at(fact: accuracies.ShareFact, sight: accuracies.Sight) -> str:
    if fact.target in RESTS:
        return f"rests on {at(fact, sight)}"
    back = " back" if sight == "back" and fact.target == "previous" else ""
    return f"looks{back} at {at(fact, sight)}"


def _part(fact: accuracies.ShareFact) -> str:
    return percent(fact.share, 0)


def _beyond(fact: accuracies.ShareFact) -> str:
    return " beyond an even share" if fact.target == "first" else ""


def _joining(fact: accuracies.RelationFact, sight: accuracies.Sight, *, follows: bool) -> str:
    back = " back" if sight == "back" else ""
    looks = f"among words, it looks{back}" if follows else f"mostly looks{back}"
    return f"{looks} from {_from_to(fact)} ({_right(fact)})"


def _following(fact: accuracies.MentionFact, *, follows: bool) -> str:
    looks = "among mentions, it looks from one" if follows else "looks from a mention"
    return f"{looks}, such as “she”, to an earlier one of the same thing ({_of_mentions(fact)})"


def _from_to(fact: accuracies.RelationFact) -> str:
    dependent, head = DEPENDENT_AND_HEAD.get(fact.relation, (f"a word ({fact.relation})", "its head"))
    if fact.direction == DIRECTIONS[0]:
        return f"{dependent} to {head}"
    noun = head.removeprefix("its ")
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun} to its {dependent.split(' ', 1)[1]}"


def _right(fact: accuracies.RelationFact) -> str:
    where = VARIED if fact.on_others else "the other half of these texts"
    return (
        f"right in {percent(fact.accuracy, 0)} of {fact.n_cases:,} cases in {where}, interval "
        f"{_interval(fact.low, fact.high)}; always guessing one distance gets {percent(fact.baseline, 0)}"
        f"{_where_wrong(fact)}{_beside_others(fact.control)}"
    )


def _of_mentions(fact: accuracies.MentionFact) -> str:
    return (
        f"right in {percent(fact.accuracy, 0)} of {fact.n_cases:,} cases in the other half of {fact.source}, interval "
        f"{_interval(fact.low, fact.high)}; the better of two simple guesses gets "
        f"{percent(max(fact.nearest, fact.same_word), 0)}{_where_wrong(fact)}{_beside_others(fact.control)}"
    )


def _where_wrong(fact: accuracies.RelationFact | accuracies.MentionFact) -> str:
    """How often the head is right where the guess is wrong, which it sometimes is."""
    return f", and where that is wrong the head is right in {percent(fact.where_wrong, 0)}"


def _beside_others(control: accuracies.KeyControl) -> str:
    beside = beside_others(control.to_right, control.from_others)
    if not beside:
        return ""
    if control.from_everywhere:
        return f"; it {FROM_EVERYWHERE}: {beside}"
    return f"; its attention there is {beside}{'' if control.beats else NOT_SETTLED}"


def _evidence(fact: accuracies.Fact) -> str:
    match fact:
        case accuracies.RelationFact():
            chosen, judged = ("the corpus", VARIED) if fact.on_others else ("one half of the texts", "the other")
            return (
                f"{fact.relation}: chosen on {chosen} and judged on {judged}, where the best distance is "
                f"{fact.offset:+d}; {p_value(fact.p_value)}, corrected for the number of heads{_control(fact.control)}"
            )
        case accuracies.MentionFact():
            return (
                "mentions: the earlier one that gets most attention; heads chosen on one half of the documents and "
                f"judged on the other {fact.n_documents:,}, against the nearest mention ({percent(fact.nearest, 0)}) "
                f"and the nearest with the same word ({percent(fact.same_word, 0)}); {p_value(fact.p_value)}, "
                f"corrected for the number of heads{_control(fact.control)}"
            )
        case accuracies.ShareFact() if fact.even > 0:
            even = f"evenly spread attention would give {percent(fact.even, 0)}"
            return f"{AT[fact.target]}: {_interval(fact.low, fact.high)}, {even}"
        case accuracies.ShareFact():
            return f"{AT[fact.target]}: {_interval(fact.low, fact.high)}{_beyond(fact)}"
        case _:
            return ""


def _control(control: accuracies.KeyControl) -> str:
    if control.p_value != control.p_value:
        return ""
    return (
        f"; attention to the right word {percent(control.to_right, 1)}, from other words "
        f"{percent(control.from_others, 1)}, {p_value(control.p_value)}, corrected likewise"
    )


def _interval(low: float, high: float) -> str:
    return "no interval from one text" if low != low else f"{100 * low:.0f} to {percent(high, 0)}"
