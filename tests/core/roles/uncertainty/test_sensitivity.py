from dataclasses import replace

import numpy as np
import pytest

from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion, role_tests
from attention_sieve.core.roles.measures import RoleScores
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.roles.uncertainty.sensitivity import SIZES, TAUS, counts_by_tau, counts_by_texts

CHOSEN = ("delimiter", "block")
TEXTS, LAYERS, HEADS = 30, 2, 3


SHAPE = (TEXTS, len(ROLES), LAYERS, HEADS)


def scored_as(scores, uniform=1.0, greatest=40.0):
    uniform, greatest = (np.broadcast_to(values, SHAPE[:3]) for values in (uniform, greatest))
    return RoleScores(roles=ROLES, scores=scores, uniform=uniform, greatest=greatest)


def some_scores():
    """Heads of means from 1.5 to 6, and block scores that uniform attention reaches too."""
    means = np.linspace(1.5, 6, LAYERS * HEADS).reshape(LAYERS, HEADS)
    is_block = np.array(ROLES)[:, None] == "block"
    return scored_as(np.random.default_rng(0).gamma(9, means / 9, SHAPE), np.where(is_block, 3.5, 1.0))


@pytest.mark.parametrize("family", ["role", "all"])
def test_counts_by_tau_are_those_of_the_tests_at_each_tau(family):
    scored, settings = some_scores(), Criterion(tau=2.2, family=family)
    counts = counts_by_tau(scored, CHOSEN, settings)
    assert counts.taus == tuple(sorted((*TAUS["score"], 2.2)))
    for at, tau in enumerate(counts.taus):
        tests = role_tests(scored.scores, ROLES, Criterion(tau=tau, family=family), scored.uniform)
        expected = [tests.holds[ROLES.index(role)].sum() for role in CHOSEN]
        assert counts.heads[at].tolist() == expected
    assert (np.diff(counts.heads, axis=0) <= 0).all()
    assert counts.heads[0, 0] > counts.heads[-1, 0]
    assert counts_by_tau(scored, CHOSEN, Criterion(tau=3.0)).taus == TAUS["score"], "of which the reader's is one"


def test_counts_by_tau_follow_the_evidence_where_that_decides():
    scored, settings = some_scores(), Criterion(tau=2.2)
    counts = counts_by_tau(scored, CHOSEN, settings, by_evidence=True)
    for at, tau in enumerate(counts.taus):
        held = role_finding(scored, Criterion(tau=tau), scored).tests.holds
        assert counts.heads[at].tolist() == [held[ROLES.index(role)].sum() for role in CHOSEN]
    assert (counts.heads < counts_by_tau(scored, CHOSEN, settings).heads).any()


def test_counts_by_texts_narrow_as_texts_are_added_and_repeat_with_their_seed():
    scored = some_scores()
    counts = counts_by_texts(scored, CHOSEN, Criterion())
    assert counts.sizes == (*SIZES[:3], TEXTS)
    assert (counts.low <= counts.median).all()
    assert (counts.median <= counts.high).all()
    assert counts.median[0, 0] < counts.median[-1, 0]
    again = counts_by_texts(scored, CHOSEN, Criterion())
    np.testing.assert_array_equal(counts.high, again.high)
    assert not np.array_equal(counts_by_texts(scored, CHOSEN, Criterion(), seed=1).low, counts.low)


def test_heads_far_from_tau_have_no_band():
    scores = np.random.default_rng(1).gamma(900, 6 / 900, SHAPE)
    counts = counts_by_texts(scored_as(scores), CHOSEN, Criterion())
    np.testing.assert_array_equal(counts.low, LAYERS * HEADS)
    np.testing.assert_array_equal(counts.high, LAYERS * HEADS)


def test_shares_are_counted_at_thresholds_between_zero_and_one():
    scored = scored_as(np.random.default_rng(4).normal(0.4, 0.1, SHAPE), 0.0, 1.0)
    counts = counts_by_tau(replace(scored, scale="share"), CHOSEN, Criterion(tau=0.5))
    assert counts.taus == TAUS["share"]
    assert counts.heads[0].tolist() == [LAYERS * HEADS] * len(CHOSEN)
    assert counts.heads[-1].tolist() == [0] * len(CHOSEN)
