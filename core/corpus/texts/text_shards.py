"""Texts of a shard as a Parquet file, whose rows are those of the scores beside it."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from core.corpus.texts.inputs import CorpusText
from core.errors import AnalysisError, first_line
from core.texts.text import Text

COLUMNS: Final = ("text", "second", "words", "document", "dataset", "language")


def write_texts(path: Path, texts: Sequence[CorpusText]) -> None:
    """Write texts: both segments of each, its words with their tree where the file gave them, and where it is from.

    Raises: OSError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows = [_row(each) for each in texts]
    columns = {name: pa.array(values, pa.string()) for name, values in zip(COLUMNS, zip(*rows), strict=True)}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def read_texts(path: Path, rows: Sequence[int] | None = None) -> list[CorpusText]:
    """The texts of a shard, or some of them in the order of the rows.

    Raises: AnalysisError for a file that does not hold them.
    """
    import pyarrow as pa
    from pyarrow import parquet

    try:
        table = parquet.read_table(path, columns=list(COLUMNS))
        if rows is not None:
            table = table.take(pa.array(rows, pa.int64()))
        return [_text(row) for row in table.to_pylist()]
    except FileNotFoundError:
        raise AnalysisError(f"There is no file {path}. Plan the corpus again in another folder.") from None
    except (OSError, pa.ArrowException, ValueError, TypeError, KeyError) as error:
        raise AnalysisError(
            f"{path} does not hold the texts of a shard ({first_line(error)}). Plan the corpus again in another folder."
        ) from None


def _row(each: CorpusText) -> tuple[str | None, ...]:
    text = each.text
    second = text.segments[1] if len(text.segments) > 1 else None
    words = None if text.words is None else json.dumps([text.words, text.heads, text.relations])
    return text.segments[0], second, words, text.document, each.dataset, each.language


def _text(row: dict[str, str | None]) -> CorpusText:
    segments = tuple(segment for segment in (row["text"], row["second"]) if segment is not None)
    words, heads, relations = (None, None, None) if row["words"] is None else map(_tuples, json.loads(row["words"]))
    text = Text(segments, words, heads, relations, row["document"])
    return CorpusText(text, row["dataset"] or "", row["language"] or "")


def _tuples(sides: list[list] | None) -> tuple[tuple, ...] | None:
    return None if sides is None else tuple(map(tuple, sides))
