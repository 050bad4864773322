"""Forward passes in which directions are erased from the output of one head."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention.observed import check_heads_are_seen, observe
from core.attention.settings import Head, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.batches import BATCH_TOKENS, gates, plan_batches
from core.passes.metric import Metric
from core.passes.readout import Readout, check_metric, model_of
from core.passes.texts import PassText
from core.probing_tasks.erasure.eraser import Eraser
from core.probing_tasks.vectors import Pooling, places_to_read


def erased_outcomes(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    head: Head,
    erasers: Sequence[Eraser],
    *,
    metric: Metric,
    pooling: Pooling,
    watch: Callable[[int, int], None] = lambda done, of: None,
) -> Float[np.ndarray, "text state"]:
    """Outcome of each text as it is, then with each eraser.

    Where vectors are read at [CLS], directions are erased there only; else at every token: in a decoder each is the
    last one of what stands before it, and a mean is erased with all its parts.

    Args:
        checkpoint: loaded.
        texts: prepared, one or more.
        settings: which attention, and which heads are off.
        head: whose output before the projection is changed.
        erasers: each in a pass of its own.
        metric: change of the text vector, or loss of the language model.
        pooling: where the vectors were read that the erasers are fitted to.
        watch: is told how many texts are done, and of how many.

    Raises: AnalysisError for a metric that the checkpoint has not, or one whose single heads cannot be seen.
    """
    check_heads_are_seen(checkpoint.model)
    check_metric(checkpoint, metric, settings.kind)
    found = np.empty((len(texts), 1 + len(erasers)))
    n_done = 0
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        own = [texts[place] for place in batch.positions]
        readout, states = Readout(checkpoint, metric, own), list[Tensor]()
        for eraser in (None, *erasers):
            change = None if eraser is None else _Change(checkpoint, own, head, eraser, pooling)
            states.append(readout.outcomes(_run(checkpoint, readout, settings, metric, change))[0, :, 0])
        found[list(batch.positions)] = torch.stack(states, 1).numpy()
        n_done += len(own)
        watch(n_done, len(texts))
    if metric == "output":
        found[:, 0] = 0  # its own difference from itself
    return found


def _run(
    checkpoint: Checkpoint, readout: Readout, settings: PassSettings, metric: Metric, change: "_Change | None"
) -> object:
    return observe(
        model_of(checkpoint, metric, settings.kind),
        readout.inputs(),
        [],
        calls=checkpoint.attentions[settings.kind].calls,
        gates=gates(checkpoint, settings),
        on_output=change,
    )


class _Change:
    """Erases directions from the output of a head as it is handed on, layer by layer."""

    def __init__(
        self, checkpoint: Checkpoint, texts: Sequence[PassText], head: Head, eraser: Eraser, pooling: Pooling
    ) -> None:
        self._layer, self._head = head
        device, dtype = checkpoint.device, checkpoint.statistics_dtype
        self._mean = torch.from_numpy(eraser.mean).to(device, dtype)
        self._removed = torch.from_numpy(eraser.removed).to(device, dtype)
        self._rows = torch.arange(len(texts), device=checkpoint.device)
        self._places: Tensor | None = None
        if pooling == "cls":
            self._places = torch.from_numpy(places_to_read(texts, pooling)).to(checkpoint.device)
        self._next = 0

    def __call__(self, outputs: Float[Tensor, "text token head channel"], _: Tensor) -> None:
        layer, self._next = self._next, self._next + 1
        if layer != self._layer:
            return
        if self._places is None:
            of_head = outputs[:, :, self._head]
            outputs[:, :, self._head] = self._erased(of_head)
        else:
            outputs[self._rows, self._places, self._head] = self._erased(outputs[self._rows, self._places, self._head])

    def _erased(self, vectors: Float[Tensor, "*row channel"]) -> Float[Tensor, "*row channel"]:
        computed = vectors.to(self._mean.dtype)
        return (computed - (computed - self._mean) @ self._removed).to(vectors.dtype)
