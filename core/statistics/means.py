"""Means over texts and shares of cases, their confidence intervals, tests of differences, and corrected p-values."""

from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.errors import AnalysisError

Correction = Literal["bh", "holm", "none"]
EXACT_TEXTS: Final = 50
"""With more differences than this, SciPy uses the normal approximation."""
COUNTED_TEXTS: Final = 13
"""Up to this many differences, the null distribution is enumerated even with zeros or ties."""


def check_alpha(alpha: float) -> None:
    """Raise AnalysisError for a level of tests and intervals that is none."""
    if not 0 < alpha < 1:
        raise AnalysisError(f"alpha is {alpha}. Choose a number between 0 and 1, for example 0.05.")


def refuse_infinite(*scores: Float[np.ndarray, "..."]) -> None:
    """Raise AnalysisError if any score is infinite."""
    if any(np.isinf(values).any() for values in scores):
        raise AnalysisError("Some scores are infinite. Check that the checkpoint's attention is finite on these texts.")


def moments(scores: Float[np.ndarray, "text *cell"]) -> tuple[Int[np.ndarray, "*cell"], np.ndarray, np.ndarray]:
    """Count, mean and sum of squared deviations of the scores that are not NaN, in float64."""
    refuse_infinite(scores)
    takes_part = ~np.isnan(scores)
    texts = takes_part.sum(axis=0)
    mean = ratio(scores.sum(axis=0, dtype=np.float64, where=takes_part), texts)
    return texts, mean, np.square(scores - mean).sum(axis=0, where=takes_part)


def half_interval(
    texts: Int[np.ndarray, "*cell"], squares: Float[np.ndarray, "*cell"], alpha: float
) -> Float[np.ndarray, "*cell"]:
    """Half the width of the two-sided 1 - alpha interval of a mean; NaN with fewer than 2 texts."""
    from scipy.special import stdtrit  # takes a quarter of a second

    return -stdtrit(texts - 1, alpha / 2) * np.sqrt(ratio(squares, texts * (texts - 1)))


