import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.statistics.means import moments
from attention_sieve.core.statistics.series import Sums, merged, no_sums, sums_of, with_zeros

VALUES = arrays(np.float32, (7, 2, 3), elements=st.floats(0, 2048, width=32) | st.just(np.nan))


def same(a, b, digits=1e-12):
    for one, other in zip(a.parts, b.parts, strict=True):
        np.testing.assert_allclose(one, other, rtol=digits, atol=1e-7)


@given(VALUES, st.integers(0, 7), st.integers(0, 7))
def test_merging_is_associative_and_tells_what_all_values_tell(values, first, second):
    first, second = sorted((first, second))
    a, b, c = (sums_of(part) for part in np.split(values, [first, second]))
    left, right, whole = merged(merged(a, b), c), merged(a, merged(b, c)), sums_of(values)
    same(left, right)
    same(left, whole, 1e-9)
    for exact in ("n", "least", "greatest"):
        np.testing.assert_array_equal(getattr(left, exact), getattr(whole, exact))


def test_sums_by_hand():
    sums = sums_of(np.array([[1.0, np.nan], [2.0, np.nan], [6.0, np.nan]]))
    assert [part[0] for part in sums.parts] == [3, 9.0, 14.0, 1.0, 6.0]
    assert [part[1] for part in sums.parts] == [0, 0.0, 0.0, np.inf, -np.inf]
    np.testing.assert_array_equal(sums.mean, [3.0, np.nan])


def test_a_large_mean_costs_no_digits():
    values = 1e6 + np.random.default_rng(0).normal(size=(4_000, 1))
    parts = [sums_of(part) for part in np.split(values, 8)]
    total = parts[0]
    for part in parts[1:]:
        total = merged(total, part)
    np.testing.assert_allclose(total.squares, moments(values)[2], rtol=1e-10)


def test_no_sums_change_nothing():
    sums = sums_of(np.arange(12.0).reshape(4, 3))
    same(merged(sums, no_sums((3,))), sums)


def test_missing_values_count_as_zeros_where_some_value_is_known():
    values = np.array([[3.0, np.nan], [np.nan, np.nan], [5.0, np.nan]])
    filled = with_zeros(sums_of(values), np.array([3, 3]))
    expected = sums_of(np.array([[3.0, np.nan], [0.0, np.nan], [5.0, np.nan]]))
    assert isinstance(filled, Sums)
    same(filled, expected)


def test_an_infinite_value_is_refused():
    with pytest.raises(AnalysisError, match="infinite"):
        sums_of(np.array([1.0, np.inf]))
