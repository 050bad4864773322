"""Tests which head has which role, from the scores of many texts: p-values, corrections and intervals, and whether the
labels stay the same when the texts are resampled."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, get_args, get_type_hints

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.measures import USUAL_TAU, Scale
from attention_sieve.core.roles.record import LACKS
from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.statistics.means import (
    Correction,
    Moments,
    adjusted,
    check_alpha,
    half_interval,
    moments,
    moments_by_document,
    ratio,
    rejects,
    times_drawn,
)

Method = Literal["test", "mean"]
Rule = Literal["role", "paper"]
Family = Literal["role", "all"]

FAMILY_AXES: Final[dict[Family, int]] = {"role": 2, "all": 3}
"""Last axes of tests by role, layer and head over which a family extends."""
ONE_TEXT: Final = "only 1 text takes part, and a test needs at least 2"
FEWEST: Final = 10
"""With fewer texts, a map of roles is mostly noise: of the roles that the bundled checkpoint held over 128 texts under
the paper's rule, it lost 66% over 5 of them."""
FEW: Final = 20
"""With fewer texts, such a map is weak: over 10 of them the checkpoint lost 27%, over 20 still 13%."""
CONSTANT_SPREAD: Final = 1e-3
"""A score counts as constant, and is not tested, if its standard deviation is at most this share of its mean; it is
above a threshold only if its mean is above it by more than this share, and that over FEWEST texts or more."""
LEAST_GAIN: Final = 0.1
"""A role requires a score above that of uniform attention by at least this share of it. Random weights prefer some
tokens a little, on every text alike: their block scores reach 1.07 times that of uniform attention, and a test against
uniform attention alone gives the block role to four in ten of their heads."""


@dataclass(frozen=True)
class Criterion:
    """Criterion for a head to have a role.

    Raises: AnalysisError for a number out of its range, or an unknown word.
    """

    tau: Annotated[
        float, f"threshold that the mean score must exceed; for shares, {USUAL_TAU['share']:g} if it is not given"
    ] = USUAL_TAU["score"]
    """Times uniform attention, or a share above chance."""
    alpha: Annotated[float, "significance level of tests; confidence intervals cover 1 - alpha"] = 0.05
    correction: Annotated[
        Correction, "correction for multiple testing: Benjamini-Hochberg, Holm or, as in the paper, none"
    ] = "bh"
    family: Annotated[Family, "tests that are corrected together: those of one role, or of all roles"] = "role"
    rule: Annotated[
        Rule,
        "a head has a role if its mean score is above tau and clearly above that of uniform attention (role), or above "
        "tau only (paper)",
    ] = "role"
    """LEAST_GAIN says what is clearly above."""
    ddof: Annotated[
        Literal[0, 1], "standard deviation of the sample (1), or of the population as in the authors' code (0)"
    ] = 1
    method: Annotated[
        Method,
        "decide by the corrected p-value (test), or only by whether the mean score is above its thresholds (mean)",
    ] = "test"
    """"mean" is the authors' avg."""

    def __post_init__(self) -> None:
        if not (math.isfinite(self.tau) and self.tau > 0):
            raise AnalysisError(f"tau is {self.tau}. Choose a number above 0.")
        check_alpha(self.alpha)
        for name, hint in get_type_hints(Criterion).items():
            known, value = get_args(hint), getattr(self, name)
            if known and value not in known:
                raise AnalysisError(f"{name} is {value!r}. Choose one of: {', '.join(map(str, known))}.")

    @classmethod
    def usual(cls, scale: Scale) -> "Criterion":
        """The usual criterion for scores on a scale."""
        return cls(tau=USUAL_TAU[scale])

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {name: f"{value:g}" if isinstance(value, float) else str(value) for name, value in vars(self).items()}


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadTests:
    """One test per role and head; NaN where there was nothing to test."""

    roles: tuple[str, ...]
    settings: Criterion
    texts: Int[np.ndarray, "role layer head"]
    """Number of texts to which the role applies; of their documents, where these are the units."""
    mean: Float[np.ndarray, "role layer head"]
    """Mean score; NaN without texts."""
    std: Float[np.ndarray, "role layer head"]
    """Standard deviation of the score with the ddof of the settings; NaN where texts <= ddof."""
    t: Float[np.ndarray, "role layer head"]
    """Student's t; NaN with fewer than 2 texts and for a constant score."""
    p: Float[np.ndarray, "role layer head"]
    """One-sided p-value of "mean score is above tau", in [0, 1]; NaN where t is."""
    p_uniform: Float[np.ndarray, "role layer head"]
    """One-sided p-value of "mean score is above that of uniform attention on the same texts by LEAST_GAIN of it"; NaN
    with fewer than 2 texts and for a constant difference."""
    p_role: Float[np.ndarray, "role layer head"]
    """p-value of the role under the settings' rule: the larger of p and p_uniform, or p; NaN where the mean decides."""
    p_adjusted: Float[np.ndarray, "role layer head"]
    """p_role after the correction over its family, in [0, 1]."""
    low: Float[np.ndarray, "role layer head"]
    """Lower end of the two-sided 1 - alpha interval of the mean score; NaN with fewer than 2 texts. Student's;
    `attention_sieve.core.roles.uncertainty.intervals` has better ones for syntactic roles."""
    high: Float[np.ndarray, "role layer head"]
    holds: Bool[np.ndarray, "role layer head"]
    constant: Bool[np.ndarray, "role layer head"]
    """Whether the score is constant, so that there is no p-value: the mean decides over FEWEST texts or more, and over
    fewer no head has the role."""
    evidence: Float[np.ndarray, "role layer head"] | None = None
    """Where roles are decided by evidence and not by a test: its natural logarithm; NaN where no text takes part."""


