"""Evidence while texts are added: by hand, against brute force and SciPy, and in simulated corpora."""

import math
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import special, stats
from scipy.optimize import brentq

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.statistics.evidence import STAKES, TOGETHER, e_bh, evidence_path, log_evidence, lower_bound

NAN = float("nan")
TAU, ALPHA, RUNS = 3.0, 0.05, 2_000
FIRST_LOOK, LAST_LOOK = 3, 200
SOME_SCORES = arrays(
    np.float64,
    st.tuples(st.integers(0, 7), st.just(2), st.just(3)),
    elements=st.floats(0, 50) | st.just(0.0) | st.just(NAN),
    fill=st.nothing(),
)
TAUS = st.floats(0.25, 10)
SOME_EVIDENCE = arrays(
    np.float64,
    (3, 4),
    elements=st.floats(-9, 9) | st.sampled_from([0.0, 4.0, 7.0]) | st.just(NAN),
    fill=st.nothing(),
)


def evidence(*scores, tau=1.0):
    """E itself, of one cell."""
    return float(np.exp(log_evidence(np.array(scores, float)[:, None], tau)).item())


# Values by hand


def test_thirteen_stakes_run_from_a_hundredth_to_95_hundredths_in_even_steps():
    assert len(STAKES) == 13
    assert (STAKES[0], STAKES[-1]) == (0.01, 0.95)
    np.testing.assert_allclose(np.diff(STAKES), 0.94 / 12)


def test_wealth_worked_by_hand():
    """The stakes have a mean of .48 and a mean square of .48^2 + 14 (.94 / 12)^2."""
    squared = 0.48**2 + 14 * (0.94 / 12) ** 2
    assert evidence() == evidence(1, 1, 1) == 1
    assert evidence(2) == pytest.approx(1 + 0.48)
    assert evidence(0) == pytest.approx(1 - 0.48)
    assert evidence(2, 0) == pytest.approx(1 - squared)
    assert evidence(12, 6, tau=3.0) == pytest.approx(1 + (3 + 1) * 0.48 + 3 * squared)


def test_fair_games_gain_nothing_on_average():
    """All 2^8 orders of scores 0 and 2 tau, and all 3^5 of scores 0, 0 and 3 tau, are equally likely."""
    for outcomes, n_texts in (((0, 2), 8), ((0, 0, 3), 5)):
        scores = TAU * np.array(list(product(outcomes, repeat=n_texts)), float).T
        np.testing.assert_allclose(np.exp(evidence_path(scores, TAU)).mean(axis=1), 1)


@pytest.mark.parametrize("greatest", [5.0, 1e30, 1e300])
def test_products_of_many_texts_lose_nothing_to_a_sum_of_logarithms(greatest):
    scores = np.random.default_rng(3).gamma(1, 2, (2 * TOGETHER + 3, 2))
    scores[5:25, 1] = greatest
    wealth = [np.log1p(stake * (scores - 1)).sum(axis=0) for stake in STAKES]
    expected = special.logsumexp(wealth, axis=0) - np.log(len(STAKES))
    np.testing.assert_allclose(log_evidence(scores, 1.0), expected)
    np.testing.assert_allclose(log_evidence(np.zeros((900, 1)), 1.0), -900 * -np.log(0.99) - np.log(13))


def test_every_text_is_held_against_its_own_threshold():
    assert evidence(6, 8, 1, tau=np.array([[3.0], [2], [4]])) == pytest.approx(evidence(2, 4, 0.25))
    scores = np.array([[6.0, 3], [8, 1]])
    by_text = log_evidence(scores, np.array([[3.0], [2]]))
    np.testing.assert_allclose(by_text, log_evidence(scores / [[3], [2]], 1.0))
    np.testing.assert_allclose(by_text, evidence_path(scores, np.array([[3.0, 3], [2, 2]]))[-1])


