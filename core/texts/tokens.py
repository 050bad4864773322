"""A tokenized Text: its tokens, which of them are special, and the words that they are of.

By words, texts can be compared across tokenizers.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.errors import NoTokens, TextTooLong, panics_caught
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    from tokenizers import Encoding

TooLong = Literal["error", "skip", "truncate"]
SPECIAL: Final = -1
"""Segment and word of a token added by the tokenizer."""
BLANK: Final = "\N{LOWER ONE EIGHTH BLOCK}"
"""SentencePiece's symbol for a space."""
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
class TokenizedText:
    """The tokens of one text, special tokens included."""

    ids: Int[np.ndarray, " token"]
    type_ids: Int[np.ndarray, " token"]
    """Segment ids for the model; all 0 if the model does not use them."""
    tokens: tuple[str, ...]
    """Display form: the tokenizer's token if readable, otherwise the piece of text that it represents."""
    spans: Int[np.ndarray, "token 2"]
    """First and one-past-last character in the token's segment, without surrounding spaces; empty for special
    tokens."""
    segments: Int[np.ndarray, " token"]
    """0 or 1; SPECIAL for special tokens."""
    words: Int[np.ndarray, " token"]
    """Number of the word in the whole text; SPECIAL for special tokens."""
    is_cls: Bool[np.ndarray, " token"]
    is_sep: Bool[np.ndarray, " token"]
    n_cut: int
    """Number of tokens removed by truncation."""
    given: GivenTokens | None = None
    """The ids that the text was given by, with what is marked among them."""

    @property
    def n_segments(self) -> int:
        """1, or 2 for a pair."""
        return 2 if (self.segments == 1).any() else 1


def tokenize(
    text: Text, tokenizer: Any, max_tokens: int, *, position: int | None = None, truncate: bool = False
) -> TokenizedText:
    """Tokenize one text.

    Args:
        text: the text; names of special tokens in it are treated as plain text.
        max_tokens: maximum length, special tokens included.
        truncate: truncate longer texts (longest segment first) instead of raising.

    Raises: TextTooLong; NoTokens for a segment without tokens; CheckpointError where the tokenizer breaks down.
    """
    if text.given is not None:
        return _tokenized_ids(text, text.given, tokenizer, max_tokens, position=position, truncate=truncate)
    encoding = _encode(text, tokenizer)
    n_full = len(encoding)
    if n_full > max_tokens and not truncate:
        raise TextTooLong(position, n_full, max_tokens)
    sides = np.array([SPECIAL if side is None else side for side in encoding.sequence_ids])
    kept = _longest_first(sides, max_tokens, tokenizer.truncation_side) if n_full > max_tokens else np.arange(n_full)
    if len(set(sides[kept]) - {SPECIAL}) < len(text.segments):
        raise NoTokens(position)
    return _tokenized(text, tokenizer, encoding, sides, kept)


def _tokenized_ids(
    text: Text, given: GivenTokens, tokenizer: Any, max_tokens: int, *, position: int | None, truncate: bool
) -> TokenizedText:
    """A text that is given by the ids of its tokens: each is shown as the tokenizer decodes it, and is a word unless it
    is a special token."""
    if len(given.ids) > max_tokens and not truncate:
        raise TextTooLong(position, len(given.ids), max_tokens)
    ids = np.array(given.ids[:max_tokens])
    special = np.isin(ids, tokenizer.all_special_ids)
    segments = np.where(special, SPECIAL, 0)
    ends = np.cumsum([len(str(number)) + 1 for number in given.ids])[: len(ids)]
    spans = np.stack([np.concatenate([[0], ends[:-1]]), ends - 1], axis=1)
    return TokenizedText(
        ids=ids,
        type_ids=np.zeros_like(ids),
        tokens=tuple(_decoded(number, tokenizer) for number in ids.tolist()),
        spans=np.where(special[:, None], 0, spans),
        segments=segments,
        words=np.where(special, SPECIAL, np.cumsum(~special) - 1),
        is_cls=special & (ids == _id(tokenizer.cls_token_id)),
        is_sep=special & _is_separator(ids, segments, tokenizer),
        n_cut=len(given.ids) - len(ids),
        given=given,
    )


def _decoded(token_id: int, tokenizer: Any) -> str:
    """A token as it is shown: what it stands for, without spaces around it; its name where that is nothing, or half a
    character."""
    piece = tokenizer.backend_tokenizer.id_to_token(token_id)
    shown = tokenizer.backend_tokenizer.decode([token_id], skip_special_tokens=False)
    is_readable = shown and "\N{REPLACEMENT CHARACTER}" not in shown
    return shown.strip() or shown if is_readable else piece or str(token_id)


