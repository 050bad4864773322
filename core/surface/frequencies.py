"""Word frequency ranks, from the texts themselves, from wordfreq or from a file, and the word of each token."""

import gzip
import io
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import PurePath
from typing import Final

import numpy as np
from jaxtyping import Int

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.text import MAX_BYTES, Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

ENOUGH_WORDS: Final = 50_000
"""Minimum size of a corpus, in words, to use its own counts: in smaller ones, most words occur once or twice."""
FREQUENCY_SUFFIXES: Final = (".txt", ".tsv", ".txt.gz", ".tsv.gz")
COLUMNS: Final = ("rank", "word")
MAX_WORDS: Final = 1_000_000
MAX_CHARACTERS: Final = 200
"""Maximum length of a word in a file."""
WORD: Final = re.compile(r"[^\W_]+(?:['’][^\W_]+)*|\S")
"""A run of letters and digits, apostrophes inside included, or any other sign by itself."""
UNREADABLE: Final = "\N{REPLACEMENT CHARACTER}"
"""Represents characters unknown to the tokenizer."""


@dataclass(frozen=True, eq=False)
class FrequencyList:
    """Ranks of words by frequency."""

    source: str
    """Description of the source, for display."""
    rank_of: Mapping[str, int]
    """Lower-case word -> rank, from 1 for the most frequent."""

    def ranks(self, words: Sequence[str]) -> Int[np.ndarray, " word"]:
        """Rank of each word: 0 for an empty string, one beyond the last for words that are not in the list.

        A sign other than a letter or digit has rank 1 unless the list has it, because word lists leave signs out.
        """
        return np.array([self._rank(word) for word in words], dtype=np.int64)

    def _rank(self, word: str) -> int:
        rank = self.rank_of.get(word)
        if rank is None and len(word) > 1 and word.isdecimal():
            rank = self.rank_of.get("0" * len(word))  # wordfreq counts all numbers of this length together
        if rank is not None or not word:
            return rank or 0
        return 1 if not word[0].isalnum() and word != UNREADABLE else len(self.rank_of) + 1


def frequencies_of(texts: Sequence[Text], fewest: int = ENOUGH_WORDS) -> FrequencyList:
    """The default list: ranks of the words of some texts, ties in alphabetical order, or English for fewer words."""
    counts = Counter(word for text in texts for segment in text.segments for word in WORD.findall(segment.lower()))
    n_words = counts.total()
    if n_words < fewest:
        return english_frequencies()
    ordered = sorted(counts, key=lambda word: (-counts[word], word))
    return FrequencyList(f"the texts themselves ({n_words:,} words)", _ranked(ordered))


@cache
def english_frequencies() -> FrequencyList:
    """Ranks of English words from the package wordfreq.

    Source: Speer 2022, wordfreq 3; frequencies are combined from several corpora.
    """
    from wordfreq import iter_wordlist

    ranked = _ranked(iter_wordlist("en"))
    return FrequencyList(f"English after wordfreq ({len(ranked):,} words)", ranked)


def read_frequencies(name: str, content: bytes) -> FrequencyList:
    """Read a frequency list from a file.

    Args:
        name: the file's; .txt holds a word a line, the most frequent first, .tsv a header that names at least the
            columns rank and word; both may be gzipped.
        content: its bytes, UTF-8.

    Raises: TextError.
    """
    if not name.lower().endswith(FREQUENCY_SUFFIXES):
        raise TextError(
            f'"{name}" has a format that cannot be read. Choose a file that ends in {", ".join(FREQUENCY_SUFFIXES)}.'
        )
    lines = _lines(_unpacked(name, content))
    is_table = PurePath(name.lower().removesuffix(".gz")).suffix == ".tsv"
    ranked: dict[str, int] = {}
    listed = ((line, rank, word) for rank, (line, word) in enumerate(lines, start=1))
    for line, rank, word in _table(lines) if is_table else listed:
        word = word.strip().lower()
        if not word or len(word) > MAX_CHARACTERS or word.split() != [word]:
            raise TextError(
                f"Line {line:,} holds no single word of at most {MAX_CHARACTERS} characters. Write one word per line."
            )
        # Of "Apple" and "apple", the more frequent one decides.
        ranked[word] = min(rank, ranked.get(word, rank))
        if len(ranked) > MAX_WORDS:
            raise TextError(f"The file holds more than {MAX_WORDS:,} words. Keep the most frequent ones.")
    if not ranked:
        raise TextError("The file has no words. Choose one with one word per line, the most frequent first.")
    return FrequencyList(
        f"{PurePath(name).name} ({len(ranked):,} words)", _ranked(sorted(ranked, key=ranked.__getitem__))
    )


