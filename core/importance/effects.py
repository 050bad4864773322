"""Effect of ablating each head on a score, with its interval and test. Does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.verdicts import RESAMPLES, changes, verdicts
from attention_sieve.core.statistics.means import Correction, adjusted, document_numbers

CORPORA: Final = 1_000
FEWEST_TEXTS: Final = 2


@dataclass(frozen=True, eq=False, kw_only=True)
class Effects:
    """Effect on a score of ablating each head, or all heads but one of each layer: "layer head", or "layer"."""

    full: float
    """Score with all heads on."""
    without: Float[np.ndarray, "*cell"]
    delta: Float[np.ndarray, "*cell"]
    """without - full."""
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]
    p: Float[np.ndarray, "*cell"]
    """95% interval and p-value of delta, as of `verdicts`."""
    p_adjusted: Float[np.ndarray, "*cell"]
    """Corrected over the heads, or layers."""


class Draws:
    """Bootstrap weights: how often each resample contains each text, the same for all heads and measures.

    For correlations and counts of heads: percentiles over resamples describe how much these vary, and are not a test.

    Where documents are known, whole documents are drawn, each with all its texts.
    """

    def __init__(self, documents: Sequence[str | None], n_drawn: int = CORPORA, seed: int = 0) -> None:
        """Resamples have as many units (texts or documents) as there are."""
        unit = _units(documents)
        self.n_units = n_units = int(unit.max()) + 1
        drawn = np.random.default_rng(seed).multinomial(n_units, np.full(n_units, 1 / n_units), size=n_drawn)
        self.weights: Float[np.ndarray, "corpus text"] = drawn[:, unit].astype(float)

    def scores(self, score: Score, outcomes: Float[np.ndarray, "text *cell part"]) -> Float[np.ndarray, "corpus *cell"]:
        """Score of each resample."""
        return score.from_sums(np.tensordot(self.weights, score.contributions(outcomes), axes=1))


def effects(
    outcomes: Sequence[TextOutcomes],
    score: Score,
    documents: Sequence[str | None],
    correction: Correction = "bh",
    resamples: int = RESAMPLES,
) -> Effects:
    """Change of a score by each head, or in each layer, paired over texts.

    Args:
        outcomes: of each text, from a sweep; without an axis for heads, of layers.
        documents: of each text, None where unknown.
        correction: over the heads, or layers.

    Source: Michel et al. 2019, section 3.2, who test by paired bootstrap at p < 0.01 without a correction.
    """
    full, without = (np.stack([getattr(outcome, name) for outcome in outcomes]) for name in ("full", "without"))
    by_cell = changes(score, full, without, documents)
    tested = verdicts(by_cell, resamples)
    return Effects(
        full=float(score.of(full)),
        without=score.of(without),
        delta=by_cell.delta,
        low=tested.low,
        high=tested.high,
        p=tested.p,
        p_adjusted=adjusted(tested.p.ravel(), correction).reshape(tested.p.shape),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class KeptAlone:
    """Each layer with only its best head on; the head is chosen on one half of the texts and evaluated on the other."""

    head: Int[np.ndarray, "half layer"]
    """Best head on the texts, or documents, with even numbers, and on those with odd numbers."""
    effects: Effects
    """By layer: of all texts, each with only the head that was chosen on the other half."""


def kept_alone(
    outcomes: Sequence[TextOutcomes],
    score: Score,
    documents: Sequence[str | None],
    correction: Correction = "bh",
    resamples: int = RESAMPLES,
) -> KeptAlone:
    """Score of each layer with only its best head on.

    Args:
        outcomes: of each text, from a sweep with `alone`.
        documents: of each text; a document is never in both halves.

    Raises: AnalysisError for fewer than two texts, or documents.
    Source: Michel et al. 2019, section 3.3; their choice and its score come from different data sets in tables 2 and 3.
    """
    half = halves(documents)
    alone = np.stack([outcome.without for outcome in outcomes])
    n_layers = alone.shape[1]
    terms = score.contributions(alone)
    sums = [terms[half == side].sum(axis=0) for side in (0, 1)]
    damage = np.stack([score.sign * score.from_sums(half_sums) for half_sums in sums])
    best = np.nan_to_num(damage, nan=np.inf).argmin(axis=-1)  # a removed head cannot be the best one
    # Each text is evaluated with the head chosen on the other half.
    evaluated = alone[np.arange(len(alone))[:, None], np.arange(n_layers), best[1 - half]]
    by_layer = [TextOutcomes(full=text.full, without=remaining) for text, remaining in zip(outcomes, evaluated)]
    return KeptAlone(head=best, effects=effects(by_layer, score, documents, correction, resamples))


def halves(documents: Sequence[str | None]) -> Int[np.ndarray, " text"]:
    """Half that each text belongs to, 0 or 1: alternating, by whole documents where these are known.

    Raises: AnalysisError for fewer than two texts, or documents.
    """
    unit = _units(documents)
    if not len(unit) or not unit.max():
        raise AnalysisError("A choice on one half of the texts needs at least 2 texts, or documents. Add texts.")
    return unit % 2


def _units(documents: Sequence[str | None]) -> Int[np.ndarray, " text"]:
    """The number of each text's document, or of the text itself where no document is known."""
    numbers = document_numbers(documents)
    return np.arange(len(documents)) if numbers is None else numbers