def unknown_parts(text: Text, tokenized: TokenizedText) -> list[tuple[str, str]]:
    """Parts of a text that its tokenizer does not know, such as an emoji, each with the token that stands in for it.

    Any other token is shown as in the text, but for its case (see `TokenizedText.tokens`).
    """
    if text.given is not None:
        return []
    parts = []
    for token, segment, (start, end) in zip(tokenized.tokens, tokenized.segments, tokenized.spans):
        covered = "" if segment == SPECIAL else text.segments[segment][start:end]
        if covered and token.removeprefix("##").casefold() != covered.casefold() and token != covered:
            parts.append((covered, token))
    return parts


def as_decoder_input(text: TokenizedText, tokenizer: Any, start_id: int) -> TokenizedText:
    """A target as input of a decoder: with the start token first, and without the special tokens at the end."""
    n_kept = int(np.flatnonzero(text.segments != SPECIAL)[-1]) + 1

    def shifted(values: np.ndarray, start_value: object) -> np.ndarray:
        return np.concatenate([np.full_like(values[:1], start_value), values[:n_kept]])

    return TokenizedText(
        ids=shifted(text.ids, start_id),
        type_ids=shifted(text.type_ids, 0),
        tokens=(str(tokenizer.convert_ids_to_tokens(start_id)), *text.tokens[:n_kept]),
        spans=shifted(text.spans, 0),
        segments=shifted(text.segments, SPECIAL),
        words=shifted(text.words, SPECIAL),
        is_cls=shifted(text.is_cls, start_id == _id(tokenizer.cls_token_id)),
        is_sep=shifted(text.is_sep, False),  # the start token separates nothing
        n_cut=text.n_cut,
    )


def _encode(text: Text, tokenizer: Any) -> "Encoding":
    """Encode the whole text with the tokenizers library; the call of transformers takes 1.7 times as long.

    It is not cut here: of a pair, the library would build each combination of the parts that it cuts off, which takes
    gigabytes for a page or two.
    """
    backend = tokenizer.backend_tokenizer
    with panics_caught():
        backend.encode_special_tokens = True
        backend.no_padding()
        backend.no_truncation()
        encoding: Encoding = backend.encode(*text.segments)
    return encoding


