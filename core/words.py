"""Words, the tokens they are made of, and attention between them, so that two tokenizers can meet."""

import re
from collections import Counter
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from core.texts import Text
from core.tokens import SPECIAL, TokenizedText

FromWord = Literal["mean", "first"]
"""Attention from a word of several pieces: the mean over them (the paper), or its first piece (the authors' code)."""
SPECIALS: Final = "[special]"
"""Stands for all tokens that the tokenizer added, as one word."""
CLS_WORD: Final = 0
"""Stands in a WordMap for all [CLS]-like tokens, as one word."""
OTHER_SPECIAL: Final = 1
"""Stands in a WordMap for all other special tokens, as one word."""
FIRST_WORD: Final = 2
"""The first word of a text in a WordMap."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Words:
    """The words of one text, whoever found them: a parser, a file, or blanks."""

    segments: Int[np.ndarray, " word"]
    spans: Int[np.ndarray, "word 2"]
    """First and one-past-last character in the segment; in order and without overlap."""

    def shown(self, text: Text) -> tuple[str, ...]:
        """The words themselves."""
        return tuple(text.segments[side][start:end] for side, (start, end) in zip(self.segments, self.spans))


@dataclass(frozen=True, eq=False, kw_only=True)
class WordMap:
    """Which tokens of a text under a tokenizer make which word."""

    n_words: int
    of_token: Int[np.ndarray, " token"]
    """Word of each token: CLS_WORD, OTHER_SPECIAL, or FIRST_WORD + its number in the text."""

    @property
    def has_tokens(self) -> Bool[np.ndarray, " word"]:
        """Whether any token of a word is there; none is beyond a cut, or of a character no tokenizer knows."""
        return np.isin(np.arange(self.n_words) + FIRST_WORD, self.of_token)

    def of_tokens_only(self) -> tuple["WordMap", Int[np.ndarray, " kept"]]:
        """The same without the words that have no token, and the places of those kept: most of a text may be cut."""
        kept = np.flatnonzero(self.has_tokens)
        is_word = self.of_token >= FIRST_WORD
        places = np.searchsorted(kept, self.of_token - FIRST_WORD) + FIRST_WORD
        return WordMap(n_words=len(kept), of_token=np.where(is_word, places, self.of_token)), kept


def words_of(text: Text) -> Words:
    """The words that a text brought, or else what stands between blanks."""
    segments, spans = list[int](), list[tuple[int, int]]()
    for side, segment in enumerate(text.segments):
        found = _starts(segment, None if text.words is None else text.words[side])
        segments += [side] * len(found)
        spans += [(start, start + len(word)) for start, word in found.items()]
    return Words(segments=np.array(segments, int), spans=np.array(spans, int).reshape(-1, 2))


def word_map(words: Words, tokens: TokenizedText) -> WordMap:
    """Which tokens make which word.

    A token belongs to the word that holds its first character; one that holds none, or stands between two words, to
    the nearest word before it in its segment, or the first there.
    """
    of_token = np.where(tokens.is_cls, CLS_WORD, OTHER_SPECIAL)
    for side in np.unique(tokens.segments[tokens.segments != SPECIAL]):
        own, of_side = tokens.segments == side, np.flatnonzero(words.segments == side)
        if not len(of_side):
            raise ValueError(f"Segment {side} has tokens and no word.")
        spans = tokens.spans[own]
        firsts = spans[:, 0] - (spans[:, 0] == spans[:, 1])  # what has no character stands before its place
        places = np.maximum(np.searchsorted(words.spans[of_side, 0], firsts, side="right") - 1, 0)
        of_token[own] = FIRST_WORD + of_side[places]
    return WordMap(n_words=len(words.segments), of_token=of_token)


@dataclass(frozen=True, eq=False, kw_only=True)
class WordAttention:
    """Attention of some heads between the words of one text."""

    words: tuple[str, ...]
    """The text's words between blanks, segment by segment; first SPECIALS, for all tokens the tokenizer added."""
    segments: tuple[int, ...]
    """Segment of each word; core.tokens.SPECIAL for SPECIALS."""
    attention: Float[np.ndarray, "chosen word word"]
    """Sum over the key word's tokens, mean over the query word's tokens; rows sum to 1, or to 0 for a word that has no
    token of its own."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CommonWords:
    """The attention of one text under two tokenizers, between the words that both have."""

    a: WordAttention
    b: WordAttention
    n_left_out: int
    """Words with tokens under one of the two only, because the other was cut before or adds no special tokens; their
    share is missing from the rows."""


def word_attention(
    text: Text, tokens: TokenizedText, attention: Float[np.ndarray, "chosen token token"]
) -> WordAttention:
    """Attention between words from attention between tokens, of a whole text whose queries are its keys.

    Args:
        text: what the tokens were made from; of an encoder-decoder's pair the one segment that attends.
        tokens: the text under a tokenizer.
        attention: of some heads, between all of its tokens.

    Returns: the words that any tokenizer would give. A token belongs to the word that holds its first character; one
        that holds none, such as a blank, to the nearest word before it, or the first. Where the text was cut, the words
        beyond the cut are left out.
    Raises: ValueError for attention between another number of tokens.
    Source: Clark et al. 2019, section 4.1: to a word the sum over its pieces, from a word the mean.
    """
    if attention.shape[1] != len(tokens.ids):
        raise ValueError(f"Attention between {attention.shape[1]} tokens for a text of {len(tokens.ids)}.")
    words, segments, of_token = [SPECIALS], [SPECIAL], np.zeros(len(tokens.ids), int)
    for side, segment in enumerate(text.segments):
        own = tokens.segments == side
        starts = _starts(segment, None if text.words is None else text.words[side])
        spans = tokens.spans[own]
        firsts = spans[:, 0] - (spans[:, 0] == spans[:, 1])  # what has no character stands before its place
        places = np.maximum(np.searchsorted(list(starts), firsts, side="right") - 1, 0)
        of_token[own] = len(words) + places
        kept = list(starts.values())[: int(places.max()) + 1 if tokens.n_cut else None]
        words += kept
        segments += [side] * len(kept)
    belongs = (of_token == np.arange(len(words))[:, None]).astype(attention.dtype)
    share = belongs / np.maximum(belongs.sum(axis=1, keepdims=True), 1)
    return WordAttention(words=tuple(words), segments=tuple(segments), attention=share @ attention @ belongs.T)


def _starts(segment: str, words: tuple[str, ...] | None) -> dict[int, str]:
    """First character of each word -> the word; words that a file brought are joined by single blanks."""
    if words is None:
        return {match.start(): match.group() for match in re.finditer(r"\S+", segment)}
    firsts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    return dict(zip(firsts.tolist(), words))


def common_words(a: WordAttention, b: WordAttention) -> CommonWords:
    """The words that have tokens under both, where two tokenizers read one text and may cut it at different places.

    Raises: ValueError for the words of two texts.
    """
    n_common = Counter(a.segments) & Counter(b.segments)
    kept = [np.flatnonzero(_place_in_segment(one) < [n_common[side] for side in one.segments]) for one in (a, b)]
    first, second = (_only(one, places) for one, places in zip((a, b), kept))
    if (first.words, first.segments) != (second.words, second.segments):
        raise ValueError("The words are those of two texts.")
    under_a, under_b = first.attention.any(axis=(0, 2)), second.attention.any(axis=(0, 2))
    both = np.flatnonzero(under_a & under_b)
    n_cut = len(a.words) + len(b.words) - 2 * len(first.words)
    return CommonWords(a=_only(first, both), b=_only(second, both), n_left_out=n_cut + int((under_a ^ under_b).sum()))


def _place_in_segment(words: WordAttention) -> Int[np.ndarray, " word"]:
    segments = np.array(words.segments)
    return np.arange(len(segments)) - np.searchsorted(segments, segments)


def _only(words: WordAttention, places: Int[np.ndarray, " kept"]) -> WordAttention:
    return WordAttention(
        words=tuple(words.words[place] for place in places),
        segments=tuple(words.segments[place] for place in places),
        attention=words.attention[:, places[:, None], places],
    )
