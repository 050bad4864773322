"""Fixed word vectors, from a text file such as GloVe or from a checkpoint's embeddings."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float32, Int

from attention_sieve.core.errors import AnalysisError

UNKNOWN: Final = 0
"""Row of words without a vector; all zeros."""
MAX_VECTOR_BYTES: Final = 8 * 10**9
"""Maximum file size; the largest GloVe file is 5.6 GB."""
MAX_LINE_BYTES: Final = 100_000
MAX_DIMENSIONS: Final = 2_000

Named = TypeVar("Named", bound=Hashable)
"""Key of a word: the word itself, or its tokens."""


@dataclass(frozen=True, eq=False, kw_only=True)
class WordVectors:
    """The vectors of the words of some texts."""

    table: Float32[np.ndarray, "row dimension"]
    """One row per distinct word; row UNKNOWN is 0."""
    rows: tuple[Int[np.ndarray, " _"], ...]
    """Row of each word, for each text."""


def no_vectors(n_words: Sequence[int]) -> WordVectors:
    """Vectors of dimension 0, for texts with the given numbers of words."""
    return WordVectors(table=np.zeros((1, 0), np.float32), rows=tuple(np.full(n, UNKNOWN) for n in n_words))


def vectors_from_file(path: Path, texts: Sequence[Sequence[str]]) -> WordVectors:
    """Vectors of the words of texts from a text file; see `vectors_from_lines`.

    Raises: AnalysisError.
    """
    try:
        if (n_bytes := path.stat().st_size) > MAX_VECTOR_BYTES:
            raise AnalysisError(f"{path} has {n_bytes:,} bytes and at most {MAX_VECTOR_BYTES:,} are read. Shorten it.")
        with path.open("rb") as file:
            return vectors_from_lines(path.name, iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), texts)
    except OSError as error:
        raise AnalysisError(f"{path} cannot be read ({error.strerror}). Check the path.") from None


def vectors_from_lines(name: str, lines: Iterable[bytes], texts: Sequence[Sequence[str]]) -> WordVectors:
    """Vectors of the words of texts from lines such as GloVe's: a word, then its numbers, separated by spaces.

    Words are looked up in lower case, as the code of Clark et al. does. A first line of two whole numbers (word2vec
    format) is skipped. Only the lines of words in the texts are parsed.

    Args:
        name: of the file, for messages.
        lines: UTF-8, each of at most MAX_LINE_BYTES.
        texts: the words of each.

    Raises: AnalysisError for a line that cannot be read, and where no word is found.
    """
    vocabulary = {word.lower() for words in texts for word in words}
    vectors: dict[str, Float32[np.ndarray, " dimension"]] = {}
    for word, vector in _entries(name, lines, vocabulary):
        vectors.setdefault(word, vector)
    if not vectors:
        raise AnalysisError(
            f"{name} has a vector for none of the {len(vocabulary):,} words of the texts. Choose a file with vectors "
            "of lower-case words of their language."
        )
    return looked_up(vectors, [[word.lower() for word in words] for words in texts])


def looked_up(
    vectors: Mapping[Named, Float32[np.ndarray, " dimension"]], texts: Sequence[Sequence[Named]]
) -> WordVectors:
    """Vectors of the words of texts as a table; words without a vector get row UNKNOWN."""
    row_of = {word: row for row, word in enumerate(vectors, start=UNKNOWN + 1)}
    table = np.stack([np.zeros_like(next(iter(vectors.values()))), *vectors.values()])
    rows = tuple(np.array([row_of.get(word, UNKNOWN) for word in words], int) for words in texts)
    return WordVectors(table=table, rows=rows)


def _entries(
    name: str, lines: Iterable[bytes], vocabulary: set[str]
) -> Iterator[tuple[str, Float32[np.ndarray, " dimension"]]]:
    n_numbers = 0
    for number, line in enumerate(lines, start=1):
        where = f"Line {number:,} of {name}"
        if len(line) > MAX_LINE_BYTES:
            raise AnalysisError(
                f"{where} has more than {MAX_LINE_BYTES:,} bytes. Choose a file with one word per line."
            )
        fields = line.rstrip().split(b" ")
        if number == 1 and len(fields) == 2 and all(field.isdigit() for field in fields):
            continue
        n_numbers = n_numbers or len(fields) - 1
        # A word may contain spaces, so the numbers are counted from the end.
        if not 0 < n_numbers < len(fields):
            raise AnalysisError(
                f"{where} has {len(fields) - 1:,} numbers and {n_numbers or 'at least 1'} were expected. Choose a text "
                "file with a word and its numbers on each line."
            )
        if n_numbers > MAX_DIMENSIONS:
            raise AnalysisError(f"{where} has {n_numbers:,} numbers and at most {MAX_DIMENSIONS:,} are read.")
        word = _decoded(b" ".join(fields[:-n_numbers]), where)
        if word in vocabulary:
            yield word, _numbers(fields[-n_numbers:], where)


def _decoded(word: bytes, where: str) -> str:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        raise AnalysisError(f"{where} is not UTF-8. Save the file as UTF-8 text.") from None


def _numbers(fields: Sequence[bytes], where: str) -> Float32[np.ndarray, " dimension"]:
    try:
        numbers = np.array([float(field) for field in fields])
    except ValueError:
        raise AnalysisError(f"{where} has something other than numbers after its word. Correct it there.") from None
    if not (np.abs(numbers) <= np.finfo(np.float32).max).all():
        raise AnalysisError(f"{where} holds a number that is not finite, or too large. Correct it there.")
    return numbers.astype(np.float32)
