"""One batch: which waiting texts are passed together, and what their pass gives."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from cache.answers import Seen
from cache.packing import packed_attention
from cache.requests import Item
from core.analysis import WINDOW_ENTRIES, WINDOW_TOKENS, measured_text, prepare, window_at, with_relations
from core.checkpoints import Checkpoint
from core.parses import parse
from core.passes import PassSettings
from core.texts import Text

if TYPE_CHECKING:
    from core.outputs import OutputChange, Prediction

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
            fits = fits and entries + more <= WINDOW_ENTRIES and item.settings == next(iter(chosen), item).settings
            if item not in chosen and (fits or not chosen):
                chosen[item] = None
                longest, n_tokens, entries = width, n_tokens + item.n_tokens, entries + more
        if (len(chosen) + 1) * longest > budget:
            break
    return list(chosen)


def _entries(checkpoint: Checkpoint, item: Item) -> int:
    """Entries of attention kept of a text for the screen, at most."""
    if item.wanted.start is None:
        return 0
    attention = checkpoint.attentions[item.settings[0].kind]
    return attention.n_layers * attention.n_heads * min(item.n_tokens, WINDOW_TOKENS) ** 2


def passed(checkpoints: Sequence[Checkpoint], batch: Sequence[Item]) -> dict[Item, Seen]:
    """What one pass, or two in step, see of prepared items of the same settings."""
    _parse(batch)
    return _passed_alone(checkpoints[0], batch) if len(checkpoints) == 1 else _compared(checkpoints, batch)


def _passed_alone(checkpoint: Checkpoint, batch: Sequence[Item]) -> dict[Item, Seen]:
    from core.scores import score_batch

    texts = [item.prepared[0] for item in batch]
    windows = {
        row: window_at(checkpoint, texts[row], item.wanted.start)
        for row, item in enumerate(batch)
        if item.wanted.start is not None
    }
    scores = score_batch(checkpoint, texts, batch[0].settings[0], windows)
    maps = {row: packed_attention(seen) for row, seen in scores.maps.items()}
    return {
        item: Seen(measured=measured_text(0, texts[row], scores.measures[row]), attention=maps.get(row))
        for row, item in enumerate(batch)
    }


def _compared(checkpoints: Sequence[Checkpoint], batch: Sequence[Item]) -> dict[Item, Seen]:
    from core.divergence import compare_batch

    a, b = checkpoints
    texts_a, texts_b = zip(*(item.prepared for item in batch))
    compared = compare_batch(a, b, texts_a, texts_b, *batch[0].settings)
    none = np.empty((0, 0), np.float32)
    return {
        item: Seen(
            measured=measured_text(0, texts_a[row], compared.a[row]),
            against=measured_text(0, texts_b[row], compared.b[row]),
            divergence=none if compared.divergence is None else compared.divergence[row],
        )
        for row, item in enumerate(batch)
    }


def _parse(batch: Sequence[Item]) -> None:
    """Put the relations of texts on their tokens, unless an earlier attempt has."""
    unparsed = [item for item in batch if not item.is_parsed]
    texts = [text for item in unparsed for text in item.prepared]
    found = iter(with_relations(texts, [item.wanted.text for item in unparsed for _ in item.prepared]))
    for item in unparsed:
        item.prepared, item.is_parsed = tuple(next(found) for _ in item.prepared), True


def prediction_of(checkpoint: Checkpoint, text: Text, settings: PassSettings) -> "Prediction | None":
    """What a classifier says of a text, cut where it is too long; None for a checkpoint that is none."""
    from core.outputs import prediction

    return prediction(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings)


def output_change_of(checkpoint: Checkpoint, text: Text, settings: PassSettings, token: int | None) -> "OutputChange":
    """What switching heads off changes in the output for a text; cut where it is too long."""
    from core.outputs import output_change

    return output_change(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, token)


def warm_parser() -> None:
    """Load the parser, so that the first text need not wait for it."""
    list(parse([Text(("Warm.",))]))
