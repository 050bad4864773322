from contextlib import contextmanager
from itertools import pairwise

import numpy as np
import pytest
import torch
from planted_concepts import made_task, planted_vectors
from regressions import regression
from scipy.stats import pearsonr
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from attention_sieve.core.knowledge.labels import FOLDS, N_BINS, STRENGTHS, TaskLabels, labels_of, score
from attention_sieve.core.knowledge.probes import probe as probes
from attention_sieve.core.knowledge.probes.code_length import SHARES, block_ends, code_length
from attention_sieve.core.knowledge.probes.probe import fit, probe
from attention_sieve.core.knowledge.task import Task


def vectors_of(task, n_columns=6, planted=((0, 0), (1, 2)), **how):
    return planted_vectors(task, (2, 3), n_columns, planted, **how).reshape(len(task.examples), 6, n_columns)


@pytest.mark.parametrize("n_classes", [2, 4])
def test_strength_and_predictions_are_those_of_scikit_learn_head_by_head(n_classes):
    task = made_task(n_classes)
    labels, features = labels_of(task), vectors_of(task, strength=0.8) * 40 + 7
    probed, gold = probe(features, labels), labels.gold
    assert probed.n_unsolved == 0
    for vector in range(6):
        scaler = StandardScaler().fit(features[labels.train, vector].astype(float))
        train, validation, test = (
            scaler.transform(features[rows, vector].astype(float))
            for rows in (labels.train, labels.validation, labels.test)
        )
        theirs = [regression(strength).fit(train, gold[labels.train]) for strength in STRENGTHS]
        scores = [one.score(validation, gold[labels.validation]) for one in theirs]
        assert probed.validation[vector] == max(scores)
        best = max(range(len(STRENGTHS)), key=lambda place: (scores[place], STRENGTHS[place]))
        assert probed.strength[vector] == STRENGTHS[best]
        np.testing.assert_array_equal(probed.predicted[vector], theirs[best].predict(test))


@pytest.mark.parametrize("n_classes", [2, 4])
def test_without_a_validation_part_the_strength_is_that_of_scikit_learns_cross_validation(n_classes):
    task = made_task(n_classes)
    labels, features = labels_of(without_validation(task)), vectors_of(task, strength=0.6)
    features = features[[place for place, one in enumerate(task.examples) if one.part != "validation"]]
    probed, gold = probe(features, labels), labels.gold
    order = np.random.default_rng(0).permutation(labels.train)
    folds = [(np.setdiff1d(labels.train, fold), fold) for fold in np.array_split(order, FOLDS)]
    for vector in (0, 4):
        own = features[:, vector].astype(float)
        scores = []
        for strength in STRENGTHS:
            theirs = make_pipeline(StandardScaler(), regression(strength))
            right = [theirs.fit(own[rest], gold[rest]).predict(own[fold]) == gold[fold] for rest, fold in folds]
            scores.append(np.concatenate(right).mean())
        best = max(range(len(STRENGTHS)), key=lambda place: (scores[place], STRENGTHS[place]))
        assert (probed.strength[vector], probed.validation[vector]) == (STRENGTHS[best], pytest.approx(scores[best]))
        refitted = make_pipeline(StandardScaler(), regression(STRENGTHS[best]))
        refitted.fit(own[labels.train], gold[labels.train])
        np.testing.assert_array_equal(probed.predicted[vector], refitted.predict(own[labels.test]))


def without_validation(task):
    return Task(task.name, tuple(one for one in task.examples if one.part != "validation"))


@contextmanager
def threads(number):
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(("bound", "n_threads"), [("ENTRIES", 1), ("ENTRIES_OF_THREAD", 2)])
def test_vectors_are_worked_on_in_turns_and_by_threads_without_a_difference(bound, n_threads, monkeypatch):
    task = made_task(3, sizes=(90, 30, 40))
    labels, features = labels_of(task), vectors_of(task)
    at_once = probe(features, labels)
    monkeypatch.setattr(probes, bound, 1)
    with threads(n_threads):
        in_parts = probe(features, labels)
    np.testing.assert_array_equal(in_parts.predicted, at_once.predicted)
    np.testing.assert_array_equal(in_parts.strength, at_once.strength)
    assert in_parts.n_unsolved == 0


