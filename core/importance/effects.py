"""Effect of ablating each head on a score, with paired bootstrap intervals and tests. Does not import torch."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.errors import AnalysisError
from core.importance.metrics import Score, TextOutcomes
from core.statistics.documents import document_numbers
from core.statistics.means import Correction, adjusted

RESAMPLES: Final = 1_000
ALPHA: Final = 0.05
FEWEST_TEXTS: Final = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Effects:
    """Effect of ablating each head on a score."""

    full: float
    """Score with all heads on."""
    without: Float[np.ndarray, "layer head"]
    delta: Float[np.ndarray, "layer head"]
    """without - full."""
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    """95% interval of delta: percentiles over corpora drawn from the texts; NaN for fewer than FEWEST_TEXTS."""
    p: Float[np.ndarray, "layer head"]
    """Two-sided, of "the score does not change"; NaN likewise. With 1,000 drawn corpora at least 0.002."""
    p_adjusted: Float[np.ndarray, "layer head"]
    """Corrected over the heads."""


class Draws:
    """Bootstrap weights: how often each drawn corpus contains each text, the same for all heads and measures.

    Where documents are known, whole documents are drawn, each with all its texts.
    """

    def __init__(self, documents: Sequence[str | None], n_drawn: int = RESAMPLES, seed: int = 0) -> None:
        """Draw corpora with as many units (texts or documents) as there are."""
        numbers = document_numbers(documents)
        unit = np.arange(len(documents)) if numbers is None else numbers
        n_units = int(unit.max()) + 1
        self.n_units = n_units
        drawn = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=n_drawn)
        self.weights: Float[np.ndarray, "corpus text"] = drawn[:, unit].astype(float)

    def scores(self, score: Score, outcomes: Float[np.ndarray, "text *cell part"]) -> Float[np.ndarray, "corpus *cell"]:
        """Score of each drawn corpus."""
        return score.of_sums(np.tensordot(self.weights, score.contributions(outcomes), axes=1))


def effects(outcomes: Sequence[TextOutcomes], score: Score, draws: Draws, correction: Correction = "bh") -> Effects:
    """Change of a score by each head, paired over texts.

    Args:
        outcomes: of each text, from a sweep.
        score: to compare.
        draws: over the same texts.
        correction: over the heads.

    Source: Michel et al. 2019, section 3.2, who test by paired bootstrap at p < 0.01 without a correction. A p-value is
        twice the smaller share of drawn corpora in which the change is not above, or not below, 0, each with one
        corpus more so that it is never 0 (Davison and Hinkley 1997, section 4.2).
    """
    full, without = (np.stack([getattr(outcome, name) for outcome in outcomes]) for name in ("full", "without"))
    score_full, score_without = float(score.of(full)), score.of(without)
    delta = score_without - score_full
    low, high, p = interval_and_p(draws, delta, paired_changes(draws, score, full, without))
    return Effects(
        full=score_full,
        without=score_without,
        delta=delta,
        low=low,
        high=high,
        p=p,
        p_adjusted=adjusted(p.ravel(), correction).reshape(p.shape),
    )


def paired_changes(
    draws: Draws,
    score: Score,
    full: Float[np.ndarray, "text part"],
    without: Float[np.ndarray, "text layer head part"],
) -> Float[np.ndarray, "corpus layer head"]:
    """Change of the score in each drawn corpus; layer by layer to bound memory use."""
    full_scores = draws.scores(score, full)[:, None]
    layers: Iterator[np.ndarray] = (
        draws.scores(score, without[:, layer]) - full_scores for layer in range(without.shape[1])
    )
    return np.stack(list(layers), axis=1)


def interval_and_p(
    draws: Draws, delta: Float[np.ndarray, "*cell"], drawn: Float[np.ndarray, "corpus *cell"]
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """95% interval by percentiles, low and high, and two-sided p-value of a change; NaN with too few texts.

    A corpus in which the score is undefined, such as a correlation of equal values, does not count.
    """
    none = np.full(delta.shape, np.nan)
    if draws.n_units < FEWEST_TEXTS or np.isnan(drawn).all():
        return none, none, none
    n_drawn = (~np.isnan(drawn)).sum(axis=0)
    low, high = interval(drawn)
    sides = [((side + 1) / (n_drawn + 1)) for side in ((drawn <= 0).sum(axis=0), (drawn >= 0).sum(axis=0))]
    return low, high, np.where(np.isnan(delta), np.nan, np.minimum(1, 2 * np.minimum(*sides)))


def interval(drawn: Float[np.ndarray, "corpus *cell"]) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Percentiles, low and high, over the drawn corpora in which the value is defined; NaN where it is in none."""
    ends = np.full((2, *drawn.shape[1:]), np.nan)
    has_value = ~np.isnan(drawn).all(axis=0)
    ends[:, has_value] = np.nanquantile(drawn[:, has_value], [ALPHA / 2, 1 - ALPHA / 2], axis=0)
    return ends[0], ends[1]


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptAlone:
    """Each layer with only its best head on; the head is chosen on one half of the texts and evaluated on the other."""

    full: float
    """Score with all heads on, over all texts."""
    head: Int[np.ndarray, "half layer"]
    """Best head on the texts, or documents, with even numbers, and on those with odd numbers."""
    without: Float[np.ndarray, " layer"]
    """Score of all texts, each with only the head that was chosen on the other half."""
    delta: Float[np.ndarray, " layer"]
    low: Float[np.ndarray, " layer"]
    high: Float[np.ndarray, " layer"]
    p: Float[np.ndarray, " layer"]
    p_adjusted: Float[np.ndarray, " layer"]
    """As in Effects; corrected over the layers."""


