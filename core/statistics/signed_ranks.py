"""Wilcoxon's signed-rank test for many columns of differences at once, with SciPy's result for each single column."""

from typing import Final

import numpy as np
from jaxtyping import Float

EXACT_TEXTS: Final = 50
"""With more differences than this, SciPy uses the normal approximation."""
COUNTED_TEXTS: Final = 13
"""Up to this many differences, the null distribution is enumerated even with zeros or ties."""


def signed_rank_p(differences: Float[np.ndarray, "text *cell"]) -> Float[np.ndarray, "*cell"]:
    """Two-sided p-values of Wilcoxon's signed-rank test of "the differences are symmetric around 0".

    Args:
        differences: NaN is ignored; 0 has no sign and is dropped, as in Wilcoxon's procedure.

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