def wilson(
    n_right: Int[np.ndarray, "*cell"] | Float[np.ndarray, "*cell"] | np.integer,
    n_cases: Int[np.ndarray, "..."] | int,
    alpha: float,
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Wilson intervals of proportions, low and high; NaN without cases. `n_cases` is broadcastable to the shape of
    `n_right`; intervals cover 1 - alpha."""
    from statsmodels.stats.proportion import proportion_confint  # takes half a second

    all_cases = np.broadcast_to(n_cases, n_right.shape)
    ends = proportion_confint(n_right, np.maximum(all_cases, 1), alpha=alpha, method="wilson")
    low, high = (np.where(all_cases > 0, end, np.nan) for end in ends)
    return low, high


def correlation_interval(r: float, n_cases: int, alpha: float) -> tuple[float, float]:
    """Interval of a Pearson correlation by Fisher's transformation; -1 to 1 with fewer than 4 cases. It covers 1 -
    alpha."""
    from scipy.special import ndtri  # takes a quarter of a second

    if n_cases < 4:
        return -1.0, 1.0
    with np.errstate(divide="ignore"):
        center, half = np.arctanh(r), -ndtri(alpha / 2) / np.sqrt(n_cases - 3)
    return float(np.tanh(center - half)), float(np.tanh(center + half))


def ratio(numerator: np.ndarray, denominator: np.ndarray) -> Float[np.ndarray, "..."]:
    """Element-wise quotient; NaN where the denominator is not positive."""
    return np.divide(numerator, denominator, out=np.full(numerator.shape, np.nan), where=denominator > 0)


def adjusted(p: Float[np.ndarray, "*cell"], correction: Correction) -> Float[np.ndarray, "*cell"]:
    """Correct p-values as one family; NaN is not part of the family and stays NaN."""
    corrected, tested = p.copy(), ~np.isnan(p)
    if correction == "none":
        return corrected
    if correction == "bh":
        from scipy.stats import false_discovery_control  # takes half a second, which a page without tests need not wait

        corrected[tested] = false_discovery_control(p[tested])
    else:
        corrected[tested] = _holm(p[tested])
    return corrected


def _holm(p: Float[np.ndarray, " test"]) -> Float[np.ndarray, " test"]:
    """Holm's correction. That of statsmodels ends with a garbage collection: half a second in a running dashboard."""
    order = np.argsort(p)
    adjusted_p = np.empty_like(p)
    adjusted_p[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1)
    return adjusted_p


def rejects(
    p: Float[np.ndarray, "family test"], correction: Correction, alpha: float
) -> Bool[np.ndarray, "family test"]:
    """Which of many families' tests are significant: where `adjusted` p-values are below alpha, without computing them.
    NaN is not part of a family."""
    if correction == "none":
        return p < alpha
    n_tests = (~np.isnan(p)).sum(axis=1, keepdims=True)
    rank = np.arange(1, p.shape[1] + 1)
    ordered = np.sort(p, axis=1)  # NaN last
    if correction == "bh":
        passes = ordered * (n_tests / rank) < alpha
        n_rejected = np.where(passes, rank, 0).max(axis=1, initial=0)
    else:
        n_rejected = np.cumprod(ordered * (n_tests - rank + 1) < alpha, axis=1).sum(axis=1)
    threshold = np.take_along_axis(ordered, np.maximum(n_rejected - 1, 0)[:, None], axis=1) if p.size else ordered
    return (p <= threshold) & (n_rejected[:, None] > 0)


def signed_rank_p(differences: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "*cell"]:
    """Two-sided p-values of Wilcoxon's signed-rank test of "the differences are symmetric around 0". NaN is ignored; 0
    has no sign and is dropped, as in Wilcoxon's procedure.

    Returns: p-values in [0, 1]; NaN if no difference remains.
    Source: Wilcoxon 1945. The null distribution is the one that scipy.stats.wilcoxon chooses for a single column. Given
        several columns, SciPy chooses one for all, and takes half a second per column to enumerate signs.
    """
    from scipy.stats import wilcoxon

    takes_part = ~np.isnan(differences)
    texts = takes_part.sum(axis=0).ravel()
    columns = np.where(takes_part, differences, 0).reshape(len(differences), len(texts))
    distinct = _distinct(columns, texts)
    is_nonzero = (columns != 0).any(axis=0)
    exact = is_nonzero & distinct & (texts <= EXACT_TEXTS)
    counted = is_nonzero & ~distinct & (texts <= COUNTED_TEXTS)
    p = np.full(columns.shape[1], np.nan)
    for columns_of_method, method in ((exact, "exact"), (is_nonzero & ~exact & ~counted, "asymptotic")):
        if columns_of_method.any():
            p[columns_of_method] = wilcoxon(columns[:, columns_of_method], method=method).pvalue
    p[counted] = _counted_p(columns[:, counted])
    return p.reshape(differences.shape[1:])


def _distinct(columns: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """Whether the differences of a column, NaN aside, contain neither zeros nor ties."""
    sizes = np.sort(np.abs(columns), axis=0)
    tied = ((sizes[1:] == sizes[:-1]) & (sizes[1:] > 0)).any(axis=0)
    return ~tied & ((columns != 0).sum(axis=0) == texts)


def _counted_p(columns: Float[np.ndarray, "text column"]) -> Float[np.ndarray, " column"]:
    """p-values from the rank sums of all 2^n sign assignments; ranks are doubled so that tied ranks are integers."""
    from scipy.stats import rankdata

    largest = np.argsort(-np.abs(columns), axis=0)[:COUNTED_TEXTS]
    columns = np.take_along_axis(columns, largest, axis=0)
    zero = columns == 0
    doubled = np.where(zero, 0, 2 * (rankdata(np.abs(columns), axis=0) - zero.sum(axis=0))).astype(int)
    observed = doubled.sum(axis=0, where=columns > 0)
    sums = np.arange(COUNTED_TEXTS * (COUNTED_TEXTS + 1) + 1)[:, None]
    shares = np.tile(sums == 0, columns.shape[1]).astype(float)
    for rank in doubled:
        smaller = sums - rank
        with_rank = np.where(smaller >= 0, np.take_along_axis(shares, np.maximum(smaller, 0), axis=0), 0)
        shares = (shares + with_rank) / 2
    tails = [shares.sum(axis=0, where=tail) for tail in (sums <= observed, sums >= observed)]
    return np.minimum(1, 2 * np.minimum(*tails))
