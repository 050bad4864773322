"""Questions about the importance of each head in each text: ablations, outputs of heads, gradients, relevance."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

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
from attention_sieve.core.passes.question import Question, text_alone, text_itself
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text

Replace = Literal["zero", "mean"]
REPLACEMENTS: Final[tuple[Replace, ...]] = ("zero", "mean")


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


@lru_cache(maxsize=32)  # each question holds its means
def ablation_question(
    metric: Metric, *, alone: bool = False, means: MeanOutputs | None = None
) -> Question[Text, TextOutcomes]:
    """Question: outcome of each text with each head ablated in turn, or with it as the only head of its layer.

    Args:
        metric: what is read off the output.
        alone: whether all other heads of the layer are ablated instead.
        means: replacement of the outputs of ablated heads; None for 0.
    """

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, TextOutcomes]]]:
        from attention_sieve.core.importance.passes.sweep import Sweep, sweep, with_targets

        ablation = Sweep(metric=metric, alone=alone, replacements=None if means is None else means.values)
        return sweep(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, ablation)

    mode, replacement = "alone" if alone else "out", "" if means is None else f", mean {means.digest}"
    return Question(
        name=f"importance, {metric}, heads {mode}{replacement}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {"full": _single(result.full), "without": _single(result.without)},
        unpack=lambda arrays: TextOutcomes(full=arrays["full"], without=arrays["without"]),
    )


def _head_outputs(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextOutputs]]]:
    from attention_sieve.core.importance.passes.head_outputs import head_outputs

    return head_outputs(checkpoint, prepared, settings)


HEAD_OUTPUTS: Final[Question[Text, TextOutputs]] = Question(
    name="importance, outputs of heads",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_head_outputs,
    pack=lambda result: {
        "total": _single(result.total),
        "squares": _single(result.squares),
        "n_queries": np.array(result.n_tokens),
    },
    unpack=lambda arrays: TextOutputs(
        total=arrays["total"], squares=arrays["squares"], n_tokens=int(arrays["n_queries"])
    ),
)
"""Question: sums of each head's output over the tokens of each text."""


def _output_weights(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, OutputWeights]]]:
    from attention_sieve.core.importance.passes.projections import output_projections

    for row, text in enumerate(prepared):
        yield [(row, OutputWeights.of(output_projections(checkpoint, text)))]


OUTPUT_WEIGHTS: Final[Question[Text, OutputWeights]] = Question(
    name="importance, weights of outputs",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_output_weights,
    pack=lambda result: {"mean": _single(result.mean), "squares": _single(result.squares)},
    unpack=lambda arrays: OutputWeights(mean=arrays["mean"], squares=arrays["squares"]),
)
"""Question: weights of the output projections, which are found by passing a text, and are the same for every text."""


def gated_question(
    metric: Metric, gatings: Float[np.ndarray, "gating layer head"]
) -> Question[Text, Float[np.ndarray, "gating part"]]:
    """Question: outcome of each text under each of several gatings of all heads."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Float[np.ndarray, "gating part"]]]]:
        from attention_sieve.core.importance.passes.gated import gated
        from attention_sieve.core.importance.passes.sweep import with_targets

        return gated(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, metric, gatings)

    return Question(
        name=f"importance, {metric}, gatings {_digest(gatings)}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {"outcomes": _single(result)},
        unpack=lambda arrays: arrays["outcomes"],
    )


def vectors_question(
    gatings: Float[np.ndarray, "gating layer head"],
) -> Question[Text, Float[np.ndarray, "gating channel"]]:
    """Question: vector of each text, the mean of its last hidden states, under each of several gatings of all heads."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Float[np.ndarray, "gating channel"]]]]:
        from attention_sieve.core.importance.passes.gated import gated_vectors

        return gated_vectors(checkpoint, prepared, settings, gatings)

    return Question(
        name=f"text vectors, gatings {_digest(gatings)}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {"vectors": _single(result)},
        unpack=lambda arrays: arrays["vectors"],
    )


@cache
def slopes_question(metric: Metric) -> Question[LabelledText, TextSlopes]:
    """Question: gradient of each text's loss with respect to the output of each head."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[LabelledText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, TextSlopes]]]:
        from attention_sieve.core.importance.passes.gradients import head_slopes
        from attention_sieve.core.importance.passes.sweep import with_targets

        texts = with_targets(checkpoint, metric, [item.text for item in items], prepared)
        return head_slopes(checkpoint, texts, [item.label for item in items], settings, metric)

    return Question(
        name=f"importance, slopes of {metric}",
        text_of=lambda item: item.text,
        depends_on=lambda item: {**text_alone(item.text), "label": item.label},
        compute=compute,
        pack=lambda result: {
            **{name: _single(getattr(result, name)) for name in ("signed", "absolute", "gradient")},
            "n_queries": np.array(result.n_tokens),
            "loss": _single(result.loss),
        },
        unpack=lambda arrays: TextSlopes(
            signed=arrays["signed"],
            absolute=arrays["absolute"],
            gradient=arrays["gradient"],
            n_tokens=int(arrays["n_queries"]),
            loss=arrays["loss"],
        ),
    )


@cache
def relevance_question(metric: Metric) -> Question[Text, TextRelevance]:
    """Question: relevance of each head for the prediction for each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, TextRelevance]]]:
        from attention_sieve.core.importance.passes.relevance import head_relevance
        from attention_sieve.core.importance.passes.sweep import with_targets

        return head_relevance(checkpoint, with_targets(checkpoint, metric, texts, prepared), settings, metric)

    return Question(
        name=f"importance, relevance for {metric}, {RELEVANCE_RULE}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {
            "heads": _single(result.heads),
            "tokens": _single(result.tokens),
            "top": _single(result.top),
        },
        unpack=lambda arrays: TextRelevance(heads=arrays["heads"], tokens=arrays["tokens"], top=arrays["top"]),
    )


def mean_outputs(texts: Sequence[TextOutputs]) -> MeanOutputs:
    """Mean output of each head over all tokens of the texts."""
    n_tokens = sum(text.n_tokens for text in texts)
    return MeanOutputs(np.stack([text.total for text in texts]).sum(axis=0, dtype=np.float64) / n_tokens)


def _digest(values: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(values, np.float32).tobytes()).hexdigest()[:16]


def _single(values: np.ndarray) -> np.ndarray:
    return values.astype(np.float32)
