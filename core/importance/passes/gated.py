"""Outcomes of texts with many heads off at once, in several ways."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float

from core.attention.observed import observe
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.importance.passes.sweep import SWEEP_TOKENS
from core.passes.batches import gates, plan_batches
from core.passes.metric import Metric
from core.passes.readout import Readout, check_metric, model_of
from core.passes.texts import PassText


def gated(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
    of_heads: Float[np.ndarray, "gating layer head"],
) -> Iterator[list[tuple[int, Float[np.ndarray, "gating part"]]]]:
    """Outcome of each text under each of several gatings of all heads.

    Args:
        checkpoint: loaded.
        texts: prepared; see `core.importance.passes.sweep.with_targets`.
        settings: which attention is gated, and which heads are off throughout.
        metric: what is read off the output; changes of the output are those from all heads on.
        of_heads: the gates; several gatings ride in one batch.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError for a metric that the checkpoint has not.
    """
    check_metric(checkpoint, metric, settings.kind)
    model, calls = model_of(checkpoint, metric, settings.kind), checkpoint.attentions[settings.kind].calls
    base = gates(checkpoint, settings)
    gatings = torch.from_numpy(of_heads).to(checkpoint.statistics_dtype).to(checkpoint.device)
    gatings = gatings if base is None else gatings * base
    budget = SWEEP_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        readout = Readout(checkpoint, metric, [texts[place] for place in batch.positions])
        n_texts = len(batch.positions)
        readout.outcomes(observe(model, readout.inputs(), [], calls=calls, gates=base))
        found = []
        for some in gatings.split(max(1, budget // (n_texts * batch.width))):
            by_row = some.repeat_interleave(n_texts, 0)
            output = observe(model, readout.inputs(len(some)), [], calls=calls, gates=by_row)
            found.append(readout.outcomes(output, len(some)))
        by_text = torch.cat(found).transpose(0, 1).numpy()
        yield list(zip(batch.positions, by_text, strict=True))
