"""Every head of every layer gated in turn, in as few computations as that takes.

The layers below the gated one, and its own attention up to its gates, are computed once for a batch of texts and
reused; the gatings of a layer ride in one batch, as copies of the texts whose gates differ.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from core.attention.observed import observe
from core.attention.settings import Kind, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.errors import CheckpointError
from core.importance.metrics import TextOutcomes
from core.importance.passes.reuse import LayerReuse
from core.importance.per_text import with_holes
from core.passes.batches import BATCH_TOKENS, gates, plan_batches
from core.passes.metric import Metric
from core.passes.prepare import prepare
from core.passes.readout import Readout, check_metric, model_of
from core.passes.texts import PassText
from core.texts.text import Text

SWEEP_TOKENS: Final = {"cpu": BATCH_TOKENS["cpu"], "mps": BATCH_TOKENS["mps"], "cuda": 4 * BATCH_TOKENS["cuda"]}
"""Tokens of all copies in one forward pass, padding included, by device."""
TOLERANCE: Final = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 1e-1}
"""Difference between a pass that reuses layers and one that does not, relative to the larger outcome (at least 1)."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """What is done to the heads of each layer in turn."""

    metric: Metric
    alone: bool = False
    """Whether a head is left alone in its layer, instead of being taken out."""
    replacements: Float[np.ndarray, "layer head channel"] | None = None
    """What stands in for the output of a head that is out; None for 0."""

    def patterns(self, n_heads: int, device: str) -> Float[Tensor, "pattern head"]:
        """Gates of one layer, for each of its heads in turn."""
        own = torch.eye(n_heads, device=device)
        return own if self.alone else 1 - own


def with_targets(
    checkpoint: Checkpoint, metric: Metric, items: Sequence[Text], texts: Sequence[PassText]
) -> list[PassText]:
    """Texts as a metric reads them: the loss of an encoder-decoder needs the target, whichever attention is gated.

    Raises: PairNeeded for a text without a target.
    """
    if metric != "lm" or not texts or texts[0].kind != "encoder":
        return list(texts)
    decoded = PassSettings("decoder")
    return [
        prepare(checkpoint, item, decoded, position=position, truncate=text.source.n_cut > 0)
        for position, (item, text) in enumerate(zip(items, texts, strict=True))
    ]


def sweep(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings, how: Sweep
) -> Iterator[list[tuple[int, TextOutcomes]]]:
    """Outcomes of each text with all heads on and with every head gated in turn.

    Args:
        checkpoint: loaded.
        texts: prepared; see `with_targets`.
        settings: which attention is gated, and which heads are off throughout.
        how: metric, and what is done to the heads.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError for a metric that the checkpoint has not, and for replacements in a model whose single heads
        cannot be seen; CheckpointError where reused layers give another result.
    Source: Michel et al. 2019, sections 3.2 (one head out) and 3.3 (all heads but one out).
    """
    check_metric(checkpoint, how.metric, settings.kind)
    passes = _Passes(checkpoint, settings, how)
    removed = checkpoint.attentions[settings.kind].removed
    budget = SWEEP_TOKENS[checkpoint.device] // checkpoint.attentions[settings.kind].n_heads
    for number, batch in enumerate(plan_batches([text.n_tokens for text in texts], budget)):
        chosen = [texts[place] for place in batch.positions]
        full, without = passes.outcomes(chosen, batch.width, is_checked=number == 0)
        yield [
            (place, TextOutcomes(full=full[row].numpy(), without=with_holes(without[:, :, row].numpy(), removed)))
            for row, place in enumerate(batch.positions)
        ]


class _Passes:
    """The passes of a sweep, one after the other."""

    def __init__(self, checkpoint: Checkpoint, settings: PassSettings, how: Sweep) -> None:
        self._checkpoint, self._how = checkpoint, how
        self._attention = checkpoint.attentions[settings.kind]
        self._patterns = how.patterns(self._attention.n_heads, checkpoint.device)
        base = gates(checkpoint, settings)
        shape = (self._attention.n_layers, self._attention.n_heads)
        self._base = torch.ones(shape, device=checkpoint.device) if base is None else base
        self._known: dict[int, Tensor] = {}
        values = how.replacements
        self._replacements = None if values is None else torch.from_numpy(values).to(checkpoint.statistics_dtype)
        if self._replacements is not None:
            self._replacements = self._replacements.to(checkpoint.device)
        self._reuse = LayerReuse(model_of(checkpoint, how.metric, settings.kind))

    def outcomes(
        self, texts: Sequence[PassText], width: int, is_checked: bool
    ) -> tuple[Float[Tensor, "text part"], Float[Tensor, "layer head text part"]]:
        """Outcomes of a batch with all heads on, and with each gated in turn."""
        readout = Readout(self._checkpoint, self._how.metric, texts)
        with self._reuse.recording(len(texts)):
            outputs: list[Tensor] = []
            output = self._run(readout.inputs(), self._base, on_output=lambda of_heads, _: outputs.append(of_heads))
            self._known = dict(enumerate(outputs))
            full = readout.outcomes(output)[0]
        if is_checked:
            self._check(readout, len(texts))
        full = torch.zeros_like(full) if self._how.metric == "output" else full
        n_chunks = math.ceil(len(self._patterns) * len(texts) * width / SWEEP_TOKENS[self._checkpoint.device])
        layers = []
        for layer in range(self._attention.n_layers):
            chunks = self._patterns.tensor_split(min(n_chunks, len(self._patterns)))
            layers.append(torch.cat([self._gated(readout, layer, patterns, len(texts)) for patterns in chunks]))
        return full, torch.stack(layers)

    def _gated(
        self, readout: Readout, layer: int, patterns: Float[Tensor, "copy head"], n_texts: int
    ) -> Float[Tensor, "copy text part"]:
        """Outcomes with a layer's heads gated in several ways, each a copy of the batch."""
        n_copies = len(patterns)
        by_copy = self._base.repeat(n_copies, 1, 1)
        by_copy[:, layer] *= patterns
        with self._reuse.above(self._attention.calls[layer], n_copies):
            known = {layer: self._known[layer]} if layer in self._known else {}
            output = self._run(readout.inputs(n_copies), by_copy.repeat_interleave(n_texts, 0), known=known)
        return readout.outcomes(output, n_copies)

    def _run(self, inputs: Any, of_heads: Float[Tensor, "*row layer head"], **more: Any) -> Any:
        return observe(
            self._reuse.model,
            inputs,
            [],
            calls=self._attention.calls,
            gates=of_heads,
            replacements=self._replacements,
            **more,
        )

    def _check(self, readout: Readout, n_texts: int) -> None:
        """Compare one head of the last layer with a pass that computes every layer."""
        last, pattern = self._attention.n_layers - 1, self._patterns[:1]
        reused = self._gated(readout, last, pattern, n_texts)
        by_hand = self._base.clone()
        by_hand[last] *= pattern[0]
        plain = readout.outcomes(self._run(readout.inputs(), by_hand))
        allowed = TOLERANCE[self._checkpoint.dtype] * max(1.0, float(plain.abs().max()))
        difference = float((reused - plain).abs().max())
        if not difference <= allowed:
            raise CheckpointError(
                f"{self._checkpoint.files.name} gives other results when its lower layers are reused (they differ by "
                f"{difference:.1e}; allowed {allowed:.0e}), so its heads cannot be ablated in one sweep. Choose a "
                "checkpoint of another family, such as BERT."
            )


def heads_of(checkpoint: Checkpoint, kind: Kind) -> tuple[int, int]:
    """Numbers of layers and heads."""
    attention = checkpoint.attentions[kind]
    return attention.n_layers, attention.n_heads
