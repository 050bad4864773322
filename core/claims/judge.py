"""Judges a claim: whether each head that it names has the role, and whether its ranking is the measured one."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.answering import Reading, Watch, find_in
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, check_heads
from attention_sieve.core.claims.claim import Claim
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.agreement import rank_correlation
from attention_sieve.core.probe_texts.make import ProbeKind, ProbeSettings, fitting_block, probe_texts
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import (
    Criterion,
    HeadTests,
    OneSided,
    corrected,
    decided,
    one_sided,
    role_tests,
)
from attention_sieve.core.roles.matched_pairs import TextMatches, matched_tests
from attention_sieve.core.roles.measures import SYNTACTIC, RoleScores, ScoreSettings
from attention_sieve.core.roles.question import MATCHED_PAIRS
from attention_sieve.core.roles.record import in_causal_models
from attention_sieve.core.roles.roles import role_named, role_title
from attention_sieve.core.roles.uncertainty.anytime import as_odds, role_evidence
from attention_sieve.core.statistics.evidence import log_evidence
from attention_sieve.core.statistics.means import moments, ratio
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    import pandas as pd

Verdict = Literal["holds", "does not hold", "only as a positional ruler"]
PROBES: Final[dict[str, ProbeKind]] = {
    "previous": "repeats",
    "induction": "repeats",
    "duplicate": "repeats",
    "retrieval": "needles",
}
"""Kind of the probe texts of a role. Claims about other roles are tested on texts that the reader gives."""
OF_COPIES: Final = ("induction", "duplicate")
"""Roles that a head which always looks at one distance seems to have where copies have a fixed period."""
DRAWS: Final = 1_999
"""Random sets of heads, resamples of texts and permutations of a ranking."""
FEWEST_RANKED: Final = 3
MOST_SAID: Final = 20
"""Heads on which the summary has a line each."""
COLUMNS: Final = {
    "layer": "index of the layer, from 0",
    "head": "index of the head, from 0",
    "verdict": f"{', '.join(get_args(Verdict))}: by all tests of the row, each at level alpha",
    "claimed": "score of the head in the claim; empty where the claim is a sentence",
    "n_texts": "number of texts to which the role applies",
    "mean": "mean of the head's score for the role, on the scale of the settings",
    "low": "lower end of the confidence interval of the mean",
    "high": "upper end of this interval",
    "rank": "rank of the mean among all heads of the checkpoint, from 1",
    "p": "one-sided p-value of the mean being above tau and clearly above that of uniform attention",
    "p_adjusted": "p after correction over the heads of the claim",
    "permuted": "mean score with the keys of every row of attention in random order",
    "p_permuted": "p-value of mean being above permuted, paired by text, after the same correction",
    "positional": "what a look at fixed distances would explain: for induction and duplicate the mean score on texts "
    "whose copies have a fixed period, for syntactic roles the attention between unrelated words at the same distance "
    "as a multiple of uniform attention; empty for other roles, and for induction and duplicate on texts of your own",
    "p_positional": "for induction and duplicate p_adjusted on the texts with a fixed period; for syntactic roles the "
    "corrected p-value of related words scoring higher",
    "evidence": "betting evidence (e-value) for the mean being above tau, where a share below 0 counts as 0: what a "
    "stake of 1 has grown to; 20 is 20 : 1; it stays valid when texts are added, and is not corrected over heads",
}
"""What each column of the table holds."""


@dataclass(frozen=True)
class ClaimSettings:
    """On which texts a claim is tested, and when a head has its role."""

    number: Annotated[int, "number of probe texts that are made where no texts are given"] = 30
    seed: Annotated[int, "random seed of probe texts, permuted keys and random sets of heads"] = 0
    of_role: RoleSettings = field(
        default_factory=lambda: RoleSettings(ScoreSettings(scale="share"), Criterion.usual("share"))
    )
    """Shares, because scores grow with the length of texts: on probe texts, untrained heads with a liking for the first
    token reach a score of 3."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Probed:
    """The scores of all heads for one role, with the controls; from passes, whatever heads a claim names."""

    role: str
    settings: ClaimSettings
    scored: RoleScores
    permuted: RoleScores
    """With the keys of every row of attention in random order."""
    fixed: RoleScores | None
    """On texts whose copies have a fixed period."""
    matched: tuple[TextMatches, ...]
    """Pairs of words that a relation joins, and others at the same distance; empty where the role is none of syntax."""


