"""Texts in batches of similar length, run through the model with one result per text."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Observer, Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.tokens import TokenizedText

Result_co = TypeVar("Result_co", covariant=True)
Result = TypeVar("Result")

BATCH_TOKENS: Final = {"cpu": 1024, "mps": 4096, "cuda": 16384}
"""Tokens per batch, padding included, by device: small batches fit into a CPU's cache."""
MOST_ENTRIES: Final = 1 << 30
"""Attention entries of one text, over all layers and heads, that a pass may keep for its backward pass: 4 GB."""


class Collector(Observer, Protocol[Result_co]):
    """An observer of one batch with a result for each text."""

    def results(self) -> Sequence[Result_co]:
        """One result per text of the batch, in order, on the CPU; called once, after the pass."""


@dataclass(frozen=True, eq=False)
class Batch:
    """Texts of one forward pass."""

    positions: tuple[int, ...]
    """Indices of the texts in the input."""
    width: int
    """Length of the longest text, in tokens."""


def plan_batches(lengths: Sequence[int], budget: int) -> list[Batch]:
    """Group texts of similar length into batches of at most `budget` tokens, padding included, but at least one
    text."""
    batches: list[Batch] = []
    current: list[int] = []
    for position in sorted(range(len(lengths)), key=lambda i: lengths[i]):
        if current and (len(current) + 1) * lengths[position] > budget:
            batches.append(Batch(tuple(current), lengths[current[-1]]))
            current = []
        current.append(position)
    return [*batches, Batch(tuple(current), lengths[current[-1]])] if current else batches


def collect(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    collector: Callable[[Sequence[PassText]], Collector[Result]],
    *,
    batch_tokens: int | None = None,
) -> Iterator[list[tuple[int, Result]]]:
    """Run texts through the model, yielding the results of each batch. `collector` creates the observer of a batch from
    its texts; a batch has at most so many tokens, padding included, or by default as many as suit the device.

    Yields: index of the text and its result; not in input order.
    """
    attention = checkpoint.attentions[settings.kind]
    budget = batch_tokens or BATCH_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        batch_texts = [texts[position] for position in batch.positions]
        observer = collector(batch_texts)
        observe(
            checkpoint.model,
            model_inputs(checkpoint, batch_texts),
            Pass(observers=[observer], calls=attention.calls, gates=gates(checkpoint, settings), stops=True),
        )
        yield list(zip(batch.positions, observer.results(), strict=True))


def check_length(attention: AttentionLayers, n_tokens: int) -> None:
    """Refuse a text whose attention, kept for the backward pass, would fill the memory.

    Raises: AnalysisError.
    """
    per_pair = attention.n_layers * attention.n_heads
    if per_pair * n_tokens**2 > MOST_ENTRIES:
        raise AnalysisError(
            f"A text has {n_tokens:,} tokens, and gradients of this checkpoint's attention take too much memory beyond "
            f"{int((MOST_ENTRIES / per_pair) ** 0.5):,}. Leave the text out, or truncate it."
        )


def gates(checkpoint: Checkpoint, settings: PassSettings) -> Float[Tensor, "layer head"] | None:
    """Factor for the output of each head: 1, or 0 if switched off; None if all heads are on."""
    if not settings.off:
        return None
    attention = checkpoint.attentions[settings.kind]
    values = torch.ones((attention.n_layers, attention.n_heads))
    for layer, head in settings.off:
        values[layer, head] = 0
    return to_device(values, checkpoint.device)


def model_inputs(checkpoint: Checkpoint, texts: Sequence[PassText]) -> dict[str, Tensor]:
    """Arguments of the model for a batch: ids, masks if there is padding, and type ids if the model uses them."""
    inputs = _padded(checkpoint, [text.source for text in texts])
    if checkpoint.takes_type_ids:
        inputs["token_type_ids"] = _stacked([text.source.type_ids for text in texts], 0, checkpoint.device)
    targets = [text.target for text in texts if text.target is not None]
    if targets:
        inputs |= {f"decoder_{name}": value for name, value in _padded(checkpoint, targets).items()}
    return inputs


def _padded(checkpoint: Checkpoint, texts: Sequence[TokenizedText]) -> dict[str, Tensor]:
    inputs = {"input_ids": _stacked([text.ids for text in texts], checkpoint.padding_id, checkpoint.device)}
    lengths = {len(text.ids) for text in texts}
    if len(lengths) > 1:
        inputs["attention_mask"] = _stacked([np.ones_like(text.ids) for text in texts], 0, checkpoint.device)
    return inputs


def _stacked(rows: Sequence[np.ndarray], padding: int, device: str) -> Tensor:
    stacked = np.full((len(rows), max(map(len, rows))), padding, dtype=np.int64)
    for row, values in enumerate(rows):
        stacked[row, : len(values)] = values
    return to_device(torch.from_numpy(stacked), device)


def to_device(values: Tensor, device: str) -> Tensor:
    """Move a tensor to a device; to a GPU asynchronously, through pinned memory."""
    return values.pin_memory().to(device, non_blocking=True) if device == "cuda" else values.to(device)