def _ranked(words: Iterable[str]) -> dict[str, int]:
    ranked: dict[str, int] = {}
    for word in words:
        ranked.setdefault(word, len(ranked) + 1)
    return ranked


def _unpacked(name: str, content: bytes) -> bytes:
    if not name.lower().endswith(".gz"):
        return content
    try:
        with gzip.open(io.BytesIO(content)) as file:
            return file.read(MAX_BYTES + 1)
    except (OSError, EOFError, zlib.error) as error:
        raise TextError(f"The file cannot be unpacked ({error}). Pack it again with gzip, or give it plain.") from None


def _lines(content: bytes) -> Iterator[tuple[int, str]]:
    """Number and content of every line that is not blank."""
    if len(content) > MAX_BYTES:
        raise TextError(f"The list is larger than {MAX_BYTES // 10**6} MB. Keep the most frequent words.")
    for line, raw in enumerate(content.removeprefix(b"\xef\xbb\xbf").splitlines(), start=1):
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            raise TextError(
                f"Line {line:,} is not UTF-8: byte 0x{raw[error.start]:02X} is not a character there. "
                "Save the file as UTF-8."
            ) from None
        if text.strip():
            yield line, text


def _table(lines: Iterator[tuple[int, str]]) -> Iterator[tuple[int, int, str]]:
    header = [cell.strip().lower() for cell in next(lines, (0, ""))[1].split("\t")]
    if missing := [column for column in COLUMNS if column not in header]:
        raise TextError(
            f'The first line names no column "{missing[0]}". Write a header with the columns rank and word, separated '
            "by tabs, or give a .txt file with one word per line."
        )
    indices = [header.index(column) for column in COLUMNS]
    for line, row in lines:
        cells = row.split("\t")
        if len(cells) != len(header):
            raise TextError(f"Line {line:,} has {len(cells)} cells and the header {len(header)}. Check its tabs.")
        rank, word = (cells[index].strip() for index in indices)
        if not (rank.isascii() and rank.isdecimal() and len(rank) < 10 and int(rank) > 0):
            raise TextError(f"Line {line:,} has the rank {rank!r}. Write whole numbers from 1 on.")
        yield line, int(rank), word


def token_words(tokens: TokenizedText) -> tuple[str, ...]:
    """The word that each token is part of, in lower case; empty for a special token, and for one without characters.

    Tokens between two blanks are joined and split into words in the same way for every tokenizer.
    """
    words = [""] * len(tokens.ids)
    for run in _runs(tokens):
        first = int(tokens.spans[run[0], 0])
        text = ""
        for token in run:
            text = text[: tokens.spans[token, 0] - first] + _characters(tokens, token)
        matches = [(match.start(), match.group()) for match in WORD.finditer(text.lower())]
        match_of_token = (
            np.searchsorted([start for start, _ in matches], tokens.spans[run, 0] - first, side="right") - 1
        )
        for token, index in zip(run, match_of_token):
            words[token] = matches[index][1]
    return tuple(words)


def _runs(tokens: TokenizedText) -> Iterator[list[int]]:
    """Runs of tokens with characters, in one segment and without a blank between them."""
    run: list[int] = []
    for token in np.flatnonzero((tokens.segments != SPECIAL) & (tokens.spans[:, 1] > tokens.spans[:, 0])).tolist():
        if run and (
            tokens.segments[run[-1]] != tokens.segments[token] or tokens.spans[token, 0] > tokens.spans[run[-1], 1]
        ):
            yield run
            run = []
        run.append(token)
    if run:
        yield run


def _characters(tokens: TokenizedText, token: int) -> str:
    """The characters of a token, as many as its span has."""
    text, n_characters = tokens.tokens[token].removeprefix("##"), int(np.diff(tokens.spans[token])[0])
    return text if len(text) == n_characters else UNREADABLE * n_characters