def probe(
    read: Callable[[Sequence[Text]], Reading[Text]],
    role: str,
    settings: ClaimSettings,
    checkpoint: Checkpoint,
    texts: Sequence[Text] | None,
    watch: Watch,
) -> Probed:
    """Score all heads for the role of a claim, with the controls.

    Args:
        read: makes texts ready for the checkpoint.
        role: name of the role.
        settings: of the claim.
        checkpoint: whose tokens probe texts are made of.
        texts: None for the role's probe texts.
        watch: for bars of progress.

    Raises: AnalysisError for a role that does not apply, or without probe texts of its own.
    """
    if texts is None and role not in PROBES:
        raise AnalysisError(
            f"There are no probe texts for the role {role_title(role)}; there are for {', '.join(PROBES)}. Give texts "
            "with the option texts."
        )

    def made(kind: ProbeKind) -> Sequence[Text]:
        tokenizer = checkpoint.tokenizer
        block = ProbeSettings.block if kind == "needles" else fitting_block(tokenizer, checkpoint.max_tokens)
        return probe_texts(tokenizer, ProbeSettings(kind, settings.number, block, settings.seed))

    scores = replace(settings.of_role.scores, roles=(role,))
    control = replace(scores, permuted=settings.seed if scores.permuted is None else scores.permuted + 1)
    reading = read(made(PROBES[role]) if texts is None else texts)

    def scored(on: Reading[Text], how: Any, doing: str | None = None) -> RoleScores:
        of_role = replace(settings.of_role, scores=how)
        return find_in(ROLE_ANALYSIS, on, of_role, lambda work, n, _=None: watch(work, n, doing)).scored

    ROLE_ANALYSIS.question(replace(settings.of_role, scores=scores)).check(reading.of_pass.kind)
    own = scored(reading, scores)
    if np.isnan(own.scores).all():
        only_back = (
            role_named(role).applies is in_causal_models and not checkpoint.attentions[reading.of_pass.kind].causal
        )
        why = "only models whose tokens look back alone can have it" if only_back else role_named(role).lacks
        raise AnalysisError(f"The claim cannot be tested: the role {role_title(role)} does not apply, as {why}.")
    matched: tuple[TextMatches, ...] = ()
    if role in SYNTACTIC and reading.of_pass.kind in MATCHED_PAIRS.kinds:
        about = [reading.inputs[index] for index in reading.prepared]
        prepared = dict(enumerate(reading.prepared.values()))
        work = reading.answer(reading.checkpoint, MATCHED_PAIRS, about, prepared, reading.of_pass)
        by_text = dict(watch(work, len(about), "words at the same distance"))
        matched = tuple(by_text[index] for index in range(len(about)))
    has_period = texts is None and role in OF_COPIES
    return Probed(
        role=role,
        settings=settings,
        scored=own,
        permuted=scored(reading, control, "permuted keys"),
        fixed=scored(read(made("fixed-repeats")), scores, "fixed period") if has_period else None,
        matched=matched,
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class ClaimFinding:
    """What became of a claim; arrays by head of the claim."""

    claim: Claim
    settings: ClaimSettings
    verdicts: tuple[Verdict, ...]
    tests: HeadTests
    """Of one role; the heads stand along the axis of layers, so that the correction is over them."""
    ranks: Float[np.ndarray, " head"]
    n_heads: int
    """Of the checkpoint, to which the role applies."""
    permuted: OneSided
    """Test of the score being above that with permuted keys."""
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
    def summary(self) -> str:
        """What became of the claim, in sentences: of each head, then of all together."""
        return _summary(self)


def judge(claim: Claim, probed: Probed) -> ClaimFinding:
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
    holds, ruler = tests.holds & decided([permuted], criterion), np.zeros(tests.holds.shape, bool)
    positional, p_positional = np.full((2, *tests.holds.shape), np.nan)
    if probed.fixed is not None:
        on_fixed, by_uniform = _of_claim(probed.fixed, claim)
        fixed = role_tests(on_fixed, scored.roles, criterion, by_uniform)
        positional, p_positional, ruler = fixed.mean, fixed.p_adjusted, fixed.holds & ~holds
    elif probed.matched:
        positional, p_positional, beats = _beyond_distance(claim, probed)
        ruler, holds = holds & ~beats, holds & beats
    means = moments(scored.scores[:, 0])[1]
    named = tests.mean[0, :, 0]
    verdicts: dict[tuple[bool, bool], Verdict] = {
        (True, False): "holds",
        (False, True): "only as a positional ruler",
        (False, False): "does not hold",
    }
    return ClaimFinding(
        claim=claim,
        settings=probed.settings,
        verdicts=tuple(verdicts[bool(a), bool(b)] for a, b in zip(holds.ravel(), ruler.ravel(), strict=True)),
        tests=tests,
        ranks=1 + (means.ravel() > named[:, None]).sum(axis=1).astype(float),
        n_heads=int(np.isfinite(means).sum()),
        permuted=permuted,
        permuted_mean=moments(by_chance)[1].ravel(),
        positional_mean=positional.ravel(),
        p_positional=p_positional.ravel(),
        evidence=_evidence(scores, uniform, probed.settings.of_role).ravel(),
        p_random_sets=_against_random_sets(named, means, probed.settings.seed),
        spearman=_agreement(claim, scores[:, 0, :, 0], probed.settings),
    )


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


def _beyond_distance(claim: Claim, probed: Probed) -> tuple[np.ndarray, np.ndarray, Bool[np.ndarray, "1 head 1"]]:
    """Mean score of unrelated words at the same distance, p-value and decision that related ones score higher."""
    layers, heads = np.array(claim.heads).T
    of_claim = [
        TextMatches(related=text.related[:, layers, heads, None], unrelated=text.unrelated[:, layers, heads, None])
        for text in probed.matched
    ]
    of_role = probed.settings.of_role
    tests = matched_tests(of_claim, of_role.scores.direction, of_role.criterion)
    row = [SYNTACTIC.index(probed.role)]
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


def claim_table(finding: ClaimFinding) -> "pd.DataFrame":
    """A row per head of the claim, in its order, with COLUMNS."""
    import pandas as pd  # the first page does without

    claim, tests = finding.claim, finding.tests
    layers, heads = np.array(claim.heads).T
    criterion = finding.settings.of_role.criterion
    values = {
        "layer": layers,
        "head": heads,
        "verdict": finding.verdicts,
        "claimed": np.full(len(heads), np.nan) if claim.scores is None else claim.scores,
        "n_texts": tests.texts.ravel(),
        "mean": tests.mean.ravel(),
        "low": tests.low.ravel(),
        "high": tests.high.ravel(),
        "rank": finding.ranks.astype(int),
        "p": tests.p_role.ravel(),
        "p_adjusted": tests.p_adjusted.ravel(),
        "permuted": finding.permuted_mean,
        "p_permuted": corrected(finding.permuted.p, criterion).ravel(),
        "positional": finding.positional_mean,
        "p_positional": finding.p_positional,
        "evidence": as_odds(finding.evidence),
    }
    return pd.DataFrame({column: values[column] for column in COLUMNS})


def claim_facts(finding: ClaimFinding) -> Mapping[str, str]:
    """Metadata of files: the role, the settings, and what is found of all heads of the claim together."""
    settings, names = finding.settings, ("spearman", "spearman low", "spearman high", "spearman p")
    found = {} if finding.spearman is None else dict(zip(names, map("{:.6g}".format, finding.spearman), strict=True))
    of_sets = {} if np.isnan(finding.p_random_sets) else {"p random sets": f"{finding.p_random_sets:.6g}"}
    return {
        "role": role_title(finding.claim.role),
        "seed": str(settings.seed),
        **settings.of_role.facts,
        **of_sets,
        **found,
    }


def _summary(finding: ClaimFinding) -> str:
    claim, criterion = finding.claim, finding.settings.of_role.criterion
    control, unit = "at a fixed period", ""
    if claim.role not in OF_COPIES:
        control, unit = "other words at the same distance", " times uniform attention"
    scale = "share above chance" if finding.settings.of_role.scores.scale == "share" else "score"
    role, n = role_title(claim.role), len(claim.heads)
    counts = [(finding.verdicts.count(verdict), verdict) for verdict in get_args(Verdict)]
    told = ", ".join(f"{verdict} for {count:,}" for count, verdict in counts if count)
    lines = [f"That {n:,} {'head has' if n == 1 else 'heads have'} the role {role}: {told}."]
    table = claim_table(finding)
    for row in (table if n <= MOST_SAID else table.nlargest(MOST_SAID, "mean")).itertuples():
        parts = (
            f"{scale} {row.mean:z.2f} [{row.low:z.2f}, {row.high:z.2f}], tau {criterion.tau:g}",
            "" if np.isnan(row.p_adjusted) else f"p {row.p_adjusted:.2g}",
            f"evidence {row.evidence:.3g} : 1",
            f"permuted keys {row.permuted:z.2f}",
            "" if np.isnan(row.positional) else f"{control} {row.positional:z.2f}{unit}",
            f"rank {row.rank} of {finding.n_heads:,}",
        )
        lines.append(f"{head_name(row.layer, row.head)} {row.verdict}: {'; '.join(part for part in parts if part)}.")
    if n > MOST_SAID:
        lines.append(f"The table has the other {n - MOST_SAID:,} heads, which score lower.")
    if not np.isnan(finding.p_random_sets):
        lines.append(f"A random set of as many heads scores as high or higher with p = {finding.p_random_sets:.2g}.")
    if finding.spearman is not None:
        value, low, high, p = finding.spearman
        lines.append(
            f"The ranking of the claim agrees with the measured one by Spearman's {value:z.2f} "
            f"[{low:z.2f}, {high:z.2f}] over texts; rankings in random order agree as much with p = {p:.2g}."
        )
    elif claim.scores is not None:
        lines.append(f"There is no ranking to compare: it takes {FEWEST_RANKED} heads whose scores differ.")
    return "\n".join(lines)
