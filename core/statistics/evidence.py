"""Evidence that a mean score is above a threshold, valid whenever one looks and however many texts are added.

A test at a fixed number of texts errs far more often than its level if it is read again after every text. Here, one
plays a game against the claim "the mean is at most tau": on each text, a share of one's wealth is staked on a score
above tau. If the claim is true, no such game is expected to gain, so wealth of 20 or more, starting from 1, ever comes
about with a probability of at most 1 in 20.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.statistics.means import check_alpha, moments, ratio, refuse_infinite

# Below 1, because a single score of 0 would take all the wealth of a stake of 1, for good.
STAKES: Final = tuple(np.linspace(0.01, 0.95, 13).tolist())
"""Shares of the wealth staked on each text; one game is played with each, and the evidence is their mean wealth. High
stakes find large effects in few texts, low stakes find small effects in many."""
HALVINGS: Final = 20
"""Steps of the search for a lower bound, which is then exact to a millionth of the sample mean."""

TOGETHER: Final = 64
"""Maximum number of texts whose gains are multiplied before a logarithm is taken; if each loses a stake of .95, the
product is 1e-84."""
DIGITS: Final = 300
"""Maximum number of digits before the point of a product: float64 holds 308."""


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
    Raises: AnalysisError for a negative or infinite score, and for a threshold that is not a number above 0.
    Source: Ville 1939; wealth as evidence for a mean: Waudby-Smith and Ramdas 2024, whose scores have an upper bound.
        Stakes of at most 1 need none, but only find means above tau.
    """
    return evidence_of(log_wealth(scores, [tau])[0])


def log_wealth(
    scores: Float[np.ndarray, "text *cell"], taus: Sequence[float | Float[np.ndarray, "..."]]
) -> Float[np.ndarray, "threshold stake *cell"]:
    """Natural logarithm of the wealth with each of the STAKES after all texts; that of two corpora is their sum. Scores
    and each of the taus are as for `log_evidence`.

    Raises: as `log_evidence`.
    """
    takes_part = _taking_part(scores)
    return np.stack([_log_wealth(_excess(scores, takes_part, tau)) for tau in taus])


def evidence_path(
    scores: Float[np.ndarray, "text *cell"], tau: float | Float[np.ndarray, "..."]
) -> Float[np.ndarray, "text *cell"]:
    """log_evidence after the first text, the first two, and so on; arguments and errors are the same."""
    excess = _excess(scores, _taking_part(scores), tau)
    path = np.full(excess.shape, -np.inf)
    for stake in STAKES:  # one at a time: all at once would take 13 times the memory of the scores
        np.logaddexp(path, np.log1p(stake * excess).cumsum(axis=0), out=path)
    return path - np.log(len(STAKES))


