"""What the measures of importance keep of each text, so that intervals are taken over texts. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Float

from core.attention.settings import Head
from core.texts.text import Text

Rule = Literal["conservative", "halved", "alpha-beta", "alpha1-beta0", "alpha2-beta1"]
"""How relevance is propagated: attention weights are constant, or each factor of its products gets half, both with
signs; or weights are constant and terms above and below 0 get fixed shares: one half each, as in Voita's code, all to
those above, or twice the whole to those above and minus the whole to those below."""
RULES: Final[tuple[Rule, ...]] = ("conservative", "halved", "alpha-beta", "alpha1-beta0", "alpha2-beta1")


@dataclass(frozen=True)
class LabelledText:
    """A text with what a classifier should say about it."""

    text: Text
    label: float | None = None
    """Index of its class, or its value in a regression; None where the metric needs no labels."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextOutputs:
    """Sums over the tokens of a text of what its heads give on to the output projection."""

    total: Float[np.ndarray, "layer head channel"]
    squares: Float[np.ndarray, "layer head channel"]
    """Sum of the squares."""
    n_tokens: int


@dataclass(frozen=True, eq=False, kw_only=True)
class TextSlopes:
    """How the loss of a text depends on its heads: each head's output times the loss's gradient by it.

    The sum over tokens and channels is the gradient of the loss by the head's gate.
    """

    signed: Float[np.ndarray, "layer head"]
    """Sum over tokens of the products."""
    absolute: Float[np.ndarray, "layer head"]
    """Sum over tokens of the absolute value of each token's product."""
    gradient: Float[np.ndarray, "layer head channel"]
    """Sum over tokens of the gradient alone."""
    n_tokens: int
    loss: Float[np.ndarray, ""]
    """In nats, or squared error."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextRelevance:
    """How much of a text's largest logit goes through each head and each token."""

    heads: Float[np.ndarray, "layer head"]
    tokens: Float[np.ndarray, " token"]
    """At the input of the first layer; those of an encoder-decoder's source come before those of its target."""
    top: Float[np.ndarray, ""]
    """The logit that is distributed."""


def with_holes(
    values: Float[np.ndarray, "layer head *part"], removed: Sequence[Head]
) -> Float[np.ndarray, "layer head *part"]:
    """Numbers of all heads, NaN for those that were removed from the checkpoint."""
    if not removed:
        return values
    holed = values.copy()
    holed[tuple(np.transpose(removed))] = np.nan
    return holed
