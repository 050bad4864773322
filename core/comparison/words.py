"""Attention between the words that two tokenizers have in common."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, SPECIALS, TokenizedText, word_starts


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadWordAttention:
    """Attention of some heads between the words of one text."""

    words: tuple[str, ...]
    """SPECIALS, for all tokens added by the tokenizer, then the text's words, split at spaces."""
    segments: tuple[int, ...]
    """Segment of each word; attention_sieve.core.texts.tokens.SPECIAL for SPECIALS."""
    attention: Float[np.ndarray, "chosen word word"]
    """Sum over the key word's tokens, mean over the query word's tokens; rows sum to 1, or to 0 for a word
    without tokens."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CommonWords:
    """The attention of one text under two tokenizers, between the words that both have."""

    a: HeadWordAttention
    b: HeadWordAttention
    n_left_out: int
    """Number of words with tokens under only one of the two, because of truncation or missing special tokens; rows lack
    the attention to them."""


def word_attention(
    text: Text, tokens: TokenizedText, attention: Float[np.ndarray, "chosen token token"]
) -> HeadWordAttention:
    """Attention between words from attention between tokens, of a whole text whose queries are its keys.

    Args:
        text: the tokenized text; for an encoder-decoder's pair, the segment that attends.
        tokens: the text under a tokenizer.
        attention: of some heads, between all of its tokens.

    Returns: attention between words that do not depend on the tokenizer. A token belongs to the word that contains its
        first character; a token without characters, such as a space, to the previous word, or the first. Truncated
        words are left out.
    Raises: ValueError for attention between another number of tokens.
    Source: Clark et al. 2019, section 4.1: to a word the sum over its pieces, from a word the mean.
    """
    if attention.shape[1] != len(tokens.ids):
        raise ValueError(f"Attention between {attention.shape[1]} tokens for a text of {len(tokens.ids)}.")
    words, segments, word_of_token = [SPECIALS], [SPECIAL], np.zeros(len(tokens.ids), int)
    for side, segment in enumerate(text.segments):
        in_segment = tokens.segments == side
        starts = word_starts(segment, None if text.words is None else text.words[side])
        spans = tokens.spans[in_segment]
        firsts = spans[:, 0] - (spans[:, 0] == spans[:, 1])  # an empty token belongs to what precedes it
        word_indices = np.maximum(np.searchsorted(list(starts), firsts, side="right") - 1, 0)
        word_of_token[in_segment] = len(words) + word_indices
        segment_words = list(starts.values())[: int(word_indices.max()) + 1 if tokens.n_cut else None]
        words += segment_words
        segments += [side] * len(segment_words)
    membership = (word_of_token == np.arange(len(words))[:, None]).astype(attention.dtype)
    share = membership / np.maximum(membership.sum(axis=1, keepdims=True), 1)
    return HeadWordAttention(words=tuple(words), segments=tuple(segments), attention=share @ attention @ membership.T)


def common_words(a: HeadWordAttention, b: HeadWordAttention) -> CommonWords:
    """Restrict both to the words that have tokens under both tokenizers, which may truncate the text differently.

    Raises: ValueError if the words are of different texts.
    """
    n_common = Counter(a.segments) & Counter(b.segments)
    common = [
        np.flatnonzero(_index_in_segment(words) < [n_common[side] for side in words.segments]) for words in (a, b)
    ]
    first, second = (_select(words, indices) for words, indices in zip((a, b), common))
    if (first.words, first.segments) != (second.words, second.segments):
        raise ValueError("The words are those of two texts.")
    under_a, under_b = first.attention.any(axis=(0, 2)), second.attention.any(axis=(0, 2))
    both = np.flatnonzero(under_a & under_b)
    n_cut = len(a.words) + len(b.words) - 2 * len(first.words)
    return CommonWords(
        a=_select(first, both), b=_select(second, both), n_left_out=n_cut + int((under_a ^ under_b).sum())
    )


def _index_in_segment(words: HeadWordAttention) -> Int[np.ndarray, " word"]:
    segments = np.array(words.segments)
    return np.arange(len(segments)) - np.searchsorted(segments, segments)


def _select(words: HeadWordAttention, indices: Int[np.ndarray, " kept"]) -> HeadWordAttention:
    return HeadWordAttention(
        words=tuple(words.words[index] for index in indices),
        segments=tuple(words.segments[index] for index in indices),
        attention=words.attention[:, indices[:, None], indices],
    )
