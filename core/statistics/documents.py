"""Shares of cases that come from documents, which are the units of variances, intervals and tests.

Cases of one document are alike, for example in topic and style, so they carry less information than the same number of
independent cases. Cluster-robust variances allow for any dependence inside a document, and none between documents.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.statistics.means import ratio, wilson

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


def documents_fact(n_known: int | None) -> str:
    """How many documents are known, for the metadata of files; n_known as of `n_documents`."""
    return "none" if n_known is None else str(n_known)


def documents_note(n_known: int | None) -> str:
    """How many documents there are, and what follows for intervals and tests. The number is as of `n_documents`."""
    if n_known is None:
        return (
            "Documents are unknown, so sentences count as independent: if several are from one document, intervals "
            "are too narrow and p-values too small. CoNLL-U files name documents in comments (# newdoc id), files of "
            'pairs under "document".'
        )
    if n_known < LEAST_DOCUMENTS:
        return (
            "All texts are from one document, so there are no intervals, tests or held-out accuracies. Give texts of "
            f"at least {LEAST_DOCUMENTS} documents."
        )
    return f"The texts are from {n_known:,} documents, which are the units of halves, intervals and tests."


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
    n_all, n_documents = int(n_cases.sum()), len(n_cases)
    total = np.asarray(sums.sum(axis=-1))
    # Times n_all, so that sums of whole numbers tell exactly whether all documents have the same mean.
    residuals = (n_all * sums - total[..., None] * n_cases).astype(float)
    variance = np.full(total.shape, np.nan)
    if n_documents >= LEAST_DOCUMENTS:
        variance[...] = n_documents / (n_documents - 1) * np.square(residuals).sum(axis=-1) / float(n_all) ** 4
    return DocumentMeans(
        n_cases=n_all, n_documents=n_documents, mean=ratio(total, np.full(total.shape, n_all)), variance=variance
    )


def share_interval(
    shares: DocumentMeans, alpha: float
) -> tuple[Float[np.ndarray, "*head"], Float[np.ndarray, "*head"]]:
    """Intervals of shares by Student's t with one degree of freedom less than documents, cut off at 0 and 1. Intervals
    cover 1 - alpha.

    Where all documents have the same share, such as 0 or 1, that interval would have no width; it is then Wilson's of
    as many independent cases as there are documents. NaN with fewer than LEAST_DOCUMENTS."""
    from scipy.special import stdtrit  # takes a quarter of a second

    if shares.n_documents < LEAST_DOCUMENTS:
        return np.full(shares.mean.shape, np.nan), np.full(shares.mean.shape, np.nan)
    half = -stdtrit(shares.n_documents - 1, alpha / 2) * np.sqrt(shares.variance)
    same_low, same_high = wilson(np.asarray(shares.mean * shares.n_documents), shares.n_documents, alpha)
    is_same = shares.variance == 0
    low = np.where(is_same, same_low, np.maximum(shares.mean - half, 0))
    return low, np.where(is_same, same_high, np.minimum(shares.mean + half, 1))


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


def design_effect(shares: DocumentMeans) -> Float[np.ndarray, "*head"]:
    """Design effect: variance of shares with documents as units, divided by that with independent cases.

    This many cases carry as much information as one independent case. NaN with fewer than LEAST_DOCUMENTS, and for
    shares of 0 and 1, which have no variance.
    """
    if shares.n_documents < LEAST_DOCUMENTS:
        return np.full(shares.mean.shape, np.nan)
    independent = np.asarray(shares.mean * (1 - shares.mean) / shares.n_cases)
    return ratio(shares.variance, independent)
