"""Shares with documents as units: by hand, against statsmodels, and what copies of cases do to them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import norm
from scipy.stats import t as student
from statsmodels.regression.linear_model import OLS

from attention_sieve.core.statistics.cases import HeadCases, judge
from attention_sieve.core.statistics.means import (
    above_zero,
    design_effect,
    document_means,
    document_numbers,
    document_sums,
    means_of_squares,
    n_documents,
    share_interval,
    wilson,
)
from attention_sieve.core.wording import documents_note


def simulated(seed, n_documents=30, spread=0.8):
    """Two heads, a baseline, and documents of unequal sizes, in each of which all are right more or less often."""
    rng = np.random.default_rng(seed)
    document = rng.permutation(np.repeat(np.arange(n_documents), rng.integers(1, 40, n_documents)))
    ease = rng.normal(0, spread, n_documents)[document]
    level = np.array([[0.3], [-0.2], [-0.5]])
    values = rng.random((3, len(document))) < 1 / (1 + np.exp(-level - ease))
    return values[:2], values[2], document


def by_statsmodels(values, document):
    """A mean with a cluster-robust standard error and Student's t with one degree of freedom less than documents."""
    cluster = {"groups": document, "use_correction": True, "df_correction": True}
    return OLS(values.astype(float), np.ones(len(values))).fit(cov_type="cluster", cov_kwds=cluster, use_t=True)


@pytest.mark.parametrize("n_documents", [2, 5, 30])
@pytest.mark.parametrize("alpha", [0.05, 0.2])
def test_intervals_p_values_and_variances_are_those_of_statsmodels(n_documents, alpha):
    right, baseline, document = simulated(n_documents, n_documents)
    judged = judge(HeadCases(right, baseline[None], document, by_document=True), alpha)
    assert judged.n_documents.tolist() == [n_documents]
    for head in range(2):
        share = by_statsmodels(right[head], document)
        mean = right[head].mean()
        independent = mean * (1 - mean) / len(document)
        # Wilson's ends: shares whose own standard error, for as many cases as have this variance, is t times away.
        n_effective = mean * (1 - mean) / share.bse[0] ** 2
        for end in (judged.low[0, head], judged.high[0, head]):
            t = abs(mean - end) / np.sqrt(end * (1 - end) / n_effective)
            assert t == pytest.approx(student.isf(alpha / 2, n_documents - 1), rel=1e-6)
        np.testing.assert_allclose(judged.design_effect[0, head], share.bse[0] ** 2 / independent, rtol=1e-9)
        difference = by_statsmodels(right[head].astype(int) - baseline, document)
        p = student.sf(difference.tvalues[0], n_documents - 1)
        assert p == pytest.approx(
            difference.pvalues[0] / 2 if difference.tvalues[0] > 0 else 1 - difference.pvalues[0] / 2
        )
        np.testing.assert_allclose(judged.p_values[0, 0, head], min(1, 2 * p), rtol=1e-9)


def test_a_mean_of_two_documents_worked_by_hand():
    """2 of 2 and 1 of 4 right: half of all, off by 1 in each, so that the variance is 2 / 1 x (1 + 1) / 36."""
    means = document_means(np.array([2, 1]), np.array([2, 4]))
    assert (means.n_cases, means.n_documents, float(means.mean)) == (6, 2, 0.5)
    assert float(means.variance) == pytest.approx(4 / 36)
    assert float(design_effect(means)) == pytest.approx((4 / 36) / (0.25 / 6))
    assert float(above_zero(means)) == pytest.approx(student.sf(0.5 / (1 / 3), 1))
    t, n = student.isf(0.025, 1), 0.25 / (4 / 36)
    half = t * np.sqrt(0.25 / n + t**2 / (4 * n**2)) / (1 + t**2 / n)
    assert [float(end) for end in share_interval(means, 0.05)] == pytest.approx([0.5 - half, 0.5 + half])


def test_sums_are_of_the_documents_that_have_cases_in_any_order():
    values = np.array([[True, True, False, True], [False, False, False, True]])
    assert document_sums(values, np.array([7, 2, 7, 7])).tolist() == [[1, 2], [0, 1]]
    assert document_sums(values[:, :0], np.array([], int)).shape == (2, 0)


