"""Per-text results from which the measures of importance and their intervals are computed. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.texts.text import Text

RELEVANCE_RULE: Final = "conservative"
"""How relevance is propagated through attention: attention weights are constants."""


@dataclass(frozen=True)
class LabelledText:
    """A text with its correct label."""

    text: Text
    label: float | None = None
    """Index of its class, or its value in a regression; None where the metric needs no labels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextOutputs:
    """Sums over the tokens of a text of the heads' outputs, before the output projection."""

    total: Float[np.ndarray, "layer head channel"]
    squares: Float[np.ndarray, "layer head channel"]
    """Sum of the squares."""
    n_tokens: int


@dataclass(frozen=True, eq=False, kw_only=True)
class OutputWeights:
    """Weights of the output projections, reduced over the channels that they write to."""

    mean: Float[np.ndarray, "layer head channel"]
    """Mean of the absolute weights."""
    squares: Float[np.ndarray, "layer head channel"]
    """Sum of the squared weights."""

    @classmethod
    def of(cls, projections: Float[np.ndarray, "layer channel_out head channel"]) -> "OutputWeights":
        """Those of whole projections."""
        return cls(mean=np.abs(projections).mean(axis=1), squares=np.square(projections).sum(axis=1))


@dataclass(frozen=True, eq=False, kw_only=True)
class TextSlopes:
    """How the loss of a text depends on its heads: each head's output times the loss gradient with respect to it.

    Summed over tokens and channels, this is the gradient of the loss with respect to the head's gate.
    """

    signed: Float[np.ndarray, "layer head"]
    """Sum over tokens of the products."""
    absolute: Float[np.ndarray, "layer head"]
    """Sum over tokens of the absolute value of each token's product."""
    gradient: Float[np.ndarray, "layer head channel"]
    """Sum over tokens of the gradient."""
    n_tokens: int
    loss: Float[np.ndarray, ""]
    """In nats, or squared error."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextRelevance:
    """Relevance of each head and each token for a text's largest logit."""

    heads: Float[np.ndarray, "layer head"]
    tokens: Float[np.ndarray, " token"]
    """At the input of the first layer; for an encoder-decoder, source tokens before target tokens."""
    top: Float[np.ndarray, ""]
    """The logit that is distributed."""


def with_holes(
    values: Float[np.ndarray, "layer head *part"], removed: Sequence[Head]
) -> Float[np.ndarray, "layer head *part"]:
    """The same values, NaN for heads that were removed from the checkpoint."""
    if not removed:
        return values
    result = values.copy()
    result[tuple(np.transpose(removed))] = np.nan
    return result
