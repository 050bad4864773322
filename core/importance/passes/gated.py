"""Outcomes and vectors of texts under gatings that switch off many heads at once."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.passes.sweep import SWEEP_TOKENS
from attention_sieve.core.passes.batches import gates, plan_batches
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.texts import PassText

Read = Callable[[Readout, Any, int], Float[Tensor, "copy text part"]]
"""Reads off the model's output, for a number of copies of a batch."""


def gated(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
    head_gates: Float[np.ndarray, "gating layer head"],
) -> Iterator[list[tuple[int, Float[np.ndarray, "gating part"]]]]:
    """Outcome of each text under each of several gatings of all heads.

    Args:
        checkpoint: loaded.
        texts: prepared; see `attention_sieve.core.importance.passes.sweep.with_targets`.
        settings: which attention is gated, and which heads are off throughout.
        metric: what is read off the output; for output, the change from all heads on.
        head_gates: gates of all heads; several gatings share a batch.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError if the checkpoint does not support the metric.
    """
    check_metric(checkpoint, metric, settings.kind)
    return _gated(checkpoint, texts, settings, metric, head_gates, Readout.outcomes)


def gated_vectors(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    head_gates: Float[np.ndarray, "gating layer head"],
) -> Iterator[list[tuple[int, Float[np.ndarray, "gating channel"]]]]:
    """Vector of each text, the mean of its last hidden states, under each of several gatings. Arguments as `gated`."""
    return _gated(checkpoint, texts, settings, "output", head_gates, _vectors)


def _vectors(readout: Readout, output: Any, copies: int = 1) -> Float[Tensor, "copy text channel"]:
    return readout.text_vectors(output, copies).cpu().double().unflatten(0, (copies, -1))


def _gated(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
    head_gates: Float[np.ndarray, "gating layer head"],
    read: Read,
) -> Iterator[list[tuple[int, Float[np.ndarray, "gating part"]]]]:
    model, calls = model_of(checkpoint, metric, settings.kind), checkpoint.attentions[settings.kind].calls
    base = gates(checkpoint, settings)
    gatings = torch.from_numpy(head_gates).to(checkpoint.statistics_dtype).to(checkpoint.device)
    gatings = gatings if base is None else gatings * base
    budget = SWEEP_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        readout = Readout(checkpoint, metric, [texts[index] for index in batch.positions])
        n_texts = len(batch.positions)
        read(readout, observe(model, readout.inputs(), Pass(calls=calls, gates=base)), 1)
        outcomes = []
        for chunk in gatings.split(max(1, budget // (n_texts * batch.width))):
            row_gates = chunk.repeat_interleave(n_texts, 0)
            output = observe(model, readout.inputs(len(chunk)), Pass(calls=calls, gates=row_gates))
            outcomes.append(read(readout, output, len(chunk)))
        by_text = torch.cat(outcomes).transpose(0, 1).numpy()
        yield list(zip(batch.positions, by_text, strict=True))