def test_documents_that_all_have_the_same_share_count_as_one_case_each():
    """By Student's t the interval would have no width, and p would be 0."""
    sums, n_cases = np.array([[0, 0, 0], [3, 5, 2], [6, 10, 4]]), np.array([6, 10, 4])
    shares = document_means(sums, n_cases)
    assert shares.variance.tolist() == [0, 0, 0]
    level = 2 * norm.sf(student.isf(0.05, 2))
    np.testing.assert_allclose(share_interval(shares, 0.1), wilson(np.array([0, 1.5, 3]), 3, level), atol=1e-9)
    assert above_zero(shares).tolist() == [1, 1 / 8, 1 / 8]
    assert above_zero(document_means(-sums, n_cases)).tolist() == [1, 1, 1]
    np.testing.assert_array_equal(design_effect(shares), [np.nan, 0, np.nan])


@pytest.mark.parametrize("document", [[], [0] * 5])
def test_less_than_two_documents_give_no_interval_and_no_test(document):
    right = np.tile(np.arange(len(document)) % 2 == 0, (2, 3, 1))
    judged = judge(HeadCases(right, ~right[0, :1], np.array(document, int), by_document=True), 0.05)
    assert np.isnan([judged.low, judged.high, judged.design_effect, judged.p_values[0]]).all()
    assert judged.n_documents.tolist() == [min(len(document), 1)]
    assert judged.held_out is None


@given(st.integers(0, 99), st.integers(2, 4))
def test_copies_of_cases_in_their_documents_change_nothing(seed, n_copies):
    right, baseline, document = simulated(seed, 6)
    once = judge(HeadCases(right, baseline[None], document, by_document=True), 0.05)
    copies = [np.repeat(each, n_copies, axis=-1) for each in (right, baseline[None], document)]
    again = judge(HeadCases(*copies, by_document=True), 0.05)
    for name in ("accuracy", "low", "high", "p_values"):
        np.testing.assert_allclose(getattr(once, name), getattr(again, name))
    np.testing.assert_allclose(once.design_effect * n_copies, again.design_effect)


def test_two_copies_of_each_case_are_no_more_significant():
    rng = np.random.default_rng(1)
    right, baseline, case = rng.random((2, 100)) < 0.55, rng.random(100) < 0.45, np.arange(100)
    copied = [np.repeat(each, 2, axis=-1) for each in (right, baseline[None], case)]
    one, two = (judge(HeadCases(*of, by_document=True), 0.05) for of in ((right, baseline[None], case), copied))
    assert (two.p_values >= one.p_values * (1 - 1e-9)).all()
    assert (two.held_out.p_values >= one.held_out.p_values * (1 - 1e-9)).all()
    np.testing.assert_allclose(two.design_effect, 2 * one.design_effect)


def test_texts_without_a_document_are_documents_of_their_own():
    names = ["b", None, "a", "b", None, "a"]
    assert document_numbers(names).tolist() == [0, 1, 2, 0, 3, 2]
    assert n_documents(names) == 4
    assert document_numbers([None, None]) is None
    assert document_numbers([]) is None
    assert n_documents([None]) is None


def test_that_one_document_allows_no_test_is_said():
    said = "All texts are from one document, so there are no intervals, tests or held-out accuracies"
    assert documents_note(1).startswith(said)


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6), st.integers(0, 6)), min_size=2, max_size=40))
def test_sums_of_squares_give_the_interval_of_the_documents_themselves(documents):
    n_cases, *values = np.array(documents).T
    sums = np.minimum([*values, n_cases, np.zeros_like(n_cases)], n_cases).astype(float)
    squares = np.stack([np.square(sums), sums * n_cases, np.broadcast_to(n_cases**2.0, sums.shape)]).sum(axis=-1)
    direct = document_means(sums, n_cases)
    kept = means_of_squares(int(n_cases.sum()), len(n_cases), sums.sum(axis=1), squares)
    np.testing.assert_allclose(kept.variance, direct.variance, rtol=1e-9, atol=1e-15)
    assert (kept.variance[2:] == 0).all()
    np.testing.assert_allclose(share_interval(kept, 0.05), share_interval(direct, 0.05), rtol=1e-9, atol=1e-9)
