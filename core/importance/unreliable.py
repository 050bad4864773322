"""Heads for which a first-order measure errs, found by comparing it with ablation over the same texts. Imports no
torch."""

from collections.abc import Mapping
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.importance.measures import Values
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


def unreliable_heads(
    name: str, values: Float[np.ndarray, "layer head"], damage: Values, *, has_sign: bool
) -> Bool[np.ndarray, "layer head"]:
    """Heads that clearly matter, and to which a first-order measure gives nothing, or the wrong sign.

    Args:
        name: of the measure.
        values: of the measure; compared with the damage itself where they estimate it, else as a share of the greatest.
        damage: by ablation, in resamples of the texts; below 0 for a head whose removal helps.
        has_sign: whether the damage helps or harms.

    Returns: where that is so in at least 95% of the resamples.
    """
    size, given = np.nan_to_num(np.abs(damage)), np.nan_to_num(np.abs(values))
    greatest = size.max(axis=(-2, -1), keepdims=True)
    unit = size if name in ESTIMATES else given.max()
    is_missed = (size >= LEAST_DAMAGE * greatest) & (given <= NOTHING * unit)
    is_opposite = (size >= NOTHING * greatest) & (values * damage < 0) & (has_sign and name not in UNSIGNED)
    share: Float[np.ndarray, "layer head"] = ((size > ROUNDING) & (is_missed | is_opposite)).mean(axis=0)
    return share >= 1 - ALPHA