def test_a_threshold_may_be_unknown_where_the_role_does_not_apply():
    assert evidence(6, NAN, tau=np.array([[3.0], [NAN]])) == pytest.approx(1.48)


# What holds for any scores


@given(SOME_SCORES, TAUS, st.data())
def test_a_text_to_which_the_role_does_not_apply_multiplies_by_one(scores, tau, data):
    place = data.draw(st.integers(0, len(scores)))
    longer = np.insert(scores, place, NAN, axis=0)
    np.testing.assert_allclose(log_evidence(longer, tau), log_evidence(scores, tau), atol=1e-9)
    path = evidence_path(longer, tau)
    np.testing.assert_allclose(path[place], path[place - 1] if place else 0, atol=1e-9)


@given(SOME_SCORES, TAUS)
def test_a_path_is_the_evidence_of_the_first_texts(scores, tau):
    path = evidence_path(scores, tau)
    assert path.shape == scores.shape
    for n_texts in range(1, len(scores) + 1):
        np.testing.assert_allclose(path[n_texts - 1], log_evidence(scores[:n_texts], tau), atol=1e-9)


# How often it errs, and how soon it finds


NULLS = {
    # Clipped on both sides alike, which leaves the mean at tau.
    "normal, cv .3": lambda generator, shape: np.clip(generator.normal(TAU, 0.3 * TAU, shape), 0, 2 * TAU),
    "lognormal, s .5": lambda generator, shape: TAU * np.exp(generator.normal(-0.125, 0.5, shape)),
    "lognormal, s 1": lambda generator, shape: TAU * np.exp(generator.normal(-0.5, 1, shape)),
    "uniform": lambda generator, shape: generator.uniform(0, 2 * TAU, shape),
    "left-skewed": lambda generator, shape: TAU * generator.beta(4, 1, shape) * 5 / 4,
}


def at_most(rate, level, runs):
    """Whether a simulated rate is within three standard errors of the level, or below."""
    return rate <= level + 3 * (level * (1 - level) / runs) ** 0.5


@pytest.mark.parametrize("law", NULLS)
def test_the_claim_is_refuted_at_any_look_in_at_most_alpha_of_all_runs_where_it_is_true(law):
    scores = NULLS[law](np.random.default_rng(1), (LAST_LOOK, RUNS))
    assert scores.mean() == pytest.approx(TAU, rel=0.02)
    path = evidence_path(scores, TAU)
    ever = path[FIRST_LOOK - 1 :].max(axis=0) >= -math.log(ALPHA)
    assert at_most(ever.mean(), ALPHA, RUNS)


@pytest.mark.parametrize(
    ("times_tau", "cv", "median"), [(1.25, 0.3, 25), (1.5, 0.3, 13), (1.5, 0.6, 16), (2, 0.6, 8), (4, 1.0, 4)]
)
def test_half_of_all_heads_above_tau_are_found_within_so_many_texts(times_tau, cv, median):
    spread = math.log1p(cv**2) ** 0.5
    scores = times_tau * TAU * np.random.default_rng(2).lognormal(-(spread**2) / 2, spread, (100, RUNS))
    found = evidence_path(scores, TAU) >= math.log(20)
    first = np.where(found.any(axis=0), found.argmax(axis=0) + 1, len(scores) + 1)
    assert abs(np.median(first) - median) <= 1


def test_texts_with_thresholds_of_their_own_err_no_more_often():
    generator = np.random.default_rng(3)
    thresholds = generator.uniform(1, 4, (LAST_LOOK, 1))
    scores = thresholds * np.exp(generator.normal(-0.125, 0.5, (LAST_LOOK, RUNS)))
    ever = evidence_path(scores, thresholds).max(axis=0) >= -math.log(ALPHA)
    assert at_most(ever.mean(), ALPHA, RUNS)


