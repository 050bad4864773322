"""Forward passes in which directions are erased from the output of one head, or its spread is measured."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.knowledge.erasure.eraser import Eraser
from attention_sieve.core.knowledge.vectors import Pooling, places_to_read
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, plan_batches
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.texts import PassText

_Replaced = Callable[[Float[Tensor, "row channel"]], Float[Tensor, "row channel"]]
"""Replacement of the vectors of a head."""


def least_effect(checkpoint: Checkpoint, metric: Metric, change: float) -> float:
    """Change of an outcome below which nothing counts as used by the model: 1 - cosine, or nats.

    Args:
        checkpoint: sets the number format, whose rounding counts where it is greater.
        metric: of the outcome.
        change: share of its length by which the text vector turns, or of itself by which the perplexity grows.
    """
    share = max(change, torch.finfo(getattr(torch, checkpoint.dtype)).eps)
    return float(np.log1p(share)) if metric == "lm" else share**2 / 2


def spread(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    head: Head,
    mean: Float[np.ndarray, " channel"],
    pooling: Pooling,
) -> Float[np.ndarray, "channel channel"]:
    """Mean product of the deviations of a head's output from a mean vector, over the tokens at which it is erased.

    Args:
        checkpoint, texts, settings, head, pooling: as for `erased_outcomes`.
        mean: of the erasers.
    """
    check_heads_are_seen(checkpoint.model)
    deviations = list[np.ndarray]()

    def read(vectors: Float[Tensor, "row channel"]) -> Float[Tensor, "row channel"]:
        deviations.append(vectors.cpu().double().numpy() - mean)
        return vectors

    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        readout, at_head = Readout(checkpoint, "output", batch_texts), _AtHead(batch_texts, head, pooling, read)
        _run(checkpoint, readout, settings, "output", at_head)
    rows = np.concatenate(deviations)
    return rows.T @ rows / len(rows)


def erased_outcomes(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    head: Head,
    erasers: Sequence[Eraser],
    *,
    metric: Metric,
    pooling: Pooling,
) -> Float[np.ndarray, "text state"]:
    """Outcome of each text without erasure, then with each eraser.

    If vectors are read at [CLS], directions are erased only there; otherwise at every token, since in a decoder each
    token is the last of its prefix, and a mean is erased by erasing at all tokens.

    Args:
        checkpoint: loaded.
        texts: prepared, one or more.
        settings: which attention, and which heads are off.
        head: whose output before the output projection is changed.
        erasers: each is applied in a separate pass.
        metric: change of the text vector, or loss of the language model.
        pooling: where the vectors that the erasers were fitted to were read.

    Raises: AnalysisError if the checkpoint does not support the metric, or the outputs of single heads cannot be
        observed.
    """
    check_heads_are_seen(checkpoint.model)
    check_metric(checkpoint, metric, settings.kind)
    outcomes = np.empty((len(texts), 1 + len(erasers)))
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        readout, states = Readout(checkpoint, metric, batch_texts), list[Tensor]()
        for eraser in (None, *erasers):
            at_head = None if eraser is None else _AtHead(batch_texts, head, pooling, _erasing(checkpoint, eraser))
            states.append(readout.outcomes(_run(checkpoint, readout, settings, metric, at_head))[0, :, 0])
        outcomes[list(batch.positions)] = torch.stack(states, 1).numpy()
    if metric == "output":
        outcomes[:, 0] = 0  # the difference of each text from itself
    return outcomes


def _run(
    checkpoint: Checkpoint, readout: Readout, settings: PassSettings, metric: Metric, at_head: "_AtHead | None"
) -> object:
    return observe(
        model_of(checkpoint, metric, settings.kind),
        readout.inputs(),
        Pass(calls=checkpoint.attentions[settings.kind].calls, gates=gates(checkpoint, settings), on_output=at_head),
    )


class _AtHead:
    """Replaces the output of one head at the tokens at which it is erased during a pass; called once per layer."""

    def __init__(self, texts: Sequence[PassText], head: Head, pooling: Pooling, replaced: _Replaced) -> None:
        self._layer, self._head = head
        self._replaced = replaced
        lengths = np.array([len(text.queries.ids) for text in texts])[:, None]
        tokens = np.arange(lengths.max())
        at_cls = tokens == places_to_read(texts, pooling)[:, None]
        self._places = torch.from_numpy(at_cls if pooling == "cls" else tokens < lengths)
        self._next = 0

    def __call__(self, outputs: Float[Tensor, "text token head channel"], _: Tensor) -> None:
        layer, self._next = self._next, self._next + 1
        if layer == self._layer:
            of_head, places = outputs[:, :, self._head], self._places.to(outputs.device)
            of_head[places] = self._replaced(of_head[places])


def _erasing(checkpoint: Checkpoint, eraser: Eraser) -> _Replaced:
    """The result of an eraser for the vectors of a pass."""
    dtype = checkpoint.statistics_dtype
    mean, removed = (torch.from_numpy(part).to(checkpoint.device, dtype) for part in (eraser.mean, eraser.removed))

    def erased(vectors: Float[Tensor, "row channel"]) -> Float[Tensor, "row channel"]:
        values = vectors.to(dtype)
        return (values - (values - mean) @ removed).to(vectors.dtype)

    return erased
