"""What a head mostly does, in words: the one place where facts become a sentence."""

from typing import Final

from core.descriptions.describe import MOSTLY
from core.descriptions.facts import Fact, HeadDescription, RelationFact, RoleFact, ShareFact, SpreadFact, Target
from core.relations.accuracy import DIRECTIONS
from dashboard.figures.figure import counted, percent

NOTHING: Final = "shows no clear pattern on these texts"
EXAMPLES: Final = "Seen most clearly in these texts: bold words look at underlined ones. Click one to put it on screen."
BETWEEN_SEGMENTS: Final = " / "
ASK: Final = "Say in a sentence what each head does"
ASK_RELATIONS: Final = "Add what each head finds of grammar"
ASK_HELP: Final = "Runs the corpus through the model once more, and through spaCy's parser. The results are kept."
AT: Final[dict[Target, str]] = {
    "self": "the same token",
    "previous": "the previous token",
    "next": "the next token",
    "cls": "[CLS]",
    "sep": "[SEP]",
    "punctuation": "full stops and commas",
    "first": "the first token",
}
RESTS: Final = ("cls", "sep", "first")
"""Targets that carry no words of the text: attention rests there."""
LOOKS_AT: Final = {
    "local": "neighbouring tokens",
    "syntactic": "words that are related to each other",
    "block": "tokens of the same segment",
}
"""Roles; what the delimiter role says is told by the shares already."""
RELATIONS: Final[dict[str, tuple[str, str]]] = {
    "nsubj": ("a subject", "its verb"),
    "nsubjpass": ("a subject", "its passive verb"),
    "dobj": ("an object", "its verb"),
    "obj": ("an object", "its verb"),
    "amod": ("an adjective", "its noun"),
    "advmod": ("an adverb", "its verb or adjective"),
    "det": ("an article", "its noun"),
    "poss": ("a possessor", "its noun"),
    "nummod": ("a number", "its noun"),
    "aux": ("an auxiliary", "its verb"),
    "auxpass": ("an auxiliary", "its passive verb"),
    "prep": ("a preposition", "its governing word"),
    "pobj": ("a noun", "its preposition"),
    "compound": ("a modifying noun", "its main noun"),
    "conj": ("a later list item", "its first list item"),
    "cc": ("an “and” or “or”", "its first list item"),
    "mark": ("a subordinating word", "its clause's verb"),
    "case": ("a case marker", "its noun"),
    "neg": ("a “not”", "its verb"),
}
"""Dependent and head of a relation, in words; a dependent begins with an article, a head with "its"."""


def does(description: HeadDescription) -> str:
    """What a head mostly does, as the rest of a sentence that begins with its name."""
    facts = description.facts
    shares = [fact for fact in facts if isinstance(fact, ShareFact)]
    most = [fact for fact in shares if fact.share > MOSTLY]
    some = [fact for fact in shares if fact.share <= MOSTLY][:2]
    relation = next((fact for fact in facts if isinstance(fact, RelationFact)), None)
    parts = []
    if most:
        verb = "rests on" if most[0].target in RESTS else "looks at"
        parts.append(f"mostly {verb} {AT[most[0].target]} ({percent(most[0].share, 0)} of its attention)")
    if relation is not None:
        looks = "among words, it looks" if most else "mostly looks"
        parts.append(f"{looks} from {_from_to(relation)} ({_right(relation)})")
    if parts and some:
        parts.append(f"otherwise at {AT[some[0].target]} ({percent(some[0].share, 0)} of its attention)")
    elif some:
        parts.append(
            "gives " + " and ".join(f"{percent(fact.share, 0)} of its attention to {AT[fact.target]}" for fact in some)
        )
    if roles := [LOOKS_AT[fact.role] for fact in facts if isinstance(fact, RoleFact) and fact.role in LOOKS_AT]:
        looks = "by its role, it looks" if parts else "looks, by its role,"
        parts.append(f"{looks} at {' and '.join(roles)}")
    parts += [
        f"spreads its attention almost evenly ({percent(fact.ratio, 0)} of the greatest entropy)"
        for fact in facts
        if isinstance(fact, SpreadFact)
    ]
    return f"{'; '.join(parts) or NOTHING}."


def examples_of(head: str) -> str:
    """Names the list of texts for screen readers."""
    return f"Texts in which {head} does so most clearly"


def tip(description: HeadDescription) -> str:
    """The same as a sentence of its own, below the head's name."""
    words = does(description)
    return f"{words[0].upper()}{words[1:]}"


def evidence(description: HeadDescription) -> str:
    """What the numbers of the sentence stand on."""
    parts = [text for fact in description.facts if (text := _evidence(fact))]
    over = f"Over {counted(description.n_texts, 'text')}."
    return f"{'; '.join(parts)}. {over}" if parts else over


def _from_to(fact: RelationFact) -> str:
    dependent, head = RELATIONS.get(fact.relation, (f"a word ({fact.relation})", "its head"))
    if fact.direction == DIRECTIONS[0]:
        return f"{dependent} to {head}"
    return f"a {head.removeprefix('its ')} to its {dependent.split(' ', 1)[1]}"


def _right(fact: RelationFact) -> str:
    return (
        f"right in {percent(fact.accuracy, 0)} of {fact.n_cases:,} held-out cases, interval "
        f"{_interval(fact.low, fact.high)}; always guessing one distance gets {percent(fact.baseline, 0)}"
    )


def _evidence(fact: Fact) -> str:
    match fact:
        case RelationFact():
            return (
                f"{fact.relation}: relation and distance ({fact.offset:+d}) chosen on one half of the texts and judged "
                f"on the other; p {_p(fact.p_value)}, corrected for the number of heads"
            )
        case ShareFact() if fact.even > 0:
            even = f"evenly spread attention would give {percent(fact.even, 0)}"
            return f"{AT[fact.target]}: {_interval(fact.low, fact.high)}, {even}"
        case ShareFact():
            beyond = ", above chance" if fact.target == "first" else ""
            return f"{AT[fact.target]}: {_interval(fact.low, fact.high)}{beyond}"
        case _:
            return ""


def _interval(low: float, high: float) -> str:
    return "no interval from one text" if low != low else f"{100 * low:.0f} to {percent(high, 0)}"


def _p(p_value: float) -> str:
    return "< 0.001" if p_value < 0.001 else f"= {p_value:.3f}"
