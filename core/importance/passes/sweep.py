"""Gates heads with as little computation as possible: every head of every layer in turn, or many heads at once.

Of a sweep, the layers below the gated one, and its own attention up to its gates, are computed once for a batch of
texts and reused; the gatings of a layer share a batch, as copies of the texts with different gates.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, plan_batches, tensor_on
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.reuse import LayerReuse
from attention_sieve.core.passes.texts import PassText, prepare
from attention_sieve.core.texts.text import Text

SWEEP_TOKENS: Final = {"cpu": BATCH_TOKENS["cpu"], "mps": BATCH_TOKENS["mps"], "cuda": 4 * BATCH_TOKENS["cuda"]}
"""Tokens of all copies in one forward pass, padding included, by device."""
MOST_WEIGHTS: Final = 10**9
"""Weights that each of these tokens may meet during the sweep; a batch of larger models has fewer tokens, so that the
first answers come, and others get their turn, after some ten seconds of a processor."""
TOLERANCE: Final = {"float64": 1e-9, "float32": 1e-4, "float16": 3e-2, "bfloat16": 1e-1}
"""Allowed difference between passes with and without reused layers, relative to the largest outcome (at least 1)."""
Read = Callable[[Readout, Any, int], Float[Tensor, "copy text part"]]
"""Reads off the model's output, for a number of copies of a batch."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Sweep:
    """Metric and kind of ablation of a sweep."""

    metric: Metric
    alone: bool = False
    """Whether all other heads of the layer are ablated instead of the head itself."""
    replacements: Float[np.ndarray, "layer head channel"] | None = None
    """Replacement of the output of an ablated head; None for 0."""


def with_targets(
    checkpoint: Checkpoint, metric: Metric, items: Sequence[Text], texts: Sequence[PassText]
) -> list[PassText]:
    """Texts as a metric reads them: the loss of an encoder-decoder needs the target, whichever attention is gated.

    Raises: PairNeeded for a text without a target.
    """
    if metric != "lm" or not texts or texts[0].kind != "encoder":
        return list(texts)
    settings = PassSettings("decoder")
    return [
        prepare(checkpoint, item, settings, position=position, truncate=text.source.n_cut > 0)
        for position, (item, text) in enumerate(zip(items, texts, strict=True))
    ]


def sweep(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings, ablation: Sweep
) -> Iterator[list[tuple[int, TextOutcomes]]]:
    """Outcomes of each text with all heads on and with every head gated in turn.

    Args:
        checkpoint: loaded.
        texts: prepared; see `with_targets`.
        settings: which attention is gated, and which heads are off throughout.
        ablation: metric and kind of ablation.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError if the checkpoint does not support the metric, and for replacements if the outputs of single
        heads cannot be observed; CheckpointError if reused layers give another result.
    Source: Michel et al. 2019, sections 3.2 (one head out) and 3.3 (all heads but one out).
    """
    check_metric(checkpoint, ablation.metric, settings.kind)
    passes = _Passes(checkpoint, settings, ablation)
    attention = checkpoint.attentions[settings.kind]
    n_weights = checkpoint.model.num_parameters() * attention.n_layers // 2
    budget = SWEEP_TOKENS[checkpoint.device] * min(MOST_WEIGHTS, n_weights) // n_weights // attention.n_heads
    for number, batch in enumerate(plan_batches([text.n_tokens for text in texts], budget)):
        batch_texts = [texts[index] for index in batch.positions]
        full, without = passes.outcomes(batch_texts, batch.width, is_checked=number == 0)
        yield [
            (
                index,
                TextOutcomes(full=full[row].numpy(), without=with_holes(without[:, :, row].numpy(), attention.removed)),
            )
            for row, index in enumerate(batch.positions)
        ]


