import numpy as np
import pytest
from scipy.stats import spearmanr

from attention_sieve.core.importance.agreement import agreements
from attention_sieve.core.importance.effects import Draws
from attention_sieve.core.importance.measures import Measure

CHANCE = np.random.default_rng(4)


def of_texts(name, values):
    """A measure that is the mean of [text layer head]."""
    return Measure(name=name, over=lambda weights: np.tensordot(weights, values, axes=1) / len(values))


def test_the_correlation_is_that_of_the_heads_that_are_there():
    wanted, cheap = CHANCE.normal(size=(2, 9, 2, 4))
    wanted[:, 1, 2] = cheap[:, 1, 2] = np.nan
    cheap[:, 0, 3] = np.nan
    (found,) = agreements([of_texts("cheap", cheap)], of_texts("ablation", wanted), Draws([None] * 9, n_drawn=100))
    means, there = [values.mean(axis=0) for values in (cheap, wanted)], ~np.isnan(cheap[0])
    by_scipy = [spearmanr(*(values[where] for values in means)).statistic for where in (there, *layers(there))]
    assert found.spearman.tolist() == pytest.approx(by_scipy)
    assert (found.low <= found.high).all()


def test_a_metric_that_no_head_changes_has_no_correlation():
    constant, cheap = np.zeros((9, 2, 4)), CHANCE.normal(size=(9, 2, 4))
    (found,) = agreements([of_texts("cheap", cheap)], of_texts("ablation", constant), Draws([None] * 9, n_drawn=100))
    assert np.isnan([found.spearman, found.low, found.high]).all()


def layers(there):
    """Heads of each layer that are there."""
    return [there & (np.arange(2)[:, None] == layer) for layer in (0, 1)]