def test_scores_that_depend_on_those_before_err_no_more_often():
    """The spread doubles after each score above tau, and halves after each below; the mean stays tau."""
    generator = np.random.default_rng(4)
    scores, spread = np.empty((LAST_LOOK, RUNS)), np.full(RUNS, 0.5)
    for text in range(LAST_LOOK):
        scores[text] = TAU * np.exp(generator.normal(-(spread**2) / 2, spread))
        spread = np.clip(np.where(scores[text] > TAU, 2 * spread, spread / 2), 0.1, 1.5)
    ever = evidence_path(scores, TAU).max(axis=0) >= -math.log(ALPHA)
    assert at_most(ever.mean(), ALPHA, RUNS)


# Lower bounds


def test_a_lower_bound_worked_by_hand():
    """One score x: .52 + .48 x / m = 20."""
    scores = np.array([[7.0, NAN, 0], [NAN, NAN, NAN]])
    np.testing.assert_allclose(lower_bound(scores, 0.05), [0.48 * 7 / (20 - 0.52), 0, 0], rtol=1e-4)
    assert lower_bound(np.empty((0, 3)), 0.05).tolist() == [0, 0, 0]


@given(SOME_SCORES, st.sampled_from([0.05, 0.2]))
@settings(max_examples=30)
def test_a_lower_bound_is_where_the_evidence_is_one_over_alpha(scores, alpha):
    bounds = lower_bound(scores, alpha)
    for cell in np.ndindex(2, 3):
        column = scores[:, *cell]
        column = column[~np.isnan(column)]
        mean = column.mean() if len(column) else 0
        if mean > 1e-6:
            expected = brentq(
                lambda tau, column=column: log_evidence(column[:, None], tau).item() + math.log(alpha), mean / 1e9, mean
            )
            assert expected - 2e-6 * mean <= bounds[cell] <= expected
        else:
            assert bounds[cell] == pytest.approx(0, abs=1e-6)


def test_lower_bounds_are_above_the_mean_at_any_look_in_at_most_alpha_of_all_runs():
    runs, looks = 1_000, (3, 5, 10, 20, 40, 80)
    scores = NULLS["lognormal, s 1"](np.random.default_rng(5), (looks[-1], runs))
    bounds = np.stack([lower_bound(scores[:look], 0.2) for look in looks])
    assert at_most((bounds > TAU).any(axis=0).mean(), 0.2, runs)
    assert (np.diff(bounds.mean(axis=1)) > 0).all(), "more texts, higher bounds"
    assert bounds[-1].mean() > 0.6 * TAU


# Many heads


def test_e_bh_worked_by_hand():
    """Five cells at alpha .1: the first needs 50, the second 25, the third 16.7, the fourth 12.5, the last 10."""
    log_e = np.log([[26.0, 1, 26], [17, 0.5, NAN]])
    assert e_bh(log_e, 0.1).tolist() == [[True, False, True], [True, False, False]]
    log_e[1, 0] = np.log(16)
    assert e_bh(log_e, 0.1).tolist() == [[True, False, True], [False, False, False]]
    log_e[0, 2] = np.log(24)
    assert not e_bh(log_e, 0.1).any()
    log_e[0, 0] = np.log(51)
    assert e_bh(log_e, 0.1).tolist() == [[True, False, False], [False, False, False]]


def test_e_bh_refutes_nothing_without_cells_and_takes_boundless_evidence():
    assert e_bh(np.empty((0, 3)), 0.05).shape == (0, 3)
    assert not e_bh(np.full((2, 3), NAN), 0.05).any()
    assert e_bh(np.array([np.inf, -np.inf, NAN]), 0.05).tolist() == [True, False, False]


@given(SOME_EVIDENCE, st.floats(0.01, 0.9))
def test_e_bh_is_scipys_benjamini_hochberg_of_one_over_the_evidence(log_e, alpha):
    tested = ~np.isnan(log_e)
    adjusted = stats.false_discovery_control(np.minimum(1, np.exp(-log_e[tested])))
    np.testing.assert_array_equal(e_bh(log_e, alpha)[tested], adjusted <= alpha)


