"""Questions about the importance of each head in each text: ablations, outputs of heads, gradients, relevance."""

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cache, cached_property, lru_cache
from typing import Any, Final, Literal

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import Arrays, Question, Result, text_alone, text_itself
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.metrics import TextOutcomes
from attention_sieve.core.importance.per_text import (
    RELEVANCE_RULE,
    LabelledText,
    OutputWeights,
    TextOutputs,
    TextRelevance,
    TextSlopes,
)
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text

Replace = Literal["zero", "mean"]
REPLACEMENTS: Final[tuple[Replace, ...]] = ("zero", "mean")
Batches = Iterator[list[tuple[int, Result]]]
"""Index and result of each text, batch by batch."""
N_QUERIES: Final = "n_queries"
"""Name of a number of tokens among stored arrays, where n_tokens has a meaning of its own."""


@dataclass(frozen=True, eq=False)
class MeanOutputs:
    """Mean output of each head over the tokens of a corpus, as its replacement; compared by value."""

    values: Float[np.ndarray, "layer head channel"]

    @cached_property
    def digest(self) -> str:
        """Digest of the values."""
        return _digest(self.values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MeanOutputs) and other.digest == self.digest

    def __hash__(self) -> int:
        return hash(self.digest)


def _about_texts(name: str, compute: Callable[..., Batches[Result]], kind: type[Result]) -> Question[Text, Result]:
    """A question about texts whose results, of this dataclass, are arrays and perhaps a number of tokens."""
    return Question(
        name=name,
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=_packed,
        unpack=lambda arrays: _unpacked(arrays, kind),
    )


def _packed(result: Any) -> Arrays:
    return {
        N_QUERIES if entry.name == "n_tokens" else entry.name: _single(getattr(result, entry.name))
        for entry in fields(result)
    }


def _unpacked(arrays: Arrays, kind: type[Result]) -> Result:
    values: dict[str, Any] = {name: array for name, array in arrays.items() if name != N_QUERIES}
    return kind(**values, **({"n_tokens": int(arrays[N_QUERIES])} if N_QUERIES in arrays else {}))


def _array_question(name: str, compute: Callable[..., Batches[np.ndarray]], array: str) -> Question[Text, np.ndarray]:
    return Question(
        name=name,
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {array: _single(result)},
        unpack=lambda arrays: arrays[array],
    )


def _single(values: np.ndarray | int) -> np.ndarray:
    return np.array(values) if isinstance(values, int) else values.astype(np.float32)


@lru_cache(maxsize=32)  # each question holds its means
def ablation_question(
    metric: Metric, *, alone: bool = False, means: MeanOutputs | None = None
) -> Question[Text, TextOutcomes]:
    """Question: outcome of each text with each head ablated in turn, or with it as the only head of its layer.

    Args:
        means: replacement of the outputs of ablated heads; None for 0.
    """

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Batches[TextOutcomes]:
        from attention_sieve.core.importance.passes.sweep import Sweep, sweep, with_targets

        ablation = Sweep(metric=metric, alone=alone, replacements=None if means is None else means.values)
        return sweep(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, ablation)

    mode, replacement = "alone" if alone else "out", "" if means is None else f", mean {means.digest}"
    return _about_texts(f"importance, {metric}, heads {mode}{replacement}", compute, TextOutcomes)


