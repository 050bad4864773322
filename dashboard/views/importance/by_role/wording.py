"""Sentences of the tab on the roles of important heads."""

from collections.abc import Mapping, Sequence
from typing import Final

from attention_sieve.core.statistics.by_role import SHUFFLES, ByRole
from attention_sieve.dashboard.figures.figure import counted, percent

TAB: Final = "Roles of important heads"
SEE: Final = (
    "The letters in a cell are the roles that its head holds over the corpus; the colour says how much the head "
    "matters. Do heads with a role matter more than heads without it?"
)
OTHER_TEXTS: Final = "The roles are those over the corpus of the sidebar; importance is measured on the labelled texts."
ROLES: Final = "roles"
NONE: Final = "none"
VOITA: Final = "Compare Figure 1 of Voita et al. (2019), where colours are functions and the order is importance."
TABLE: Final = "All numbers in a table"
TESTS: Final = (
    f"p-values come from {SHUFFLES:,} shuffles of each role over the heads (within layers: over the heads of each "
    "layer), two-sided, corrected over the roles. The interval treats heads as independent draws; heads of one "
    "checkpoint were trained together, so the true value may lie further away."
)
COLUMNS: Final = {
    "n_holding": "heads with it",
    "n_others": "heads without it",
    "median_holding": "median importance with it",
    "median_others": "median without it",
    "superiority": "pairs ahead",
    "low": "95% from",
    "high": "to",
    "p_adjusted": "p, corrected",
    "in_layers": "pairs ahead within layers",
    "p_in_layers_adjusted": "p within layers, corrected",
}
"""Column names of the table."""


def letters(lettered: Sequence[str]) -> str:
    return f"Letters: {', '.join(lettered)}."


def summary(comparison: ByRole, labels: Mapping[str, str], alpha: float) -> str:
    sentences = []
    for index, role in enumerate(comparison.roles):
        n_with, n_without = int(comparison.n_holding[index]), int(comparison.n_others[index])
        holders = f"**{labels[role]}** ({counted(n_with, 'head')} of {n_with + n_without})"
        if not n_with or not n_without:
            sentences.append(f"{holders}: nothing to compare.")
            continue
        share = comparison.superiority[index]
        differs = comparison.p_adjusted[index] < alpha
        in_layers = comparison.p_in_layers_adjusted[index] < alpha
        result = f"ahead in {percent(share, 0)} of pairs with a head without it, p = {comparison.p_adjusted[index]:.2g}"
        sentences.append(f"{holders}: {result}{_remains(differs, in_layers, comparison.in_layers[index])}.")
    return "\n".join(f"- {sentence}" for sentence in sentences)


def _remains(differs: bool, in_layers: bool, share: float) -> str:
    if share != share:
        return "; no layer has heads of both sides"
    within = percent(share, 0)
    if differs and in_layers:
        return f"; among the heads of one layer it is {within}, and remains significant"
    if differs:
        return f"; among the heads of one layer it is {within}, and no longer significant"
    return f"; among the heads of one layer it is {within}, {'and significant' if in_layers else 'not significant'}"
