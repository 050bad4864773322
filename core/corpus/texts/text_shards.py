"""Texts of a shard as a Parquet file, with the same row numbers as the file of scores."""

import json
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from core.corpus.texts.inputs import CorpusText
from core.errors import AnalysisError, first_line
from core.texts.text import Text

COLUMNS: Final = ("text", "second", "words", "document", "dataset", "language")


def write_texts(path: Path, texts: Sequence[CorpusText]) -> None:
    """Write texts: segments, words and tree if given, document, data set and language.

    Raises: OSError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows = [_row(text) for text in texts]
    columns = {name: pa.array(values, pa.string()) for name, values in zip(COLUMNS, zip(*rows), strict=True)}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def read_texts(path: Path, rows: Sequence[int] | None = None) -> list[CorpusText]:
    """The texts of a shard, or some of them in the order of the rows.

    Raises: AnalysisError for a missing file, or one of another format.
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


def _row(corpus_text: CorpusText) -> tuple[str | None, ...]:
    text = corpus_text.text
    second = text.segments[1] if len(text.segments) > 1 else None
    return text.segments[0], second, _words(text), text.document, corpus_text.dataset, corpus_text.language


def _words(text: Text) -> str | None:
    """Words, heads, relations and, if the words are not joined by spaces, alternating start and end characters."""
    if text.words is None and text.spans is None:
        return None
    spans = [] if text.spans is None else [[list(chain.from_iterable(side)) for side in text.spans]]
    return json.dumps([text.words, text.heads, text.relations, *spans])


def _text(row: dict[str, str | None]) -> CorpusText:
    segments = tuple(segment for segment in (row["text"], row["second"]) if segment is not None)
    arrays = [] if row["words"] is None else [_tuples(sides) for sides in json.loads(row["words"])]
    words, heads, relations, flat = (*arrays, None, None, None, None)[:4]
    spans = None if flat is None else tuple(tuple(zip(side[::2], side[1::2], strict=True)) for side in flat)
    text = Text(segments, words, heads, relations, row["document"], spans)
    return CorpusText(text, row["dataset"] or "", row["language"] or "")


def _tuples(sides: list[list] | None) -> tuple[tuple, ...] | None:
    return None if sides is None else tuple(map(tuple, sides))
