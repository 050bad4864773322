"""Sentences about tests of changes of a score, for commands, files and pages."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.verdicts import LEAST_OF_ONE_SIZE, LEAST_UNITS, RESAMPLES
from attention_sieve.core.statistics.means import n_documents

NEEDS: Final = (
    f"Intervals and p-values need at least {LEAST_UNITS} texts (or documents, if these are known) whose contribution "
    f"to the score changes. For an accuracy, {LEAST_OF_ONE_SIZE} texts are enough if no two are from one document."
)
"""What intervals and tests need, for the help of commands."""


def without_verdict(
    delta: Float[np.ndarray, "*cell"], p: Float[np.ndarray, "*cell"], documents: Sequence[str | None]
) -> str:
    """How many changes have no interval and p-value, and why; empty if all have them.

    Args:
        delta: the changes; NaN for those that are not there.
        p: of each.
        documents: of each text, None where unknown.
    """
    n_known = n_documents(documents)
    n_units, unit = (len(documents), "text") if n_known is None else (n_known, "document")
    there_are = f"There is 1 {unit}" if n_units == 1 else f"There are {n_units:,} {unit}s"
    reason = "with fewer, the test would too often find a change where there is none."
    if n_units < LEAST_OF_ONE_SIZE:
        return (
            f"{there_are}, and intervals and p-values need at least {LEAST_UNITS}, or {LEAST_OF_ONE_SIZE} for the "
            f"accuracy of single texts: {reason}"
        )
    is_there = ~np.isnan(delta)
    n_without, n_there = int((is_there & np.isnan(p)).sum()), int(is_there.sum())
    if not n_without:
        return ""
    number = "No change has an interval and a p-value"
    if n_without < n_there:
        number = f"{n_without} of {n_there} changes have no interval and no p-value"
    if n_units < LEAST_UNITS:
        return f"{number}. {there_are}, and at least {LEAST_UNITS} are needed: {reason}"
    return f"{number}. A head has to change at least {LEAST_UNITS} of the {n_units:,} {unit}s: {reason}"


def verdict_facts(
    delta: Float[np.ndarray, "*cell"],
    p: Float[np.ndarray, "*cell"],
    documents: Sequence[str | None],
    resamples: int = RESAMPLES,
) -> dict[str, str]:
    """How p-values were computed, for files; arguments as of `without_verdict` and `verdicts`."""
    return {
        "test": f"larger p of sign flips and bootstrap-t, {resamples:,} resamples, at least {2 / (resamples + 1):.2g}",
        "without a verdict": without_verdict(delta, p, documents) or "none",
    }
