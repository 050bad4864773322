"""Sentences about evidence over typed texts."""

from collections.abc import Sequence
from typing import Final

from dashboard import controls
from dashboard.figures.figure import counted, percent

KEEP: Final = "Keep this text"
KEEP_HELP: Final = "Adds the text on screen to the texts that you type in the sidebar, and makes these the corpus."
BACK: Final = {
    **{name: f"Back to {name}" for name in controls.SAMPLES},
    controls.UPLOAD: "Back to an uploaded file",
}
"""Labels of the button, by previous corpus."""
BACK_HELP: Final = "Your texts are kept, and the sidebar brings them back. A file has to be uploaded again."
NAME: Final = "evidence"
COLUMN_EVIDENCE: Final = (
    "What a bet of 1 on the role, against no role, has become over your texts. The smaller of the bets against tau and "
    "against uniform attention, or as in the paper that against tau alone."
)
COLUMN_MEAN: Final = (
    "Mean score over the texts in which the role is applicable, and in parentheses a lower bound that stays valid "
    "however often you look and add texts."
)
DUPLICATES: Final = "A text that is there twice counts once as evidence."
START_OVER: Final = "Start over"
START_OVER_HELP: Final = (
    "Evidence then counts only the texts that are in the corpus now: what you have seen before does not count any "
    "more. It is valid only if you would have chosen these texts without having looked, so type new ones."
)
VALID_ONCE: Final = "The test is valid once: for texts that were chosen before looking."
BY_MEAN: Final = "The mean alone decides here: there is neither a test nor evidence."
BY_SHARE: Final = (
    "Shares above chance can be negative, and evidence needs values of at least 0. So a t-test decides here, which is "
    "valid once: for texts that were chosen before looking. On the scale of scores, evidence stays valid while you add "
    "texts."
)
NO_HEAD: Final = "Choose a head in the grid to see how its evidence grows with the texts."
BY_TEXTS: Final = "How evidence grows with the number of texts is drawn for each head in the tab Evidence."


def evidence(alpha: float) -> str:
    """Definition of evidence, and its limits."""
    return (
        "**Roles by evidence: stop whenever you like.** Odds such as 34 : 1 are what a bet of 1 on the role has become "
        f"over your texts. Where the head does not have the role, they ever reach {1 / alpha:g} : 1 in at most "
        f"{percent(alpha)} of cases, however often you look and however many texts you add. What they say is about "
        "the way you choose texts: choosing a text because a head likes it is not covered."
    )


def taken_out(n_texts: int) -> str:
    """Deleted texts that still count."""
    return f"Evidence also counts {counted(n_texts, 'text')} that you have taken out."


WHICH: Final = "Texts taken out"
WHY_COUNTED: Final = (
    "Otherwise, deleting the texts that spoke against a role would make evidence for it. A link and a reload bring "
    "back only the texts of the corpus, and evidence starts with these."
)


def left_out(n_texts: int) -> str:
    """Deleted texts that this checkpoint cannot read."""
    return f"{counted(n_texts, 'text')} of these cannot be counted: too long for this checkpoint."


def kept(n_texts: int, is_new: bool, previous: str | None) -> str:
    """Confirmation that a text was kept."""
    outcome = "Kept" if is_new else "This text is in your corpus already and was not added again"
    instead = "" if previous is None else f", in place of “{previous}”"
    return f"{outcome}. The corpus is {counted(n_texts, 'text')} of your own{instead}; edit them in the sidebar."


def corpus_summary(roles: Sequence[tuple[str, str]], n_texts: int) -> str:
    """Roles of one head by evidence."""
    listing = ", ".join(f"{role} ({odds})" for role, odds in roles)
    return f"Over {counted(n_texts, 'text')}, by evidence: {listing or 'no role'}."


def filled_by_evidence(tau: float) -> str:
    """Meaning of a filled corner, by evidence."""
    return f"Filled letters: roles this head holds by the evidence so far (tau {tau:g}). A role may go again."
