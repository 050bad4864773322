"""Evidence that a mean score is above a threshold, valid whenever one looks and however many texts are added.

A test at a fixed number of texts errs far more often than its level if it is read again after every text. Here, one
plays a game against the claim "the mean is at most tau": on each text, a share of one's wealth is staked on a score
above tau. If the claim is true, no such game is expected to gain, so wealth of 20 or more, starting from 1, ever comes
about with a probability of at most 1 in 20.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from core.errors import AnalysisError
from core.statistics.means import moments, ratio, refuse_infinite

STAKES: Final = tuple(np.linspace(0.01, 0.95, 13).tolist())
"""Shares of the wealth staked on each text; one game is played with each, and the evidence is their mean wealth. High
stakes find large effects in few texts, low stakes find small effects in many."""
HALVINGS: Final = 20
"""Steps of the search for a lower bound, which is then exact to a millionth of the sample mean."""


def log_evidence(
    scores: Float[np.ndarray, "text *cell"], tau: float | Float[np.ndarray, "..."]
) -> Float[np.ndarray, "*cell"]:
    """Evidence against "the mean score is at most tau" after all texts, as a natural logarithm (an e-value's).

    The order of the texts does not matter. The scores need not be bounded, independent or alike in variance; it is only
    claimed of each that, whatever the texts before it, it is expected to be at most tau.

    Args:
        scores: at least 0; NaN where a role does not apply to a text, which leaves the evidence as it is.
        tau: threshold above 0. An array, broadcastable to the scores, gives every text a threshold that is known before
            its score, such as the score of uniform attention on it; the mean of score / tau is then tested against 1.

    Returns: log E; 0 is no evidence either way, as without texts; log 20 and more refutes the claim at a level of 0.05.
    Raises:
        AnalysisError: for a negative or infinite score, and for a threshold that is not a number above 0.
        ValueError: if tau is not broadcastable to the scores.
    Source: Ville 1939; wealth as evidence for a mean: Waudby-Smith and Ramdas 2024, whose scores have an upper bound.
        Stakes of at most 1 need none, but only find means above tau.
    """
    return _mixed(_log_wealth(_excess(scores, tau)))


def evidence_path(
    scores: Float[np.ndarray, "text *cell"], tau: float | Float[np.ndarray, "..."]
) -> Float[np.ndarray, "text *cell"]:
    """log_evidence after the first text, the first two, and so on; arguments and errors are the same."""
    excess = _excess(scores, tau)
    path = np.full(excess.shape, -np.inf)
    for stake in STAKES:  # one at a time: all at once would take 13 times the memory of the scores
        np.logaddexp(path, np.log1p(stake * excess).cumsum(axis=0), out=path)
    return path - np.log(len(STAKES))


def anytime_p(path: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "text *cell"]:
    """p-values after each text that may be read after each text: 1 / the most evidence so far, at most 1.

    They never rise, so they depend on the order of the texts. For many heads at once, pass the current evidence to
    e_bh instead: Benjamini-Hochberg on these p-values does not keep its level.

    Args:
        path: evidence_path.
    """
    return np.exp(-np.maximum.accumulate(np.maximum(path, 0), axis=0))


def lower_bound(scores: Float[np.ndarray, "text *cell"], alpha: float) -> Float[np.ndarray, "*cell"]:
    """Lower confidence bound of the mean score, valid whenever one looks: the lowest tau that is not refuted.

    Args:
        scores: as for log_evidence.
        alpha: the bound is ever above the mean with a probability of at most alpha.

    Returns: between 0 and the sample mean; 0 if no tau is refuted, as without texts.
    Raises:
        AnalysisError: for a negative or infinite score, and for alpha outside 0 to 1.
    Source: Waudby-Smith and Ramdas 2024, a confidence bound by betting.
    """
    _refuse_level(alpha)
    _refuse_negative(scores)
    texts, mean, _ = moments(scores)
    shares = ratio(scores, mean)
    # Evidence falls as tau rises, and there is none at tau = the sample mean, so the bound lies below.
    low, high = np.zeros(mean.shape), np.ones(mean.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        refuted = log_evidence(shares, middle) >= -np.log(alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    return np.where(texts > 0, low * mean, 0)


def e_bh(log_e: Float[np.ndarray, "*cell"], alpha: float) -> Bool[np.ndarray, "*cell"]:
    """Which claims of one family are refuted, so that of these at most a share of alpha is expected to be true.

    Valid for any dependence between heads, and at any look if each text updates all heads. Pass the current evidence,
    not the most so far: a refuted claim may come back.

    Args:
        log_e: log_evidence; NaN is not part of the family.
        alpha: false discovery rate.

    Returns: True for the k cells with the most evidence, for the largest k of which each has E >= cells / (alpha k).
    Raises: AnalysisError for alpha outside 0 to 1.
    Source: Wang and Ramdas 2022, e-BH: Benjamini-Hochberg on 1 / E.
    """
    _refuse_level(alpha)
    falling = -np.sort(-log_e[~np.isnan(log_e)])
    needed = -np.log(alpha * np.arange(1, len(falling) + 1) / len(falling))
    return log_e >= falling[falling >= needed].min(initial=np.inf)


@dataclass(frozen=True, eq=False, kw_only=True)
class Ledger:
    """The bets placed on typed texts. Deleting a text does not undo its bet, nor does adding it again repeat it.

    Without that, deleting texts until only those remain that a head scores high on would count as evidence. All bets
    are against one threshold: for another tau, start a ledger with the scores of all texts so far, deleted ones too.
    """

    keys: tuple[str, ...]
    """The texts that were bet on, in order of arrival."""
    log_wealth: Float[np.ndarray, "stake *cell"]
    """Natural logarithm of the wealth with each of the STAKES."""

    @staticmethod
    def empty(cells: tuple[int, ...]) -> "Ledger":
        """A ledger without bets for scores of the shape [text *cells]."""
        return Ledger(keys=(), log_wealth=np.zeros((len(STAKES), *cells)))

    def with_texts(
        self, keys: tuple[str, ...], scores: Float[np.ndarray, "text *cell"], tau: float | Float[np.ndarray, "..."]
    ) -> "Ledger":
        """This ledger and a bet on each text that is not in it yet.

        Args:
            keys: of each text; of several texts with one key, only the first counts.
            scores: as for log_evidence.
            tau: as for log_evidence.

        Raises:
            AnalysisError: as for log_evidence.
            ValueError: for another number of keys than texts, or cells of another shape than the ledger's.
        """
        if len(keys) != len(scores):
            raise ValueError(f"{len(keys)} keys for {len(scores)} texts.")
        if scores.shape[1:] != self.log_wealth.shape[1:]:
            raise ValueError(f"Scores of {scores.shape[1:]} cells for a ledger of {self.log_wealth.shape[1:]}.")
        known = set(self.keys)
        first = {key: place for place, key in reversed(list(enumerate(keys))) if key not in known}
        places = sorted(first.values())
        return Ledger(
            keys=self.keys + tuple(keys[place] for place in places),
            log_wealth=self.log_wealth + _log_wealth(_excess(scores, tau)[places]),
        )

    def log_evidence(self) -> Float[np.ndarray, "*cell"]:
        """What log_evidence gives for all texts in the ledger."""
        return _mixed(self.log_wealth)


def _excess(scores: np.ndarray, tau: float | np.ndarray) -> Float[np.ndarray, "text *cell"]:
    """score / tau - 1, what a stake of 1 gains; 0 for NaN."""
    refuse_infinite(scores)
    _refuse_negative(scores)
    takes_part = ~np.isnan(scores)
    thresholds = np.broadcast_to(np.asarray(tau, np.float64), scores.shape)
    unusable = thresholds[takes_part & ~((thresholds > 0) & np.isfinite(thresholds))]
    if len(unusable):
        raise AnalysisError(f"A threshold is {unusable[0]}. Choose a number above 0; 1 is uniform attention.")
    return np.divide(scores, thresholds, out=np.ones(scores.shape), where=takes_part) - 1


def _log_wealth(excess: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "stake *cell"]:
    return np.stack([np.log1p(stake * excess).sum(axis=0) for stake in STAKES])


def _mixed(log_wealth: Float[np.ndarray, "stake *cell"]) -> Float[np.ndarray, "*cell"]:
    """Logarithm of the mean wealth, relative to the greatest, because wealth itself overflows within 1,000 texts."""
    greatest = log_wealth.max(axis=0)
    return np.asarray(greatest + np.log(np.exp(log_wealth - greatest).mean(axis=0)))


def _refuse_negative(scores: np.ndarray) -> None:
    negative = scores[scores < 0]
    if len(negative):
        raise AnalysisError(
            f"{len(negative):,} of {scores.size:,} scores are below 0, the lowest is {negative.min():.3g}. Evidence "
            "that stays valid while texts are added needs scores of at least 0: test these with the t-test, at a "
            "number of texts that is fixed beforehand."
        )


def _refuse_level(alpha: float) -> None:
    if not 0 < alpha < 1:
        raise AnalysisError(f"alpha is {alpha}. Choose a number between 0 and 1, for example 0.05.")
