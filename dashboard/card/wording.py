"""Sentences of the card of a head."""

from typing import Final

from attention_sieve.core.descriptions.accuracies import (
    Fact,
    HeadDescription,
    KeyControl,
    MentionFact,
    RelationFact,
    ShareFact,
)
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.figures.roles.distributions import HeadScores

STORIES: Final = "the English example texts on coreference"
NO_SUCH_LINK: Final = "The text has no such link. Its strongest ones:"
NO_LINKS: Final = "No two words of the text are linked."
TOO_LONG: Final = "The text is too long for links between its words."
RESTING: Final = ("delimiter", "sink")
"""Roles that most heads have; another role says more of a head."""
STRONGEST: Final = "The strongest links between words here"


def such_links(n_links: int) -> str:
    return f"The {n_links} strongest such links here" if n_links > 1 else "The one such link here"


def says(fact: Fact | None, of_head: HeadScores) -> str:
    """What a name rests on, in numbers; without a name, what comes nearest to one."""
    match fact:
        case ShareFact():
            beyond = " beyond an even share" if fact.target == "first" else ""
            return (
                f"{percent(fact.share, 0)} of its attention goes there{beyond} on average "
                f"(interval {_interval(fact.low, fact.high)}){_even(fact)}."
            )
        case RelationFact():
            return (
                f"Right in {percent(fact.accuracy, 0)} of {counted(fact.n_cases, 'case')} that it was not chosen on, "
                f"interval {_interval(fact.low, fact.high)}; always guessing one distance gets "
                f"{percent(fact.baseline, 0)}."
            )
        case MentionFact():
            return (
                f"Right in {percent(fact.accuracy, 0)} of {counted(fact.n_cases, 'case')} that it was not chosen on, "
                f"interval {_interval(fact.low, fact.high)}; the better of two simple guesses gets "
                f"{percent(max(fact.nearest, fact.same_word), 0)}."
            )
        case _:
            return f"Nothing that it mostly does passes all tests.{_by_role(of_head)}"


def _by_role(of_head: HeadScores) -> str:
    """The role with the greatest mean score among those that it holds, RESTING last; empty for none."""
    tests, words = of_head.tests, WORDS[of_head.scale]
    held = [index for index in range(len(tests.roles)) if tests.holds[index, *of_head.head]]
    if not held:
        return ""
    best = max(held, key=lambda index: (tests.roles[index] not in RESTING, tests.mean[index, *of_head.head]))
    mean = f"{tests.mean[best, *of_head.head]:.2f} {words.unit}".rstrip()
    return f" By its {words.nouns} it looks more than chance at {role_named(tests.roles[best]).expects}: mean {mean}."


def _even(fact: ShareFact) -> str:
    return f"; an even spread would give {percent(fact.even, 0)}" if fact.even > 0 else ""


def control(fact: Fact | None) -> str:
    """The line on what the same head gives where it should not; empty without a name."""
    match fact:
        case RelationFact() | MentionFact():
            return f"Control: {_key_control(fact.control)}"
        case ShareFact() if fact.even > 0:
            return f"Control: {fact.share / fact.even:.1f} times the share of an even spread."
        case ShareFact() if fact.target == "first":
            return "Control: chance is already taken off this share."
        case ShareFact():
            return "Control: none, as what an even spread would give is not known here."
        case _:
            return ""


def _key_control(found: KeyControl) -> str:
    return (
        f"{percent(found.to_right, 1)} from the word that should look there, {percent(found.from_others, 1)} from "
        "other words to the same word."
    )


def judged_on(description: HeadDescription, texts: str, others: str, n_heads: int, alpha: float) -> str:
    """On which texts the name was chosen and judged, and what is corrected."""
    where = f"Chosen on {texts}, judged on {others}" if description.n_others else f"Over {texts}"
    return f"{where}; intervals cover {percent(1 - alpha, 0)}; a name holds after correction for {n_heads:,} heads."


def varied(n_texts: int) -> str:
    return counted(n_texts, "varied sample text")


def _interval(low: float, high: float) -> str:
    return "from one text: none" if low != low else f"{100 * low:.0f} to {percent(high, 0)}"


def of_text(text: Text) -> str:
    return f"“{' / '.join(text.segments)}”"
