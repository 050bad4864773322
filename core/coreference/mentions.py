"""Texts with mentions, their entities and head words, and splitting into windows; does not import torch."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Final, Literal, TypeVar, get_args

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, panics_caught
from attention_sieve.core.pauses import pause
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words

MentionType = Literal["pronoun", "proper", "nominal"]
TYPES: Final[tuple[MentionType, ...]] = get_args(MentionType)
WINDOW: Final = 128
"""Maximum length of a window in tokens, special tokens included."""
SMALLEST_WINDOW: Final = 16

Span = tuple[int, int]
"""First and one-past-last, of words or of characters."""
Piece = TypeVar("Piece")


def unwatched(work: Iterable[Piece], n_parts: int) -> Iterable[Piece]:
    """Default for progress reports: returns the work unchanged."""
    return work


@dataclass(frozen=True)
class Mention:
    """A span of words that refers to an entity."""

    start: int
    """First word."""
    end: int
    """One past the last word."""
    head: int
    """Head word."""
    type: MentionType
    entity: str
    """Entity that it refers to; mentions of the same entity in a text corefer."""


@dataclass(frozen=True)
class MentionText:
    """A text of one segment with its mentions; hashable, so that it can be a cache key."""

    name: str
    text: Text
    spans: tuple[Span, ...]
    """Characters of each word."""
    mentions: tuple[Mention, ...]
    """In the order of their head words, which all differ."""
    sentence_ends: tuple[int, ...]
    """One past the last word of each sentence; the text may be split there."""
    is_excerpt: bool = False
    """Whether it is an excerpt of a longer text; excerpts are split only if longer than the checkpoint accepts."""
    cut_from: str | None = None
    """Name of the text of which it is a window; None for a whole text."""

    @property
    def document(self) -> str:
        """Name of its document; texts with the same name belong to the same document."""
        return self.name if self.cut_from is None else self.cut_from

    @property
    def words(self) -> Words:
        """Its words, for a pass."""
        return Words(segments=np.zeros(len(self.spans), int), spans=np.array(self.spans, int).reshape(-1, 2))

    @property
    def shown(self) -> tuple[str, ...]:
        """The words as strings."""
        return tuple(self.text.segments[0][start:end] for start, end in self.spans)

    @cached_property
    def antecedents(self) -> tuple[tuple[int, ...], ...]:
        """For each mention, the indices of the earlier mentions of the same entity."""
        before = defaultdict[str, tuple[int, ...]](tuple)
        earlier = []
        for index, mention in enumerate(self.mentions):
            earlier.append(before[mention.entity])
            before[mention.entity] += (index,)
        return tuple(earlier)

    @property
    def is_antecedent(self) -> Bool[np.ndarray, "mention earlier"]:
        """Whether each mention is an antecedent (last axis) of each mention."""
        _, entity = np.unique([mention.entity for mention in self.mentions], return_inverse=True)
        return np.tril(entity[:, None] == entity, -1)

    @property
    def n_referring_back(self) -> int:
        """Number of mentions with an antecedent; counted without listing the antecedents, which may be very many."""
        return len(self.mentions) - len({mention.entity for mention in self.mentions})


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows:
    """Texts short enough for a pass."""

    texts: tuple[MentionText, ...]
    """Windows with at least one mention that has an antecedent."""
    n_without: int
    """Number of windows without one, which are left out."""
    n_apart: int
    """Number of mentions whose antecedents are all in earlier windows."""


def windows(
    checkpoint: Checkpoint,
    texts: Sequence[MentionText],
    window: int = WINDOW,
    watched: Callable[[Iterable[MentionText], int], Iterable[MentionText]] = unwatched,
) -> Windows:
    """Split texts at sentence ends into windows of at most `window` tokens.

    Excerpts are split only if longer than the checkpoint accepts. A sentence longer than a window is a window of its
    own; if longer than the checkpoint accepts, it is truncated, and its last mentions are ignored. `watched` wraps the
    iteration over the texts, to report progress.
    Source: Clark et al. 2019, section 4.3, who cut documents to 128 tokens and ignore the rest; here it is read too.
    """
    if window < SMALLEST_WINDOW:
        raise AnalysisError(f"A window of {window} tokens is too short. Choose at least {SMALLEST_WINDOW}.")
    tokenizer, parts = checkpoint.tokenizer, list[MentionText]()
    n_special = tokenizer.num_special_tokens_to_add()
    for text in watched(texts, len(texts)):
        limit = checkpoint.max_tokens if text.is_excerpt else min(window, checkpoint.max_tokens)
        ends = list(_window_ends(tokenizer, text, limit - n_special))
        parts += [_part(text, start, end) for start, end in zip([0, *ends], ends)] if len(ends) > 1 else [text]
    with_antecedents = tuple(text for text in parts if text.n_referring_back)
    if not with_antecedents:
        raise AnalysisError(
            f"None of the {sum(len(text.mentions) for text in texts):,} mentions refers back to another one in its "
            "text. Give longer texts or windows, or mark more mentions of the same entity."
        )
    n_before, n_after = (sum(text.n_referring_back for text in group) for group in (texts, with_antecedents))
    return Windows(texts=with_antecedents, n_without=len(parts) - len(with_antecedents), n_apart=n_before - n_after)


def _window_ends(tokenizer: Any, text: MentionText, limit: int) -> Iterator[int]:
    segment = text.text.segments[0]
    if _n_tokens(tokenizer, segment) > limit:
        n_so_far = 0
        for start, end in zip((0, *text.sentence_ends), text.sentence_ends):
            n_tokens = _n_tokens(tokenizer, segment[text.spans[start][0] : text.spans[end - 1][1]])
            if n_so_far and n_so_far + n_tokens > limit:
                yield start
                n_so_far = 0
            n_so_far += n_tokens
    yield len(text.spans)


def _n_tokens(tokenizer: Any, segment: str) -> int:
    pause()
    with panics_caught():
        return len(tokenizer(segment, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])


def _part(text: MentionText, start: int, end: int) -> MentionText:
    """A range of words as a text of its own, with the mentions inside it."""
    first, last = text.spans[start][0], text.spans[end - 1][1]
    words = None if text.text.words is None else (text.text.words[0][start:end],)
    return replace(
        text,
        name=f"{text.name}, from word {start + 1:,}",
        cut_from=text.document,
        text=Text((text.text.segments[0][first:last],), words),
        spans=tuple((span[0] - first, span[1] - first) for span in text.spans[start:end]),
        mentions=tuple(
            replace(mention, start=mention.start - start, end=mention.end - start, head=mention.head - start)
            for mention in text.mentions
            if start <= mention.start and mention.end <= end
        ),
        sentence_ends=tuple(sentence_end - start for sentence_end in text.sentence_ends if start < sentence_end <= end),
    )
