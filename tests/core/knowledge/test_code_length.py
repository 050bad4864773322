from itertools import pairwise

import numpy as np
import pytest
from planted_concepts import made_task, planted_vectors
from regressions import regression
from sklearn.preprocessing import StandardScaler

from attention_sieve.core.knowledge.labels import labels_of
from attention_sieve.core.knowledge.probes.code_length import SHARES, block_ends, code_length


def test_bits_are_those_of_scikit_learn_block_by_block():
    task = made_task(3, seed=5)
    labels = labels_of(task)
    features = planted_vectors(task, (1, 2), 4, [(0, 1)]).reshape(-1, 2, 4)
    found, uniform = code_length(features, labels, 3, (10.0,))
    ends = block_ends(400, 3)
    order, gold = np.random.default_rng(3).permutation(labels.train), labels.gold.astype(int)
    bits = ends[0] * np.log2(3)
    for start, end in pairwise(ends):
        scaler = StandardScaler().fit(features[order[:start], 1].astype(float))
        train, block = (
            np.c_[scaler.transform(features[rows, 1].astype(float)), np.ones(len(rows))]
            for rows in (order[:start], order[start:end])
        )
        theirs = regression(10, fit_intercept=False).fit(train, gold[order[:start]])
        assert len(theirs.classes_) == 3
        bits -= np.log2(theirs.predict_proba(block)[np.arange(end - start), gold[order[start:end]]]).sum()
    assert found[1] == pytest.approx(bits, rel=1e-4)
    assert uniform == pytest.approx(400 * np.log2(3))


def test_blocks_end_at_growing_shares_and_the_first_holds_two_rows_a_class():
    assert block_ends(100_000, 2) == tuple(round(100_000 * share) for share in SHARES)
    assert block_ends(2_000, 23) == (46, 64, 125, 250, 500, 1000, 2000)
    assert block_ends(30, 20) == (30,)


def test_a_class_that_comes_late_has_a_finite_code():
    task = made_task(2, sizes=(400, 20, 20))
    labels = labels_of(task)
    labels.targets[labels.train] = (1, 0)
    order = np.random.default_rng(0).permutation(labels.train)
    labels.targets[order[-3:]] = (0, 1)
    bits, uniform = code_length(planted_vectors(task, (1, 1), 4).reshape(-1, 1, 4), labels)
    assert bits[0] < uniform


def test_the_strength_of_the_shortest_code_is_sent_too():
    task = made_task(2, seed=5)
    labels, features = labels_of(task), planted_vectors(task, (1, 2), 4, [(0, 1)]).reshape(-1, 2, 4)
    alone = [code_length(features, labels, 0, (strength,))[0] for strength in (0.1, 10.0, 1000.0)]
    together = code_length(features, labels, 0, (0.1, 10.0, 1000.0))[0]
    np.testing.assert_allclose(together, np.min(alone, axis=0) + np.log2(3))
