"""Forward passes in which directions are erased from the output of one head, or its spread is measured."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

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


def least_effect(checkpoint: Checkpoint, metric: Metric, change: float) -> float:
    """Change of an outcome below which nothing counts as used by the model: 1 - cosine, or nats.

    Args:
        checkpoint: sets the number format, whose rounding counts where it is greater.
        change: share of its length by which the text vector turns, or of itself by which the perplexity grows.
    """
    share = max(change, torch.finfo(getattr(torch, checkpoint.dtype)).eps)
    return float(np.log1p(share)) if metric == "lm" else share**2 / 2


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadPasses:
    """Passes of some texts in which the output of one head is erased, or read.

    If vectors are read at [CLS], directions are erased only there; otherwise at every token, since in a decoder each
    token is the last of its prefix, and a mean is erased by erasing at all tokens.
    """

    checkpoint: Checkpoint
    texts: Sequence[PassText]
    settings: PassSettings
    """Which attention, and which heads are off."""
    head: Head
    """Whose output before the output projection is changed."""
    pooling: Pooling
    """Where the vectors that the erasers were fitted to were read."""
    metric: Metric
    """Change of the text vector, or loss of the language model."""
    check: Callable[[], None] = lambda: None
    """Called before each pass; may raise to stop."""

    def spread(self, mean: Float[np.ndarray, " channel"]) -> Float[np.ndarray, "channel channel"]:
        """Mean product of the deviations of the head's output from a mean vector, that of the erasers, over the tokens
        at which it is erased.

        Raises: AnalysisError if the outputs of single heads cannot be observed.
        """
        deviations = list[np.ndarray]()

        def read(vectors: Float[Tensor, "row channel"]) -> Float[Tensor, "row channel"]:
            deviations.append(vectors.cpu().double().numpy() - mean)
            return vectors

        for _, batch_texts in self._batches():
            self._run(Readout(self.checkpoint, "output", batch_texts), "output", batch_texts, read)
        rows = np.concatenate(deviations)
        return rows.T @ rows / len(rows)

    def outcomes(self, erasers: Sequence[Eraser]) -> Float[np.ndarray, "text state"]:
        """Outcome of each text without erasure, then with each eraser, which takes a pass of its own.

        Raises: AnalysisError if the checkpoint does not support the metric, or the outputs of single heads cannot be
            observed.
        """
        check_metric(self.checkpoint, self.metric, self.settings.kind)
        outcomes = np.empty((len(self.texts), 1 + len(erasers)))
        replacements = [None, *(_erasing(self.checkpoint, eraser) for eraser in erasers)]
        for positions, batch_texts in self._batches():
            readout = Readout(self.checkpoint, self.metric, batch_texts)
            outputs = (self._run(readout, self.metric, batch_texts, replaced) for replaced in replacements)
            states = [readout.outcomes(output)[0, :, 0] for output in outputs]
            outcomes[list(positions)] = torch.stack(states, 1).numpy()
        if self.metric == "output":
            outcomes[:, 0] = 0  # the difference of each text from itself
        return outcomes

    def _batches(self) -> Iterator[tuple[Sequence[int], list[PassText]]]:
        check_heads_are_seen(self.checkpoint.model)
        for batch in plan_batches([text.n_tokens for text in self.texts], BATCH_TOKENS[self.checkpoint.device]):
            yield batch.positions, [self.texts[index] for index in batch.positions]

    def _run(self, readout: Readout, metric: Metric, texts: Sequence[PassText], replaced: _Replaced | None) -> object:
        self.check()
        observed_pass = Pass(
            calls=self.checkpoint.attentions[self.settings.kind].calls,
            gates=gates(self.checkpoint, self.settings),
            on_output=None if replaced is None else _AtHead(texts, self.head, self.pooling, replaced),
        )
        return observe(model_of(self.checkpoint, metric, self.settings.kind), readout.inputs(), observed_pass)


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
            head_outputs, places = outputs[:, :, self._head], self._places.to(outputs.device)
            head_outputs[places] = self._replaced(head_outputs[places])


def _erasing(checkpoint: Checkpoint, eraser: Eraser) -> _Replaced:
    dtype = checkpoint.statistics_dtype
    mean, removed = (torch.from_numpy(part).to(checkpoint.device, dtype) for part in (eraser.mean, eraser.removed))

    def erased(vectors: Float[Tensor, "row channel"]) -> Float[Tensor, "row channel"]:
        values = vectors.to(dtype)
        return (values - (values - mean) @ removed).to(vectors.dtype)

    return erased
