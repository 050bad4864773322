"""Judges a claim: whether each head that it names has the role, and whether its ranking is the measured one."""

from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import check_heads
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.claims.probe import ClaimSettings, ProbedRole
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import rank_correlation
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, OneSided, decided, one_sided, role_tests
from attention_sieve.core.roles.matched_pairs import TextMatches, matched_tests
from attention_sieve.core.roles.measures import SYNTACTIC, RoleScores
from attention_sieve.core.roles.uncertainty.anytime import role_evidence
from attention_sieve.core.statistics.evidence import log_evidence
from attention_sieve.core.statistics.means import moments, ratio

Verdict = Literal["holds", "does not hold", "only as a positional ruler"]
DRAWS: Final = 1_999
"""Random sets of heads, resamples of texts and permutations of a ranking."""
FEWEST_RANKED: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimFinding:
    """What became of a claim; arrays by head of the claim."""

    claim: Claim
    settings: ClaimSettings
    verdicts: tuple[Verdict, ...]
    tests: HeadTests
    """Of one role; the heads stand along the axis of layers, so that the correction is over them."""
    ranks: Float[np.ndarray, " head"]
    means: Float[np.ndarray, "layer head_of_layer"]
    """Mean score of every head of the checkpoint; NaN where the role does not apply."""
    permuted: OneSided
    """Test against the same heads with permuted keys."""
    permuted_mean: Float[np.ndarray, " head"]
    positional_mean: Float[np.ndarray, " head"]
    """NaN where there is no positional control."""
    p_positional: Float[np.ndarray, " head"]
    evidence: Float[np.ndarray, " head"]
    """Natural logarithm."""
    p_random_sets: float
    """p-value of the mean over the heads being above that of random sets of as many heads; NaN if all are named."""
    spearman: tuple[float, float, float, float] | None
    """Correlation of claimed and measured scores, its interval over texts, and the one-sided p-value over permutations
    of the heads; None where the claim has no scores, fewer than FEWEST_RANKED heads, or no order."""

    @property
    def n_heads(self) -> int:
        """Number of heads of the checkpoint to which the role applies."""
        return int(np.isfinite(self.means).sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class DistanceControl:
    """What a look at fixed distances would explain; arrays by head of the claim, as of layers with a head each."""

    mean: Float[np.ndarray, "1 head 1"]
    """Score under the control; NaN where there is none."""
    p: Float[np.ndarray, "1 head 1"]
    explains: Bool[np.ndarray, "1 head 1"]
    """Whether the head passes its other tests, or those of the control, by distance alone."""


def judge(claim: Claim, probed: ProbedRole) -> ClaimFinding:
    """Whether the heads of a claim have its role: by their own test, against permuted keys, and against distance.

    Every test that applies has to reach the level, each corrected over the heads of the claim (intersection-union).

    Raises: AnalysisError for heads that are not there, and for fewer than two texts.
    """
    scored, criterion = probed.scored, probed.settings.of_role.criterion
    check_heads("The checkpoint", scored.scores.shape[2:], claim.heads)
    scores, uniform = _of_claim(scored, claim)
    _check_scores(claim, scores, criterion)
    tests = role_tests(scores, scored.roles, criterion, uniform)
    by_chance = _of_claim(probed.permuted, claim)[0]
    permuted = one_sided(*moments(scores - by_chance), 0.0, criterion.ddof)
    holds = tests.holds & decided([permuted], criterion)
    positional = _positional(claim, probed, holds)
    means, named = moments(scored.scores[:, 0])[1], tests.mean.ravel()
    return ClaimFinding(
        claim=claim,
        settings=probed.settings,
        verdicts=tuple(
            "only as a positional ruler" if ruler else "holds" if held else "does not hold"
            for held, ruler in zip(holds.ravel(), positional.explains.ravel(), strict=True)
        ),
        tests=tests,
        ranks=1 + (means.ravel() > named[:, None]).sum(axis=1).astype(float),
        means=means,
        permuted=permuted,
        permuted_mean=moments(by_chance)[1].ravel(),
        positional_mean=positional.mean.ravel(),
        p_positional=positional.p.ravel(),
        evidence=_evidence(scores, uniform, probed.settings.of_role).ravel(),
        p_random_sets=_against_random_sets(named, means, probed.settings.seed),
        spearman=_agreement(claim, scores[:, 0, :, 0], probed.settings),
    )


def _positional(claim: Claim, probed: ProbedRole, holds: Bool[np.ndarray, "1 head 1"]) -> DistanceControl:
    if probed.fixed is not None:
        scores, uniform = _of_claim(probed.fixed, claim)
        tests = role_tests(scores, probed.scored.roles, probed.settings.of_role.criterion, uniform)
        return DistanceControl(mean=tests.mean, p=tests.p_adjusted, explains=tests.holds & ~holds)
    if probed.matched:
        unrelated, p, beats = _beyond_distance(claim, probed)
        return DistanceControl(mean=unrelated, p=p, explains=holds & ~beats)
    nothing = np.full(holds.shape, np.nan)
    return DistanceControl(mean=nothing, p=nothing, explains=np.zeros_like(holds))


def _of_claim(
    scored: RoleScores, claim: Claim
) -> tuple[Float[np.ndarray, "text 1 head 1"], Float[np.ndarray, "text 1 head"]]:
    """Scores of the claim's heads and of uniform attention, as of layers with a head each."""
    layers, heads = np.array(claim.heads).T
    return scored.scores[:, :, layers, heads][..., None], scored.uniform[:, :, layers]


def _check_scores(claim: Claim, scores: Float[np.ndarray, "text 1 head 1"], criterion: Criterion) -> None:
    n_texts = np.isfinite(scores).sum(axis=0).ravel()
    if missing := [head_name(*head) for head, n in zip(claim.heads, n_texts, strict=True) if not n]:
        raise AnalysisError(
            f"{missing[0]}, which the claim names, has no attention to test: it is removed, or its layer cannot see "
            "what the role looks at. Leave it out of the claim."
        )
    if criterion.method == "test" and n_texts.min() < 2:
        raise AnalysisError("The role applies to one text alone, and a test needs at least 2. Give more texts.")


def _beyond_distance(claim: Claim, probed: ProbedRole) -> tuple[np.ndarray, np.ndarray, Bool[np.ndarray, "1 head 1"]]:
    """Mean score of unrelated words at the same distance, p-value and decision that related ones score higher."""
    layers, heads = np.array(claim.heads).T
    of_claim = [
        TextMatches(related=text.related[:, layers, heads, None], unrelated=text.unrelated[:, layers, heads, None])
        for text in probed.matched
    ]
    of_role = probed.settings.of_role
    roles = SYNTACTIC if claim.role in SYNTACTIC else (claim.role,)
    tests = matched_tests(of_claim, of_role.scores.direction, of_role.criterion, roles)
    row = [roles.index(claim.role)]
    return tests.unrelated[row], tests.p_adjusted[row], tests.beats[row] | (tests.texts[row] < 2)


def _evidence(
    scores: Float[np.ndarray, "text 1 head 1"], uniform: Float[np.ndarray, "text 1 head"], of_role: RoleSettings
) -> Float[np.ndarray, "1 head 1"]:
    """Evidence for the mean being above tau; a bet needs values from 0 upwards, so that shares below count as 0."""
    if of_role.scores.scale == "score":
        return role_evidence(scores, of_role.criterion, uniform)
    return log_evidence(np.maximum(scores, 0), of_role.criterion.tau)


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
    claim: Claim, scores: Float[np.ndarray, "text head"], settings: ClaimSettings
) -> tuple[float, float, float, float] | None:
    """Spearman's correlation with the claimed scores, its percentile interval over texts, and its p-value."""
    if claim.scores is None or len(claim.scores) < FEWEST_RANKED:
        return None
    random, claimed, is_known = np.random.default_rng(settings.seed), np.array([claim.scores]), np.isfinite(scores)
    measured = moments(scores)[1][None]
    value = float(rank_correlation(claimed, measured)[0])
    if np.isnan(value):
        return None
    weights = random.multinomial(len(scores), np.full(len(scores), 1 / len(scores)), size=DRAWS).astype(float)
    resampled = ratio(weights @ np.where(is_known, scores, 0), weights @ is_known)
    resampled = resampled[np.isfinite(resampled).all(axis=1)]
    low, high = np.nanquantile(
        rank_correlation(np.repeat(claimed, len(resampled), axis=0), resampled),
        [settings.of_role.criterion.alpha / 2, 1 - settings.of_role.criterion.alpha / 2],
    )
    shuffled = random.permuted(np.repeat(claimed, DRAWS, axis=0), axis=1)
    as_high = rank_correlation(shuffled, np.repeat(measured, DRAWS, axis=0)) >= value - 1e-12
    return value, float(low), float(high), float((1 + as_high.sum()) / (1 + DRAWS))
