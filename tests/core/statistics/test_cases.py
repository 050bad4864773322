"""Heads judged on the same cases, by hand and against SciPy."""

import numpy as np
import pytest
from scipy.stats import binomtest

from attention_sieve.core.statistics.cases import HeadCases, Joined, beats_by_chance, best_head, best_on_halves, judge
from attention_sieve.core.statistics.means import above_zero, document_means, wilson

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
    heads, on_halves = best_on_halves(HeadCases(RIGHT, BASELINE[None], np.array([4, 1, 0, 7, 2])))
    assert heads == ((0, 2), (1, 0))
    assert on_halves.right.tolist() == [False, False, True, False, False]
    assert best_on_halves(HeadCases(RIGHT, BASELINE[None], np.array([4, 2, 0, 6, 2]))) is None
    assert best_on_halves(HeadCases(RIGHT[..., :0], BASELINE[None, :0], np.array([], int))) is None


def test_a_judgement_of_two_groups_is_that_of_each_group_alone():
    groups = np.array([[True] * 5, [True, False, True, True, False]])
    baselines, text = np.stack([BASELINE, ~BASELINE]), np.array([4, 1, 0, 7, 2])
    judged = judge(HeadCases(RIGHT, baselines, text), 0.1, groups)
    assert judged.n_cases.tolist() == [5, 3]
    for group, chosen in enumerate(groups):
        np.testing.assert_allclose(judged.accuracy[group], RIGHT[..., chosen].mean(axis=-1))
        alone = judge(HeadCases(RIGHT[..., chosen], baselines[:, chosen], text[chosen]), 0.1)
        for name in ("low", "high", "design_effect"):
            np.testing.assert_allclose(getattr(judged, name)[group], getattr(alone, name)[0])
        np.testing.assert_allclose(judged.baselines[:, group], baselines[:, chosen].mean(axis=-1))
        np.testing.assert_allclose(judged.p_values[:, group], alone.p_values[:, 0])
    assert judged.best == best_head(RIGHT)


def test_a_held_out_judgement_chooses_on_one_half_and_counts_on_the_other():
    text = np.array([4, 1, 0, 7, 2])
    held_out = judge(HeadCases(RIGHT, BASELINE[None], text), 0.1).held_out
    heads, on_halves = best_on_halves(HeadCases(RIGHT, BASELINE[None], text))
    assert held_out.heads == heads
    np.testing.assert_allclose(held_out.accuracy, [on_halves.right.mean()])
    differences = document_means(on_halves.right.astype(float) - BASELINE, np.ones(5, int))
    np.testing.assert_allclose(held_out.p_values[0], [float(above_zero(differences))])
    assert judge(HeadCases(RIGHT, BASELINE[None], np.zeros(5, int)), 0.1).held_out is None


def test_with_documents_each_group_is_judged_by_its_own_documents():
    """Eight documents of three cases; the second group has cases of five, in two of which heads cannot be halved."""
    rng = np.random.default_rng(4)
    right, baselines = rng.random((2, 3, 24)) < 0.6, rng.random((2, 24)) < 0.4
    document = rng.permutation(np.repeat(np.arange(8), 3))
    groups = np.stack([np.ones(24, bool), document > 2])
    judged = judge(HeadCases(right, baselines, document, by_document=True), 0.1, groups)
    assert judged.n_documents.tolist() == [8, 5]
    for place, group in enumerate(groups):
        alone = judge(HeadCases(right[..., group], baselines[:, group], document[group], by_document=True), 0.1)
        np.testing.assert_allclose(judged.accuracy[place], right[..., group].mean(axis=-1))
        for name in ("low", "high", "design_effect"):
            np.testing.assert_allclose(getattr(judged, name)[place], getattr(alone, name)[0])
        np.testing.assert_allclose(judged.p_values[:, place], alone.p_values[:, 0])
    heads, on_halves = best_on_halves(HeadCases(right, baselines, document, by_document=True))
    held_out = judge(on_halves, 0.1, groups)
    assert judged.held_out.heads == heads
    for name in ("accuracy", "low", "high", "p_values", "design_effect"):
        np.testing.assert_allclose(getattr(judged.held_out, name), getattr(held_out, name))