def _longest_first(
    sides: Int[np.ndarray, " token"], max_tokens: int, cut_side: Literal["left", "right"]
) -> Int[np.ndarray, " kept"]:
    """Indices of the tokens that are left of a text that is too long: all special ones, and of the longer segment only
    as many as of the shorter one before the shorter one is cut, too.

    Source: the strategy longest_first of the tokenizers library, `truncate_encodings`; of an odd number of tokens, the
    segment that was longer gets one more, and of two of one length the second.
    """
    own = [np.flatnonzero(sides == side) for side in np.unique(sides[sides != SPECIAL])]
    room = max(0, max_tokens - int((sides == SPECIAL).sum()))
    lengths = [len(tokens) for tokens in own]
    if len(own) == 1:
        lengths = [min(lengths[0], room)]
    elif len(own) == 2:
        shorter, longer = sorted((0, 1), key=lambda side: lengths[side])
        lengths[shorter] = min(lengths[shorter], room // 2)
        lengths[longer] = room - lengths[shorter]
    left = [tokens[len(tokens) - n :] if cut_side == "left" else tokens[:n] for tokens, n in zip(own, lengths)]
    return np.sort(np.concatenate([np.flatnonzero(sides == SPECIAL), *left]))


def _tokenized(
    text: Text, tokenizer: Any, encoding: "Encoding", sides: Int[np.ndarray, " token"], kept: Int[np.ndarray, " kept"]
) -> TokenizedText:
    ids, segments = np.array(encoding.ids)[kept], sides[kept]
    by_token = (encoding.tokens, encoding.offsets, encoding.word_ids)
    pieces, offsets, word_ids = ([values[i] for i in kept.tolist()] for values in by_token)
    spans = _trimmed(text, pieces, segments.tolist(), offsets)
    special = segments == SPECIAL
    is_name = special | (ids == _id(tokenizer.unk_token_id))
    return TokenizedText(
        ids=ids,
        type_ids=np.array(encoding.type_ids)[kept],
        tokens=_shown(text, pieces, is_name.tolist(), segments.tolist(), spans),
        spans=np.array(spans, np.int64).reshape(-1, 2),
        segments=segments,
        words=_word_numbers(word_ids, segments.tolist()),
        is_cls=special & (ids == _id(tokenizer.cls_token_id)),
        is_sep=special & _is_separator(ids, segments, tokenizer),
        n_cut=len(sides) - len(ids),
    )


def _is_separator(ids: np.ndarray, segments: np.ndarray, tokenizer: Any) -> Bool[np.ndarray, " token"]:
    """The tokens that end a segment; for a tokenizer without a separator (T5), its end-of-sequence token.

    If that token also begins a text (OPT), the first one is not a separator.
    """
    mark = _id(tokenizer.eos_token_id if tokenizer.sep_token_id is None else tokenizer.sep_token_id)
    return (ids == mark) & (np.cumsum(segments != SPECIAL) > 0)


def _id(token_id: int | None) -> int:
    return -1 if token_id is None else token_id


def _trimmed(
    text: Text, tokens: Sequence[str], segments: Sequence[int], spans: Sequence[tuple[int, int]]
) -> list[tuple[int, int]]:
    """Remove the spaces that byte-level and SentencePiece tokenizers include in their spans.

    SentencePiece adds a space before a segment; as a separate token its span covers the first character, although the
    token does not represent it.
    """
    trimmed = []
    for token, segment, (start, end) in zip(tokens, segments, spans):
        if segment == SPECIAL:
            trimmed.append((0, 0))
            continue
        covered = "" if token == BLANK else text.segments[segment][start:end]
        if covered and not (covered[0].isspace() or covered[-1].isspace()):
            trimmed.append((start, end))
            continue
        first = start + len(covered) - len(covered.lstrip())
        trimmed.append((first, max(first, start + len(covered.rstrip()))))
    return trimmed


def _shown(
    text: Text,
    tokens: Sequence[str],
    keep: Sequence[bool],
    segments: Sequence[int],
    spans: Sequence[tuple[int, int]],
) -> tuple[str, ...]:
    displayed = []
    for token, is_kept, segment, (start, end) in zip(tokens, keep, segments, spans):
        covered = "" if is_kept else text.segments[segment][start:end]
        is_readable = token == covered or token.removeprefix("##").casefold() == covered.casefold()
        mark = "##" if covered and token.startswith("##") else ""  # the word goes on, also where accents are read over
        displayed.append(token if is_readable else mark + covered or token)
    return tuple(displayed)


def _word_numbers(word_ids: Sequence[int | None], segments: Sequence[int]) -> Int[np.ndarray, " token"]:
    """Number the words of the whole text consecutively; the tokenizer numbers each segment from 0."""
    words = [SPECIAL] * len(segments)
    numbers: dict[tuple[int, int], int] = {}
    for token, (word, segment) in enumerate(zip(word_ids, segments)):
        if segment != SPECIAL:
            # A tokenizer without word boundaries gives no number: each such token is its own word.
            key = (segment, -1 - token if word is None else word)
            words[token] = numbers.setdefault(key, len(numbers))
    return np.array(words, np.int64)


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
    word_numbers: Int[np.ndarray, " token"]
    """Word of each token: CLS_WORD, OTHER_SPECIAL, or FIRST_WORD + its number in the text."""

    @property
    def has_tokens(self) -> Bool[np.ndarray, " word"]:
        """Whether a word has tokens; it has none if truncated, or if its characters are unknown to the tokenizer."""
        return np.isin(np.arange(self.n_words) + FIRST_WORD, self.word_numbers)

    def tokenized_only(self) -> tuple["WordMap", Int[np.ndarray, " kept"]]:
        """The same without words that have no tokens, and the indices of the remaining words."""
        indices = np.flatnonzero(self.has_tokens)
        is_word = self.word_numbers >= FIRST_WORD
        new_numbers = np.searchsorted(indices, self.word_numbers - FIRST_WORD) + FIRST_WORD
        return WordMap(n_words=len(indices), word_numbers=np.where(is_word, new_numbers, self.word_numbers)), indices


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
    word_numbers = np.where(tokens.is_cls, CLS_WORD, OTHER_SPECIAL)
    for side in np.unique(tokens.segments[tokens.segments != SPECIAL]):
        in_side, side_words = tokens.segments == side, np.flatnonzero(words.segments == side)
        if not len(side_words):
            raise ValueError(f"Segment {side} has tokens and no word.")
        spans = tokens.spans[in_side]
        # An empty span belongs to the preceding character.
        first_characters = spans[:, 0] - (spans[:, 0] == spans[:, 1])
        positions = np.maximum(np.searchsorted(words.spans[side_words, 0], first_characters, side="right") - 1, 0)
        word_numbers[in_side] = FIRST_WORD + side_words[positions]
    return WordMap(n_words=len(words.segments), word_numbers=word_numbers)


def word_starts(segment: str, words: tuple[str, ...] | None) -> dict[int, str]:
    """Index of the first character of each word -> the word; given words are joined by single spaces."""
    if words is None:
        return {match.start(): match.group() for match in re.finditer(r"\S+", segment)}
    starts = np.cumsum([0, *(len(word) + 1 for word in words[:-1])])
    return dict(zip(starts.tolist(), words))
