"""Words and the tokens of each word, so that texts can be compared across tokenizers."""

import re
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

FromWord = Literal["mean", "first"]
"""Attention from a word of several tokens: their mean (Clark et al.'s paper), or the first token (their code)."""
SPECIALS: Final = "[special]"
"""Represents all tokens added by the tokenizer as one word."""
CLS_WORD: Final = 0
"""Index in a WordMap of the word that represents all [CLS]-like tokens."""
OTHER_SPECIAL: Final = 1
"""Index in a WordMap of the word that represents all other special tokens."""
FIRST_WORD: Final = 2
"""Index in a WordMap of the first word of the text."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Words:
    """The words of one text: from a parser, from a file, or split at spaces."""

    segments: Int[np.ndarray, " word"]
    spans: Int[np.ndarray, "word 2"]
    """First and one-past-last character in the segment; in order, without overlap."""

    def shown(self, text: Text) -> tuple[str, ...]:
        """The words as strings."""
        return tuple(text.segments[side][start:end] for side, (start, end) in zip(self.segments, self.spans))


@dataclass(frozen=True, eq=False, kw_only=True)
class WordMap:
    """The word of each token of a text under one tokenizer."""

    n_words: int
    of_token: Int[np.ndarray, " token"]
    """Word of each token: CLS_WORD, OTHER_SPECIAL, or FIRST_WORD + its number in the text."""

    @property
    def has_tokens(self) -> Bool[np.ndarray, " word"]:
        """Whether a word has tokens; it has none if truncated, or if its characters are unknown to the tokenizer."""
        return np.isin(np.arange(self.n_words) + FIRST_WORD, self.of_token)

    def of_tokens_only(self) -> tuple["WordMap", Int[np.ndarray, " kept"]]:
        """The same without words that have no tokens, and the indices of the remaining words."""
        indices = np.flatnonzero(self.has_tokens)
        is_word = self.of_token >= FIRST_WORD
        new_numbers = np.searchsorted(indices, self.of_token - FIRST_WORD) + FIRST_WORD
        return WordMap(n_words=len(indices), of_token=np.where(is_word, new_numbers, self.of_token)), indices


def words_of(text: Text) -> Words:
    """The words given for a text, or otherwise the text split at spaces."""
    if text.spans is not None:
        numbers = [side for side, side_spans in enumerate(text.spans) for _ in side_spans]
        ends = [end for side_spans in text.spans for span in side_spans for end in span]
        return Words(segments=np.array(numbers, int), spans=np.array(ends, int).reshape(-1, 2))
    segments, spans = list[int](), list[tuple[int, int]]()
    for side, segment in enumerate(text.segments):
        starts = word_starts(segment, None if text.words is None else text.words[side])
        segments += [side] * len(starts)
        spans += [(start, start + len(word)) for start, word in starts.items()]
    return Words(segments=np.array(segments, int), spans=np.array(spans, int).reshape(-1, 2))


def word_map(words: Words, tokens: TokenizedText) -> WordMap:
    """Assign each token to a word.

    A token belongs to the word that contains its first character; a token without characters, or between two words,
    belongs to the previous word of its segment, or to the first.
    """
    of_token = np.where(tokens.is_cls, CLS_WORD, OTHER_SPECIAL)
    for side in np.unique(tokens.segments[tokens.segments != SPECIAL]):
        in_side, side_words = tokens.segments == side, np.flatnonzero(words.segments == side)
        if not len(side_words):
            raise ValueError(f"Segment {side} has tokens and no word.")
        spans = tokens.spans[in_side]
        # An empty span belongs to the preceding character.
        first_characters = spans[:, 0] - (spans[:, 0] == spans[:, 1])
        positions = np.maximum(np.searchsorted(words.spans[side_words, 0], first_characters, side="right") - 1, 0)
        of_token[in_side] = FIRST_WORD + side_words[positions]
    return WordMap(n_words=len(words.segments), of_token=of_token)


def word_starts(segment: str, words: tuple[str, ...] | None) -> dict[int, str]:
    """Index of the first character of each word -> the word; given words are joined by single spaces."""
    if words is None:
        return {match.start(): match.group() for match in re.finditer(r"\S+", segment)}
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    return dict(zip(starts.tolist(), words))
