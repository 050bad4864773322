"""Tests which head has which role, from the scores of many texts: p-values, corrections and intervals."""

import math
from dataclasses import dataclass, fields, replace
from typing import Final, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float, Int

from core.errors import AnalysisError
from core.statistics.means import Correction, adjusted, half_interval, moments, ratio

Method = Literal["test", "mean"]

CONSTANT_SPREAD: Final = 1e-3
"""A score counts as constant, and is not tested, if its standard deviation is at most this share of its mean."""


@dataclass(frozen=True)
class Criterion:
    """Criterion for a head to have a role."""

    tau: float = 3.0
    """Threshold on the mean score; 1 is uniform attention."""
    alpha: float = 0.05
    """Level of the test, between 0 and 1; the intervals cover 1 - alpha."""
    correction: Correction = "bh"
    """Correction over all heads and roles: Benjamini-Hochberg, Holm, or none (as in the paper)."""
    ddof: Literal[0, 1] = 1
    """1 for the sample standard deviation, 0 for the population standard deviation of the authors' code."""
    method: Method = "test"
    """"test" asks the corrected p-value, "mean" only whether the mean score is above tau (the authors' avg)."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tau) and self.tau > 0):
            raise AnalysisError(f"tau is {self.tau}. Choose a number above 0; 1 is uniform attention.")
        if not 0 < self.alpha < 1:
            raise AnalysisError(f"alpha is {self.alpha}. Choose a number between 0 and 1, for example 0.05.")
        for name, known in (("correction", get_args(Correction)), ("ddof", (0, 1)), ("method", get_args(Method))):
            if (value := getattr(self, name)) not in known:
                raise AnalysisError(f"{name} is {value!r}. Choose one of: {', '.join(map(str, known))}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadTests:
    """One test per role and head; NaN where there was nothing to test."""

    roles: tuple[str, ...]
    """Names along the role axis."""
    settings: Criterion
    """Criterion of the tests."""
    texts: Int[np.ndarray, "role layer head"]
    """Number of texts with a score."""
    mean: Float[np.ndarray, "role layer head"]
    """Mean score; NaN without texts."""
    std: Float[np.ndarray, "role layer head"]
    """Standard deviation of the score with the ddof of the settings; NaN where texts <= ddof."""
    t: Float[np.ndarray, "role layer head"]
    """Student's t; NaN with fewer than 2 texts and for a constant score."""
    p: Float[np.ndarray, "role layer head"]
    """One-sided p-value of "mean score is above tau", in [0, 1]; NaN where t is."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    """p after the correction over all roles and heads that have one, in [0, 1]."""
    low: Float[np.ndarray, "role layer head"]
    """Lower end of the two-sided 1 - alpha interval of the mean score; NaN with fewer than 2 texts."""
    high: Float[np.ndarray, "role layer head"]
    """Upper end of that interval."""
    holds: Bool[np.ndarray, "role layer head"]
    """Whether the head holds the role."""
    constant: Bool[np.ndarray, "role layer head"]
    """Whether the score is constant, so that only the mean decides."""


def role_tests(
    scores: Float[np.ndarray, "text role layer head"], roles: tuple[str, ...], settings: Criterion
) -> HeadTests:
    """One-sided one-sample t-test of "mean score is above tau" for every role and head.

    Args:
        scores: sieve bias scores; NaN where a role is not applicable to a text.
        roles: names along the role axis.
        settings: tau, alpha, correction, standard deviation and method.

    Returns: the tests; intervals always use the sample standard deviation. A constant score has no p-value, is left out
        of the correction, and has its role if its mean is above tau. With fewer than 2 texts, only method "mean" can
        assign roles.
    Raises:
        AnalysisError: for an infinite score.
        ValueError: if the number of role names differs from the role axis.
    Source: Pande et al. 2021, hypothesis test. Their code takes the population standard deviation (ddof=0 here), calls
        the test a z-test although its tail is Student's, corrects nothing, and divides by zero on a constant score.
    """
    from scipy.special import stdtr  # takes a quarter of a second

    if len(roles) != scores.shape[1]:
        raise ValueError(f"{len(roles)} role names for {scores.shape[1]} roles.")
    texts, mean, squares = moments(scores)
    std = np.sqrt(ratio(squares, texts - settings.ddof))
    constant = (texts >= 2) & (std <= CONSTANT_SPREAD * np.abs(mean))
    t = ratio((mean - settings.tau) * np.sqrt(texts), np.where(constant, 0, std))
    p = stdtr(texts - 1, -t)
    p_adjusted = adjusted(p, settings.correction)
    margin = half_interval(texts, squares, settings.alpha)
    by_mean = constant | (settings.method == "mean")
    return HeadTests(
        roles=roles,
        settings=settings,
        texts=texts,
        mean=mean,
        std=std,
        t=t,
        p=p,
        p_adjusted=p_adjusted,
        low=mean - margin,
        high=mean + margin,
        holds=np.where(by_mean, mean > settings.tau, p_adjusted < settings.alpha),
        constant=constant,
    )


def tests_of(tests: HeadTests, roles: tuple[str, ...]) -> HeadTests:
    """Select the tests of some roles, still corrected over all roles.

    Raises: ValueError for a role that was not tested.
    """
    places = [tests.roles.index(role) for role in roles]
    arrays = {
        field.name: getattr(tests, field.name) for field in fields(tests) if field.name not in ("roles", "settings")
    }
    return replace(tests, roles=roles, **{name: array[places] for name, array in arrays.items()})


def untested(tests: HeadTests) -> dict[str, str]:
    """Roles that could not be tested for any head, with the reason.

    Returns: role -> reason, in the order of the roles.
    """
    reasons = {0: "not applicable: no text takes part"}
    if tests.settings.method == "test":
        reasons[1] = "not tested: only 1 text takes part and a test needs at least 2"
    most = dict(zip(tests.roles, tests.texts.max(axis=(1, 2)).tolist(), strict=True))
    return {role: reasons[texts] for role, texts in most.items() if texts in reasons}
