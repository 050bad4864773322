import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr

from attention_sieve.core.importance.agreement import agreements, two_sets
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import Measure, damage
from attention_sieve.core.importance.metrics import TextOutcomes, mean_score


def of_texts(name, values):
    """A measure that is the mean of [text layer head]."""
    return Measure(name=name, over=lambda weights: np.tensordot(weights, values, axes=1) / len(values))


def test_the_correlation_is_that_of_the_heads_that_are_there(chance):
    wanted, cheap = chance.normal(size=(2, 9, 2, 4))
    wanted[:, 1, 2] = cheap[:, 1, 2] = np.nan
    cheap[:, 0, 3] = np.nan
    (found,) = agreements([of_texts("cheap", cheap)], of_texts("ablation", wanted), Draws([None] * 9, n_drawn=100))
    means, there = [values.mean(axis=0) for values in (cheap, wanted)], ~np.isnan(cheap[0])
    of_layers = [there & (np.arange(2)[:, None] == layer) for layer in (0, 1)]
    by_scipy = [spearmanr(*(values[where] for values in means)).statistic for where in (there, *of_layers)]
    assert found.spearman.tolist() == pytest.approx(by_scipy)
    assert (found.low <= found.high).all()


def test_a_metric_that_no_head_changes_has_no_correlation(chance):
    constant, cheap = np.zeros((9, 2, 4)), chance.normal(size=(9, 2, 4))
    (found,) = agreements([of_texts("cheap", cheap)], of_texts("ablation", constant), Draws([None] * 9, n_drawn=100))
    assert np.isnan([found.spearman, found.low, found.high]).all()


def changed(without):
    """Damage, where the loss is 0 with all heads on, from [text layer head]."""
    outcomes = [TextOutcomes(full=np.zeros(1), without=of_text[..., None]) for of_text in without]
    return damage(outcomes, mean_score("loss"))


def compared(first, second, documents=(None, None), n_drawn=60):
    documents = [[None] * len(of) if names is None else names for of, names in zip((first, second), documents)]
    draws = [Draws(names, n_drawn, seed) for seed, names in enumerate(documents)]
    return two_sets([changed(first), changed(second)], draws, documents), draws


def test_correlations_and_their_intervals_are_those_of_resampled_texts_one_by_one(chance):
    heads = chance.normal(size=(2, 3))
    first, second = heads + chance.normal(size=(7, 2, 3)), heads + chance.normal(size=(5, 2, 3))
    found, draws = compared(first, second)
    for side, of in zip(found.changes, (first, second)):
        np.testing.assert_allclose(side, of.mean(axis=0))
    for judged, by_scipy in ((found.pearson, pearsonr), (found.spearman, spearmanr)):
        assert judged.value == pytest.approx(by_scipy(first.mean(0).ravel(), second.mean(0).ravel())[0])
        drawn = []
        for places in zip(draws[0].weights, draws[1].weights):
            sides = [of[np.repeat(np.arange(len(of)), n.astype(int))].mean(0) for of, n in zip((first, second), places)]
            drawn.append(by_scipy(sides[0].ravel(), sides[1].ravel())[0])
        assert [judged.low, judged.high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]))
    for within, of in zip(found.within, (first, second)):
        assert within == pytest.approx(pearsonr(of[::2].mean(0).ravel(), of[1::2].mean(0).ravel())[0])


def test_a_removed_head_takes_no_part(chance):
    first, second = chance.normal(size=(4, 2, 3)), chance.normal(size=(6, 2, 3))
    first[:, 1, 2] = second[:, 1, 2] = np.nan
    found, _ = compared(first, second)
    left = [of.mean(0).ravel()[:5] for of in (first, second)]
    assert found.pearson.value == pytest.approx(pearsonr(*left)[0])
    assert np.isfinite([found.pearson.low, found.spearman.high, *found.within]).all()
    assert np.argwhere(np.isnan(found.changes[0])).tolist() == [[1, 2]]


def test_one_text_or_one_document_has_a_correlation_and_no_interval(chance):
    first, second = chance.normal(size=(1, 2, 3)), chance.normal(size=(6, 2, 3))
    found, _ = compared(first, second)
    assert found.pearson.value == pytest.approx(pearsonr(first.mean(0).ravel(), second.mean(0).ravel())[0])
    assert np.isnan([found.pearson.low, found.pearson.high, found.within[0]]).all()
    assert np.isfinite(found.within[1])
    found, _ = compared(second, second, (["a"] * 6, None))
    assert np.isnan([found.pearson.low, found.within[0]]).all()


def test_heads_that_all_change_nothing_have_no_correlation(chance):
    found, _ = compared(np.zeros((4, 2, 3)), chance.normal(size=(4, 2, 3)))
    assert np.isnan([found.pearson.value, found.pearson.low, found.spearman.value]).all()
