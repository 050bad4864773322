import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from attention_sieve.core.statistics.by_role import compare_by_role, superiority_interval

SHAPE = (4, 6)


def held(*of_roles):
    return np.array([np.isin(np.arange(24).reshape(SHAPE), list(heads)) for heads in of_roles])


def test_a_share_worked_by_hand():
    importance = np.array([[1.0, 2.0, 3.0], [3.0, 5.0, np.nan]])
    holds = np.array([[[False, True, False], [True, False, True]]])  # 2 and 3 against 1, 3 and 5; NaN is no head
    found = compare_by_role(importance, holds, ["local"])
    assert (found.n_holding[0], found.n_others[0]) == (2, 3)
    assert found.superiority[0] == pytest.approx((1 + 1 + 0.5) / 6)
    assert (found.median_holding[0], found.median_others[0]) == (2.5, 3)
    assert found.in_layers[0] == pytest.approx(1 / 3)  # 2 before 1, not before 3; 3 not before 5


def test_shares_and_p_values_are_those_of_mann_and_whitney(chance):
    importance = chance.normal(size=SHAPE)
    holds = held(range(0, 24, 3), (1, 2, 3), (5,), range(12, 24))
    importance[2:] += 1.0
    found = compare_by_role(importance, holds, list("abcd"), "none")
    for place, of_role in enumerate(holds):
        wanted = mannwhitneyu(importance[of_role], importance[~of_role], method="exact")
        n_pairs = of_role.sum() * (~of_role).sum()
        assert found.superiority[place] == pytest.approx(wanted.statistic / n_pairs)
        error = 4 * np.sqrt(wanted.pvalue * (1 - wanted.pvalue) / 10_000) + 2e-4
        assert found.p[place] == pytest.approx(wanted.pvalue, abs=error)
    assert found.p_adjusted.tolist() == found.p.tolist()
    corrected = compare_by_role(importance, holds, list("abcd"), "bh")
    assert (corrected.p_adjusted >= corrected.p).all()


def test_what_only_follows_the_layer_is_gone_among_the_heads_of_a_layer(chance):
    importance = chance.normal(size=SHAPE) + 10 * np.arange(4)[:, None]
    holds = held((13, 15, 18, 19, 20, 21, 7))
    found = compare_by_role(importance, holds, ["delimiter"])
    assert found.superiority[0] > 0.8
    assert found.p[0] < 0.05 < found.p_in_layers[0]
    pairs = [
        importance[layer, a] > importance[layer, b]
        for layer in range(4)
        for a in range(6)
        for b in range(6)
        if holds[0, layer, a] and not holds[0, layer, b]
    ]
    assert found.in_layers[0] == pytest.approx(np.mean(pairs))


def test_chance_gives_small_p_values_as_rarely_as_it_should():
    holds = held(range(7))
    p = [
        [found.p[0], found.p_in_layers[0]]
        for seed in range(30)
        for found in [compare_by_role(np.random.default_rng(seed).normal(size=SHAPE), holds, ["local"])]
    ]
    assert np.all(np.mean(np.array(p) < 0.1, axis=0) <= 0.27)  # 30 draws of 0.1: more than 8 in 1 of 500


def test_a_role_of_no_head_or_of_all_has_no_comparison(chance):
    found = compare_by_role(chance.normal(size=SHAPE), held((), range(24)), ["block", "delimiter"])
    assert found.n_holding.tolist() == [0, 24]
    assert np.isnan([found.superiority, found.low, found.high, found.p, found.p_adjusted, found.in_layers]).all()


def test_intervals_hold_the_true_share_as_often_as_they_say():
    covered = []
    for seed in range(300):
        chance = np.random.default_rng(seed)
        with_role, without = chance.normal(0.8, 1, size=6), chance.normal(size=20)  # true share: Phi(0.8 / sqrt 2)
        share = np.array([np.mean(with_role[:, None] > without)])
        low, high = superiority_interval(share, np.array([6.0]), np.array([20.0]))
        covered.append(low[0] <= 0.7142 <= high[0])
        assert 0 <= low[0] <= share[0] <= high[0] <= 1
    assert 0.91 <= np.mean(covered) <= 0.99
