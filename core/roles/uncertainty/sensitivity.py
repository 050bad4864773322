"""How the number of heads that hold a role depends on tau and on the number of texts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import RoleScores, Scale
from attention_sieve.core.roles.uncertainty.anytime import holds_by_evidence, role_evidence

TAUS: Final[dict[Scale, tuple[float, ...]]] = {
    "score": tuple(np.linspace(1, 5, 17).tolist()),
    "share": tuple(np.linspace(0.1, 0.9, 17).round(2).tolist()),
}
"""Thresholds at which roles are counted, besides the reader's, by the scale."""
SIZES: Final = (5, 10, 20, 50, 100, 200, 500, 1000)
"""Numbers of texts at which roles are counted, as far as the corpus goes, besides all of them."""
LEAST_TEXTS: Final = SIZES[0] + 1
"""Below that, there is no smaller corpus to compare with."""
RESAMPLES: Final = 40
BAND: Final = 0.9
"""Share of these resamples whose counts lie in the band."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsByTau:
    """Heads that hold each role at several thresholds."""

    taus: tuple[float, ...]
    heads: Int[np.ndarray, "tau role"]


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsByTexts:
    """Heads that hold each role over bootstrap resamples of several sizes."""

    sizes: tuple[int, ...]
    low: Float[np.ndarray, "size role"]
    """Lower end of BAND."""
    median: Float[np.ndarray, "size role"]
    high: Float[np.ndarray, "size role"]
    """Upper end of BAND."""


def counts_by_tau(
    scored: RoleScores, roles: Sequence[str], settings: Criterion, *, by_evidence: bool = False
) -> CountsByTau:
    """Count the heads at TAUS and at the tau of the settings."""
    taus = tuple(sorted({*TAUS[scored.scale], settings.tau}))
    heads = [_counts(scored, roles, replace(settings, tau=tau), by_evidence) for tau in taus]
    return CountsByTau(taus=taus, heads=np.stack(heads))


def counts_by_texts(scored: RoleScores, roles: Sequence[str], settings: Criterion, seed: int = 0) -> CountsByTexts:
    """Count the heads over bootstrap resamples of SIZES, and of as many texts as there are.

    Texts are drawn with replacement, so that the band at the full size shows how much the count might differ with
    other texts of the same kind; a role that every head or no head has, in all resamples, has no band.
    """
    n_texts = len(scored.scores)
    sizes = (*(size for size in SIZES if size < n_texts), n_texts)
    random = np.random.default_rng(seed)
    counts = [
        [_counts(scored.subset(random.integers(n_texts, size=size)), roles, settings) for _ in range(RESAMPLES)]
        for size in sizes
    ]
    low, median, high = np.quantile(np.array(counts, dtype=float), ((1 - BAND) / 2, 0.5, (1 + BAND) / 2), axis=1)
    return CountsByTexts(sizes=sizes, low=low, median=median, high=high)


def _counts(
    scored: RoleScores, roles: Sequence[str], settings: Criterion, by_evidence: bool = False
) -> Int[np.ndarray, " role"]:
    """Count the heads; other roles are tested only where all roles are corrected together."""
    tested = scored.roles if settings.family == "all" else tuple(roles)
    indices = [scored.roles.index(role) for role in tested]
    scores, uniform = scored.scores[:, indices], scored.uniform[:, indices]
    if by_evidence:
        holds = holds_by_evidence(role_evidence(scores, settings, uniform), settings)
    else:
        holds = role_tests(scores, tested, settings, uniform).holds
    return holds[[tested.index(role) for role in roles]].sum(axis=(1, 2))
