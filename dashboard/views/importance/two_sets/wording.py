"""Sentences of the tab that compares two sets of texts."""

from typing import Final

from attention_sieve.core.importance.two_sets import Correlation, TwoSets
from attention_sieve.dashboard.figures.figure import counted

TAB: Final = "Two sets of texts"
SEE: Final = (
    "Does a head that matters on one set of texts matter on another? Each dot is a head: what switching it off does on "
    "the texts of this page, and on a second set."
)
SECOND: Final = "Second set"
UPLOAD: Final = "a file"
UPLOADER: Final = "Texts of the second set"
WAIT: Final = "Upload the second set of texts, in any format that the sidebar accepts."
TABLE_UPLOADER: Final = "A second labelled table, with the same columns"
WAIT_TABLE: Final = "Upload a second table with the same columns, such as one from another source."
SAME: Final = "All texts of this page are also in the second set, so there is nothing to compare. Choose another set."
MICHEL_2: Final = "Corresponds to Figure 2 of Michel et al. (2019)."
TABLE: Final = "All heads in a table"
FIRST_SET: Final = "this page"
ALL_ON: Final = "all heads on"


def shared(n_shared: int, n_first: int) -> str:
    return (
        f"{counted(n_shared, 'text')} of this page {'is' if n_shared == 1 else 'are'} also in the second set and "
        f"{'counts' if n_shared == 1 else 'count'} only there, so that the sets have no text in common. "
        f"{counted(n_first - n_shared, 'text')} are left for the first set."
    )


def summary(pair: TwoSets, n_heads: int, n_texts: tuple[int, int]) -> str:
    sets = f"{counted(n_texts[0], 'text')} against {counted(n_texts[1], 'text')}"
    if pair.pearson.value != pair.pearson.value:
        return (
            f"{counted(n_heads, 'head')}, {sets}: in one of the sets all heads change the score by the same amount, "
            "so there is no correlation."
        )
    start = (
        f"{counted(n_heads, 'head')}, {sets}: Pearson's correlation of the changes is **{_interval(pair.pearson)}**, "
        f"that of their ranks (Spearman) {_interval(pair.spearman)}."
    )
    if any(within != within for within in pair.within):
        return start
    return (
        f"{start} For comparison, the two halves of one set: {pair.within[0]:.2f} (first) and {pair.within[1]:.2f} "
        "(second). Only a correlation well below these is more than chance between texts."
    )


def _interval(correlation: Correlation) -> str:
    value, low, high = correlation.value, correlation.low, correlation.high
    return f"{value:.2f}" if low != low else f"{value:.2f} (95% interval {low:.2f} to {high:.2f})"
