import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.multitest import multipletests

from attention_sieve.core.statistics.means import adjusted, rejects, times_drawn

SOME_P = arrays(
    np.float64,
    (3, 7),
    elements=st.sampled_from([0.0, 0.001, 0.004, 0.006, 0.01, 0.02, 0.03, 0.049, 0.2, 0.8, 1.0, float("nan")]),
    fill=st.nothing(),
)


@pytest.mark.parametrize("n_tests", [1, 2, 72, 720])
def test_holm_is_that_of_statsmodels(n_tests):
    p = np.round(np.random.default_rng(n_tests).random(n_tests) ** 3, 2)  # with ties
    np.testing.assert_allclose(adjusted(p, "holm"), multipletests(p, method="holm")[1], rtol=1e-14)


@pytest.mark.parametrize("correction", ["none", "bh", "holm"])
@given(p=SOME_P)
def test_what_is_rejected_are_the_corrected_p_values_below_alpha_of_each_family(correction, p):
    expected = np.stack([adjusted(family, correction) < 0.05 for family in p])
    np.testing.assert_array_equal(rejects(p, correction, 0.05), expected)


@pytest.mark.parametrize("correction", ["none", "bh", "holm"])
@pytest.mark.parametrize("shape", [(0, 4), (3, 0)])
def test_without_tests_nothing_is_rejected(correction, shape):
    assert rejects(np.empty(shape), correction, 0.05).shape == shape


def test_each_resample_holds_as_many_units_as_were_drawn_and_all_units_alike():
    times = times_drawn(np.random.default_rng(1), 5000, 6, 4)
    assert times.shape == (5000, 4)
    np.testing.assert_array_equal(times.sum(axis=1), 6)
    np.testing.assert_allclose(times.mean(axis=0), 1.5, atol=0.05)
    drawn = np.random.default_rng(1).integers(4, size=(5000, 6))
    np.testing.assert_array_equal(times[7], np.bincount(drawn[7], minlength=4))
