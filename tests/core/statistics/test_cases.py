"""Heads judged on the same cases, by hand and against SciPy."""

import numpy as np
import pytest
from scipy.stats import binomtest

from core.statistics.cases import beats_by_chance, best_head, best_on_halves, judge
from core.statistics.means import wilson

RIGHT = np.zeros((2, 3, 5), bool)
RIGHT[0, 2] = [1, 0, 1, 0, 1]
RIGHT[1, 0] = [0, 1, 1, 1, 0]
BASELINE = np.array([0, 1, 0, 0, 0], bool)


def test_intervals_are_scipys_and_nan_without_cases():
    n_right, n_cases = np.array([[0, 3, 4], [0, 0, 0]]), np.array([[4], [0]])
    low, high = wilson(n_right, n_cases, 0.1)
    for place, n in enumerate(n_right[0].tolist()):
        expected = binomtest(n, 4).proportion_ci(0.9, method="wilson")
        assert (low[0, place], high[0, place]) == pytest.approx((expected.low, expected.high), abs=1e-9)
    assert np.isnan([low[1], high[1]]).all()


def test_only_cases_count_where_head_and_baseline_differ():
    p = beats_by_chance(RIGHT, BASELINE)
    assert p.shape == (2, 3)
    assert p[0, 2] == pytest.approx(binomtest(3, 4, alternative="greater").pvalue)
    assert p[1, 0] == pytest.approx(binomtest(2, 2, alternative="greater").pvalue)
    assert p[0, 0] == 1
    assert float(beats_by_chance(RIGHT[1, 0], BASELINE)) == p[1, 0]
    assert np.isnan(beats_by_chance(RIGHT[..., :0], BASELINE[:0])).tolist() == [[True] * 3] * 2


def test_each_half_is_judged_by_the_best_of_the_other():
    """Texts 4, 0 and 2 are one half, 1 and 7 the other."""
    assert best_head(RIGHT) == (0, 2), "the first of equals"
    best, is_right = best_on_halves(RIGHT, np.array([4, 1, 0, 7, 2]))
    assert best == [(0, 2), (1, 0)]
    assert is_right.tolist() == [False, False, True, False, False]
    assert best_on_halves(RIGHT, np.array([4, 2, 0, 6, 2])) is None
    assert best_on_halves(RIGHT[..., :0], np.array([], int)) is None


def test_a_judgement_of_two_groups_is_that_of_each_group_alone():
    groups = np.array([[True] * 5, [True, False, True, True, False]])
    baselines, text = np.stack([BASELINE, ~BASELINE]), np.array([4, 1, 0, 7, 2])
    judged = judge(RIGHT, baselines, text, 0.1, groups)
    assert judged.n_cases.tolist() == [5, 3]
    for group, chosen in enumerate(groups):
        np.testing.assert_allclose(judged.accuracy[group], RIGHT[..., chosen].mean(axis=-1))
        low, high = wilson(RIGHT[..., chosen].sum(axis=-1), int(chosen.sum()), 0.1)
        np.testing.assert_allclose([judged.low[group], judged.high[group]], [low, high])
        np.testing.assert_allclose(judged.baselines[:, group], baselines[:, chosen].mean(axis=-1))
        for baseline in range(2):
            p = beats_by_chance(RIGHT[..., chosen], baselines[baseline, chosen])
            np.testing.assert_allclose(judged.p_values[baseline, group], np.minimum(1, p.size * p))
    assert judged.best == best_head(RIGHT)


def test_a_held_out_judgement_chooses_on_one_half_and_counts_on_the_other():
    text = np.array([4, 1, 0, 7, 2])
    held_out = judge(RIGHT, BASELINE[None], text, 0.1).held_out
    heads, is_right = best_on_halves(RIGHT, text)
    assert list(held_out.heads) == heads
    np.testing.assert_allclose(held_out.accuracy, [is_right.mean()])
    np.testing.assert_allclose(held_out.p_values[0], [float(beats_by_chance(is_right, BASELINE))])
    assert judge(RIGHT, BASELINE[None], np.zeros(5, int), 0.1).held_out is None


def test_with_documents_each_group_is_judged_by_its_own_documents():
    """Eight documents of three cases; the second group has cases of five, in two of which heads cannot be halved."""
    rng = np.random.default_rng(4)
    right, baselines = rng.random((2, 3, 24)) < 0.6, rng.random((2, 24)) < 0.4
    document = rng.permutation(np.repeat(np.arange(8), 3))
    groups = np.stack([np.ones(24, bool), document > 2])
    judged = judge(right, baselines, document, 0.1, groups, by_document=True)
    assert judged.n_documents.tolist() == [8, 5]
    for place, group in enumerate(groups):
        alone = judge(right[..., group], baselines[:, group], document[group], 0.1, by_document=True)
        np.testing.assert_allclose(judged.accuracy[place], right[..., group].mean(axis=-1))
        for name in ("low", "high", "design_effect"):
            np.testing.assert_allclose(getattr(judged, name)[place], getattr(alone, name)[0])
        np.testing.assert_allclose(judged.p_values[:, place], alone.p_values[:, 0])
    heads, is_right = best_on_halves(right, document)
    held_out = judge(is_right, baselines, document, 0.1, groups, by_document=True)
    assert list(judged.held_out.heads) == heads
    for name in ("accuracy", "low", "high", "p_values", "design_effect"):
        np.testing.assert_allclose(getattr(judged.held_out, name), getattr(held_out, name))


def test_without_documents_there_is_no_design_effect():
    judged = judge(RIGHT, BASELINE[None], np.array([4, 1, 0, 7, 2]), 0.1)
    assert judged.n_documents is None
    assert np.isnan(judged.design_effect).all()
    assert np.isnan(judged.held_out.design_effect).all()
