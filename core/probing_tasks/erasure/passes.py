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
        watch: called with the number of texts done and the total.

    Raises: AnalysisError if the checkpoint does not support the metric, or the outputs of single heads cannot be
        observed.
    """
    check_heads_are_seen(checkpoint.model)
    check_metric(checkpoint, metric, settings.kind)
    outcomes = np.empty((len(texts), 1 + len(erasers)))
    n_done = 0
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        readout, states = Readout(checkpoint, metric, batch_texts), list[Tensor]()
        for eraser in (None, *erasers):
            erasure = None if eraser is None else _DirectionEraser(checkpoint, batch_texts, head, eraser, pooling)
            states.append(readout.outcomes(_run(checkpoint, readout, settings, metric, erasure))[0, :, 0])
        outcomes[list(batch.positions)] = torch.stack(states, 1).numpy()
        n_done += len(batch_texts)
        watch(n_done, len(texts))
    if metric == "output":
        outcomes[:, 0] = 0  # the difference of each text from itself
    return outcomes


def _run(
    checkpoint: Checkpoint, readout: Readout, settings: PassSettings, metric: Metric, erasure: "_DirectionEraser | None"
) -> object:
    return observe(
        model_of(checkpoint, metric, settings.kind),
        readout.inputs(),
        [],
        calls=checkpoint.attentions[settings.kind].calls,
        gates=gates(checkpoint, settings),
        on_output=erasure,
    )


class _DirectionEraser:
    """Erases directions from the output of one head during a pass; called once per layer."""

    def __init__(
        self, checkpoint: Checkpoint, texts: Sequence[PassText], head: Head, eraser: Eraser, pooling: Pooling
    ) -> None:
        self._layer, self._head = head
        device, dtype = checkpoint.device, checkpoint.statistics_dtype
        self._mean = torch.from_numpy(eraser.mean).to(device, dtype)
        self._removed = torch.from_numpy(eraser.removed).to(device, dtype)
        self._rows = torch.arange(len(texts), device=checkpoint.device)
        self._positions: Tensor | None = None
        if pooling == "cls":
            self._positions = torch.from_numpy(places_to_read(texts, pooling)).to(checkpoint.device)
        self._next = 0

    def __call__(self, outputs: Float[Tensor, "text token head channel"], _: Tensor) -> None:
        layer, self._next = self._next, self._next + 1
        if layer != self._layer:
            return
        if self._positions is None:
            head_output = outputs[:, :, self._head]
            outputs[:, :, self._head] = self._erased(head_output)
        else:
            outputs[self._rows, self._positions, self._head] = self._erased(
                outputs[self._rows, self._positions, self._head]
            )

    def _erased(self, vectors: Float[Tensor, "*row channel"]) -> Float[Tensor, "*row channel"]:
        values = vectors.to(self._mean.dtype)
        return (values - (values - self._mean) @ self._removed).to(vectors.dtype)
