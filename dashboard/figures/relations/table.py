"""How well heads find each relation, as rows that the table, its files and the bars share."""

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from core.attention.settings import head_name
from core.relations.accuracy import RelationAccuracy
from dashboard.figures.relations.directions import DIRECTION_NAMES

COLUMNS: Final = (
    *("relation", "cases", "documents", "name", "way", "held_out", "low", "high", "design_effect", "best_on_all"),
    *("baseline", "offset", "gain", "p", "chosen"),
)
OR: Final = " or "
"""Between the heads of two halves."""


def relation_table(
    accuracies: Sequence[RelationAccuracy], control: Sequence[RelationAccuracy] | None = None
) -> pd.DataFrame:
    """The best head of each relation against the best fixed offset.

    Args:
        accuracies: of each relation, in the order of the rows.
        control: the same of a checkpoint with random weights; None without one.

    Returns: shares from 0 to 1, NaN where texts cannot be halved; the gain (held-out share minus baseline) and the
        offset are signed. `documents` counts those with cases, and `design_effect` is that of the held-out share; both
        are missing where no document is known. `chosen` names the heads that were best on each half, with their
        directions. With a control its held-out share as `control`.
    """
    table = pd.DataFrame([_row(one) for one in accuracies], columns=list(COLUMNS)).astype({"documents": "Int64"})
    if control is None:
        return table
    reached = {one.relation: one.best_accuracy for one in control}
    return table.assign(control=[reached.get(name, np.nan) for name in table["relation"]])


def _row(one: RelationAccuracy) -> dict[str, object]:
    direction, layer, head = one.best
    halves = [f"{head_name(*best)} {DIRECTION_NAMES[way]}" for way, *best in dict.fromkeys(one.best_of_halves)]
    return {
        "relation": one.relation,
        "cases": one.n_cases,
        "documents": one.n_documents,
        "name": head_name(layer, head),
        "way": direction,
        "held_out": one.best_accuracy,
        "low": one.best_low,
        "high": one.best_high,
        "design_effect": one.best_design_effect,
        "best_on_all": float(one.accuracy.max()),
        "baseline": one.baseline.share,
        "offset": one.baseline.offset,
        "gain": one.best_accuracy - one.baseline.share,
        "p": one.p_value,
        "chosen": OR.join(halves),
    }
