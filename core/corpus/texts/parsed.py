"""Texts that were parsed beforehand, once for all checkpoints, by `python -m attention_sieve corpus parse`.

parsing.json             source of the texts, parser, and number of shards
parsed/000000.parquet    texts with their trees
unparsed/000000.todo     texts that are not parsed yet
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.commands import write_whole
from attention_sieve.core.corpus.manifest import check_format
from attention_sieve.core.corpus.texts.inputs import CorpusText
from attention_sieve.core.corpus.texts.text_shards import iter_texts
from attention_sieve.core.errors import PROGRAM, AnalysisError, TextError, first_line
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.texts.given import checked_tree
from attention_sieve.core.texts.text import Text, text_of
from attention_sieve.core.texts.tokens import word_starts

PARSING: Final = "parsing.json"
PARSED_FOLDER: Final = "parsed"
UNPARSED_FOLDER: Final = "unparsed"
FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """Description of a folder of parsed texts."""

    texts: str
    """Source of the texts."""
    text_columns: tuple[str, ...] | None
    inputs: tuple[str, ...]
    """Digests of the input files."""
    shard_size: int
    parser: str
    """Name and version of the parser."""
    n_texts: int
    n_shards: int

    def __post_init__(self) -> None:
        if self.shard_size < 1 or self.n_shards != -(-self.n_texts // self.shard_size):
            raise ValueError(f"{self.n_texts:,} texts in {self.n_shards:,} shards of {self.shard_size:,}")

    def shards(self) -> Iterator[str]:
        """Names of the shards, in the order of the texts."""
        return (f"{number:06}" for number in range(self.n_shards))

    def n_texts_of(self, shard: str) -> int:
        """Number of texts of a shard; all shards but the last are full."""
        return min(self.shard_size, self.n_texts - int(shard) * self.shard_size)


def parsed_path(folder: Path, shard: str) -> Path:
    """File of the parsed texts of a shard."""
    return folder / PARSED_FOLDER / f"{shard}.parquet"


def unparsed_path(folder: Path, shard: str) -> Path:
    """File of the texts of a shard until they are parsed."""
    return folder / UNPARSED_FOLDER / f"{shard}.todo"


def write_parsing(folder: Path, parsing: Parsing) -> None:
    """Write the description of a folder atomically.

    Raises: OSError.
    """
    content = {"format": FORMAT, **asdict(parsing)}
    write_whole(folder / PARSING, lambda path: path.write_text(json.dumps(content, indent=1), encoding="utf-8"))


def read_parsing(folder: Path) -> Parsing | None:
    """The description of a folder of parsed texts; None for any other folder.

    Raises: AnalysisError for a description that is damaged, or of a newer version of the program.
    """
    path = folder / PARSING
    if not os.path.isfile(path):  # where Path raises for too long a name, os.path answers False
        return None
    try:
        content = path.read_bytes()
        check_format(path, content, FORMAT)
        return typed_json(content, Parsing)
    except (OSError, ValueError) as error:
        raise AnalysisError(
            f"{path} is damaged ({first_line(error)}). Parse the texts again into another folder."
        ) from None


def read_parsed(folder: Path, parsing: Parsing) -> Iterator[CorpusText]:
    """The texts of a folder with their trees, few in memory at once.

    Raises: AnalysisError if some texts are not parsed yet; TextError for a tree that does not fit its text.
    """
    n_parsed = sum(1 for _ in (folder / PARSED_FOLDER).glob("*.parquet"))
    if n_parsed < parsing.n_shards:
        raise AnalysisError(
            f"{parsing.n_shards - n_parsed:,} of {parsing.n_shards:,} shards in {folder} are not parsed yet. Go on "
            f"with: {PROGRAM} corpus parse"
        )
    for shard in parsing.shards():
        path = parsed_path(folder, shard)
        for row, text in enumerate(iter_texts(path), start=1):
            _check(text.text, f"{path}: row {row:,}")
            yield text


def _check(text: Text, location: str) -> None:
    """Raise TextError for a text, words or a tree that `python -m attention_sieve corpus parse` cannot have written."""
    try:
        why = _misfit(text, location)
    except (TypeError, AttributeError, ValueError) as error:
        why = f"holds values of another kind ({first_line(error)})"
    if why:
        raise TextError(f"{location} {why}. Parse the texts again into another folder.")


def _misfit(text: Text, location: str) -> str:
    """What is wrong with a text and its tree; empty if nothing is."""
    if not text.segments or text_of(text.segments, location).segments != text.segments:
        return "does not contain a text as it is read from a file"
    if text.heads is None or text.relations is None or (text.words is None and text.spans is None):
        return "has no tree"
    spans = text.spans or tuple(
        tuple((start, start + len(word)) for start, word in word_starts(segment, words).items())
        for segment, words in zip(text.segments, text.words or ())
    )
    sides: tuple[Any, ...] = (text.segments, spans, text.heads, text.relations)
    if len({len(side) for side in sides}) > 1:
        return "does not have one tree for each segment"
    for segment, side_spans, heads, relations in zip(*sides, strict=True):
        checked_tree(heads, relations, len(side_spans), location)
        ends = [0, *(end for _, end in side_spans)]
        is_in_order = all(previous_end <= start < end for previous_end, (start, end) in zip(ends, side_spans))
        if not is_in_order or ends[-1] > len(segment):
            return "has words that are not in its text"
    return ""
