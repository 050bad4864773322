"""Differences of the scores of the same texts under two checkpoints, with paired tests.

Every difference is b - a, the compared checkpoint minus the reference. For changes of roles, see
`attention_sieve.core.comparison.transitions`.
"""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.comparison.transitions import check_heads
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.hypotheses import CONSTANT_SPREAD, Criterion, corrected
from attention_sieve.core.statistics.means import (
    Correction,
    Moments,
    half_interval,
    moments,
    ratio,
    refuse_infinite,
    signed_rank_p,
)

ROUNDING: Final = {"float64": 1e-9, "float32": 1e-5, "float16": 5e-3, "bfloat16": 4e-2}
"""By number format: scores that differ by at most this share of 1 + their absolute value count as equal. The same text
in another batch can give scores that far apart, and a test over many texts would detect even that difference."""
USUAL_CRITERION: Final = Criterion()


@dataclass(frozen=True, eq=False, kw_only=True)
class PairedTests:
    """One two-sided paired test per role and head; NaN where no test is possible."""

    roles: tuple[str, ...]
    """Names along the role axis."""
    alpha: float
    """Level of the tests; the intervals cover 1 - alpha."""
    correction: Correction
    texts: Int[np.ndarray, "role layer head"]
    """Number of texts with a score under both checkpoints."""
    mean_a: Float[np.ndarray, "role layer head"]
    """Mean score under the reference, over these texts."""
    mean_b: Float[np.ndarray, "role layer head"]
    """Mean score under the compared checkpoint."""
    difference: Float[np.ndarray, "role layer head"]
    """Mean of b - a; differences within rounding error count as 0."""
    low: Float[np.ndarray, "role layer head"]
    """Lower end of the two-sided 1 - alpha interval of the mean difference; NaN with fewer than 2 texts."""
    high: Float[np.ndarray, "role layer head"]
    """Upper end of that interval."""
    t: Float[np.ndarray, "role layer head"]
    """Student's t of the paired differences; NaN with fewer than 2 texts and for constant differences."""
    p: Float[np.ndarray, "role layer head"]
    """Two-sided, in [0, 1]; NaN where t is."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    """p after the correction over the family."""
    wilcoxon_p: Float[np.ndarray, "role layer head"]
    """Two-sided p-value of Wilcoxon's signed-rank test; NaN where t is, and where only sums are known. Not
    corrected."""
    effect: Float[np.ndarray, "role layer head"]
    """Cohen's d of paired differences: difference over their sample standard deviation; NaN where t is."""
    differs: Bool[np.ndarray, "role layer head"]
    """p_adjusted below alpha; for constant differences, whether they are not 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LayerShift:
    """Change of one role's score in each layer and overall: mean over heads, then over texts."""

    role: str
    texts: int
    mean: Float[np.ndarray, " layer"]
    """Mean difference b - a."""
    low: Float[np.ndarray, " layer"]
    """Lower end of the 1 - alpha interval over texts."""
    high: Float[np.ndarray, " layer"]
    """Upper end of that interval."""
    overall: float
    """Mean over layers, heads and texts; NaN where the role is not applicable."""
    p: float
    """Two-sided paired t-test over texts of the mean over all heads; NaN with fewer than 2 texts or no spread."""


def paired_tests(
    a: Float[np.ndarray, "text role layer head"],
    b: Float[np.ndarray, "text_b role_b layer_b head_b"],
    roles: tuple[str, ...],
    criterion: Criterion = USUAL_CRITERION,
    *,
    rounding: float = ROUNDING["float32"],
) -> PairedTests:
    """Paired t-test and Wilcoxon's signed-rank test of "the scores differ" for every role and head.

    Args:
        a: sieve bias scores under the reference; NaN where a role is not applicable to a text.
        b: scores of the same texts, in the same order, under the compared checkpoint.
        roles: names along the role axis.
        criterion: the level of the tests, their correction, and the tests that are corrected together; the intervals
            cover 1 - alpha, and Wilcoxon's p-values are uncorrected.
        rounding: value of ROUNDING for the less precise number format of the two passes.

    Returns: the tests. Constant differences, including 0 for every text, have no p-value and are left out of the
        correction; `differs` is True unless they are 0.
    Raises:
        AnalysisError: for different numbers of texts, layers or heads, or an infinite score.
        ValueError: if the number of role names differs from the role axis.
    Source: Student's t of paired differences; Wilcoxon 1945; Benjamini and Hochberg 1995.
    """
    _check_texts(len(a), len(b))
    check_heads(a.shape[1:], b.shape[1:], roles)
    has_both = ~(np.isnan(a) | np.isnan(b))
    differences = rounded_differences(a, b, rounding)
    (_, mean_a, _), (_, mean_b, _) = (moments(np.where(has_both, scores, np.nan)) for scores in (a, b))
    # One role at a time, to save memory.
    wilcoxon_p = [signed_rank_p(role_differences) for role_differences in np.moveaxis(differences, 1, 0)]
    tests = tests_of_differences(moments(differences), (mean_a, mean_b), roles, criterion)
    return replace(tests, wilcoxon_p=np.where(np.isnan(tests.t), np.nan, np.stack(wilcoxon_p)))


