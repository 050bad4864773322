"""Stability of the labels of heads: whether they stay the same when the texts are resampled."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.roles.hypotheses import FAMILY_AXES, HeadTests, Moments, clearly_above, decided, one_sided
from attention_sieve.core.statistics.means import moments, ratio

RESAMPLES: Final = 200
CERTAIN: Final = 0.95
"""A label that stays the same in a smaller share of resamples is shown faint."""
FEWEST: Final = 10
"""With fewer texts, a map of roles is mostly noise: of the roles that the bundled checkpoint held over 128 texts under
the paper's rule, it lost 66% over 5 of them."""
FEW: Final = 20
"""With fewer texts, such a map is weak: over 10 of them the checkpoint lost 27%, over 20 still 13%."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Resamples:
    """Moments in many bootstrap resamples, along their first axis; they depend neither on tau, alpha nor correction."""

    scores: Moments
    above_uniform: Moments
    """Of the scores minus what clearly exceeds uniform attention."""


def resamples(
    scores: Float[np.ndarray, "text role layer head"], uniform: Float[np.ndarray, "text role layer"], seed: int = 0
) -> Resamples:
    """Draw RESAMPLES bootstrap resamples, each of as many texts as there are."""
    n_texts = len(scores)
    times = np.zeros((RESAMPLES, n_texts))
    if n_texts:
        drawn = np.random.default_rng(seed).integers(n_texts, size=(RESAMPLES, n_texts))
        times[:] = [np.bincount(rows, minlength=n_texts) for rows in drawn]
    return Resamples(scores=_drawn(scores, times), above_uniform=_drawn(scores - clearly_above(uniform), times))


def _drawn(values: Float[np.ndarray, "text role layer head"], times: Float[np.ndarray, "resample text"]) -> Moments:
    """The moments of all resamples at once, from the number of times that each holds each text."""
    takes_part = ~np.isnan(values)
    centre = np.nan_to_num(moments(values)[1])
    # Around the mean of all texts, sums of squares lose nothing to rounding.
    centred = np.where(takes_part, values - centre, 0)
    texts, total, squares = (
        np.tensordot(times, of_text, axes=1) for of_text in (takes_part.astype(float), centred, np.square(centred))
    )
    mean = ratio(total, texts)
    around = np.maximum(squares - texts * np.square(np.nan_to_num(mean)), 0)
    return np.rint(texts).astype(np.int32), mean + centre, around


def stability(tests: HeadTests, resamples: Resamples) -> Float[np.ndarray, "role layer head"]:
    """Share of resamples of the texts in which a head holds a role, or does not, as it does over the texts.

    Returns: 0 to 1; 1 without texts, as nothing can change.
    Source: Efron 1979.
    """
    settings = tests.settings
    # A lower p-value is significant under any correction, a higher one under none.
    within = settings.alpha / max(1, int(np.prod(tests.holds.shape[-FAMILY_AXES[settings.family] :]))), settings.alpha
    parts = [(resamples.scores, settings.tau)]
    if settings.rule == "role":
        parts.append((resamples.above_uniform, 0.0))
    resampled = [one_sided(*drawn, threshold, settings.ddof, within) for drawn, threshold in parts]
    return (decided(resampled, settings) == tests.holds).mean(axis=0)


def few_texts(n_texts: int) -> str | None:
    """Warning about roles over few texts; None where there are enough."""
    if n_texts >= FEW:
        return None
    how, share = ("mostly noise", "many") if n_texts < FEWEST else ("weak", "some")
    return (
        f"With so few texts ({n_texts}), a map of roles is {how}: other texts would change {share} of its labels. "
        f"Add texts, {FEW} or more."
    )
