"""Accuracy of heads at each relation, as rows for the table, its files and the bars."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.relations.accuracy import RelationAccuracy
from attention_sieve.dashboard.figures.relations.directions import DIRECTION_NAMES

COLUMNS: Final = (
    *("relation", "cases", "documents", "name", "way", "held_out", "low", "high", "design_effect", "best_on_all"),
    *("baseline", "offset", "gain", "p", "chosen", "times_others", "from_everywhere"),
)
OR: Final = " or "
"""Separator between the heads of two halves."""


def relation_table(
    accuracies: Sequence[RelationAccuracy], control: Sequence[RelationAccuracy] | None = None
) -> pd.DataFrame:
    """The best head of each relation against the best fixed offset.

    Args:
        accuracies: of each relation, in the order of the rows.
        control: the same of a checkpoint with random weights; None without one.

    Returns: shares from 0 to 1, NaN if texts cannot be halved; the gain (held-out share minus baseline) and the
        offset are signed. `documents` counts those with cases, and `design_effect` is that of the held-out share; both
        are missing where no document is known. `chosen` names the heads that were best on each half, with their
        directions. `times_others` is how many times as much attention they give to the right word as other words give
        to it, and `from_everywhere` whether they do not beat this control; both of the best head on all texts if these
        cannot be halved. With a control its held-out share as `control`.
    """
    table = pd.DataFrame([_row(accuracy) for accuracy in accuracies], columns=list(COLUMNS)).astype(
        {"documents": "Int64"}
    )
    if control is None:
        return table
    control_accuracies = {accuracy.relation: accuracy.best_accuracy for accuracy in control}
    return table.assign(control=[control_accuracies.get(name, np.nan) for name in table["relation"]])


def _row(accuracy: RelationAccuracy) -> dict[str, object]:
    direction, layer, head = accuracy.best
    halves = [
        f"{head_name(*best)} {DIRECTION_NAMES[direction_of_half]}"
        for direction_of_half, *best in dict.fromkeys(accuracy.best_of_halves)
    ]
    return {
        "relation": accuracy.relation,
        "cases": accuracy.n_cases,
        "documents": accuracy.n_documents,
        "name": head_name(layer, head),
        "way": direction,
        "held_out": accuracy.best_accuracy,
        "low": accuracy.best_low,
        "high": accuracy.best_high,
        "design_effect": accuracy.best_design_effect,
        "best_on_all": float(accuracy.accuracy.max()),
        "baseline": accuracy.baseline.share,
        "offset": accuracy.baseline.offset,
        "gain": accuracy.best_accuracy - accuracy.baseline.share,
        "p": accuracy.p_value,
        "chosen": OR.join(halves),
        "times_others": float(accuracy.best_key_matched.times),
        "from_everywhere": bool(accuracy.best_key_matched.from_everywhere),
    }
