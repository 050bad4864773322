"""The figures of roles, drawn of random scores."""

from functools import cache

import numpy as np
from drawn import Drawn

from attention_sieve.core.roles.hypotheses import Criterion, HeadTests, role_tests
from attention_sieve.core.roles.measures import RoleScores, Scale
from attention_sieve.core.roles.roles import COARSE_ROLES, ROLES
from attention_sieve.core.roles.uncertainty.anytime import role_evidence_path
from attention_sieve.core.roles.uncertainty.sensitivity import counts_by_tau, counts_by_texts
from attention_sieve.core.statistics.histogram import SCORE_BINS, SHARE_BINS, counts_of
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.roles.distributions import head_scores, scores_per_head, scores_per_layer
from attention_sieve.dashboard.figures.roles.evidence import evidence_by_texts
from attention_sieve.dashboard.figures.roles.from_counts import densities_per_head, densities_per_layer
from attention_sieve.dashboard.figures.roles.layers import heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.figures.roles.parts import scores_by_part
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts

TEXTS, LAYERS, HEADS = 15, 3, 4


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


def verdicts(scores: np.ndarray = SCORES, **asked) -> HeadTests:
    return role_tests(scores, ROLES, Criterion(**{"correction": "none", **asked}), 1.0)


def of_one_head(scores: np.ndarray, settings: Criterion) -> Figure:
    """Evidence for the coarse roles of L2 H3 as texts come."""
    places = [ROLES.index(role) for role in COARSE_ROLES]
    of_head = scores[:, places, 2:, 3:]
    path = role_evidence_path(of_head, settings, np.ones(of_head.shape[:3]))[..., 0, 0]
    return evidence_by_texts(path, COARSE_ROLES, (np.log(20), np.log(240)), 0.05, "L2 H3")


def figures(scores: np.ndarray, tau: float = 3.0, scale: Scale = "score") -> Drawn[Figure]:
    tests = cache(lambda: verdicts(scores, tau=tau))
    uniform = UNIFORM if scale == "score" else np.zeros_like(UNIFORM)
    bins = SCORE_BINS if scale == "score" else SHARE_BINS
    counts = cache(lambda: counts_of(scores, bins))

    def by_tau() -> Figure:
        found = counts_by_tau(SCORED, COARSE_ROLES, tests().settings, scale)
        return heads_by_tau(found, COARSE_ROLES, tau, LAYERS * HEADS, scale)

    def by_texts() -> Figure:
        found = counts_by_texts(SCORED, COARSE_ROLES, tests().settings)
        return heads_by_texts(found, COARSE_ROLES, LAYERS * HEADS)

    known = {"local": 0.25, "block": float("nan")}
    drawers = {
        "layers": lambda: heads_per_layer(tests(), COARSE_ROLES),
        "all roles by layer": lambda: heads_per_layer(tests(), ROLES),
        "scatter": lambda: p_value_scatter(tests(), COARSE_ROLES, scale),
        "evidence": lambda: p_value_against_score(tests(), ROLES, scale),
        "scores by layer": lambda: scores_per_layer(scores, ROLES, "local", tau, uniform, scale),
        "scores by head": lambda: scores_per_head(scores, ROLES, "syntactic", 2, tau, uniform, scale),
        "densities by layer": lambda: densities_per_layer(counts()[0], bins, "local", tau, 1.0, scale),
        "densities by head": lambda: densities_per_head(counts()[1, 2], bins, "syntactic", 2, tau, 1.0, scale),
        "parts": lambda: scores_by_part({"all texts": tests(), "data set news": tests()}, "local", (2, 3), scale),
        "by tau": by_tau,
        "by texts": by_texts,
        "one head": lambda: head_scores(scores, tests(), 2, 3, uniform[:, 2], known, scale),
    }
    if scale == "score":
        drawers["evidence by texts"] = lambda: of_one_head(scores, tests().settings)
    return Drawn(drawers)


FIGURES = {
    "": figures(SCORES),
    ", nothing scored": figures(NOTHING),
    ", tau 1": figures(SCORES, 1.0),
    ", shares": figures(SHARES, 0.5, "share"),
}