class _Passes:
    """Runs the passes of a sweep."""

    def __init__(self, checkpoint: Checkpoint, settings: PassSettings, ablation: Sweep) -> None:
        self._checkpoint, self._ablation = checkpoint, ablation
        self._attention = checkpoint.attentions[settings.kind]
        identity = torch.eye(self._attention.n_heads, device=checkpoint.device)
        self._patterns = identity if ablation.alone else 1 - identity
        base = gates(checkpoint, settings)
        shape = (self._attention.n_layers, self._attention.n_heads)
        self._base = torch.ones(shape, device=checkpoint.device) if base is None else base
        self._head_outputs: dict[int, Tensor] = {}
        self._replacements = _replacements(checkpoint, ablation)
        self._reuse = LayerReuse(model_of(checkpoint, ablation.metric, settings.kind))

    def outcomes(
        self, texts: Sequence[PassText], width: int, is_checked: bool
    ) -> tuple[Float[Tensor, "text part"], Float[Tensor, "layer head text part"]]:
        """Outcomes of a batch with all heads on, and with each gated in turn."""
        readout = Readout(self._checkpoint, self._ablation.metric, texts)
        with self._reuse.recording(len(texts)):
            outputs: list[Tensor] = []
            output = self._run(
                readout.inputs(), self._base, on_output=lambda head_outputs, _: outputs.append(head_outputs)
            )
            self._head_outputs = dict(enumerate(outputs))
            full = readout.outcomes(output)[0]
        if is_checked:
            self._check(readout, len(texts))
        full = torch.zeros_like(full) if self._ablation.metric == "output" else full
        n_chunks = math.ceil(len(self._patterns) * len(texts) * width / SWEEP_TOKENS[self._checkpoint.device])
        layers = []
        for layer in range(self._attention.n_layers):
            if self._attention.calls[layer] is None:
                layers.append(torch.full((len(self._patterns), *full.shape), torch.nan, device=full.device))
                continue
            chunks = self._patterns.tensor_split(min(n_chunks, len(self._patterns)))
            layers.append(torch.cat([self._gated(readout, layer, patterns, len(texts)) for patterns in chunks]))
        return full, torch.stack(layers)

    def _gated(
        self, readout: Readout, layer: int, patterns: Float[Tensor, "copy head"], n_texts: int
    ) -> Float[Tensor, "copy text part"]:
        """Outcomes with a layer's heads gated in several ways, each a copy of the batch."""
        n_copies = len(patterns)
        copy_gates = self._base.repeat(n_copies, 1, 1)
        copy_gates[:, layer] *= patterns
        with self._reuse.above(self._attention.calls[layer], n_copies):
            known_outputs = {layer: self._head_outputs[layer]} if layer in self._head_outputs else {}
            output = self._run(readout.inputs(n_copies), copy_gates.repeat_interleave(n_texts, 0), known=known_outputs)
        return readout.outcomes(output, n_copies)

    def _run(self, inputs: Any, head_gates: Float[Tensor, "*row layer head"], **options: Any) -> Any:
        return observe(
            self._reuse.model,
            inputs,
            Pass(calls=self._attention.calls, gates=head_gates, replacements=self._replacements, **options),
        )

    def _check(self, readout: Readout, n_texts: int) -> None:
        """Compare outcomes for one head of the last layer with those of a pass that computes every layer."""
        last_layer = max(layer for layer, call in enumerate(self._attention.calls) if call is not None)
        pattern = self._patterns[:1]
        reused = self._gated(readout, last_layer, pattern, n_texts)
        head_gates = self._base.clone()
        head_gates[last_layer] *= pattern[0]
        computed = readout.outcomes(self._run(readout.inputs(), head_gates))
        allowed = TOLERANCE[self._checkpoint.dtype] * max(1.0, float(computed.abs().max()))
        difference = float((reused - computed).abs().max())
        if not difference <= allowed:
            raise CheckpointError(
                f"{self._checkpoint.files.name} gives other results when its lower layers are reused (they differ by "
                f"{difference:.1e}; allowed {allowed:.0e}), so its heads cannot be ablated in one sweep. Choose a "
                "checkpoint of another family, such as BERT."
            )


def _replacements(checkpoint: Checkpoint, ablation: Sweep) -> Float[Tensor, "layer head channel"] | None:
    values = ablation.replacements
    return None if values is None else tensor_on(values, checkpoint.device, checkpoint.statistics_dtype)


def gated(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    ablation: Sweep,
    head_gates: Float[np.ndarray, "gating layer head"],
    read: Read = Readout.outcomes,
) -> Iterator[list[tuple[int, Float[np.ndarray, "gating part"]]]]:
    """Outcome of each text, or what else is read, under each of several gatings of all heads.

    Args:
        checkpoint: loaded.
        texts: prepared; see `with_targets`.
        settings: which attention is gated, and which heads are off throughout.
        ablation: the metric that is read off the output, for output as the change from all heads on; and what replaces
            the outputs of heads as far as their gates are closed.
        head_gates: gates of all heads; several gatings share a batch.
        read: outcomes of the metric, or `mean_vectors`.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError if the checkpoint does not support the metric.
    """
    check_metric(checkpoint, ablation.metric, settings.kind)
    model, calls = model_of(checkpoint, ablation.metric, settings.kind), checkpoint.attentions[settings.kind].calls
    replacements = _replacements(checkpoint, ablation)
    base = gates(checkpoint, settings)
    gatings = torch.from_numpy(head_gates).to(checkpoint.statistics_dtype).to(checkpoint.device)
    gatings = gatings if base is None else gatings * base
    budget = SWEEP_TOKENS[checkpoint.device]
    for batch in plan_batches([text.n_tokens for text in texts], budget):
        readout = Readout(checkpoint, ablation.metric, [texts[index] for index in batch.positions])
        n_texts = len(batch.positions)
        read(readout, observe(model, readout.inputs(), Pass(calls=calls, gates=base)), 1)
        outcomes = []
        for chunk in gatings.split(max(1, budget // (n_texts * batch.width))):
            row_gates = chunk.repeat_interleave(n_texts, 0)
            gated_pass = Pass(calls=calls, gates=row_gates, replacements=replacements)
            output = observe(model, readout.inputs(len(chunk)), gated_pass)
            outcomes.append(read(readout, output, len(chunk)))
        by_text = torch.cat(outcomes).transpose(0, 1).numpy()
        yield list(zip(batch.positions, by_text, strict=True))


def mean_vectors(readout: Readout, output: Any, copies: int = 1) -> Float[Tensor, "copy text channel"]:
    """Vector of each text: the mean of its last hidden states."""
    return readout.text_vectors(output, copies).cpu().double().unflatten(0, (copies, -1))
