"""Means over texts, shares of cases and of documents, their intervals, tests of differences, and corrected p-values.

Where texts come from documents, these are the units of variances, intervals and tests; else texts are. Cases of one
document are alike, for example in topic and style, and words of one sentence depend on each other, so they carry less
information than the same number of independent cases. Cluster-robust variances allow for any dependence inside a unit,
and none between units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
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


Moments = tuple[Int[np.ndarray, "*cell"], Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]
"""Count, mean and sum of squared deviations, as of `moments`."""


def moments(scores: Float[np.ndarray, "text *cell"]) -> Moments:
    """Count, mean and sum of squared deviations of the scores that are not NaN, in float64."""
    refuse_infinite(scores)
    takes_part = ~np.isnan(scores)
    texts = takes_part.sum(axis=0)
    mean = ratio(scores.sum(axis=0, dtype=np.float64, where=takes_part), texts)
    return texts, mean, np.square(scores - mean).sum(axis=0, where=takes_part)


def moments_by_document(scores: Float[np.ndarray, "text *cell"], document: Int[np.ndarray, " text"] | None) -> Moments:
    """Moments with documents as units: their number, the mean over all texts, and the squares whose standard error is
    the cluster-robust one, as of `document_means`; those of `moments` where no document is known.

    Args:
        scores: NaN where a text does not take part.
        document: number of each text's document.
    """
    if document is None:
        return moments(scores)
    sums, counts = sums_by_document(scores, document)
    documents, n_texts = (counts > 0).sum(axis=0), counts.sum(axis=0)
    mean = ratio(sums.sum(axis=0), n_texts)
    residuals = sums - np.nan_to_num(mean) * counts
    return documents, mean, ratio(np.square(documents) * np.square(residuals).sum(axis=0), np.square(n_texts))


def sums_by_document(
    scores: Float[np.ndarray, "text *cell"], document: Int[np.ndarray, " text"]
) -> tuple[Float[np.ndarray, "document *cell"], Int[np.ndarray, "document *cell"]]:
    """Sum and number of the scores of each document that are not NaN, in the order of the documents' numbers."""
    refuse_infinite(scores)
    is_known = ~np.isnan(scores)
    sums, counts = (
        np.moveaxis(document_sums(np.moveaxis(values, 0, -1), document), -1, 0)
        for values in (np.where(is_known, scores, 0), is_known)
    )
    return sums, counts


def half_interval(
    texts: Int[np.ndarray, "*cell"], squares: Float[np.ndarray, "*cell"], alpha: float
) -> Float[np.ndarray, "*cell"]:
    """Half the width of the two-sided 1 - alpha interval of a mean; NaN with fewer than 2 texts."""
    from scipy.special import stdtrit  # takes a quarter of a second

    return -stdtrit(texts - 1, alpha / 2) * np.sqrt(ratio(squares, texts * (texts - 1)))


def wilson(
    n_right: Int[np.ndarray, "*cell"] | Float[np.ndarray, "*cell"] | np.integer,
    n_cases: Int[np.ndarray, "..."] | Float[np.ndarray, "..."] | int,
    alpha: float,
) -> tuple[Float[np.ndarray, "*cell"], Float[np.ndarray, "*cell"]]:
    """Wilson intervals of proportions, low and high; NaN without cases. `n_cases` is broadcastable to the shape of
    `n_right`; intervals cover 1 - alpha."""
    from statsmodels.stats.proportion import proportion_confint  # takes half a second

    all_cases = np.broadcast_to(n_cases, n_right.shape)
    ends = proportion_confint(n_right, np.maximum(all_cases, 1), alpha=alpha, method="wilson")
    low, high = (np.where(all_cases > 0, end, np.nan) for end in ends)
    return low, high


def correlation_interval(r: float, n_cases: int, alpha: float, *, ranked: bool = False) -> tuple[float, float]:
    """Interval of a Pearson correlation, or of Spearman's of ranks, by Fisher's transformation; -1 to 1 with fewer than
    4 cases. It covers 1 - alpha.

    Source: Fisher 1915; for ranks Bonett and Wright 2000.
    """
    from scipy.special import ndtri  # takes a quarter of a second

    if n_cases < 4:
        return -1.0, 1.0
    variance = (1 + r**2 / 2 if ranked else 1) / (n_cases - 3)
    with np.errstate(divide="ignore"):
        center, half = np.arctanh(r), -ndtri(alpha / 2) * np.sqrt(variance)
    return float(np.tanh(center - half)), float(np.tanh(center + half))


