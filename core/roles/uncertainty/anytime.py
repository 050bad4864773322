"""Roles by anytime-valid evidence: texts may be added at any time, without a stopping rule."""

import math
from collections.abc import Callable
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.roles.hypotheses import LEAST_GAIN, Criterion, HeadTests
from attention_sieve.core.statistics.evidence import e_bh, log_evidence
from attention_sieve.core.statistics.means import Moments, ratio, rejects

MOST_LOG_EVIDENCE: Final = 690.0
"""Larger evidence would be infinite in a file."""
MOST_ODDS: Final = 1e6
"""Larger odds are written as "over 1,000,000 : 1"."""


def role_evidence(
    scores: Float[np.ndarray, "text role layer head"],
    settings: Criterion,
    uniform: Float[np.ndarray, "text role layer"],
    evidence_of: Callable[..., Float[np.ndarray, "..."]] = log_evidence,
) -> Float[np.ndarray, "*after role layer head"]:
    """Logarithm of the evidence that a head has a role.

    It is evidence against a mean score of at most tau and, by the rule, against one that is not above that of uniform
    attention by LEAST_GAIN of it. The smaller of the two is evidence against "not a role", for which one of the two is
    enough.

    Args:
        scores: sieve bias scores, on the scale "score"; NaN where a role is not applicable to a text.
        evidence_of: `evidence_path` for the evidence after the first text, the first two, and so on.

    Returns: log of the evidence, NaN where no text takes part; log(20) is "20 : 1".
    Raises: AnalysisError for a negative score.
    Source: this project; `attention_sieve.core.statistics.evidence` names that of the method.
    """
    evidence = evidence_of(scores, settings.tau)
    if settings.rule == "role":
        # Where a role does not apply, there is no score to bet on, and any threshold will do.
        threshold = np.where(np.isnan(uniform), 1, uniform)[..., None] * (1 + LEAST_GAIN)
        evidence = np.minimum(evidence, evidence_of(scores, threshold))
    return np.where(np.isnan(scores).all(axis=0), np.nan, evidence)


def holds_by_evidence(
    evidence: Float[np.ndarray, "role layer head"], settings: Criterion
) -> Bool[np.ndarray, "role layer head"]:
    """Roles by evidence, valid whenever one looks and however heads depend.

    Args:
        settings: alpha; the tests that are corrected together; and the correction. With "bh", at most alpha of the
            roles are expected to be false (e-BH). 1 / E is a p-value at any look, so with "holm" there is one false
            role with a probability of at most alpha, and with "none" each role is held against alpha alone.
    """
    families = evidence.reshape(1 if settings.family == "all" else len(evidence), -1)
    if settings.correction == "bh":
        refuted = np.array([e_bh(family, settings.alpha) for family in families])
    else:
        # 1 / E, at most 1 as a p-value is; NaN, which is no part of the family, stays NaN.
        refuted = rejects(np.exp(-np.maximum(families, 0)), settings.correction, settings.alpha)
    return refuted.reshape(evidence.shape)


def needed_evidence(evidence: Float[np.ndarray, "role layer head"], settings: Criterion) -> tuple[float, float]:
    """Logarithms of the smallest evidence with which a head can hold a role, and of that with which it always does.

    In between, it depends on how much evidence there is for the other heads of the family; the largest family counts.
    """
    least = -math.log(settings.alpha)
    if settings.correction == "none":
        return least, least
    n_by_role = (~np.isnan(evidence)).sum(axis=(1, 2))
    n_tests = int(n_by_role.sum() if settings.family == "all" else n_by_role.max(initial=0))
    return least, least + math.log(max(n_tests, 1))


def tests_of_evidence(
    scores: Moments, evidence: Float[np.ndarray, "role layer head"], roles: tuple[str, ...], settings: Criterion
) -> HeadTests:
    """Which head has which role by evidence: no p-values and no intervals, which are valid at one look only."""
    texts, mean, squares = scores
    none = np.full(mean.shape, np.nan)
    return HeadTests(
        roles=roles,
        settings=settings,
        texts=texts,
        mean=mean,
        std=np.sqrt(ratio(squares, texts - settings.ddof)),
        t=none,
        p=none,
        p_uniform=none,
        p_role=none,
        p_adjusted=none,
        low=none,
        high=none,
        holds=holds_by_evidence(evidence, settings),
        constant=np.zeros(mean.shape, bool),
        evidence=evidence,
    )


def as_odds(evidence: Float[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell"]:
    """Evidence as the number in "34 : 1", which a file can hold: at most 1e299."""
    return np.exp(np.minimum(evidence, MOST_LOG_EVIDENCE))


def odds(evidence: float) -> str:
    """Evidence, a natural logarithm, as odds such as "34 : 1"; rounded down, so as not to seem to reach a threshold."""
    if math.isnan(evidence):
        return "no bet"
    number = math.exp(min(abs(evidence), 99.0)) * (1 + 1e-6)  # the browser uses single precision
    if number > MOST_ODDS:
        written = f"over {MOST_ODDS:,.0f}"
    else:
        written = f"{math.floor(number):,}" if number >= 10 else f"{math.floor(10 * number) / 10:g}"
    return f"{written} : 1" if evidence >= 0 else f"1 : {written}"
