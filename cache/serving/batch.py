"""Selects the items of the next batch, and runs their pass."""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from attention_sieve.cache.answers import Record
from attention_sieve.cache.looks import packed_attention
from attention_sieve.cache.serving.requests import WaitingText
from attention_sieve.core.answering import Question
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import WINDOW_ENTRIES, WINDOW_TOKENS, prepare, window_at, with_relations
from attention_sieve.core.pauses import pause
from attention_sieve.core.roles.question import SCORES

PADDING_SHARE: Final = 1 / 16
"""Largest share of a batch's budget for padding; beyond it, another batch costs less."""


def prepared(checkpoints: Sequence[Checkpoint], item: WaitingText) -> Exception | None:
    """Tokenise an item's text for each checkpoint, unless it already is.

    Returns: the error in the text or its settings, or None. It concerns this item only; others may still be valid.
    """
    if item.prepared:
        return None
    pause()
    try:
        item.prepared = tuple(
            prepare(checkpoint, item.item_request.text, settings, truncate=item.item_request.truncate)
            for checkpoint, settings in zip(checkpoints, item.settings, strict=True)
        )
    except Exception as error:
        return error
    return None


def next_batch(
    checkpoints: Sequence[Checkpoint],
    ready: Iterator[Sequence[WaitingText]],
    budget: int,
    most_characters: Callable[[WaitingText], float],
) -> list[WaitingText]:
    """The next batch: the first waiting item, and others of similar length as far as they fit.

    Args:
        checkpoints: the first one's numbers of layers and heads limit the attention kept for the screen.
        ready: prepared items by request, in order of priority; consumed only until the batch is full.
        budget: tokens of the batch, including padding.
        most_characters: size of a batch that begins with this item, so that it does not take too long.
    """
    batch: dict[WaitingText, None] = {}  # in order, and quick to look up
    longest = n_tokens = entries = 0
    characters_left = math.inf
    for items in ready:
        for item in sorted(items, key=lambda item: item.n_tokens):
            added, width = _entries(checkpoints[0], item), max(longest, item.n_tokens)
            area = (len(batch) + 1) * width
            fits = area <= budget and area - n_tokens - item.n_tokens <= PADDING_SHARE * budget
            fits = fits and entries + added <= WINDOW_ENTRIES and item.size <= characters_left
            fits = fits and _are_alike(item, next(iter(batch), item))
            if item not in batch and (fits or not batch):
                characters_left = (characters_left if batch else most_characters(item)) - item.size
                batch[item] = None
                longest, n_tokens, entries = width, n_tokens + item.n_tokens, entries + added
        if (len(batch) + 1) * longest > budget or characters_left <= 0:
            break
    return list(batch)


def _are_alike(a: WaitingText, b: WaitingText) -> bool:
    """Whether one pass can serve both."""
    return a.settings == b.settings and a.item_request.question is b.item_request.question


def _entries(checkpoint: Checkpoint, item: WaitingText) -> int:
    """Upper bound on the entries of a text's attention kept for the screen."""
    if item.item_request.start is None:
        return 0
    attention = checkpoint.attentions[item.settings[0].kind]
    return attention.n_layers * attention.n_heads * min(item.n_tokens, WINDOW_TOKENS) ** 2


def passed(checkpoints: Sequence[Checkpoint], batch: Sequence[WaitingText]) -> dict[WaitingText, Record]:
    """Results of one pass, or of two in step, for prepared items of one question and the same settings."""
    if any(item.item_request.start is not None for item in batch):
        return _scores_and_attention(checkpoints[0], batch)
    question: Question[Any, Any] = batch[0].item_request.question
    items, settings = [item.item_request.item for item in batch], batch[0].settings
    if len(checkpoints) > 1:
        work = question.compute(tuple(checkpoints), items, [item.prepared for item in batch], settings)
    else:
        work = question.compute(checkpoints[0], items, [item.prepared[0] for item in batch], settings[0])
    records = {
        batch[row]: Record.of(question.pack(result), batch[row].prepared) for results in work for row, result in results
    }
    if len(records) < len(batch):
        raise RuntimeError(f"The question {question.name!r} answered {len(records)} of {len(batch)} items.")
    return records


def _scores_and_attention(checkpoint: Checkpoint, batch: Sequence[WaitingText]) -> dict[WaitingText, Record]:
    """Scores of a batch, and attention for its texts that are on screen."""
    from attention_sieve.core.roles.scores import score_batch

    texts = with_relations([item.prepared[0] for item in batch], [item.item_request.text for item in batch])
    windows = {
        row: window_at(checkpoint, texts[row], item.item_request.start)
        for row, item in enumerate(batch)
        if item.item_request.start is not None
    }
    scores = score_batch(checkpoint, texts, batch[0].settings[0], windows)
    measures = scores.texts
    maps = {row: packed_attention(attention) for row, attention in scores.maps.items()}
    return {item: Record.of(SCORES.pack(measures[row]), [texts[row]], maps.get(row)) for row, item in enumerate(batch)}