def tests_of_differences(
    differences: Moments,
    means: tuple[Float[np.ndarray, "role layer head"], Float[np.ndarray, "role layer head"]],
    roles: tuple[str, ...],
    criterion: Criterion,
) -> PairedTests:
    """As `paired_tests`, from the moments of the differences and the mean scores under both; NaN for Wilcoxon's."""
    student = _student(differences, criterion.alpha)
    p_adjusted = corrected(student.p, criterion)
    return PairedTests(
        roles=roles,
        alpha=criterion.alpha,
        correction=criterion.correction,
        texts=student.texts,
        mean_a=means[0],
        mean_b=means[1],
        difference=student.mean,
        low=student.low,
        high=student.high,
        t=student.t,
        p=student.p,
        p_adjusted=p_adjusted,
        wilcoxon_p=np.full(student.t.shape, np.nan),
        effect=student.effect,
        differs=np.where(student.constant, student.mean != 0, p_adjusted < criterion.alpha),
    )


def layer_shift(
    a: Float[np.ndarray, "text role layer head"],
    b: Float[np.ndarray, "text_b role_b layer_b head_b"],
    roles: tuple[str, ...],
    role: str,
    *,
    alpha: float = 0.05,
    rounding: float = ROUNDING["float32"],
) -> LayerShift:
    """Change of one role's score in each layer and overall.

    Args:
        a, b, roles: as for `paired_tests`.
        role: one of `roles`.
        alpha: the intervals cover 1 - alpha.
        rounding: as for `paired_tests`.

    Raises: AnalysisError for different numbers of texts, layers or heads, or an infinite score; ValueError for an
        unknown role.
    Source: Pande et al. 2021, fine-tuning: attention to [SEP] falls in the later layers.
    """
    _check_texts(len(a), len(b))
    check_heads(a.shape[1:], b.shape[1:], roles)
    index = roles.index(role)
    differences = rounded_differences(a[:, index], b[:, index], rounding)
    _, layer_means, _ = moments(np.moveaxis(differences, 2, 0))
    _, text_means, _ = moments(differences.reshape(len(a), 1, a.shape[2] * a.shape[3]).T)
    layers, overall = (_student(moments(means), alpha) for means in (layer_means, text_means.T))
    return LayerShift(
        role=role,
        texts=overall.texts.item(),
        mean=layers.mean,
        low=layers.low,
        high=layers.high,
        overall=overall.mean.item(),
        p=overall.p.item(),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Student:
    """Student's test of "the mean difference is not 0"."""

    texts: Int[np.ndarray, "*cell"]
    mean: Float[np.ndarray, "*cell"]
    constant: Bool[np.ndarray, "*cell"]
    t: Float[np.ndarray, "*cell"]
    p: Float[np.ndarray, "*cell"]
    effect: Float[np.ndarray, "*cell"]
    low: Float[np.ndarray, "*cell"]
    high: Float[np.ndarray, "*cell"]


def _student(differences: Moments, alpha: float) -> _Student:
    from scipy.special import stdtr  # takes a quarter of a second, and pages import this module for its types

    texts, mean, squares = differences
    std = np.sqrt(ratio(squares, texts - 1))
    constant = std <= CONSTANT_SPREAD * np.abs(mean)
    effect = ratio(mean, np.where(constant, 0, std))
    t = effect * np.sqrt(texts)
    margin = half_interval(texts, squares, alpha)
    return _Student(
        texts=texts,
        mean=mean,
        constant=constant,
        t=t,
        p=2 * stdtr(texts - 1, -np.abs(t)),
        effect=effect,
        low=mean - margin,
        high=mean + margin,
    )


def rounded_differences(
    a: Float[np.ndarray, "text *cell"], b: Float[np.ndarray, "text *cell"], rounding: float
) -> Float[np.ndarray, "text *cell"]:
    """b - a, with differences within rounding error set to 0."""
    refuse_infinite(a, b)
    scores_a, scores_b = a.astype(np.float64), b.astype(np.float64)
    differences = scores_b - scores_a
    differences[np.abs(differences) <= rounding * (1 + np.maximum(np.abs(scores_a), np.abs(scores_b)))] = 0
    return differences


def _check_texts(n_a: int, n_b: int) -> None:
    if n_a != n_b:
        raise AnalysisError(
            f"The reference has scores of {n_a:,} texts and the compared checkpoint of {n_b:,}. Score the same texts "
            "under both."
        )
