"""Selects the items of the next batch, and runs their pass."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cache.serving.item_requests import PassResult
from cache.serving.requests import Item
from cache.store.arrays import packed_attention
from cache.store.record import Record
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.prepare import WINDOW_ENTRIES, WINDOW_TOKENS, prepare, window_at, with_relations
from core.passes.question import Question
from core.passes.texts import PassText
from core.roles.measures import TextMeasures
from core.roles.question import SCORES
from core.texts.relations import parse
from core.texts.text import Text

if TYPE_CHECKING:
    from core.passes.outputs import OutputChange, Prediction

PADDING_SHARE: Final = 1 / 16
"""Of a batch's budget that padding may take; beyond that, another batch costs less."""


def prepared(checkpoints: Sequence[Checkpoint], item: Item) -> Exception | None:
    """Tokenise an item's text for each checkpoint, unless another request has.

    Returns: what is wrong with it, or with its settings, if anything is.

    Any error is this item's alone: the settings and texts of others may be sound.
    """
    if item.prepared:
        return None
    try:
        item.prepared = tuple(
            prepare(checkpoint, item.wanted.text, settings, truncate=item.wanted.truncate)
            for checkpoint, settings in zip(checkpoints, item.settings, strict=True)
        )
    except Exception as error:
        return error
    return None


def of_like_length(checkpoints: Sequence[Checkpoint], waiting: Iterator[Sequence[Item]], budget: int) -> list[Item]:
    """The items that are passed next: the first that are waiting, and others as long as they fit.

    Args:
        checkpoints: the first says how much attention its heads keep for the screen.
        waiting: prepared items by request, in the order of their turns; taken from only until the batch is full.
        budget: tokens of the batch, padding included.
    """
    chosen: dict[Item, None] = {}  # in order, and quick to look up
    longest = n_tokens = entries = 0
    for items in waiting:
        for item in sorted(items, key=lambda item: item.n_tokens):
            more, width = _entries(checkpoints[0], item), max(longest, item.n_tokens)
            area = (len(chosen) + 1) * width
            fits = area <= budget and area - n_tokens - item.n_tokens <= PADDING_SHARE * budget
            fits = fits and entries + more <= WINDOW_ENTRIES and _are_alike(item, next(iter(chosen), item))
            if item not in chosen and (fits or not chosen):
                chosen[item] = None
                longest, n_tokens, entries = width, n_tokens + item.n_tokens, entries + more
        if (len(chosen) + 1) * longest > budget:
            break
    return list(chosen)


def _are_alike(a: Item, b: Item) -> bool:
    """Whether one pass can serve both."""
    return a.settings == b.settings and a.wanted.question is b.wanted.question


def _entries(checkpoint: Checkpoint, item: Item) -> int:
    """Entries of attention kept of a text for the screen, at most."""
    if item.wanted.start is None:
        return 0
    attention = checkpoint.attentions[item.settings[0].kind]
    return attention.n_layers * attention.n_heads * min(item.n_tokens, WINDOW_TOKENS) ** 2


def passed(checkpoints: Sequence[Checkpoint], batch: Sequence[Item]) -> dict[Item, PassResult]:
    """What one pass, or two in step, give for prepared items of one question and the same settings."""
    if len(checkpoints) > 1:
        return _compared(checkpoints, batch)
    if any(item.wanted.start is not None for item in batch):
        return _looked_at(checkpoints[0], batch)
    return _answered(checkpoints[0], batch)


def _answered(checkpoint: Checkpoint, batch: Sequence[Item]) -> dict[Item, PassResult]:
    question: Question[Any, Any] = batch[0].wanted.question
    items, texts = [item.wanted.item for item in batch], [item.prepared[0] for item in batch]
    seen = {
        batch[row]: PassResult(record=Record.of(question.pack(result), texts[row]))
        for part in question.compute(checkpoint, items, texts, batch[0].settings[0])
        for row, result in part
    }
    if len(seen) < len(batch):
        raise RuntimeError(f"The question {question.name!r} answered {len(seen)} of {len(batch)} items.")
    return seen


def _looked_at(checkpoint: Checkpoint, batch: Sequence[Item]) -> dict[Item, PassResult]:
    """Scores of a batch, and the attention of those of its texts that are on screen."""
    from core.roles.scores import score_batch

    texts = with_relations([item.prepared[0] for item in batch], [item.wanted.text for item in batch])
    windows = {
        row: window_at(checkpoint, texts[row], item.wanted.start)
        for row, item in enumerate(batch)
        if item.wanted.start is not None
    }
    scores = score_batch(checkpoint, texts, batch[0].settings[0], windows)
    of_texts = scores.of_texts()
    maps = {row: packed_attention(seen) for row, seen in scores.maps.items()}
    return {
        item: PassResult(record=_measured(of_texts[row], texts[row]), attention=maps.get(row))
        for row, item in enumerate(batch)
    }


def _compared(checkpoints: Sequence[Checkpoint], batch: Sequence[Item]) -> dict[Item, PassResult]:
    from core.comparison.in_step import compare_batch

    a, b = checkpoints
    # Relations of both at once, so that a text is parsed once.
    both = [text for item in batch for text in item.prepared]
    parsed = with_relations(both, [item.wanted.text for item in batch for _ in item.prepared])
    texts_a, texts_b = parsed[::2], parsed[1::2]
    compared = compare_batch(a, b, texts_a, texts_b, *batch[0].settings)
    none = np.empty((0, 0), np.float32)
    return {
        item: PassResult(
            record=_measured(compared.a[row], texts_a[row]),
            against=_measured(compared.b[row], texts_b[row]),
            divergence=none if compared.divergence is None else compared.divergence[row],
        )
        for row, item in enumerate(batch)
    }


def _measured(measures: TextMeasures, text: PassText) -> Record:
    return Record.of(SCORES.pack(measures), text)


def prediction_of(checkpoint: Checkpoint, text: Text, settings: PassSettings) -> "Prediction | None":
    """What a classifier says of a text, cut where it is too long; None for a checkpoint that is none."""
    from core.passes.outputs import prediction

    return prediction(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings)


def output_change_of(checkpoint: Checkpoint, text: Text, settings: PassSettings, token: int | None) -> "OutputChange":
    """What switching heads off changes in the output for a text; cut where it is too long."""
    from core.passes.outputs import output_change

    return output_change(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, token)


def warm_parser() -> None:
    """Load the parser, so that the first text need not wait for it."""
    list(parse([Text(("Warm.",))]))