def times_drawn(
    random: np.random.Generator, n_resamples: int, n_drawn: int, n_units: int
) -> Float[np.ndarray, "resample unit"]:
    """How often each of some bootstrap resamples holds each unit; units are drawn with replacement."""
    drawn = random.integers(n_units, size=(n_resamples, n_drawn)) + n_units * np.arange(n_resamples)[:, None]
    return np.bincount(drawn.ravel(), minlength=n_resamples * n_units).reshape(n_resamples, n_units).astype(float)


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


LEAST_DOCUMENTS: Final = 2
"""Minimum number of documents for a variance between documents."""


@dataclass(frozen=True, eq=False, kw_only=True)
class DocumentMeans:
    """Means over cases, and how far they may be off, with documents as units."""

    n_cases: int
    n_documents: int
    """Documents with cases."""
    mean: Float[np.ndarray, "*head"]
    """Over cases; NaN without any."""
    variance: Float[np.ndarray, "*head"]
    """Cluster-robust variance of the mean; NaN with fewer than LEAST_DOCUMENTS; exactly 0 if all documents have the
    same mean."""


def document_numbers(documents: Sequence[str | None]) -> Int[np.ndarray, " text"] | None:
    """Number the documents of texts in the order of their first texts; None if no text has a known document. A text
    without one counts as a document of its own."""
    if all(document is None for document in documents):
        return None
    names = [position if document is None else document for position, document in enumerate(documents)]
    numbers = {name: number for number, name in enumerate(dict.fromkeys(names))}
    return np.array([numbers[name] for name in names])


def n_documents(documents: Sequence[str | None]) -> int | None:
    """How many documents texts come from, as `document_numbers` counts them; None if no text has a known document."""
    numbers = document_numbers(documents)
    return None if numbers is None else int(numbers.max()) + 1


def document_sums(
    values: Bool[np.ndarray, "*head case"] | Float[np.ndarray, "*head case"], document: Int[np.ndarray, " case"]
) -> Int[np.ndarray, "*head document"] | Float[np.ndarray, "*head document"]:
    """Sums over each document with cases, of true values their number, in the order of the documents' numbers."""
    number = int if values.dtype == bool else np.float64
    order = np.argsort(document, kind="stable")
    _, starts = np.unique(document[order], return_index=True)
    if not len(starts):
        return np.zeros((*values.shape[:-1], 0), number)
    return np.add.reduceat(values[..., order], starts, axis=-1, dtype=number)


def document_means(
    sums: Int[np.ndarray, "*head document"] | Float[np.ndarray, "*head document"],
    n_cases: Int[np.ndarray, " document"],
) -> DocumentMeans:
    """Means of all cases with their cluster-robust variances.

    The variance of the ratio of two sums over documents: of its residuals, one per document, times G / (G - 1) for G
    documents, which for a mean is the correction of statsmodels' and Stata's cluster-robust regression.

    Args:
        sums: of values over the cases of each document, such as their right cases, or these minus those of a baseline.
        n_cases: number of cases of each document, at least 1.
    Source: Liang and Zeger 1986; Cameron and Miller 2015, section II.
    """
    n_all, total = int(n_cases.sum()), np.asarray(sums.sum(axis=-1))
    # Times n_all, so that sums of whole numbers tell exactly whether all documents have the same mean.
    residuals = (n_all * sums - total[..., None] * n_cases).astype(float)
    return _document_means(n_all, len(n_cases), total, np.asarray(np.square(residuals).sum(axis=-1)))


def means_of_squares(
    n_cases: int,
    n_documents: int,
    total: Float[np.ndarray, "*head"],
    squares: Float[np.ndarray, "3 *head"],
) -> DocumentMeans:
    """The same, from what a corpus of any size keeps.

    Args:
        total: sum over the documents.
        squares: sums over the documents of the square of their sum, of its product with their number of cases, and of
            the square of this number.
    """
    own, product, cases = squares
    # In floats, too, this is exactly 0 where all values are 1, and where all are 0.
    residuals = n_cases * n_cases * own - 2 * (n_cases * total * product) + total * total * cases
    return _document_means(n_cases, n_documents, total, np.maximum(residuals, 0))


