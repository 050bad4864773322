"""Texts that were parsed beforehand, once for every checkpoint that reads them: `python -m core corpus parse`.

parsing.json             which texts, parsed with what, in which shards
parsed/000000.parquet    texts with their trees
unparsed/000000.todo     texts that are not parsed yet
"""

import json
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

from core.commands import write_whole
from core.corpus.texts.inputs import CorpusText
from core.corpus.texts.text_shards import read_texts
from core.errors import AnalysisError, TextError, first_line
from core.texts.conllu import checked_tree
from core.texts.text import Text, text_of
from core.texts.words import word_starts

PARSING: Final = "parsing.json"
PARSED_FOLDER: Final = "parsed"
UNPARSED_FOLDER: Final = "unparsed"
FORMAT: Final = 1


@dataclass(frozen=True, kw_only=True)
class Parsing:
    """What a folder of parsed texts holds."""

    texts: str
    """Where they were read from."""
    text_columns: tuple[str, ...] | None
    inputs: tuple[str, ...]
    """Digests of the files that they were read from."""
    shard_size: int
    parser: str
    """Name and version of the parser."""
    n_texts: int
    n_shards: int

    def shards(self) -> Iterator[str]:
        """Names of the shards, in the order of the texts."""
        return (f"{number:06}" for number in range(self.n_shards))

    def n_texts_of(self, shard: str) -> int:
        """Number of texts of a shard: all are full but the last."""
        return min(self.shard_size, self.n_texts - int(shard) * self.shard_size)


def parsed_path(folder: Path, shard: str) -> Path:
    """File of the parsed texts of a shard."""
    return folder / PARSED_FOLDER / f"{shard}.parquet"


def unparsed_path(folder: Path, shard: str) -> Path:
    """File of the texts of a shard until they are parsed."""
    return folder / UNPARSED_FOLDER / f"{shard}.todo"


def write_parsing(folder: Path, parsing: Parsing) -> None:
    """Write what a folder holds, whole or not at all.

    Raises: OSError.
    """
    told = {"format": FORMAT, **asdict(parsing)}
    write_whole(folder / PARSING, lambda path: path.write_text(json.dumps(told, indent=1), encoding="utf-8"))


def read_parsing(folder: Path) -> Parsing | None:
    """What a folder of parsed texts holds; None for any other folder.

    Raises: AnalysisError for a folder that is damaged, or of a newer version of the program.
    """
    path = folder / PARSING
    if not os.path.isfile(path):  # where Path raises for too long a name, os.path answers False
        return None
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.pop("format") > FORMAT:
            raise AnalysisError(f"{path} was written by a newer version of this program. Update the program.")
        columns = told["text_columns"]
        return Parsing(
            texts=str(told["texts"]),
            text_columns=None if columns is None else tuple(columns),
            inputs=tuple(told["inputs"]),
            parser=str(told["parser"]),
            **{name: int(told[name]) for name in ("shard_size", "n_texts", "n_shards")},
        )
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise AnalysisError(f"{path} is damaged ({first_line(error)}). Parse the texts again, elsewhere.") from None


def read_parsed(folder: Path, parsing: Parsing) -> Iterator[CorpusText]:
    """The texts of a folder with their trees, one shard in memory at a time.

    Raises: AnalysisError where some texts are not parsed yet; TextError for a tree that does not fit its text.
    """
    n_parsed = sum(1 for _ in (folder / PARSED_FOLDER).glob("*.parquet"))
    if n_parsed < parsing.n_shards:
        raise AnalysisError(
            f"{parsing.n_shards - n_parsed:,} of {parsing.n_shards:,} shards in {folder} are not parsed yet. Go on "
            "with: python -m core corpus parse"
        )
    for shard in parsing.shards():
        path = parsed_path(folder, shard)
        for row, each in enumerate(read_texts(path), start=1):
            _check(each.text, f"{path}: row {row:,}")
            yield each


def _check(text: Text, where: str) -> None:
    """Raise TextError for a text, words or a tree that `python -m core corpus parse` cannot have written."""
    try:
        _check_values(text, where)
    except (TypeError, AttributeError, ValueError) as error:
        raise TextError(
            f"{where} holds values of another kind ({first_line(error)}). Parse the texts again, elsewhere."
        ) from None


def _check_values(text: Text, where: str) -> None:
    if not text.segments or text_of(text.segments, where).segments != text.segments:
        raise TextError(f"{where} has no text as it is read from a file. Parse the texts again, elsewhere.")
    if text.heads is None or text.relations is None or (text.words is None and text.spans is None):
        raise TextError(f"{where} has no tree. Parse the texts again, elsewhere.")
    spans = text.spans or tuple(
        tuple((start, start + len(word)) for start, word in word_starts(segment, words).items())
        for segment, words in zip(text.segments, text.words or ())
    )
    sides: tuple[Any, ...] = (text.segments, spans, text.heads, text.relations)
    if len({len(side) for side in sides}) > 1:
        raise TextError(f"{where} has not one tree for each segment. Parse the texts again, elsewhere.")
    for segment, of_side, heads, relations in zip(*sides, strict=True):
        checked_tree(heads, relations, len(of_side), where)
        ends = [0, *(end for _, end in of_side)]
        is_in_order = all(before <= start < end for before, (start, end) in zip(ends, of_side))
        if not is_in_order or ends[-1] > len(segment):
            raise TextError(f"{where} has words that are not in its text. Parse the texts again, elsewhere.")
