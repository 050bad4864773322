"""Two sentences under one checkpoint: their words aligned, and how far each head's attention moves between them."""

from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText, TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import FIRST_WORD, SPECIAL, TokenizedText, Words, word_map

MOST_WORDS: Final = 8
"""Changed places whose words a language model is asked about: each costs a pass for every token of the word."""


@dataclass(frozen=True, kw_only=True)
class SentenceWord:
    """One word of a sentence, a punctuation mark or a special token."""

    text: str
    """As written; of a special token, the token."""
    tokens: tuple[int, ...]
    """Their positions in the sentence."""
    is_special: bool


@dataclass(frozen=True, kw_only=True)
class WordPair:
    """A word of one sentence and its partner in the other: the same word, or the one that replaces it."""

    a: SentenceWord | None
    """None where only the second sentence has the word."""
    b: SentenceWord | None
    """None where only the first sentence has the word."""

    @property
    def is_changed(self) -> bool:
        """Whether the sentences differ here."""
        return self.a is None or self.b is None or self.a.text != self.b.text


@dataclass(frozen=True, eq=False, kw_only=True)
class WordSwap:
    """Attention of two sentences between the same rows: their aligned words."""

    words: tuple[WordPair, ...]
    a: Float[np.ndarray, "layer head word word"]
    """To a word the sum over its tokens, from a word the mean; 0 from and to words that only the other sentence has;
    NaN for heads that were removed."""
    b: Float[np.ndarray, "layer head word word"]
    difference: Float[np.ndarray, "layer head word word"]
    """b - a, with rows that sum to 0; 0 from words without a partner. To a word without a partner, the other sentence
    gives nothing."""
    moved: Float[np.ndarray, "layer head"]
    """Share of a word's attention that goes elsewhere in the second sentence, mean over the words with a partner:
    half the sum of the absolute differences of its row (total variation distance), 0 to 1; NaN for removed heads."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """The unchanged word whose attention moves most in one head; rows are those of the WordSwap."""

    row: int
    moved: float
    """Total variation distance between the word's attention in the two sentences."""
    loses: int
    """Row of the word that gets less in the second sentence, by the largest difference."""
    gains: int
    """Row of the word that gets more, likewise."""


def sentence_words(sentence: str, tokens: TokenizedText) -> tuple[SentenceWord, ...]:
    """The words of a sentence by its tokens, and each special token.

    A word is what the tokenizer calls one, cut at spaces, which some tokenizers do not see, and before and after
    punctuation: the word before a full stop is the same word without it.

    Args:
        sentence: a text's only segment.
        tokens: its tokens.
    """
    own = np.flatnonzero(tokens.segments != SPECIAL)
    words = _words(sentence, tokens, own)
    word_numbers = np.full(len(tokens.ids), SPECIAL)
    word_numbers[own] = word_map(words, tokens).word_numbers[own] - FIRST_WORD
    positions: dict[tuple[int, int], list[int]] = {}
    for token, word in enumerate(word_numbers.tolist()):
        positions.setdefault((word, token if word == SPECIAL else SPECIAL), []).append(token)
    spelled = words.shown(Text((sentence,)))
    return tuple(
        SentenceWord(
            text=tokens.tokens[indices[0]] if word == SPECIAL else spelled[word],
            tokens=tuple(indices),
            is_special=word == SPECIAL,
        )
        for (word, _), indices in positions.items()
    )


def _words(sentence: str, tokens: TokenizedText, own: Int[np.ndarray, " own_token"]) -> Words:
    """The words of a sentence that has these tokens of its own."""
    spans, previous = list[tuple[int, int]](), None
    for token in own.tolist():
        start, end = tokens.spans[token].tolist()
        kind = (int(tokens.words[token]), any(map(str.isalnum, sentence[start:end])))
        last_start, last_end = spans[-1] if spans else (0, -1)
        if start > last_end or (kind != previous and start == last_end < end):
            spans.append((start, end))
        else:  # a piece of the same word, a byte of the same character, or a token without characters
            spans[-1] = last_start, max(last_end, end)
        previous = kind if start < end else previous
    return Words(segments=np.zeros(len(spans), int), spans=np.array(spans, int))


