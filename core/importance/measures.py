"""Measures of importance as functions of text weights, so that each can be resampled. Does not import torch.

With weights of 1 a measure has its value over the corpus; with the weights of a bootstrap resample, its value over that
resample.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.per_text import OutputWeights, TextOutputs, TextRelevance, TextSlopes
from attention_sieve.core.statistics.means import ratio

Weights = Float[np.ndarray, "corpus text"]
Values = Float[np.ndarray, "corpus layer head"]
BATCH_SIZE: Final = 32
"""Consecutive texts per batch of "gradient per batch", as in Michel et al."""
ABLATION: Final = "ablation"


@dataclass(frozen=True, eq=False, kw_only=True)
class Measure:
    """A measure of every head's importance; larger means more important."""

    name: str
    over: Callable[[Weights], Values]
    conserved: Float[np.ndarray, " text"] | None = None
    """For relevance: total relevance of a text's tokens at the input, as a share of what is distributed. 1 where no
    bias takes any; None for every other measure."""

    def values(self, n_texts: int) -> Float[np.ndarray, "layer head"]:
        """Value of each head over the whole corpus."""
        return self.over(np.ones((1, n_texts)))[0]


def damage(outcomes: Sequence[TextOutcomes], score: Score) -> Measure:
    """How much worse the score becomes without the head; the reference for cheaper measures.

    Source: Michel et al. 2019, section 3.2.
    """
    full = score.contributions(np.stack([outcome.full for outcome in outcomes]))
    without = score.contributions(np.stack([outcome.without for outcome in outcomes]))

    def over(weights: Weights) -> Values:
        full_scores = score.from_sums(np.tensordot(weights, full, axes=1))
        layers = [score.from_sums(np.tensordot(weights, layer, axes=1)) for layer in np.moveaxis(without, 1, 0)]
        return score.sign * (np.stack(layers, axis=1) - full_scores[:, None, None])

    return Measure(name=ABLATION, over=over)


