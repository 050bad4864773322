"""Judges a claim: whether each head that it names has the role, and whether its ranking is the measured one."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import check_heads
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.claims.probe import ClaimSettings, ProbedRole
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import rank_correlation
from attention_sieve.core.roles import hypotheses
from attention_sieve.core.roles.matched_pairs import TextMatches, matched_tests
from attention_sieve.core.roles.measures import SYNTACTIC, RoleScores
from attention_sieve.core.roles.uncertainty.anytime import role_evidence
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.statistics.evidence import log_evidence
from attention_sieve.core.statistics.means import (
    correlation_interval,
    moments,
    moments_by_document,
    ratio,
    sums_by_document,
)

Verdict = Literal[
    "holds", "holds (not tested against a ruler)", "only as a positional ruler", "does not hold", "no test"
]
HOLDING: Final[tuple[Verdict, ...]] = ("holds", "holds (not tested against a ruler)")
Failed = Literal["tau", "uniform attention", "permuted keys", "distance", "too few texts for a constant score"]
"""What a head was tested against, where it did not pass."""
DRAWS: Final = 1_999
"""Random sets of heads, and permutations of a ranking."""
FEWEST_RANKED: Final = 3
FEWEST_FOR_INTERVAL: Final = 8
"""With fewer heads, an interval of a correlation of ranks covers too rarely, by Fisher's transformation as by
bootstrap: .45 to .95 instead of .95."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimFinding:
    """What became of a claim; arrays by head of the claim."""

    claim: Claim
    settings: ClaimSettings
    probed: ProbedRole
    verdicts: tuple[Verdict, ...]
    failed: tuple[tuple[Failed, ...], ...]
    """By which tests each head does not hold; empty where it does."""
    tests: hypotheses.HeadTests
    """Of one role; the heads stand along the axis of layers, so that the correction is over them."""
    n_texts: Int[np.ndarray, " head"]
    """Number of different texts to which the role applies."""
    ranks: Float[np.ndarray, " head"]
    means: Float[np.ndarray, "layer head_of_layer"]
    """Mean score of every head of the checkpoint; NaN where the role does not apply."""
    permuted: hypotheses.OneSided
    """Test against the same heads with permuted keys."""
    permuted_mean: Float[np.ndarray, " head"]
    distance: "DistanceControl"
    evidence: Float[np.ndarray, " head"]
    """Natural logarithm."""
    p_random_sets: float
    """p-value of the mean over the heads being above that of random sets of as many heads; NaN if all are named."""
    spearman: tuple[float, float, float, float] | None
    """Correlation of claimed and measured scores, its interval over the heads of the claim, which is NaN with fewer
    than FEWEST_FOR_INTERVAL, and the one-sided p-value over permutations of the heads; None where the claim has no
    scores, fewer than FEWEST_RANKED heads, or no order."""

    @property
    def n_heads(self) -> int:
        """Number of heads of the checkpoint to which the role applies."""
        return int(np.isfinite(self.means).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class DistanceControl:
    """What a look at fixed distances would explain; arrays by head of the claim, as of layers with a head each.

    A head beats what it is compared with if it is significantly higher, paired by text, and LEAST_TIMES as high: that
    is the rule of `attention_sieve.core.roles.matched_pairs`, too.
    """

    own: Float[np.ndarray, "1 head 1"]
    """Score, on the scale of `beside`; NaN where there is no control."""
    beside: Float[np.ndarray, "1 head 1"]
    """Score under the control."""
    p: Float[np.ndarray, "1 head 1"]
    """Corrected p-value of the one being above the other."""
    explains: Bool[np.ndarray, "1 head 1"]
    """Whether the head passes its other tests, or those of the control, by distance alone."""
    is_tested: Bool[np.ndarray, "1 head 1"]
    """Whether there was something to compare with, or no need to."""


def judge(claim: Claim, probed: ProbedRole) -> ClaimFinding:
    """Whether the heads of a claim have its role: by their own test, against permuted keys, and against distance.

    Every test that applies has to reach the level, each corrected over the heads of the claim (intersection-union).
    Documents are the units where they are known.

    Raises: AnalysisError for heads that are not there, and for fewer than two texts or documents.
    """
    scored, criterion = probed.scored, probed.settings.role_settings.criterion
    check_heads("The checkpoint", scored.scores.shape[2:], claim.heads)
    scores, uniform = _claim_scores(scored, claim)
    tests = hypotheses.role_tests(scores, scored.roles, criterion, uniform, probed.document)
    _check_units(claim, tests, probed)
    by_chance = _claim_scores(probed.permuted, claim)[0]
    permuted = hypotheses.one_sided(*moments_by_document(scores - by_chance, probed.document), 0.0, criterion.ddof)
    distance = _distance(claim, probed, tests.holds & hypotheses.decided([permuted], criterion))
    verdicts, failed = _verdicts(tests, permuted, distance)
    means, named = moments(scored.scores[:, 0])[1], tests.mean.ravel()
    return ClaimFinding(
        claim=claim,
        settings=probed.settings,
        probed=probed,
        verdicts=verdicts,
        failed=failed,
        tests=tests,
        n_texts=np.isfinite(scores).sum(axis=0).ravel(),
        ranks=1 + (means.ravel() > named[:, None]).sum(axis=1).astype(float),
        means=means,
        permuted=permuted,
        permuted_mean=moments(by_chance)[1].ravel(),
        distance=distance,
        evidence=_evidence(scores, uniform, probed).ravel(),
        p_random_sets=_against_random_sets(named, means, probed.settings.seed),
        spearman=_agreement(claim, named, probed.settings),
    )


def _verdicts(
    tests: hypotheses.HeadTests, permuted: hypotheses.OneSided, distance: DistanceControl
) -> tuple[tuple[Verdict, ...], tuple[tuple[Failed, ...], ...]]:
    """The verdict on each head, and the tests that it fails."""
    criterion, is_below = tests.settings, tests.mean <= tests.settings.tau
    by_tau = is_below | (np.nan_to_num(tests.p) >= np.nan_to_num(tests.p_uniform))
    is_open, permuted_is_open = tests.constant & (tests.texts < hypotheses.FEWEST) & ~is_below, permuted.is_open
    if criterion.method == "mean":
        is_open, permuted_is_open = (np.zeros_like(is_below) for _ in range(2))
    fails: dict[Failed, Bool[np.ndarray, "1 head 1"]] = {
        "tau": ~tests.holds & ~is_open & by_tau,
        "uniform attention": ~tests.holds & ~is_open & ~by_tau,
        "permuted keys": ~hypotheses.decided([permuted], criterion) & ~permuted_is_open,
        "distance": distance.explains,
        "too few texts for a constant score": is_open | permuted_is_open,
    }
    verdicts, failed = list[Verdict](), list[tuple[Failed, ...]]()
    for head in range(tests.holds.shape[1]):
        failing_tests = tuple(name for name, test in fails.items() if test[0, head, 0])
        is_ruler, is_tested = (bool(test[0, head, 0]) for test in (distance.explains, distance.is_tested))
        holds: Verdict = "holds" if is_tested else "holds (not tested against a ruler)"
        failing: Verdict = "no test" if failing_tests == ("too few texts for a constant score",) else "does not hold"
        verdicts.append("only as a positional ruler" if is_ruler else failing if failing_tests else holds)
        failed.append(failing_tests)
    return tuple(verdicts), tuple(failed)


def _distance(claim: Claim, probed: ProbedRole, holds: Bool[np.ndarray, "1 head 1"]) -> DistanceControl:
    if probed.fixed is not None:
        return _at_fixed_period(claim, probed, probed.fixed, holds)
    if probed.matched:
        return _beside_others(claim, probed, holds)
    nothing, has_control = np.full(holds.shape, np.nan), probed.joins_tokens and not probed.are_made
    return DistanceControl(
        own=nothing,
        beside=nothing,
        p=nothing,
        explains=np.zeros_like(holds),
        is_tested=np.full(holds.shape, not has_control),
    )


def _at_fixed_period(
    claim: Claim, probed: ProbedRole, fixed: RoleScores, holds: Bool[np.ndarray, "1 head 1"]
) -> DistanceControl:
    """The same tokens where their copies have a fixed period: a ruler passes there, and scores higher."""
    criterion, own = probed.settings.role_settings.criterion, _claim_scores(probed.scored, claim)[0]
    scores, uniform = _claim_scores(fixed, claim)
    tests = hypotheses.role_tests(scores, fixed.roles, criterion, uniform)
    more, own_mean = hypotheses.one_sided(*moments(scores - own), 0.0, criterion.ddof), moments(own)[1]
    is_higher = hypotheses.decided([more], criterion) & (tests.mean >= LEAST_TIMES * own_mean)
    return DistanceControl(
        own=own_mean,
        beside=tests.mean,
        p=hypotheses.corrected(more.p, criterion),
        explains=tests.holds & ~holds & is_higher,
        is_tested=np.ones_like(holds),
    )


def _beside_others(claim: Claim, probed: ProbedRole, holds: Bool[np.ndarray, "1 head 1"]) -> DistanceControl:
    """Other words, or tokens, of the same texts at the same distances, as multiples of uniform attention."""
    layers, heads = np.array(claim.heads).T
    matched = [
        TextMatches(related=text.related[:, layers, heads, None], unrelated=text.unrelated[:, layers, heads, None])
        for text in probed.matched
    ]
    role_settings = probed.settings.role_settings
    roles = SYNTACTIC if claim.role in SYNTACTIC else (claim.role,)
    tests = matched_tests(matched, role_settings.scores.direction, role_settings.criterion, roles, probed.document)
    row = [roles.index(claim.role)]
    is_tested = tests.texts[row] >= 2
    return DistanceControl(
        own=tests.related[row],
        beside=tests.unrelated[row],
        p=tests.p_adjusted[row],
        explains=holds & is_tested & ~tests.beats[row],
        is_tested=is_tested,
    )


def _claim_scores(
    scored: RoleScores, claim: Claim
) -> tuple[Float[np.ndarray, "text 1 head 1"], Float[np.ndarray, "text 1 head"]]:
    """Scores of the claim's heads and of uniform attention, as of layers with a head each."""
    layers, heads = np.array(claim.heads).T
    return scored.scores[:, :, layers, heads][..., None], scored.uniform[:, :, layers]


def _check_units(claim: Claim, tests: hypotheses.HeadTests, probed: ProbedRole) -> None:
    n_units = tests.texts.ravel()
    if missing := [head_name(*head) for head, n in zip(claim.heads, n_units, strict=True) if not n]:
        raise AnalysisError(
            f"{missing[0]}, which the claim names, has no attention to test: it is removed, or its layer cannot see "
            "what the role looks at. Leave it out of the claim."
        )
    if tests.settings.method == "test" and n_units.min() < 2:
        equal = f" ({probed.n_equal + 1:,} texts are equal, and count once)" if probed.n_equal else ""
        raise AnalysisError(
            f"The role applies to one text alone{equal}, and a test needs at least 2. Give more texts."
            if probed.document is None
            else "The role applies to texts of one document alone, and documents are the units of the test, which "
            "needs at least 2. Give texts of more documents."
        )


def _evidence(
    scores: Float[np.ndarray, "text 1 head 1"], uniform: Float[np.ndarray, "text 1 head"], probed: ProbedRole
) -> Float[np.ndarray, "1 head 1"]:
    """Evidence for the mean being above tau; a bet needs values from 0 upwards, so that shares below count as 0. One
    bet is made on each document, where these are known."""
    role_settings = probed.settings.role_settings
    is_score = role_settings.scores.scale == "score"
    values = scores if is_score else np.maximum(scores, 0)
    if probed.document is not None:
        values, uniform = (ratio(*sums_by_document(array, probed.document)) for array in (values, uniform))
    if is_score:
        return role_evidence(values, role_settings.criterion, uniform)
    return log_evidence(values, role_settings.criterion.tau)


def _against_random_sets(
    named: Float[np.ndarray, " named"], means: Float[np.ndarray, "layer head"], seed: int
) -> float:
    """p-value of the mean of some heads being above that of as many heads drawn from all."""
    every = means[np.isfinite(means)]
    if len(named) == len(every):
        return np.nan
    drawn = np.random.default_rng(seed).random((DRAWS, len(every))).argpartition(len(named) - 1)[:, : len(named)]
    as_high = every[drawn].mean(axis=1) >= named.mean() * (1 - 1e-12)
    return float((1 + as_high.sum()) / (1 + DRAWS))


def _agreement(
    claim: Claim, measured: Float[np.ndarray, " head"], settings: ClaimSettings
) -> tuple[float, float, float, float] | None:
    """Spearman's correlation with the claimed scores, its interval over heads, and its p-value."""
    if claim.scores is None or len(claim.scores) < FEWEST_RANKED:
        return None
    random, claimed = np.random.default_rng(settings.seed), np.array([claim.scores])
    value = float(rank_correlation(claimed, measured[None])[0])
    if np.isnan(value):
        return None
    low, high = np.nan, np.nan
    if len(measured) >= FEWEST_FOR_INTERVAL:
        low, high = correlation_interval(value, len(measured), settings.role_settings.criterion.alpha, ranked=True)
    shuffled = random.permuted(np.repeat(claimed, DRAWS, axis=0), axis=1)
    as_high = rank_correlation(shuffled, np.repeat(measured[None], DRAWS, axis=0)) >= value - 1e-12
    return value, low, high, float((1 + as_high.sum()) / (1 + DRAWS))
