"""Sentences of the stories about the text on screen."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.wording import FROM_EVERYWHERE

EXAMPLES: Final = "Examples"
STORIES: Final = "See a head that looks at"
PREVIOUS_WORD: Final = "the previous word"
OBJECT: Final = "a verb's object"
SUBJECT: Final = "a verb's subject"
HER: Final = "whom “her” means"
RESTING: Final = "special tokens"
BEFORE_AND_AFTER: Final = "Before and after training"
FIRST_LESSON: Final = "Lesson: what is a head?"
OWN_TEXT: Final = "Back to my text"
SEE_PREVIOUS_WORD: Final = "the words' attention goes to the word before: look for arcs that rise by one row"
SEE_OBJECT: Final = "the attention of {queries} goes to {keys}, from the verb to its object"
SEE_OBJECT_BACK: Final = "the attention of {queries} goes to {keys}, from the object back to its verb"
SEE_SUBJECT: Final = "the attention of {queries} goes to {keys}, from each verb to its subject"
SEE_SUBJECT_BACK: Final = "the attention of {queries} goes to {keys}, from each subject to its verb"
SEE_HER: Final = "the attention of {queries} goes to {keys}, whose shop it is"
SEE_RESTING: Final = (
    "the words' attention goes to the special tokens (the first token, where there are none): often a resting place "
    "when there is nothing to find"
)


PAIR: Final = "A pair of texts"
PAIR_HELP: Final = "Two texts that the model reads together: a question and its answer, or two sentences to compare."
FIRST_TEXT: Final = "First text"
SECOND_TEXT: Final = "Second text"
LOOK_AT_PAIR: Final = "Look at both"


def words(words: Sequence[str], *, are_all: bool) -> str:
    *before, last = [f"*{plain(word)}*" for word in words] + ([] if are_all else ["others"])
    return f"{', '.join(before)} and {last}" if before else last


def story(head: str, share: float, even: float, see: str, of_others: float | None, n_heads: int) -> str:
    """The head that shows most of what a story is about, and what to see.

    Args:
        share: of its attention on the links of the story.
        even: share of evenly spread attention.
        see: what to see.
        of_others: what other words give to the same words; None where a story does not join words.
    """
    from_everywhere = FROM_EVERYWHERE.replace("looks", "look")
    but = "" if of_others is None else f", but for heads that {from_everywhere} or always at that distance"
    return (
        f":material/lightbulb: **{head}**: {100 * share:.0f}% of {see}. {_to_compare(even, of_others)} The "
        f"strongest of {n_heads:,} here{but}. One sentence proves nothing yet."
    )


def no_such_head(head: str, share: float, even: float, see: str, of_others: float | None) -> str:
    return (
        f":material/lightbulb: This checkpoint has no such head in this sentence. Closest is {head}: "
        f"{100 * share:.0f}% of {see}. {_to_compare(even, of_others)}"
    )


def _to_compare(even: float, of_others: float | None) -> str:
    others = "" if of_others is None else f", and the sentence's other words give the same {100 * of_others:.0f}%"
    return f"Evenly spread attention would give {100 * even:.0f}%{others}."
