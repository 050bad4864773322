"""Texts of a shard as a Parquet file, with the same row numbers as the file of scores."""

import json
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, count, islice
from pathlib import Path
from typing import Final, TypeVar

from attention_sieve.core.corpus.texts.inputs import CorpusText
from attention_sieve.core.corpus.texts.parquet_files import parquet_columns, parquet_rows
from attention_sieve.core.errors import AnalysisError, TextError, first_line
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text

Value = TypeVar("Value")

COLUMNS: Final = ("text", "second", "words", "document", "dataset", "language")
LARGEST_SHARD: Final = 2**28
"""Maximum number of characters of the texts of a shard, which are in memory together."""
LONGEST_WORDS: Final = 2**26
"""Maximum number of characters in which the words of a text and its tree are written."""
Sides = tuple[tuple[Value, ...], ...]
_Words = (
    tuple[Sides[str] | None, Sides[int] | None, Sides[str] | None]
    | tuple[Sides[str] | None, Sides[int] | None, Sides[str] | None, Sides[int] | None]
    | tuple[Sides[str] | None, Sides[int] | None, Sides[str] | None, None, GivenTokens]
)
"""Words, heads, relations and, if the words are not joined by spaces, alternating start and end characters; the ids of
a text that is given by them."""


def write_texts(path: Path, texts: Sequence[CorpusText]) -> None:
    """Write texts: segments, words and tree if given, document, data set and language.

    Raises: OSError.
    """
    import pyarrow as pa
    from pyarrow import parquet

    rows = [_row(text) for text in texts]
    columns = {name: pa.array(values, pa.string()) for name, values in zip(COLUMNS, zip(*rows), strict=True)}
    parquet.write_table(pa.table(columns), path, compression="zstd")


def shards_of(texts: Iterator[CorpusText], shard_size: int) -> Iterator[list[CorpusText]]:
    """The texts in parts of the same size, but for the last.

    Raises: AnalysisError for a part that would not fit in memory.
    """
    for number in count():
        shard = list(_fitting(islice(texts, shard_size), f"Shard {number:06}"))
        if not shard:
            return
        yield shard


def read_texts(path: Path, rows: Sequence[int] | None = None) -> list[CorpusText]:
    """The texts of a shard, or some of them in the order of the rows.

    Raises: AnalysisError for a missing file, or one of another format.
    """
    if rows is None:
        return list(_fitting(iter_texts(path), str(path)))
    texts = dict(zip(sorted(set(rows)), iter_texts(path, set(rows))))
    if missing := set(rows) - set(texts):
        raise _damaged(path, f"it has no row {max(missing):,}")
    return [texts[row] for row in rows]


def iter_texts(path: Path, rows: Collection[int] | None = None) -> Iterator[CorpusText]:
    """The texts of a shard, or some of them, in their order there; few are in memory at once.

    Raises: AnalysisError as `read_texts`.
    """
    try:
        missing = [name for name in COLUMNS if name not in parquet_columns(path)]
        if missing:
            raise ValueError(f"it has no column {missing[0]}")
        for number, row in enumerate(parquet_rows(path, COLUMNS)):
            if rows is None or number in rows:
                yield _text(row)
    except FileNotFoundError:
        raise AnalysisError(f"There is no file {path}. Plan the corpus again in another folder.") from None
    except TextError as error:
        raise AnalysisError(f"{path} does not hold the texts of a shard. {error}") from None
    except (OSError, ValueError) as error:
        raise _damaged(path, first_line(error)) from None


def _fitting(texts: Iterable[CorpusText], shard: str) -> Iterator[CorpusText]:
    """The same texts; raises AnalysisError where they are too long together."""
    n_characters = 0
    for n_texts, text in enumerate(texts, start=1):
        n_characters += sum(map(len, text.text.segments))
        if n_characters > LARGEST_SHARD:
            raise AnalysisError(
                f"{shard}: its first {n_texts:,} texts have {n_characters:,} characters, and a shard has at most "
                f"{LARGEST_SHARD:,}. Choose a smaller --shard-size."
            )
        yield text


def _damaged(path: Path, why: str) -> AnalysisError:
    return AnalysisError(f"{path} does not hold the texts of a shard ({why}). Plan the corpus again in another folder.")


def _row(corpus_text: CorpusText) -> tuple[str | None, ...]:
    text = corpus_text.text
    second = text.segments[1] if len(text.segments) > 1 else None
    return text.segments[0], second, _words(text), text.document, corpus_text.dataset, corpus_text.language


def _words(text: Text) -> str | None:
    """Words, heads, relations, and what else there is of `_Words`."""
    if text.given is not None:
        return json.dumps([text.words, text.heads, text.relations, None, text.given.fields])
    if text.words is None and text.spans is None:
        return None
    spans = [] if text.spans is None else [[list(chain.from_iterable(side)) for side in text.spans]]
    return json.dumps([text.words, text.heads, text.relations, *spans])


def _text(row: dict[str, str | None]) -> CorpusText:
    segments = tuple(segment for segment in (row["text"], row["second"]) if segment is not None)
    words, heads, relations, flat, given = None, None, None, None, None
    if row["words"] is not None:
        if len(row["words"]) > LONGEST_WORDS:
            raise ValueError(f"the words of a text take {len(row['words']):,} characters")
        words, heads, relations, *others = typed_json(row["words"], _Words)
        flat, given = (*others, None, None)[:2]
    spans = None if flat is None else tuple(tuple(zip(side[::2], side[1::2], strict=True)) for side in flat)
    text = Text(segments, words, heads, relations, row["document"], spans, given=given)
    return CorpusText(text, row["dataset"] or "", row["language"] or "")