@pytest.mark.parametrize("shared_part", [0.0, 0.95])
def test_few_of_the_heads_found_are_wrong_even_if_all_heads_go_together_and_one_stops_at_will(shared_part):
    """Stops at the first look with a head found: of 40 heads, 36 have a mean of tau, 4 one of 1.5 tau."""
    generator = np.random.default_rng(6)
    runs, alpha, n_texts, n_heads, n_null = 200, 0.2, 40, 40, 36
    shared = generator.normal(size=(n_texts, runs, 1))
    own = generator.normal(size=(n_texts, runs, n_heads))
    mixed = shared_part**0.5 * shared + (1 - shared_part) ** 0.5 * own
    means = np.where(np.arange(n_heads) < n_null, TAU, 1.5 * TAU)
    path = evidence_path(means * np.exp(0.7 * mixed - 0.7**2 / 2), TAU)
    stopped, at_the_end = np.zeros(runs), np.zeros(runs)
    power = np.zeros(runs)
    for run in range(runs):
        found = e_bh(path[-1, run], alpha)
        at_the_end[run] = found[:n_null].sum() / max(1, found.sum())
        power[run] = found[n_null:].mean()
        # No head can be found before one has 1 / alpha.
        for look in (path[:, run].max(axis=1) >= -math.log(alpha)).nonzero()[0]:
            found = e_bh(path[look, run], alpha)
            if found.any():
                stopped[run] = found[:n_null].sum() / found.sum()
                break
    for shares in (stopped, at_the_end):
        assert shares.mean() <= alpha + 3 * shares.std() / runs**0.5
    assert power.mean() > 0.5


# The authors' scores


@pytest.mark.parametrize(("task", "n_found"), [("qnli", 141), ("sst-2", 115)])
def test_as_many_of_the_authors_heads_are_found_as_were_counted(shared, task, n_found):
    stored = np.load(shared / "reference" / f"scores_{task}.npz")
    scores = np.stack([stored[name] for name in stored if stored[name].ndim == 3], axis=1)
    assert abs(int(e_bh(log_evidence(scores, TAU), ALPHA).sum()) - n_found) <= 1


# Errors


@pytest.mark.parametrize(
    "of",
    [
        lambda scores: log_evidence(scores, TAU),
        lambda scores: evidence_path(scores, TAU),
        lambda scores: lower_bound(scores, 0.1),
    ],
)
def test_scores_below_zero_and_infinite_ones_are_errors(of):
    with pytest.raises(AnalysisError, match=r"1 of 4 scores are below 0, the lowest is -0\.5\..*t-test"):
        of(np.array([[1, -0.5], [NAN, 2]]))
    with pytest.raises(AnalysisError, match="infinite"):
        of(np.array([[1, np.inf], [NAN, 2]]))


@pytest.mark.parametrize("tau", [0.0, -1.0, NAN, np.inf, np.array([[1.0], [0.0]])])
def test_a_threshold_must_be_a_number_above_zero(tau):
    with pytest.raises(AnalysisError, match=r"threshold is .* above 0"):
        log_evidence(np.ones((2, 3)), tau)


@pytest.mark.parametrize("alpha", [0.0, 1.0, -0.1, NAN])
def test_a_level_must_be_between_zero_and_one(alpha):
    for of in (lower_bound, e_bh):
        with pytest.raises(AnalysisError, match="between 0 and 1"):
            of(np.ones((2, 3)), alpha)


def test_nothing_changes_the_scores_it_reads():
    scores = np.random.default_rng(7).gamma(2, 2, (4, 2, 3))
    scores[1, 0] = NAN
    scores.flags.writeable = False
    log_evidence(scores, TAU), evidence_path(scores, TAU), lower_bound(scores, 0.1)