def role_tests(
    scores: Float[np.ndarray, "text role layer head"],
    roles: tuple[str, ...],
    settings: Criterion,
    uniform: Float[np.ndarray, "text role layer"] | float,
    document: Int[np.ndarray, " text"] | None = None,
) -> HeadTests:
    """Which head has which role: one-sided one-sample t-tests of the scores against tau and against uniform attention.

    Both tests have to reach the level, so that the larger p-value needs no correction for there being two
    (intersection-union test). Where uniform attention scores 1 and tau is at least 1 + LEAST_GAIN, the first implies
    the second.

    Args:
        scores: sieve bias scores, or shares above chance; NaN where a role is not applicable to a text.
        uniform: score of uniform attention on each text, or one number where it is the same on all.
        document: number of each text's document, which are then the units of tests and intervals; None where texts
            count as independent.

    Returns: the tests; intervals always use the sample standard deviation. A constant score has no p-value, is left out
        of the correction, and has its role if its mean is above the threshold over FEWEST texts or more. With fewer
        than 2 texts, only method "mean" can assign roles.
    Raises:
        AnalysisError: for an infinite score.
        ValueError: if the number of role names differs from the role axis.
    Source: Pande et al. 2021, hypothesis test ("paper"). Their code takes the population standard deviation (ddof=0
        here), calls the test a z-test although its tail is Student's, corrects nothing, and divides by zero on a
        constant score. Berger 1982, intersection-union tests.
    """
    if len(roles) != scores.shape[1]:
        raise ValueError(f"{len(roles)} role names for {scores.shape[1]} roles.")
    above_uniform = scores - clearly_above(np.asarray(uniform))
    score_moments, excess_moments = (moments_by_document(values, document) for values in (scores, above_uniform))
    return tests_of_moments(score_moments, excess_moments, roles, settings)


