import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_sieve.core.statistics.series import BINS, SCORE_BINS, SHARE_BINS, counts_of, quantile


@given(arrays(np.float32, (9, 2, 3), elements=st.floats(0, 512, width=32) | st.just(np.nan)))
def test_every_value_is_in_the_bin_whose_ends_hold_it(values):
    counts = counts_of(values, SCORE_BINS)
    edges = SCORE_BINS.edges
    assert counts.shape == (2, 3, BINS)
    np.testing.assert_array_equal(counts.sum(axis=-1), (~np.isnan(values)).sum(axis=0))
    for cell in np.ndindex(2, 3):
        known = values[(slice(None), *cell)]
        known = known[~np.isnan(known)].astype(float)
        for value, place in zip(known, SCORE_BINS.of(known)):
            assert edges[place] * (1 - 1e-5) - 1e-6 <= value <= edges[place + 1] * (1 + 1e-5) + 1e-6


def test_bins_of_scores_are_as_wide_as_their_documentation_says():
    edges = SCORE_BINS.edges
    for score, said in ((1.0, 0.10), (3.0, 0.07), (100.0, 0.05)):
        (place,) = SCORE_BINS.of(np.array([score]))
        width = edges[place + 1] - edges[place]
        assert round(width / score, 2) == said
        assert round(width / (1 + score), 2) == 0.05


@given(arrays(float, (6, 2), elements=st.floats(-1, 1)), st.integers(0, 6))
def test_counts_of_two_parts_are_those_of_the_whole(values, cut):
    parts = sum(counts_of(part, SHARE_BINS) for part in np.split(values, [cut]))
    np.testing.assert_array_equal(parts, counts_of(values, SHARE_BINS))


def test_values_outside_count_in_the_outermost_bins():
    counts = counts_of(np.array([[-2.0], [2.0]]), SHARE_BINS)
    assert counts[0, 0] == 1
    assert counts[0, -1] == 1


def test_the_median_is_as_exact_as_a_bin():
    scores = np.random.default_rng(0).lognormal(0.5, 0.7, 20_000)
    found = quantile(counts_of(scores[:, None], SCORE_BINS)[0], 0.5, SCORE_BINS)
    assert abs(found / np.median(scores) - 1) < 0.01
    assert np.isnan(quantile(np.zeros(BINS, int), 0.5, SCORE_BINS))
