"""The attention to the right word against what other words give to the same word, by hand and against SciPy."""

import numpy as np
import pytest
from scipy.stats import ttest_1samp

from attention_sieve.core.statistics.cases import Joined, key_matched

NAN = np.nan


def joined(to_right, from_others, unit=None):
    to_right, from_others = np.array(to_right, np.float32), np.array(from_others, np.float32)
    return Joined(
        to_right=to_right,
        from_others=from_others,
        unit=np.arange(to_right.shape[-1]) if unit is None else np.array(unit),
    )


def test_with_one_case_a_document_the_test_is_students_paired_one():
    rng = np.random.default_rng(0)
    right, others = rng.random((2, 3, 17)), rng.random((2, 3, 17))
    control = key_matched(joined(right, others), 0.05, n_heads=6)
    p = ttest_1samp(right - others, 0, axis=-1, alternative="greater").pvalue
    np.testing.assert_allclose(control.p_values, np.minimum(1, 6 * p), rtol=1e-5)
    np.testing.assert_allclose(control.times, right.mean(axis=-1) / others.mean(axis=-1), rtol=1e-5)
    assert (control.n_cases == 17).all()


def test_a_document_of_many_cases_is_one_unit():
    """Two documents whose mean differences are 0.2 and 0.3: t = 5 with one degree of freedom, however many cases."""
    control = key_matched(joined([[0.3] * 50 + [0.4] * 50], [[0.1] * 100], [0] * 50 + [1] * 50), 0.1)
    assert control.p_values == pytest.approx(0.5 - np.arctan(5) / np.pi, rel=1e-4)


def test_cases_without_a_word_to_compare_do_not_count_for_their_heads():
    control = key_matched(joined([[0.5, NAN, 0.3], [NAN] * 3], [[0.1, 0.9, NAN], [0.1] * 3]), 0.05)
    assert control.n_cases.tolist() == [1, 0]
    np.testing.assert_allclose(control.to_right, [0.5, NAN], rtol=1e-6)
    np.testing.assert_allclose(control.from_others, [0.1, NAN], rtol=1e-6)
    assert np.isnan(control.p_values).all()
    assert not control.beats.any()
    assert not control.from_everywhere.any()


def test_without_cases_nothing_is_known():
    control = key_matched(joined(np.zeros((2, 3, 0)), np.zeros((2, 3, 0))), 0.05)
    assert control.n_cases.tolist() == [[0] * 3] * 2
    assert np.isnan(control.times).all()


def test_heads_that_look_there_from_everywhere_do_not_beat_it():
    """At most .05 of 400 heads whose right word gets what it gets from others, in 30 documents of 4 cases."""
    rng = np.random.default_rng(3)
    level, unit = rng.lognormal(-2, 1, (400, 120)), np.repeat(np.arange(30), 4)
    noise = rng.lognormal(0, 0.5, (2, 400, 120))
    control = key_matched(joined(level * noise[0], level * noise[1], unit), 0.05)
    assert control.beats.mean() < 0.06
    assert key_matched(joined(3 * level * noise[0], level * noise[1], unit), 0.05).beats.mean() > 0.9


def test_a_significant_difference_that_is_small_does_not_beat_it():
    """1.5 times as much as others give, and 2.5 times, in 300 documents."""
    rng = np.random.default_rng(5)
    others = rng.uniform(0.08, 0.12, (2, 300))
    control = key_matched(joined(others * np.array([[1.5], [2.5]]), others), 0.05)
    assert (control.p_values < 1e-6).all()
    assert control.beats.tolist() == [False, True]
    assert control.from_everywhere.tolist() == [True, False]
    few = key_matched(joined(others[:, :2] * np.array([[1.5], [2.5]]), others[:, :2]), 1e-4)
    assert not few.beats.any()
    assert few.from_everywhere.tolist() == [True, False], "two cases do not settle that the second follows"
    nothing = key_matched(joined(others, np.zeros((2, 300))), 0.05)
    assert nothing.beats.all()
    assert np.isnan(nothing.times).all()