def tests_of_moments(scores: Moments, above_uniform: Moments, roles: tuple[str, ...], settings: Criterion) -> HeadTests:
    """The tests of `role_tests` from the moments of the scores, and of these less what exceeds uniform attention."""
    above_tau = one_sided(*scores, settings.tau, settings.ddof)
    beyond_uniform = one_sided(*above_uniform, 0.0, settings.ddof)
    parts = [above_tau] if settings.rule == "paper" else [above_tau, beyond_uniform]
    p_role = _largest(parts)
    margin = half_interval(above_tau.texts, above_tau.squares, settings.alpha)
    return HeadTests(
        roles=roles,
        settings=settings,
        texts=above_tau.texts,
        mean=above_tau.mean,
        std=above_tau.std,
        t=above_tau.t,
        p=above_tau.p,
        p_uniform=beyond_uniform.p,
        p_role=p_role,
        p_adjusted=corrected(p_role, settings),
        low=above_tau.mean - margin,
        high=above_tau.mean + margin,
        holds=decided(parts, settings),
        constant=above_tau.constant,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class OneSided:
    """One-sample t-test of "the mean is above a threshold"; NaN where there is nothing to test."""

    threshold: float
    texts: Int[np.ndarray, "*cell"]
    mean: Float[np.ndarray, "*cell"]
    squares: Float[np.ndarray, "*cell"]
    """Sum of squared deviations from the mean."""
    std: Float[np.ndarray, "*cell"]
    constant: Bool[np.ndarray, "*cell"]
    t: Float[np.ndarray, "*cell"]
    p: Float[np.ndarray, "*cell"]

    @property
    def constant_above(self) -> Bool[np.ndarray, "*cell"]:
        """Whether the values are constant and above the threshold by more than rounding."""
        return self.constant & (self.mean > self.threshold * (1 + CONSTANT_SPREAD))

    @property
    def is_open(self) -> Bool[np.ndarray, "*cell"]:
        """Whether the values are constant above the threshold over too few texts to be decided by their mean."""
        return self.constant_above & (self.texts < FEWEST)


def one_sided(
    texts: Int[np.ndarray, "*cell"],
    mean: Float[np.ndarray, "*cell"],
    squares: Float[np.ndarray, "*cell"],
    threshold: float,
    ddof: int,
    within: tuple[float, float] = (0.0, 1.0),
) -> OneSided:
    """The test from count, mean and squared deviations; p-values outside `within` become 0 or 1, which saves time."""
    std = np.sqrt(ratio(squares, texts - ddof))
    constant = (texts >= 2) & (std <= CONSTANT_SPREAD * np.abs(mean))
    t = ratio((mean - threshold) * np.sqrt(texts), np.where(constant, 0, std))
    return OneSided(
        threshold=threshold,
        texts=texts,
        mean=mean,
        squares=squares,
        std=std,
        constant=constant,
        t=t,
        p=_upper_tail(texts - 1, t, within),
    )


def _upper_tail(
    freedom: Int[np.ndarray, "*cell"], t: Float[np.ndarray, "*cell"], within: tuple[float, float]
) -> Float[np.ndarray, "*cell"]:
    """Probability of a larger t; 0 or 1 where it is clearly below or above the range `within`."""
    from scipy.special import stdtr, stdtrit  # the import takes a quarter of a second

    lowest, highest = within
    if (lowest, highest) == (0, 1) or not t.size:
        return stdtr(freedom, -t)
    index = np.maximum(freedom, 0)
    all_freedoms = np.arange(index.max() + 1)
    # Quantiles are a little off, hence "clearly".
    high, low = (-stdtrit(all_freedoms, p)[index] for p in (min(1.01 * highest, 0.999), 0.99 * lowest))
    p = np.where(t > low, 0.0, np.where(np.isnan(t), np.nan, 1.0))
    between = (t >= high) & (t <= low)
    p[between] = stdtr(freedom[between], -t[between])
    return p


def decided(parts: Sequence[OneSided], settings: Criterion) -> Bool[np.ndarray, "*cell"]:
    """Which heads hold which roles by tests that all have to hold; axes before the last three are families apart."""
    if settings.method == "mean":
        return np.all([part.mean > part.threshold for part in parts], axis=0)
    p = _largest(parts)
    constant = np.all([part.constant_above & ~part.is_open for part in parts], axis=0)
    n_axes = FAMILY_AXES[settings.family]
    families = p.reshape(-1, int(np.prod(p.shape[p.ndim - n_axes :])))
    rejected = rejects(families, settings.correction, settings.alpha).reshape(p.shape)
    return np.where(np.isnan(p), constant, rejected)


def clearly_above(uniform: Float[np.ndarray, "*cell"]) -> Float[np.ndarray, "*cell 1"]:
    """What a score has to exceed to be clearly above that of uniform attention; the same for all heads."""
    return (1 + LEAST_GAIN) * uniform[..., None]


def _largest(parts: Sequence[OneSided]) -> Float[np.ndarray, "*cell"]:
    """The largest p-value; NaN where all parts are constant, or one is over too few texts to be decided.

    Where only some are constant, one that is above its threshold leaves the decision to the others, and one that is not
    has a p-value of 1.
    """
    p = [np.where(part.constant, np.where(part.constant_above, np.nan, 1), part.p) for part in parts]
    has_none = np.all([part.constant for part in parts], axis=0) | np.any([part.is_open for part in parts], axis=0)
    return np.where(has_none, np.nan, np.fmax.reduce(p))


def corrected(p: Float[np.ndarray, "role layer head"], settings: Criterion) -> Float[np.ndarray, "role layer head"]:
    """p-values after the correction of the settings over its family."""
    if settings.family == "all" or not len(p):
        return adjusted(p, settings.correction)
    return np.stack([adjusted(role_p, settings.correction) for role_p in p])


def text_roles(
    scores: Float[np.ndarray, "role layer head"], uniform: Float[np.ndarray, "role layer"], settings: Criterion
) -> Bool[np.ndarray, "role layer head"]:
    """Roles of each head by its scores on one text, without a test: above tau and, by the rule, above uniform."""
    above = scores > settings.tau
    return above if settings.rule == "paper" else above & (scores > clearly_above(uniform))


def tests_of(tests: HeadTests, roles: tuple[str, ...]) -> HeadTests:
    """Select the tests of some roles; p-values stay corrected as they were.

    Raises: ValueError for a role that was not tested.
    """
    indices = [tests.roles.index(role) for role in roles]
    values = {field.name: getattr(tests, field.name) for field in fields(tests)}
    arrays: dict[str, Any] = {name: value[indices] for name, value in values.items() if isinstance(value, np.ndarray)}
    return replace(tests, roles=roles, **arrays)


def n_holding(tests: HeadTests, roles: Iterable[str]) -> dict[str, int | None]:
    """Number of heads that hold each role; None for a role that could not be tested."""
    without_test = untested(tests)
    return {role: None if role in without_test else int(tests.holds[tests.roles.index(role)].sum()) for role in roles}


def untested(tests: HeadTests) -> dict[str, str]:
    """Roles that could not be tested for any head, with the reason.

    Returns: role -> reason, in the order of the roles.
    """
    one_is_few = tests.settings.method == "test" and tests.evidence is None
    most = dict(zip(tests.roles, tests.texts.max(axis=(1, 2)).tolist(), strict=True))
    without = {role: BY_NAME[role].lacks if role in BY_NAME else LACKS for role, texts in most.items() if not texts}
    alone = {role: ONE_TEXT for role, texts in most.items() if texts == 1 and one_is_few}
    return {role: (without | alone)[role] for role in most if role in without | alone}


def tested_roles(tests: HeadTests, roles: tuple[str, ...]) -> tuple[str, ...]:
    """Those of some roles that could be tested."""
    reasons = untested(tests)
    return tuple(role for role in roles if role not in reasons)


RESAMPLES: Final = 200
CERTAIN: Final = 0.95
"""A label that stays the same in a smaller share of resamples is shown faint."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Resamples:
    """Moments in many bootstrap resamples, along their first axis; they depend neither on tau, alpha nor correction."""

    scores: Moments
    above_uniform: Moments
    """Of the scores minus what clearly exceeds uniform attention."""


def resamples(
    scores: Float[np.ndarray, "text role layer head"], uniform: Float[np.ndarray, "text role layer"], seed: int = 0
) -> Resamples:
    """Draw RESAMPLES bootstrap resamples, each of as many texts as there are."""
    n_texts = len(scores)
    random = np.random.default_rng(seed)
    times = times_drawn(random, RESAMPLES, n_texts, n_texts) if n_texts else np.zeros((RESAMPLES, 0))
    return Resamples(scores=_drawn(scores, times), above_uniform=_drawn(scores - clearly_above(uniform), times))


def _drawn(values: Float[np.ndarray, "text role layer head"], times: Float[np.ndarray, "resample text"]) -> Moments:
    """The moments of all resamples at once, from the number of times that each holds each text."""
    takes_part = ~np.isnan(values)
    centre = np.nan_to_num(moments(values)[1])
    # Around the mean of all texts, sums of squares lose nothing to rounding.
    centred = np.where(takes_part, values - centre, 0)
    texts, total, squares = (
        np.tensordot(times, by_text, axes=1) for by_text in (takes_part.astype(float), centred, np.square(centred))
    )
    mean = ratio(total, texts)
    around = np.maximum(squares - texts * np.square(np.nan_to_num(mean)), 0)
    return np.rint(texts).astype(np.int32), mean + centre, around


def stability(tests: HeadTests, resamples: Resamples) -> Float[np.ndarray, "role layer head"]:
    """Share of resamples of the texts in which a head holds a role, or does not, as it does over the texts.

    Returns: 0 to 1; 1 without texts, as nothing can change.
    Source: Efron 1979.
    """
    settings = tests.settings
    # A lower p-value is significant under any correction, a higher one under none.
    within = settings.alpha / max(1, int(np.prod(tests.holds.shape[-FAMILY_AXES[settings.family] :]))), settings.alpha
    parts = [(resamples.scores, settings.tau)]
    if settings.rule == "role":
        parts.append((resamples.above_uniform, 0.0))
    resampled = [one_sided(*drawn, threshold, settings.ddof, within) for drawn, threshold in parts]
    return (decided(resampled, settings) == tests.holds).mean(axis=0)


def few_texts(n_texts: int) -> str | None:
    """Warning about roles over few texts; None where there are enough."""
    if n_texts >= FEW:
        return None
    how, share = ("mostly noise", "many") if n_texts < FEWEST else ("weak", "some")
    return (
        f"With so few texts ({n_texts}), a map of roles is {how}: other texts would change {share} of its labels. "
        f"Add texts, {FEW} or more."
    )
