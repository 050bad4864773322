"""Scores of a shard by text: a wide Parquet file with a column for each role, layer and head.

Reading one head reads one column. Row numbers are those of the file of texts; a text that was left out has no scores.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.corpus.statistics import damaged
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.analysis import UNIFORM
from attention_sieve.core.statistics.series import Values

ROW_GROUP: Final = 10_000
N_AXES_OF_LAYERS: Final = 3
"""Number of axes of a series without heads: text, name and layer."""


def column_of(name: str, head: Head) -> str:
    """The column of a role, or a surface statistic, of one head: `local L3 H7`."""
    return f"{name} {head_name(*head)}"


def write_scores(path: Path, values: Values, columns: Mapping[str, tuple[str, ...]]) -> None:
    """Write the series of a shard, in single precision.

    Args:
        values: numbers of all texts of the shard.
        columns: series -> names along its second axis.

    Raises: OSError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    arrays = {name: pa.array(column, pa.float32()) for name, column in _columns(values, columns)}
    parquet.write_table(
        pa.table(arrays),
        path,
        row_group_size=ROW_GROUP,
        compression="zstd",
        compression_level=1,
        use_dictionary=False,
        column_encoding="BYTE_STREAM_SPLIT",
    )


def _columns(values: Values, columns: Mapping[str, tuple[str, ...]]) -> Iterator[tuple[str, np.ndarray]]:
    for series, names in columns.items():
        array, prefix = values[series], "uniform " if series == UNIFORM else ""
        for index, name in enumerate(names):
            for layer in range(array.shape[2]):
                if array.ndim == N_AXES_OF_LAYERS:
                    yield f"{prefix}{name} L{layer}", np.ascontiguousarray(array[:, index, layer], np.float32)
                    continue
                for head in range(array.shape[3]):
                    column = np.ascontiguousarray(array[:, index, layer, head], np.float32)
                    yield column_of(name, (layer, head)), column


def read_columns(path: Path, names: Sequence[str]) -> Float[np.ndarray, "column text"]:
    """Some columns of a shard; NaN for texts that were left out.

    Raises: AnalysisError for a file that is missing, damaged, or lacks a column.
    """
    with _open(path) as file:
        missing = [name for name in names if name not in file.schema_arrow.names]
        if missing:
            raise AnalysisError(f"{path} lacks the column {missing[0]}. Run the corpus again with this question.")
        try:
            table = file.read(columns=list(names))
        except (OSError, ValueError) as error:
            raise damaged(path, error) from None
    return np.stack([table[name].to_numpy() for name in names])


def read_role_scores(
    path: Path, roles: Sequence[str]
) -> tuple[Float[np.ndarray, "text role layer head"], Float[np.ndarray, "text role layer"]]:
    """All scores of a shard, and those of uniform attention.

    Raises: AnalysisError as `read_columns`.
    """
    with _open(path) as file:
        names = [name for name in file.schema_arrow.names if name.startswith(f"{roles[0]} L")]
    n_heads = sum(name.split()[-2] == "L0" for name in names)
    n_layers = len(names) // max(1, n_heads)
    heads = [(layer, head) for layer in range(n_layers) for head in range(n_heads)]
    scores = read_columns(path, [column_of(role, head) for role in roles for head in heads])
    uniform = read_columns(path, [f"uniform {role} L{layer}" for role in roles for layer in range(n_layers)])
    n_texts = scores.shape[1]
    return (
        scores.T.reshape(n_texts, len(roles), n_layers, n_heads),
        uniform.T.reshape(n_texts, len(roles), n_layers),
    )


def highest(path: Path, name: str, head: Head, n: int) -> tuple[Int[np.ndarray, " row"], Float[np.ndarray, " row"]]:
    """Rows of the texts of a shard on which a head scores highest, and the scores, highest first.

    Args:
        name: a role or a surface statistic.
        n: maximum number of rows.

    Raises: AnalysisError as `read_columns`.
    """
    (scores,) = read_columns(path, [column_of(name, head)])
    scored = np.flatnonzero(~np.isnan(scores))
    top = scored[np.argpartition(-scores[scored], n)[:n]] if len(scored) > n else scored
    rows = top[np.lexsort((top, -scores[top]))]
    return rows, scores[rows]


def _open(path: Path) -> Any:
    from pyarrow import ArrowException, parquet

    try:
        return parquet.ParquetFile(path)
    except FileNotFoundError:
        raise AnalysisError(f"There is no file {path}. Run the corpus again to compute it.") from None
    except (OSError, ValueError, ArrowException) as error:
        raise damaged(path, error) from None
