import re
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.uncertainty.intervals import (
    LEAST_TEXTS,
    RESAMPLES,
    bootstrap_t,
    with_syntactic_intervals,
)

NAN = float("nan")


def by_hand(values, alphas, seed=0):
    """One resample after another, with SciPy's standard error and NumPy's quantiles: low and high of each alpha."""
    random, t = np.random.default_rng(seed), []
    for _ in range(RESAMPLES):
        drawn = values[random.integers(len(values), size=len(values))]
        if len(set(drawn)) > 1:
            t.append((drawn.mean() - values.mean()) / stats.sem(drawn))
    ends = np.quantile(t, [(1 - alpha / 2, alpha / 2) for alpha in alphas])
    return values.mean() - ends * stats.sem(values)


def test_intervals_are_those_of_a_studentised_bootstrap_by_hand():
    scores = np.random.default_rng(4).lognormal(size=(13, 2, 3))
    scores[::4, 0, 2] = NAN
    scores[:8, 1, 1] = NAN  # five are left, so that some resamples are constant
    alphas = 0.05, 0.2
    found = np.array([bootstrap_t(scores, alpha) for alpha in alphas])
    for cell in ((0, 2), (1, 1)):
        values = scores[:, *cell]
        np.testing.assert_allclose(found[:, :, *cell], by_hand(values[~np.isnan(values)], alphas))


def skewed(n_texts):
    """Means, standard errors and scores of many heads, from a lognormal law of s = 1, and its mean."""
    scores = np.random.default_rng(11).lognormal(size=(n_texts, 8000))
    return scores.mean(axis=0), stats.sem(scores), scores, np.exp(0.5)


def said_of(n_texts, start, end):
    """The share that the method of the page Roles says of so many texts, between two of its words."""
    method = (Path(__file__).parents[4] / "dashboard/views/role_grid/method.md").read_text().replace("\n", " ")
    passage = method[method.index(start) : method.index(end)]
    return float(re.search(rf"([\d.]+)%[^%]*?over {n_texts} texts", passage)[1]) / 100


@pytest.mark.parametrize("n_texts", [5, 20, 128])
def test_the_page_says_how_often_intervals_of_skewed_scores_cover_their_mean(n_texts):
    means, errors, scores, mean = skewed(n_texts)
    low, high = stats.t.interval(0.95, n_texts - 1, means, errors)
    said = said_of(n_texts, "**Intervals** of the mean", "Syntactic scores, which")
    assert ((low <= mean) & (mean <= high)).mean() == pytest.approx(said, abs=0.01)
    low, high = bootstrap_t(scores[:, :2000], 0.05)
    said = said_of(n_texts, "Syntactic scores, which", "Resamples that are constant")
    assert ((low <= mean) & (mean <= high)).mean() == pytest.approx(said, abs=0.015)


@pytest.mark.parametrize(("side", "start", "n_texts"), [
    (1, "conservative (at 5%", 20), (-1, "(the mirrored distribution", 20), (-1, "(the mirrored distribution", 128),
])  # fmt: skip
def test_the_page_says_how_often_the_test_errs_over_skewed_scores(side, start, n_texts):
    means, errors, _, mean = skewed(n_texts)
    errs = (side * (means - mean) / errors > stats.t.isf(0.05, n_texts - 1)).mean()
    assert errs == pytest.approx(said_of(n_texts, start, "**What chance would give**"), abs=0.01)


@pytest.mark.parametrize("n_texts", [0, 1, 2, LEAST_TEXTS - 1])
def test_intervals_of_very_few_texts_are_students(n_texts):
    scores = np.random.default_rng(1).lognormal(size=(n_texts, 1, 2, 3))
    tests = role_tests(scores, ("syntactic:nsubj",), Criterion(), 1.0)
    np.testing.assert_array_equal(bootstrap_t(scores, 0.05), (tests.low, tests.high))


def test_a_constant_score_has_an_interval_without_width():
    low, high = bootstrap_t(np.full((7, 2), 3.0), 0.05)
    np.testing.assert_array_equal((low, high), 3.0)


def test_intervals_of_other_roles_and_all_p_values_stay():
    scores = np.random.default_rng(2).lognormal(size=(9, 2, 2, 3))
    tests = role_tests(scores, ("local", "syntactic:nsubj"), Criterion(alpha=0.1), 1.0)
    shown = with_syntactic_intervals(tests, scores)
    np.testing.assert_array_equal(shown.low[0], tests.low[0])
    np.testing.assert_array_equal((shown.low[1], shown.high[1]), bootstrap_t(scores[:, 1], 0.1))
    assert (shown.high[1] != tests.high[1]).all()
    assert shown.p_adjusted is tests.p_adjusted
