"""How much a label of a head can be trusted: whether it stays when the texts are drawn anew."""

from typing import Final

import numpy as np
from jaxtyping import Float

from core.roles.hypotheses import Criterion, OneSided, clearly_above, decided, one_sided, role_tests
from core.statistics.means import moments, ratio

RESAMPLES: Final = 200
"""Corpora that are drawn."""
FEWEST: Final = 10
"""With fewer texts, a map of roles is mostly noise: of the roles that the bundled checkpoint held over 128 texts under
the paper's rule, it lost 66 % over 5 of them."""
FEW: Final = 20
"""With fewer texts, it is weak: over 10 of them the checkpoint lost 27 %, over 20 still 13 %."""


def stability(
    scores: Float[np.ndarray, "text role layer head"],
    uniform: Float[np.ndarray, "text role layer"],
    roles: tuple[str, ...],
    settings: Criterion,
    seed: int = 0,
) -> Float[np.ndarray, "role layer head"]:
    """Share of bootstrap resamples of the texts in which a head holds a role, or does not, as it does over the texts.

    Args:
        scores, uniform, roles, settings: as for `core.roles.hypotheses.role_tests`.
        seed: of the draws.

    Returns: 0 to 1; 1 without texts, as nothing can change.
    Source: Efron 1979.
    """
    holds = role_tests(scores, roles, settings, uniform).holds
    n_texts = len(scores)
    if not n_texts:
        return np.ones(holds.shape)
    drawn = np.random.default_rng(seed).integers(n_texts, size=(RESAMPLES, n_texts))
    times = np.stack([np.bincount(of_one, minlength=n_texts) for of_one in drawn]).astype(float)
    parts = [_resampled(scores, settings.tau, times, settings.ddof)]
    if settings.rule == "role":
        parts.append(_resampled(scores - clearly_above(uniform), 0.0, times, settings.ddof))
    return (decided(parts, settings) == holds).mean(axis=0)


def _resampled(
    values: Float[np.ndarray, "text role layer head"],
    threshold: float,
    times: Float[np.ndarray, "resample text"],
    ddof: int,
) -> OneSided:
    """The test of all resamples at once, from how many times each holds each text."""
    takes_part = ~np.isnan(values)
    centre = moments(values)[1]
    # Around the mean of all texts, sums of squares lose nothing to rounding.
    centred = np.where(takes_part, values - centre, 0)
    texts, total, squares = (
        np.tensordot(times, of_text, axes=1) for of_text in (takes_part.astype(float), centred, np.square(centred))
    )
    mean = ratio(total, texts)
    around = np.maximum(squares - texts * np.square(np.nan_to_num(mean)), 0)
    return one_sided(np.rint(texts).astype(int), mean + centre, around, threshold, ddof)


def few_texts(n_texts: int) -> str | None:
    """What to say of roles over few texts; None where there are enough."""
    if n_texts >= FEW:
        return None
    how = "mostly noise" if n_texts < FEWEST else "weak"
    return (
        f"Over {n_texts} texts, a map of roles is {how}: many of its labels would be others over other texts. "
        f"Add texts, {FEW} or more."
    )
