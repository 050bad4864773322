"""Sentences about evidence over typed texts."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.roles.roles import role_title
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.figures.figure import counted, percent
from attention_sieve.dashboard.wording import CHOSEN_BEFORE

KEEP: Final = "Keep this text"
KEEP_HELP: Final = "Adds the text on screen to the texts that you type in the sidebar, and makes these the corpus."
BACK: Final = {
    **{name: f"Back to {name}" for name in controls.SAMPLES},
    controls.UPLOAD: "Back to an uploaded file",
}
"""Labels of the button, by previous corpus."""
BACK_HELP: Final = "Your texts are kept, and you can return to them in the sidebar. A file has to be uploaded again."
NAME: Final = "evidence"
COLUMN_EVIDENCE: Final = (
    "Each of your texts is a bet that the head has the role; this is what a stake of 1 has become. There is a bet "
    "against tau and one against uniform attention, and the smaller counts; with the paper's rule, only the one "
    "against tau."
)
COLUMN_MEAN: Final = (
    "Mean score over the texts in which the role is applicable, and in parentheses a lower bound that stays valid "
    "however often you look and add texts."
)
START_OVER: Final = "Start over"
START_OVER_HELP: Final = (
    "From then on, evidence counts only the texts that are in the corpus now, and earlier ones no longer count. "
    "This is valid only if you would have chosen these texts without having seen any results, so type new ones."
)
VALID_ONCE: Final = f"The test is valid {CHOSEN_BEFORE}."
BY_MEAN: Final = "Here the mean alone decides, without a test or evidence."
BY_SHARE: Final = (
    "Shares above chance can be negative, and evidence needs values of at least 0. So a t-test decides here, which is "
    f"valid {CHOSEN_BEFORE}. On the scale of scores, evidence stays valid while you add texts."
)
NO_HEAD: Final = "Choose a head in the grid to see how its evidence grows with the texts."
BY_TEXTS: Final = "How evidence grows with the number of texts is drawn for each head in the tab Evidence."


def evidence(alpha: float) -> str:
    return (
        "**Roles by evidence: stop whenever you like.** Each text is a bet that the head has the role, and odds "
        "such as 34 : 1 are what a stake of 1 has become over your texts. For a head without the role, they ever "
        f"reach {1 / alpha:g} : 1 in at most {percent(alpha)} of cases, however often you look and however many "
        "texts you add. This does not hold if you choose texts because they suit a head."
    )


def taken_out(n_texts: int) -> str:
    return f"Evidence also counts {counted(n_texts, 'text')} that you have removed."


WHICH: Final = "Removed texts"
WHY_COUNTED: Final = (
    "Otherwise, deleting the texts that spoke against a role would create evidence for it. A link or a reload "
    "restores only the texts of the corpus, and evidence starts again with these."
)


def left_out(n_texts: int) -> str:
    return f"{counted(n_texts, 'text')} of these cannot be counted: too long for this checkpoint."


def kept(n_texts: int, is_new: bool, previous: str | None) -> str:
    outcome = "Kept" if is_new else "This text is in your corpus already and was not added again"
    instead = "" if previous is None else f", in place of “{previous}”"
    return f"{outcome}. The corpus is {counted(n_texts, 'text')} of your own{instead}; edit them in the sidebar."


def corpus_summary(roles: Sequence[tuple[str, str]], n_texts: int) -> str:
    listing = ", ".join(f"{role_title(role)} ({odds})" for role, odds in roles)
    return f"Over {counted(n_texts, 'text')}, by evidence: {listing or 'no role'}."


def filled_by_evidence(tau: float) -> str:
    return f"Filled letters: roles this head holds by the evidence so far (tau {tau:g}). A role can be lost again."


def untested(reasons: dict[str, str]) -> str:
    by_reason: dict[str, list[str]] = {}
    for role, reason in reasons.items():
        by_reason.setdefault(reason, []).append(role_title(role))
    return " ".join(
        f"Not tested: {' and '.join(filter(None, (', '.join(roles[:-1]), roles[-1])))}; {reason}."
        for reason, roles in by_reason.items()
    )