def aligned_words(a: Sequence[SentenceWord], b: Sequence[SentenceWord]) -> tuple[WordPair, ...]:
    """All words of both sentences in their order, each with its partner.

    Equal words are partners by the longest common blocks; as many words as are replaced by as many others are partners
    in their order. All others have none: those of the first sentence come before those of the second.
    """
    matcher = SequenceMatcher(None, [word.text for word in a], [word.text for word in b], autojunk=False)
    pairs = list[WordPair]()
    for _, a_from, a_to, b_from, b_to in matcher.get_opcodes():
        before, after = a[a_from:a_to], b[b_from:b_to]
        if len(before) == len(after):
            pairs += [WordPair(a=one, b=other) for one, other in zip(before, after)]
        else:
            pairs += [WordPair(a=word, b=None) for word in before] + [WordPair(a=None, b=word) for word in after]
    return tuple(pairs)


def check_single(texts: tuple[Text, Text]) -> None:
    """Refuse pairs, before any pass.

    Raises: AnalysisError for a text with two segments.
    """
    for name, text in zip(("first", "second"), texts):
        if len(text.segments) > 1:
            raise AnalysisError(
                f"The {name} text is a pair. A changed word is shown in single sentences: leave out ||| and what "
                "follows it."
            )


def aligned_sentences(texts: tuple[Text, Text], a: PassText, b: PassText) -> tuple[WordPair, ...]:
    """The aligned words of two sentences.

    Args:
        texts: both sentences.
        a, b: their tokens under one checkpoint.

    Raises: AnalysisError for a text with two segments, for equal tokens, and for two sentences without a common place.
    """
    check_single(texts)
    if np.array_equal(a.queries.ids, b.queries.ids):
        raise AnalysisError(
            "The two sentences have the same tokens, so nothing differs. Change a word in the second one."
        )
    pairs = aligned_words(*(sentence_words(text.segments[0], side.queries) for text, side in zip(texts, (a, b))))
    if not _compared(pairs).any():
        raise AnalysisError(
            "The two sentences have no word in common, so their attention cannot be compared. Change fewer words."
        )
    return pairs


def word_swap(texts: tuple[Text, Text], a: TextAttention, b: TextAttention) -> WordSwap:
    """Compare the attention of two sentences, word by word.

    Args:
        texts: both sentences.
        a, b: their attention under one checkpoint, of the same kind, with the same heads off.

    Raises: AnalysisError for sentences that are drawn only in part, and as `aligned_sentences`.
    Source: attention between words as in Clark et al. 2019, section 4.1.
    """
    for name, looked in (("first", a), ("second", b)):
        if looked.overview is not None:
            raise AnalysisError(
                f"The {name} sentence has {len(looked.text.queries.ids):,} tokens, of which only a part is drawn at a "
                "time. Type a shorter one."
            )
    pairs = aligned_sentences(texts, a.text, b.text)
    before = _between_words(a.attention, [pair.a for pair in pairs])
    after = _between_words(b.attention, [pair.b for pair in pairs])
    has_partner = np.array([pair.a is not None and pair.b is not None for pair in pairs])
    difference = (after - before) * has_partner[:, None]
    return WordSwap(
        words=pairs,
        a=before,
        b=after,
        difference=difference,
        moved=np.abs(difference[:, :, _compared(pairs)]).sum(axis=-1).mean(axis=-1) / 2,
    )


def largest_move(swap: WordSwap, head: Head) -> Move | None:
    """The unchanged word whose attention moves most in a head; None if there is none, or if the head was removed."""
    rows = np.flatnonzero(_compared(swap.words) & ~np.array([pair.is_changed for pair in swap.words]))
    difference = swap.difference[head]
    if not len(rows) or np.isnan(difference).any():
        return None
    distances = np.abs(difference[rows]).sum(axis=-1) / 2
    row = int(rows[distances.argmax()])
    return Move(
        row=row,
        moved=float(distances.max()),
        loses=int(difference[row].argmin()),
        gains=int(difference[row].argmax()),
    )


def _compared(pairs: Sequence[WordPair]) -> Bool[np.ndarray, " word"]:
    """The rows that count: words of both sentences, without special tokens."""
    return np.array([pair.a is not None and pair.b is not None and not pair.a.is_special for pair in pairs], bool)


def _between_words(
    attention: Float[np.ndarray, "layer head token token"], words: Sequence[SentenceWord | None]
) -> Float[np.ndarray, "layer head word word"]:
    """Sum over the tokens of a key, mean over those of a query; 0 for words that are not there."""
    membership = np.zeros((len(words), attention.shape[-1]), attention.dtype)
    for row, word in enumerate(words):
        if word is not None:
            membership[row, list(word.tokens)] = 1
    means = membership / np.maximum(membership.sum(axis=1, keepdims=True), 1)
    return means @ attention @ membership.T