def lower_bound(scores: Float[np.ndarray, "text *cell"], alpha: float) -> Float[np.ndarray, "*cell"]:
    """Lower confidence bound of the mean score, valid whenever one looks: the lowest tau that is not refuted. Scores
    are as for `log_evidence`; the bound is ever above the mean with a probability of at most alpha.

    Returns: between 0 and the sample mean; 0 if no tau is refuted, as without texts.
    Raises: AnalysisError for a negative or infinite score, and for alpha outside 0 to 1.
    Source: Waudby-Smith and Ramdas 2024, a confidence bound by betting.
    """
    check_alpha(alpha)
    _refuse_negative(scores)
    texts, mean, _ = moments(scores)
    shares = ratio(scores, mean)
    # Evidence falls as tau rises, and there is none at tau = the sample mean, so the bound lies below.
    low, high = np.zeros(mean.shape), np.ones(mean.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # Scores relative to their mean, so that one search, from 0 to 1, serves all cells.
        refuted = log_evidence(shares, middle) >= -np.log(alpha)
        low, high = np.where(refuted, middle, low), np.where(refuted, high, middle)
    # The lower end, which is refuted (or 0): what the search leaves open makes the bound lower, never wrong.
    return np.where(texts > 0, low * mean, 0)


def e_bh(log_e: Float[np.ndarray, "*cell"], alpha: float) -> Bool[np.ndarray, "*cell"]:
    """Which claims of one family are refuted, so that of these at most a share of alpha is expected to be true. `log_e`
    is that of `log_evidence`, NaN where a cell is not part of the family.

    Valid for any dependence between heads, and at any look if each text updates all heads. Pass the current evidence,
    not the most so far: a refuted claim may come back.

    Returns: True for the k cells with the most evidence, for the largest k of which each has E >= cells / (alpha k).
    Raises: AnalysisError for alpha outside 0 to 1.
    Source: Wang and Ramdas 2022, e-BH: Benjamini-Hochberg on 1 / E.
    """
    check_alpha(alpha)
    # Heads without a score are left out of the count, or they would raise the bar for the others.
    descending = -np.sort(-log_e[~np.isnan(log_e)])
    thresholds = -np.log(alpha * np.arange(1, len(descending) + 1) / len(descending))
    return log_e >= descending[descending >= thresholds].min(initial=np.inf)


def _taking_part(scores: np.ndarray) -> Bool[np.ndarray, "text *cell"]:
    """Which scores are not NaN; refuses negative and infinite ones."""
    refuse_infinite(scores)
    _refuse_negative(scores)
    return ~np.isnan(scores)


def _excess(
    scores: np.ndarray, takes_part: Bool[np.ndarray, "text *cell"], tau: float | np.ndarray
) -> Float[np.ndarray, "text *cell"]:
    """score / tau - 1, what a stake of 1 gains; 0 for NaN."""
    taus = np.asarray(tau, np.float64)
    is_usable, thresholds = (taus > 0) & np.isfinite(taus), np.broadcast_to(taus, scores.shape)
    if not is_usable.all():
        unusable = thresholds[takes_part & ~np.broadcast_to(is_usable, scores.shape)]
        if len(unusable):
            raise AnalysisError(f"A threshold is {unusable[0]}. Choose a number above 0.")
    return np.divide(scores, thresholds, out=np.ones(scores.shape), where=takes_part) - 1


def _log_wealth(excess: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "stake *cell"]:
    """Natural logarithm of the wealth with each of the STAKES.

    A logarithm takes ten times as long as a product, so it is taken of the product of several texts' gains: of as many
    as can neither overflow nor underflow.
    """
    # A gain is less than 10 + the greatest excess, and with the 10 the logarithm is at least 1.
    n_together = int(np.clip(DIGITS / np.log10(10 + excess.max(initial=0)), 1, TOGETHER))
    cells = excess.shape[1:]
    wealth, products = np.zeros((len(STAKES), *cells)), np.empty((len(STAKES), *cells))
    gains = np.empty((n_together, *cells))
    for start in range(0, len(excess), n_together):
        block = excess[start : start + n_together]
        gains_of_block = gains[: len(block)]
        for index, stake in enumerate(STAKES):
            np.multiply(block, stake, out=gains_of_block)
            gains_of_block += 1
            np.multiply.reduce(gains_of_block, axis=0, out=products[index])
        wealth += np.log(products)
    return wealth


def evidence_of(wealth: Float[np.ndarray, "stake *cell"]) -> Float[np.ndarray, "*cell"]:
    """Evidence from the logarithms of the wealth with each of the STAKES.

    The mean wealth is taken relative to the greatest, because wealth itself overflows within 1,000 texts.
    """
    # The mean, because wealth split over several games is one game; the best of them, known afterwards, is none.
    greatest = wealth.max(axis=0)
    return np.asarray(greatest + np.log(np.exp(wealth - greatest).mean(axis=0)))


def _refuse_negative(scores: np.ndarray) -> None:
    negative = scores[scores < 0]
    if len(negative):
        raise AnalysisError(
            f"{len(negative):,} of {scores.size:,} scores are below 0, the lowest is {negative.min():.3g}. Evidence "
            "that stays valid while texts are added needs scores of at least 0: test these with the t-test, at a "
            "number of texts that is fixed beforehand."
        )
