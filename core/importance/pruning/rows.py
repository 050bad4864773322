"""Pruning curves as trials: one file of a Parquet data set per curve, so that no curve is computed twice."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.commands import make_folder, write
from attention_sieve.core.importance.pruning.curves import Curve
from attention_sieve.core.importance.pruning.orders import ByHalf, Order

FORMAT: Final = 2
NUMBERS: Final = ("score", "delta", "low", "high")
MATRICES: Final = ("by_unit", "differs", "drawn")
"""A list for each step."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveTrial:
    """A curve to draw: plain values that can be sent to another process."""

    order: Order
    """Name of the order, and for random ones the number of the draw, which is the seed."""
    by_half: ByHalf
    full: Float[np.ndarray, "text part"]
    """Outcomes of each text with all heads on."""


class CurveRows:
    """Curves in a folder: one file per curve, with a row for each share of heads."""

    def __init__(self, folder: Path, facts: Mapping[str, str]) -> None:
        """Read and write nothing yet; the folder is created if missing, and `facts` are the provenance of the curves.

        Raises: AnalysisError if the folder cannot be created.
        """
        self._folder, self._facts = folder, dict(facts)
        make_folder(folder)

    def read(self, trial: CurveTrial) -> Curve | None:
        """Read a curve that was drawn before; None if there is none, or it cannot be read."""
        try:
            rows = pd.read_parquet(self._path(trial))
            return Curve(
                order=trial.order[0],
                draw=trial.order[1],
                n_removed=rows["removed"].to_numpy(int),
                **{name: rows[name].to_numpy(float) for name in NUMBERS},
                **{name: np.stack(rows[name].to_list(), axis=1) for name in MATRICES},
            )
        except (OSError, ValueError, KeyError, IndexError):
            return None

    def write(self, trial: CurveTrial, curve: Curve) -> None:
        """Write a curve.

        Raises: AnalysisError if that fails.
        """
        rows = pd.DataFrame(
            {
                "order": curve.order,
                "draw": curve.draw,
                "removed": curve.n_removed,
                **{name: getattr(curve, name) for name in NUMBERS},
                **{name: list(getattr(curve, name).T) for name in MATRICES},
                **self._facts,
            }
        )
        write(self._path(trial), partial(rows.to_parquet, index=False))

    def _path(self, trial: CurveTrial) -> Path:
        """File of a curve, named by a digest of everything that it depends on."""
        key = [FORMAT, self._facts, trial.order, [half.tolist() for half in trial.by_half]]
        return self._folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()}.parquet"