def test_the_same_input_gives_the_same_bytes_on_several_threads(monkeypatch):
    task = made_task(3)
    labels, features = labels_of(task), vectors_of(task)
    monkeypatch.setattr(probes, "ENTRIES_OF_THREAD", 1)
    with threads(2):
        one, two = (fit(features[labels.train], labels.targets[labels.train], np.ones((6, 2))) for _ in range(2))
    assert (one.weights == two.weights).all()
    assert (one.loss == two.loss).all()


def test_scale_shift_and_constant_columns_of_the_features_do_not_matter():
    task = made_task()
    labels, features = labels_of(task), vectors_of(task).astype(float)
    changed = np.concatenate([features * 1e-4 - 3, np.full((*features.shape[:2], 2), 0.1)], axis=2)
    np.testing.assert_array_equal(probe(changed, labels).predicted, probe(features, labels).predicted)


@pytest.mark.parametrize("n_rows", [12, 300], ids=["fewer rows than columns", "more rows"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_losses_are_those_of_scikit_learn_for_random_labels_and_nearly_equal_columns_of_all_sizes(n_rows, n_classes):
    rng = np.random.default_rng(4)
    features = rng.normal(size=(n_rows, 3, 15))
    features[..., 1] = features[..., 0] + 1e-6 * features[..., 1]
    features *= 10 ** np.linspace(-3, 3, 15)
    features[..., 2] = 5
    gold = rng.permutation(np.arange(n_rows) % n_classes)
    fitted = fit(features, np.eye(n_classes)[gold], np.tile((0.1, 10.0), (3, 1)))
    assert fitted.n_unsolved == 0
    for vector in range(3):
        columns = StandardScaler().fit_transform(features[:, vector])
        for place, strength in enumerate((0.1, 10.0)):
            theirs = regression(strength).fit(columns, gold)
            logs = np.log(theirs.predict_proba(columns)[np.arange(n_rows), gold])
            loss = (strength / 2 * (theirs.coef_**2).sum() - logs.sum()) / n_rows
            assert float(fitted.loss[vector, place]) == pytest.approx(loss, abs=1e-5)


def test_a_regression_is_shared_out_to_the_two_nearest_bins_and_judged_by_pearson():
    task = made_task(is_regression=True)
    labels, features = labels_of(task), vectors_of(task, strength=1.5)
    assert labels.n_classes == N_BINS
    inside = np.abs(labels.targets @ labels.bins - labels.values) < 1e-5
    assert inside[labels.train].all()
    np.testing.assert_allclose(labels.targets.sum(axis=1), 1, atol=1e-6)
    assert (labels.targets > 0).sum(axis=1).max() == 2
    probed = probe(features, labels)
    found = score(probed.predicted, labels.gold[labels.test], True)
    assert found[0] == pytest.approx(pearsonr(probed.predicted[0], labels.gold[labels.test]).statistic)
    assert found[[0, 5]].min() > 0.8 > np.abs(found[1:5]).max() + 0.4
    gold = labels.gold[labels.test]
    assert np.isnan(score(np.full((1, len(gold)), gold.mean()), gold, True)).all()


def test_permuted_labels_keep_the_classes_of_each_part():
    labels = labels_of(made_task(3))
    permuted = labels.permuted(0)
    assert (permuted.gold != labels.gold).any()
    for rows in (labels.train, labels.validation, labels.test):
        np.testing.assert_array_equal(np.sort(permuted.gold[rows]), np.sort(labels.gold[rows]))


def test_hundreds_of_classes_are_learned():
    rng = np.random.default_rng(0)
    classes = np.tile(np.arange(300), 4)
    centres = rng.normal(size=(300, 24))
    vectors = np.stack([centres[classes], np.zeros((1_200, 24))], axis=1) + rng.normal(0, 0.3, (1_200, 2, 24))
    train, validation, test = np.split(np.arange(1_200), [600, 900])
    targets = np.eye(300, dtype=np.float32)[classes]
    labels = TaskLabels(train=train, validation=validation, test=test, targets=targets)
    probed = probe(vectors, labels, strengths=(1.0,))
    telling, silent = (probed.predicted == classes[test]).mean(axis=1)
    assert probed.n_unsolved == 0
    assert telling > 0.9
    assert silent < 0.02


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