def from_everywhere_and_from_its_place():
    """Two heads on 40 cases of 20 documents: the first is right more often and gives the right word what others give it
    too; the second gives it four times as much. A third gives nothing."""
    rng = np.random.default_rng(1)
    others = np.stack([np.full(40, 0.2), np.full(40, 0.05), np.zeros(40)]) + rng.uniform(0, 0.01, (3, 40))
    to_right = others * np.array([1, 4, 0])[:, None] + rng.normal(0, 0.01, (3, 40)) * np.array([1, 1, 0])[:, None]
    right = np.stack([np.arange(40) % 10 > 0, np.arange(40) % 10 > 2, np.zeros(40, bool)])
    return right, Joined(to_right=to_right, from_others=others, unit=np.arange(40) // 2)


def test_the_best_head_is_chosen_among_those_that_beat_the_key_matched_control():
    right, joined = from_everywhere_and_from_its_place()
    baseline = np.zeros((1, 40), bool)
    without = judge(HeadCases(right, baseline, joined.unit, by_document=True), 0.05)
    judged = judge(HeadCases(right, baseline, joined.unit, by_document=True, joined=joined), 0.05)
    assert (without.best, without.held_out.heads) == ((0,), ((0,), (0,)))
    assert (judged.best, judged.held_out.heads) == ((1,), ((1,), (1,)))
    assert judged.held_out.accuracy == pytest.approx([right[1].mean()])
    assert without.key_matched == without.held_out.key_matched == ()
    (control,), (held_out,) = judged.key_matched, judged.held_out.key_matched
    assert control.beats.tolist() == [False, True, False]
    assert control.from_everywhere.tolist() == [True, False, True]
    assert control.times[1] == pytest.approx(4, rel=0.1)
    assert (held_out.to_right, held_out.from_others) == pytest.approx((control.to_right[1], control.from_others[1]))
    assert held_out.p_values == pytest.approx(control.p_values[1] / 3), "no correction on the other half"


def test_where_no_head_beats_the_control_the_best_of_all_is_named():
    right, joined = from_everywhere_and_from_its_place()
    weak = Joined(to_right=joined.from_others, from_others=joined.from_others, unit=joined.unit)
    judged = judge(HeadCases(right, np.zeros((1, 40), bool), joined.unit, by_document=True, joined=weak), 0.05)
    assert judged.best == (0,)
    assert judged.key_matched[0].from_everywhere.all()
    assert judged.held_out.key_matched[0].from_everywhere


def test_without_documents_texts_are_the_units():
    rng = np.random.default_rng(4)
    right, baseline, unit = rng.random((3, 60)) < 0.6, rng.random((1, 60)) < 0.4, np.repeat(np.arange(12), 5)
    of_texts, of_documents = (judge(HeadCases(right, baseline, unit, by_document=by), 0.1) for by in (False, True))
    assert of_texts.n_documents is None
    assert of_documents.n_documents.tolist() == [12]
    for name in ("low", "high", "p_values", "design_effect"):
        np.testing.assert_array_equal(getattr(of_texts, name), getattr(of_documents, name))


@pytest.mark.parametrize("n_texts", [20, 64])
def test_intervals_cover_a_share_whose_cases_depend_on_each_other_within_a_text(n_texts):
    """About eight words a text, with a correlation of .05: Wilson's interval for independent cases covers 90%."""
    rng = np.random.default_rng(n_texts)
    share, n_heads, correlation = 0.4, 2_000, 0.05
    unit = np.repeat(np.arange(n_texts), 1 + rng.poisson(7, n_texts))
    a, b = (part * (1 / correlation - 1) for part in (share, 1 - share))
    right = rng.random((n_heads, len(unit))) < rng.beta(a, b, (n_heads, n_texts))[:, unit]
    judged = judge(HeadCases(right, np.zeros((1, len(unit)), bool), unit), 0.05)
    of_independent = wilson(right.sum(axis=1), len(unit), 0.05)
    covers = [
        ((low < share) & (share < high)).mean() for low, high in ((judged.low[0], judged.high[0]), of_independent)
    ]
    assert covers[0] > 0.935
    assert covers[1] < 0.925
