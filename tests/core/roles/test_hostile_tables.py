"""Parquet files that are no tables of scores get a sentence, before they take memory."""

import numpy as np
import psutil
import pyarrow as pa
import pytest
from pyarrow import parquet

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.tables import READ_COLUMNS, read_score_table

NUMBERS = {name: [0.0, 1.0] for name in READ_COLUMNS}


def write(path, **columns):
    parquet.write_table(pa.table({**NUMBERS, **columns}), path)
    return path


@pytest.mark.parametrize("name", ["text", "role", "layer", "score"])
@pytest.mark.parametrize(
    "values",
    [
        pa.array([[1], [2]]),
        pa.array([{"a": 1}, {"a": 2}]),
        pa.array([[("k", 1)], []], pa.map_(pa.string(), pa.int64())),
    ],
    ids=["list", "struct", "map"],
)
def test_a_column_of_lists_or_structs_is_named(tmp_path, name, values):
    with pytest.raises(AnalysisError, match=rf"^The column {name} of .* is of type (list|struct|map)<.* holds several"):
        read_score_table(write(tmp_path / "a.parquet", **{name: values}))


@pytest.mark.parametrize(
    "values",
    [pa.array([b"a", b"b"]), pa.array([None, None]), pa.array(["a", "b"]), pa.array([True, False])],
    ids=["bytes", "nothing", "strings", "bools"],
)
@pytest.mark.parametrize("name", READ_COLUMNS)
def test_columns_of_other_types_get_a_sentence(tmp_path, name, values):
    with pytest.raises(AnalysisError):
        read_score_table(write(tmp_path / "a.parquet", **{name: values}))


def test_millions_of_rows_in_a_few_bytes_are_not_read(tmp_path):
    path, n_rows = tmp_path / "a.parquet", 2_000_000
    with parquet.ParquetWriter(path, pa.schema(dict.fromkeys(READ_COLUMNS, pa.float64()))) as writer:
        part = pa.table(dict.fromkeys(READ_COLUMNS, np.zeros(n_rows // 20)))
        for _ in range(20):
            writer.write_table(part)
    before = psutil.Process().memory_info().rss
    with pytest.raises(AnalysisError, match=r"says that it has 2,000,000 rows in [\d,]+ bytes, which no scores have"):
        read_score_table(path)
    assert psutil.Process().memory_info().rss - before < 10**8