def _document_means(
    n_all: int, n_documents: int, total: np.ndarray, squared_residuals: Float[np.ndarray, "*head"]
) -> DocumentMeans:
    variance = np.full(total.shape, np.nan)
    if n_documents >= LEAST_DOCUMENTS:
        variance[...] = n_documents / (n_documents - 1) * squared_residuals / float(n_all) ** 4
    return DocumentMeans(
        n_cases=n_all, n_documents=n_documents, mean=ratio(total, np.full(total.shape, n_all)), variance=variance
    )


def share_interval(
    shares: DocumentMeans, alpha: float
) -> tuple[Float[np.ndarray, "*head"], Float[np.ndarray, "*head"]]:
    """Intervals of shares: Wilson's for the effective number of cases, the number of independent cases with the same
    variance, with the quantile of Student's t for one degree of freedom less than documents. Intervals cover 1 - alpha.

    Where all documents have the same share, such as 0 or 1, there are as many effective cases as documents. NaN with
    fewer than LEAST_DOCUMENTS.

    Source: Korn and Graubard 1998, effective cases and Student's t; Franco, Little, Louis and Slud 2019, with Wilson's
        interval. In simulations it covers 94% to 99% of shares of 0.05 to 0.9 over 10 to 128 sentences, where the
        interval without Wilson's correction covers down to 87%, and that of independent cases down to 89%.
    """
    from scipy.special import ndtr, stdtrit  # takes a quarter of a second

    if shares.n_documents < LEAST_DOCUMENTS:
        return np.full(shares.mean.shape, np.nan), np.full(shares.mean.shape, np.nan)
    # Of two or three texts it can be so large that the level of a normal distribution would be 0.
    quantile = np.minimum(-stdtrit(shares.n_documents - 1, alpha / 2), 37)
    n_effective = np.where(
        shares.variance > 0,
        np.maximum(ratio(np.asarray(shares.mean * (1 - shares.mean)), np.asarray(shares.variance)), 1),
        shares.n_documents,
    )
    return wilson(np.asarray(shares.mean * n_effective), n_effective, float(2 * ndtr(-quantile)))


def above_zero(differences: DocumentMeans) -> Float[np.ndarray, "*head"]:
    """One-sided p-values of "the mean difference is not above 0", by Student's t with documents as units.

    One degree of freedom less than documents. Where all documents have the same difference, t would be infinite; p is
    then that of the sign test over documents, or 1 for a difference of 0 or less. NaN with fewer than LEAST_DOCUMENTS.
    """
    from scipy.special import stdtr  # takes a quarter of a second

    mean, variance = differences.mean, differences.variance
    t = ratio(mean, np.asarray(np.sqrt(variance)))
    p_of_same = np.where(mean > 0, 0.5**differences.n_documents, 1.0)
    return np.where(variance == 0, p_of_same, stdtr(differences.n_documents - 1, -t))


def lower_end(differences: DocumentMeans, alpha: float) -> Float[np.ndarray, "*head"]:
    """Lower ends of two-sided 1 - alpha intervals of mean differences, by Student's t with one degree of freedom less
    than documents; NaN with fewer than LEAST_DOCUMENTS."""
    from scipy.special import stdtrit  # takes a quarter of a second

    return differences.mean + stdtrit(differences.n_documents - 1, alpha / 2) * np.sqrt(differences.variance)


def design_effect(shares: DocumentMeans) -> Float[np.ndarray, "*head"]:
    """Design effect: variance of shares with documents as units, divided by that with independent cases.

    This many cases carry as much information as one independent case. NaN with fewer than LEAST_DOCUMENTS, and for
    shares of 0 and 1, which have no variance.
    """
    if shares.n_documents < LEAST_DOCUMENTS:
        return np.full(shares.mean.shape, np.nan)
    independent = np.asarray(shares.mean * (1 - shares.mean) / shares.n_cases)
    return ratio(shares.variance, independent)
