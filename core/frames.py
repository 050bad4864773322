"""Results as tables with named columns, and back."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.errors import AnalysisError
from core.hypotheses import HeadTests
from core.roles import ROLES

SCORE_COLUMNS: Final = ("text", "role", "layer", "head", "score")
TEST_FIELDS: Final = ("texts", "mean", "std", "low", "high", "t", "p", "p_adjusted", "holds", "constant")


def score_table(positions: Sequence[int], scores: Float[np.ndarray, "text role layer head"]) -> pd.DataFrame:
    """Scores [text role layer head] as rows, texts in order; NaN where not applicable."""
    index = pd.MultiIndex.from_product(
        [positions, ROLES, range(scores.shape[2]), range(scores.shape[3])], names=SCORE_COLUMNS[:4]
    )
    return pd.DataFrame({"score": scores.astype(np.float64).ravel()}, index=index).reset_index()


def read_score_table(path: Path) -> tuple[tuple[str, ...], np.ndarray]:
    """The roles of a file of scores, and its scores [text role layer head].

    Raises: AnalysisError for a file that is not such a table.
    """
    table = _parquet(path)
    missing = [name for name in SCORE_COLUMNS if name not in table]
    if missing or table.empty:
        lacking = f"lacks the column {missing[0]}" if missing else "has no rows"
        raise AnalysisError(f"{path} {lacking}. Make one with: python -m core score")
    if not pd.api.types.is_float_dtype(table["score"]):
        raise AnalysisError(f"The scores in {path} are {table['score'].dtype}, not numbers. Score the texts again.")
    keys = table[["role", "layer", "head"]].astype({"role": str})
    names = tuple(keys["role"].unique())
    shape = (table["text"].nunique(), len(names), table["layer"].nunique(), table["head"].nunique())
    table = table[["text", "score"]].join(keys)
    if len(table) != np.prod(shape) or table.duplicated(["text", "role", "layer", "head"]).any():
        raise AnalysisError(
            f"{path} does not hold one score for every text, role, layer and head. Score the texts again."
        )
    wide = table.pivot(index="text", columns=["role", "layer", "head"], values="score").sort_index(axis=1)
    return names, wide.reindex(columns=names, level="role").to_numpy().reshape(shape)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        return pd.read_parquet(path)
    except FileNotFoundError:
        raise AnalysisError(f"There is no file {path}. Make one with: python -m core score") from None
    except (OSError, ValueError) as error:
        reason = str(error).split("\n")[0]
        raise AnalysisError(f"{path} is no Parquet file ({reason}). Make one with: python -m core score") from None


def head_table(tests: HeadTests, fields: Sequence[str] = TEST_FIELDS) -> pd.DataFrame:
    """Tests as rows, by role, layer and head; columns are fields of HeadTests."""
    n_layers, n_heads = tests.mean.shape[1:]
    index = pd.MultiIndex.from_product([tests.roles, range(n_layers), range(n_heads)], names=["role", "layer", "head"])
    return pd.DataFrame({name: getattr(tests, name).ravel() for name in fields}, index=index).reset_index()
