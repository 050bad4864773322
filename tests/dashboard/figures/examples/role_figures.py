"""The figures of roles, drawn of random scores."""

from dataclasses import replace
from functools import cache

import numpy as np
from drawn import Drawn

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.measures import RoleScores, Scale
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.roles.uncertainty.anytime import role_evidence
from attention_sieve.core.roles.uncertainty.sensitivity import counts_by_tau, counts_by_texts
from attention_sieve.core.statistics.evidence import evidence_path
from attention_sieve.core.statistics.series import SCORE_BINS, SHARE_BINS, counts_of
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.roles.chance import OWN, chance_strip
from attention_sieve.dashboard.figures.roles.distributions import HeadScores, Violins, head_scores, score_violins
from attention_sieve.dashboard.figures.roles.evidence import evidence_by_texts
from attention_sieve.dashboard.figures.roles.from_counts import density_violins
from attention_sieve.dashboard.figures.roles.layers import heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.figures.roles.parts import scores_by_part
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts

TEXTS, LAYERS, HEADS = 15, 3, 4


def one_head(scores, tests, layer, head, uniform, **more):
    """The scores of one head among those of all."""
    return HeadScores(scores=scores[:, :, layer, head], tests=tests, head=(layer, head), uniform=uniform, **more)


def some_scores() -> np.ndarray:
    random = np.random.default_rng(7)
    means = random.choice([0.6, 3.0, 9.0], (len(ROLES), LAYERS, HEADS))
    scores = random.gamma(4, means / 4, (TEXTS, *means.shape))
    scores[:3, ROLES.index("syntactic")] = np.nan
    scores[:, ROLES.index("local"), 0, 1] = 5.0
    return scores


SCORES = some_scores()
UNIFORM = np.ones((len(ROLES), LAYERS))
UNIFORM[ROLES.index("block")] = 3.25
SCORED = RoleScores(
    roles=ROLES,
    scores=SCORES,
    uniform=np.ones((TEXTS, len(ROLES), LAYERS)),
    greatest=np.full((TEXTS, len(ROLES), LAYERS), 40.0),
)
SHARES = 1 - SCORES / 12
"""From far below 0 up to 1, with the same gaps."""
NOTHING = np.full_like(SCORES, np.nan)
COUNTED = {
    "local": {OWN: [3], "permuted keys": [0], "shuffled words": [4], "random weights": [0, 1, 2]},
    "delimiter": {OWN: [12], "permuted keys": [0], "shuffled words": [12], "random weights": [1, 1, 1]},
}


def verdicts(scores: np.ndarray = SCORES, **asked) -> HeadTests:
    return role_tests(scores, ROLES, Criterion(**{"correction": "none", **asked}), 1.0)


def of_one_head(scores: np.ndarray, settings: Criterion) -> Figure:
    """Evidence for the coarse roles of L2 H3 as texts come."""
    places = [ROLES.index(role) for role in COARSE_ROLES]
    of_head = scores[:, places, 2:, 3:]
    path = role_evidence(of_head, settings, np.ones(of_head.shape[:3]), evidence_path)[..., 0, 0]
    return evidence_by_texts(path, COARSE_ROLES, (np.log(20), np.log(240)), 0.05, "L2 H3")


def figures(scores: np.ndarray, tau: float = 3.0, scale: Scale = "score") -> Drawn[Figure]:
    tests = cache(lambda: verdicts(scores, tau=tau))
    uniform = UNIFORM if scale == "score" else np.zeros_like(UNIFORM)
    bins = SCORE_BINS if scale == "score" else SHARE_BINS
    counts = cache(lambda: counts_of(scores, bins))

    def by_tau() -> Figure:
        found = counts_by_tau(replace(SCORED, scale=scale), COARSE_ROLES, tests().settings)
        return heads_by_tau(found, COARSE_ROLES, tau, LAYERS * HEADS, scale)

    def by_texts() -> Figure:
        found = counts_by_texts(SCORED, COARSE_ROLES, tests().settings)
        return heads_by_texts(found, COARSE_ROLES, LAYERS * HEADS)

    ones = np.ones(LAYERS)
    known = {"local": 0.25, "block": float("nan")}
    drawers = {
        "layers": lambda: heads_per_layer(tests(), COARSE_ROLES),
        "all roles by layer": lambda: heads_per_layer(tests(), ROLES),
        "scatter": lambda: p_value_scatter(tests(), COARSE_ROLES, scale),
        "evidence": lambda: p_value_against_score(tests(), ROLES, scale),
        "scores by layer": lambda: score_violins(scores[:, 0], Violins("local", None, scale), tau, uniform[0]),
        "scores by head": lambda: score_violins(scores[:, 1], Violins("syntactic", 2, scale), tau, uniform[1]),
        "densities by layer": lambda: density_violins(counts()[0], bins, Violins("local", None, scale), tau, ones),
        "densities by head": lambda: density_violins(counts()[1], bins, Violins("syntactic", 2, scale), tau, ones),
        "parts": lambda: scores_by_part({"all texts": tests(), "data set news": tests()}, "local", (2, 3), scale),
        "by tau": by_tau,
        "by texts": by_texts,
        "one head": lambda: head_scores(one_head(scores, tests(), 2, 3, uniform[:, 2], here=known, scale=scale)),
    }
    if np.isfinite(scores).any():
        drawers["beside chance"] = lambda: chance_strip(COUNTED, LAYERS * HEADS)
    if scale == "score":
        drawers["evidence by texts"] = lambda: of_one_head(scores, tests().settings)
    return Drawn(drawers)


FIGURES = {
    "": figures(SCORES),
    ", nothing scored": figures(NOTHING),
    ", shares": figures(SHARES, 0.5, "share"),
}