def gradient_measures(texts: Sequence[TextSlopes], normalised: bool = False) -> list[Measure]:
    """Michel's I_h, with the absolute value taken per token, per text or per batch.

    Args:
        normalised: whether to divide each layer by its Euclidean norm over heads.

    Source: Michel et al. 2019, section 4.1. Per text is their paper; per token their code, whose layers are divided by
        the number of tokens, the last one by that of texts (here all by that of tokens); per batch is what code that
        takes head_mask.grad.abs() after each batch computes, batches counting by their texts.
    """
    signed, absolute = (np.stack([getattr(text, name) for text in texts]) for name in ("signed", "absolute"))
    n_tokens = np.array([text.n_tokens for text in texts], float)
    # "batch text": which texts belong to each batch.
    batches = (np.arange(len(texts)) // BATCH_SIZE == np.arange(-(-len(texts) // BATCH_SIZE))[:, None]).astype(float)

    def per_batch(weights: Weights) -> Values:
        sums = np.einsum("ct,bt,tlh->cblh", weights, batches, signed, optimize=True)
        return np.abs(sums).sum(axis=1) / weights.sum(axis=1)[:, None, None]

    def per_token(weights: Weights) -> Values:
        return np.tensordot(weights, absolute, axes=1) / (weights @ n_tokens)[:, None, None]

    over = {
        "gradient per token": per_token,
        "gradient per text": lambda weights: _mean(weights, np.abs(signed)),
        "gradient per batch": per_batch,
    }
    return [Measure(name=name, over=_by_norm(function) if normalised else function) for name, function in over.items()]


def _by_norm(over: Callable[[Weights], Values]) -> Callable[[Weights], Values]:
    def normalised(weights: Weights) -> Values:
        values = over(weights)
        norms = np.sqrt(np.nansum(np.square(values), axis=-1, keepdims=True))
        return values / np.where(norms > 0, norms, 1)

    return normalised


def attributions(texts: Sequence[TextSlopes], outputs: Sequence[TextOutputs]) -> list[Measure]:
    """First-order estimate of how much the loss rises when a head's output is replaced, by 0 or by its mean.

    Minus the sum over tokens of (output - replacement) times the gradient; negative for a head whose removal is
    estimated to lower the loss.

    Source: attribution patching (Nanda 2023), with 0 or the corpus mean for the other run.
    """
    signed, gradient = (np.stack([getattr(text, name) for text in texts]) for name in ("signed", "gradient"))
    total = np.stack([text.total for text in outputs])
    n_tokens = np.array([text.n_tokens for text in outputs], float)

    def by_mean(weights: Weights) -> Values:
        means = np.tensordot(weights, total, axes=1) / (weights @ n_tokens)[:, None, None, None]
        return np.einsum("clhd,clhd->clh", means, _mean(weights, gradient)) - _mean(weights, signed)

    return [
        Measure(name="attribution against zero", over=lambda weights: -_mean(weights, signed)),
        Measure(name="attribution against mean", over=by_mean),
    ]


def output_measures(outputs: Sequence[TextOutputs], weights_of: OutputWeights) -> list[Measure]:
    """Wanda-sp and FLAP: from the outputs of heads and the weights of the output projection, without gradients.

    Source: An et al. 2024 (FLAP), its code's options WIFN and WIFV. Wanda-sp: mean over the rows of the absolute
        weights, times the root mean square of the column's input (their norm, which grows with the number of tokens,
        gives the same order), squared and summed over the head. FLAP: variance of the column's input times the squared
        norm of its weights, standardised over the columns of a layer, mean over the head.
    """
    total, squares = (np.stack([getattr(output, name) for output in outputs]) for name in ("total", "squares"))
    n_tokens = np.array([output.n_tokens for output in outputs], float)

    def moment(weights: Weights, sums: np.ndarray) -> np.ndarray:
        return np.tensordot(weights, sums, axes=1) / (weights @ n_tokens)[:, None, None, None]

    def flap(weights: Weights) -> Values:
        columns = (moment(weights, squares) - moment(weights, total) ** 2) * weights_of.squares
        centre = _mean_of_layer(columns)
        spread = np.sqrt(_mean_of_layer(np.square(columns - centre)))
        return ((columns - centre) / np.where(spread > 0, spread, 1)).mean(axis=-1)

    return [
        Measure(name="wanda-sp", over=lambda weights: (weights_of.mean**2 * moment(weights, squares)).sum(axis=-1)),
        Measure(name="flap", over=flap),
    ]


def confidence(by_text: Float[np.ndarray, "text layer head"]) -> Measure:
    """Largest attention of a query to a non-special token, mean over queries and over texts that have any.

    Source: Voita et al. 2019, section 4.
    """
    has_value = ~np.isnan(by_text)
    values = np.where(has_value, by_text, 0)

    def over(weights: Weights) -> Values:
        return ratio(np.tensordot(weights, values, axes=1), np.tensordot(weights, has_value.astype(float), axes=1))

    return Measure(name="confidence", over=over)


def relevance(texts: Sequence[TextRelevance]) -> Measure:
    """Share of each head in the relevance of its layer, mean over texts; shares are of the sum of absolute values, so
    that a head that works against the prediction is below 0.

    Source: Voita et al. 2019, section 4: heads of a layer sum to 1, as they do here if none is negative.
    """
    heads = np.stack([text.heads for text in texts])
    shares = heads / np.maximum(np.nansum(np.abs(heads), axis=-1, keepdims=True), np.finfo(float).tiny)
    tops = np.array([float(text.top) for text in texts])
    at_input = np.array([float(text.tokens.sum()) for text in texts])
    return Measure(name="relevance", over=lambda weights: _mean(weights, shares), conserved=at_input / tops)


def _mean_of_layer(columns: Float[np.ndarray, "corpus layer head channel"]) -> Float[np.ndarray, "corpus layer 1 1"]:
    """Mean over the heads that the layer still has."""
    counts = (~np.isnan(columns)).sum(axis=(-2, -1), keepdims=True)
    return ratio(np.nansum(columns, axis=(-2, -1), keepdims=True), counts)


def _mean(weights: Weights, values: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "corpus *cell"]:
    sums = np.tensordot(weights, values, axes=1)
    return sums / weights.sum(axis=1).reshape(-1, *[1] * (values.ndim - 1))