def kept_alone(
    outcomes: Sequence[TextOutcomes],
    score: Score,
    documents: Sequence[str | None],
    draws: Draws,
    correction: Correction = "bh",
) -> KeptAlone:
    """Score of each layer with only its best head on.

    Args:
        outcomes: of each text, from a sweep with `alone`.
        score: to compare.
        documents: of each text; a document is never in both halves.
        draws: over the same texts.
        correction: over the layers.

    Raises: AnalysisError for fewer than two texts, or documents.
    Source: Michel et al. 2019, section 3.3; their choice and its score come from different data sets in tables 2 and 3.
    """
    half = halves(documents)
    full, alone = (np.stack([getattr(outcome, name) for outcome in outcomes]) for name in ("full", "without"))
    n_layers = alone.shape[1]
    terms = score.contributions(alone)
    sums = [terms[half == side].sum(axis=0) for side in (0, 1)]
    damage = np.stack([score.sign * score.of_sums(half_sums) for half_sums in sums])
    best = np.nan_to_num(damage, nan=np.inf).argmin(axis=-1)  # a removed head cannot be the best one
    # Each text is evaluated with the head chosen on the other half.
    evaluated = alone[np.arange(len(alone))[:, None], np.arange(n_layers), best[1 - half]]
    delta = score.of(evaluated) - score.of(full)
    drawn = draws.scores(score, evaluated) - draws.scores(score, full)[:, None]
    low, high, p = interval_and_p(draws, delta, drawn)
    return KeptAlone(
        full=float(score.of(full)),
        head=best,
        without=score.of(evaluated),
        delta=delta,
        low=low,
        high=high,
        p=p,
        p_adjusted=adjusted(p, correction),
    )


def halves(documents: Sequence[str | None]) -> Int[np.ndarray, " text"]:
    """Half that each text belongs to, 0 or 1: alternating, by whole documents where these are known.

    Raises: AnalysisError for fewer than two texts, or documents.
    """
    numbers = document_numbers(documents)
    unit = np.arange(len(documents)) if numbers is None else numbers
    if not len(unit) or not unit.max():
        raise AnalysisError("A choice on one half of the texts needs at least 2 texts, or documents. Add texts.")
    return unit % 2
