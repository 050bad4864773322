"""Heads for which a first-order measure errs, found by comparing it with ablation over the same texts. Imports no
torch."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.importance.measures import Measure, Values, Weights
from attention_sieve.core.importance.question import Replace
from attention_sieve.core.importance.verdicts import ALPHA

UNSIGNED: Final = ("gradient per token", "gradient per text", "gradient per batch")
"""First-order measures that say how much a head matters, and not whether it helps or harms."""
FIRST_ORDER: Final = (*UNSIGNED, "attribution against zero", "attribution against mean", "relevance")
"""Measures that follow the slope of the loss or of a logit, which is 0 where a softmax or a prediction is saturated."""
ESTIMATES: Final[Mapping[str, Replace]] = {"attribution against zero": "zero", "attribution against mean": "mean"}
"""What replaces the output of a head in the ablation that a measure estimates; the others name none."""
LOOKED_AT: Final = 8
"""Texts on which every head is ablated where ablation is left out."""
LEAST_DAMAGE: Final = 0.1
"""Share of the greatest damage from which on a head clearly matters."""
NOTHING: Final = 0.01
"""Share of the greatest value up to which a head has next to nothing of it."""
ROUNDING: Final = 1e-5
"""Damage up to which it may be rounding, since passes compute in float32."""


def some_texts(n_texts: int, n_wanted: int = LOOKED_AT) -> Int[np.ndarray, " wanted"]:
    """Indices of some texts, evenly spaced among all; of all if there are no more."""
    return np.linspace(0, n_texts - 1, min(n_texts, n_wanted)).round().astype(int)


def errs(values: Values, damage: Values, *, is_signed: bool) -> Bool[np.ndarray, "corpus layer head"]:
    """Heads that matter, and to which a measure gives nothing or, where its sign means something, the opposite sign.

    Args:
        values: of the measure.
        damage: by ablation, over the same texts; below 0 for a head whose removal helps.
    """
    size, given = np.nan_to_num(np.abs(damage)), np.nan_to_num(np.abs(values))
    greatest = size.max(axis=(-2, -1), keepdims=True)
    is_missed = (size >= LEAST_DAMAGE * greatest) & (given <= NOTHING * given.max(axis=(-2, -1), keepdims=True))
    is_opposite = (size >= NOTHING * greatest) & (values * damage < 0)
    return (size > ROUNDING) & (is_missed | (is_opposite & is_signed))


def unreliable_heads(
    measure: Measure, ablation: Measure, weights: Weights, compared: Int[np.ndarray, " compared"], *, is_signed: bool
) -> Bool[np.ndarray, "layer head"]:
    """Heads for which a first-order measure errs in at least 95% of the resamples of the texts.

    Args:
        measure: over all texts.
        ablation: the damage over those that are compared.
        weights: of all texts in each resample; 0 for those that are not compared.
        compared: their indices among all texts.
        is_signed: whether the sign of both means something.
    """
    found = errs(measure.over(weights), ablation.over(weights[:, compared]), is_signed=is_signed)
    share: Float[np.ndarray, "layer head"] = found.mean(axis=0)
    return share >= 1 - ALPHA