def _head_outputs(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Batches[TextOutputs]:
    from attention_sieve.core.importance.passes.head_outputs import head_outputs

    return head_outputs(checkpoint, prepared, settings)


HEAD_OUTPUTS: Final = _about_texts("importance, outputs of heads", _head_outputs, TextOutputs)
"""Question: sums of each head's output over the tokens of each text."""


def _output_weights(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Batches[OutputWeights]:
    from attention_sieve.core.importance.passes.head_outputs import output_projections

    for row, text in enumerate(prepared):
        yield [(row, OutputWeights.of(output_projections(checkpoint, text)))]


OUTPUT_WEIGHTS: Final = _about_texts("importance, weights of outputs", _output_weights, OutputWeights)
"""Question: weights of the output projections, which are found by passing a text, and are the same for every text."""


def gated_question(
    metric: Metric, gatings: Float[np.ndarray, "gating layer head"], means: MeanOutputs | None = None
) -> Question[Text, Float[np.ndarray, "gating part"]]:
    """Question: outcome of each text under each of several gatings of all heads.

    Args:
        means: replacement of the outputs of heads as far as their gates are closed; None for 0.
    """

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Batches[Float[np.ndarray, "gating part"]]:
        from attention_sieve.core.importance.passes.sweep import Sweep, gated, with_targets

        ablation = Sweep(metric=metric, replacements=None if means is None else means.values)
        return gated(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, ablation, gatings)

    replacement = "" if means is None else f", mean {means.digest}"
    return _array_question(f"importance, {metric}, gatings {_digest(gatings)}{replacement}", compute, "outcomes")


def _backup_distances(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Batches[Float[np.ndarray, "layer head other_layer other_head"]]:
    from attention_sieve.core.importance.passes.backups import backup_distances

    return backup_distances(checkpoint, prepared, settings)


BACKUP_DISTANCES: Final = _array_question("importance, attention with each head off", _backup_distances, "distances")
"""Question: how far from where each head looks in a text each other one looks while it is off, in nats."""


def layers_off(n_layers: int, n_heads: int) -> Float[np.ndarray, "gating layer head"]:
    """Gates that switch all heads of one layer off, of each layer in turn."""
    return np.repeat(1 - np.eye(n_layers)[:, :, None], n_heads, axis=2)


def vectors_question(
    gatings: Float[np.ndarray, "gating layer head"],
) -> Question[Text, Float[np.ndarray, "gating channel"]]:
    """Question: vector of each text, the mean of its last hidden states, under each of several gatings of all heads."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Batches[Float[np.ndarray, "gating channel"]]:
        from attention_sieve.core.importance.passes.sweep import Sweep, gated, mean_vectors

        return gated(checkpoint, prepared, settings, Sweep(metric="output"), gatings, mean_vectors)

    return _array_question(f"text vectors, gatings {_digest(gatings)}", compute, "vectors")


@cache
def slopes_question(metric: Metric) -> Question[LabelledText, TextSlopes]:
    """Question: gradient of each text's loss with respect to the output of each head."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[LabelledText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Batches[TextSlopes]:
        from attention_sieve.core.importance.passes.head_outputs import head_slopes
        from attention_sieve.core.importance.passes.sweep import with_targets

        texts = with_targets(checkpoint, metric, [item.text for item in items], prepared)
        return head_slopes(checkpoint, texts, [item.label for item in items], settings, metric)

    return Question(
        name=f"importance, slopes of {metric}",
        text_of=lambda item: item.text,
        depends_on=lambda item: {**text_alone(item.text), "label": item.label},
        compute=compute,
        pack=_packed,
        unpack=lambda arrays: _unpacked(arrays, TextSlopes),
    )


@cache
def relevance_question(metric: Metric) -> Question[Text, TextRelevance]:
    """Question: relevance of each head for the prediction for each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Batches[TextRelevance]:
        from attention_sieve.core.importance.passes.relevance import head_relevance
        from attention_sieve.core.importance.passes.sweep import with_targets

        return head_relevance(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, metric)

    return _about_texts(f"importance, relevance for {metric}, {RELEVANCE_RULE}", compute, TextRelevance)


def mean_outputs(texts: Sequence[TextOutputs]) -> MeanOutputs:
    """Mean output of each head over all tokens of the texts."""
    n_tokens = sum(text.n_tokens for text in texts)
    return MeanOutputs(np.stack([text.total for text in texts]).sum(axis=0, dtype=np.float64) / n_tokens)


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, np.float32).tobytes()).hexdigest()[:16]
