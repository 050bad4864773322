import numpy as np
import pytest
import torch
from regressions import regression

from attention_sieve.core.knowledge.probes import solver
from attention_sieve.core.knowledge.probes.solver import TOLERANCE, minimise

STRENGTHS = (0.01, 1.0, 30.0)


def made(n_rows, n_columns, n_classes, size, seed=0):
    """Features of three vectors with correlated columns, and classes; the larger the size, the more separable."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(3, n_rows, n_columns)) @ rng.normal(size=(3, n_columns, n_columns))
    of_class = rng.normal(size=(n_columns, n_classes))
    labels = (features[0] @ of_class * size + rng.gumbel(size=(n_rows, n_classes))).argmax(axis=1)
    return features, labels


def solved(features, labels, strengths=STRENGTHS, **how):
    design = torch.from_numpy(np.concatenate([features, np.ones((*features.shape[:2], 1))], axis=2))
    targets = torch.from_numpy(np.eye(labels.max() + 1)[labels])
    return minimise(design, targets, torch.tensor([strengths] * len(features)).double(), **how)


def loss_of(weights, features, labels, strength):
    """Mean penalised loss of weights [output column], the last of the intercept, in numpy."""
    logits = features @ weights[:, :-1].T + weights[:, -1]
    if len(weights) == 1:
        logits = np.concatenate([np.zeros_like(logits), logits], axis=1)
    logits -= logits.max(axis=1, keepdims=True)
    logs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return -logs[np.arange(len(labels)), labels].mean() + strength / 2 * (weights[:, :-1] ** 2).sum() / len(labels)


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("size", [0.1, 50.0], ids=["inseparable", "separable"])
@pytest.mark.parametrize("whole_columns", [0, 100])
def test_losses_and_predictions_are_those_of_scikit_learn(n_classes, size, whole_columns, monkeypatch):
    monkeypatch.setattr(solver, "WHOLE_COLUMNS", whole_columns)
    features, labels = made(300, 7, n_classes, size)
    solution = solved(features, labels)
    assert (solution.gradient <= TOLERANCE).all()
    for vector, own in enumerate(features):
        for place, strength in enumerate(STRENGTHS):
            theirs = regression(strength).fit(own, labels)
            weights = solution.weights[vector, place].numpy()
            wanted = np.c_[theirs.coef_, theirs.intercept_]
            assert loss_of(weights, own, labels, strength) == pytest.approx(
                loss_of(wanted, own, labels, strength), abs=1e-5
            )
            assert float(solution.loss[vector, place]) == pytest.approx(loss_of(weights, own, labels, strength))
            logits = own @ weights[:, :-1].T + weights[:, -1]
            predicted = (logits[:, 0] > 0).astype(int) if n_classes == 2 else logits.argmax(axis=1)
            np.testing.assert_array_equal(predicted, theirs.predict(own))


def test_nothing_to_learn_leaves_the_shares_of_the_classes_to_the_intercept():
    labels = np.repeat([0, 1, 2], [10, 20, 70])
    solution = solved(np.zeros((1, 100, 2)), labels, (1.0,))
    np.testing.assert_allclose(torch.softmax(solution.weights[0, 0, :, -1], 0).numpy(), [0.1, 0.2, 0.7], atol=1e-4)


def test_a_penalised_intercept_stays_finite_for_a_class_without_rows():
    features = np.random.default_rng(0).normal(size=(1, 50, 3))
    design = torch.from_numpy(np.concatenate([features, np.ones((1, 50, 1))], axis=2))
    targets = torch.zeros((50, 3), dtype=torch.float64)
    targets[:, 1] = 1
    solution = minimise(design, targets, torch.ones((1, 1)).double(), penalises_intercept=True)
    assert (solution.gradient <= TOLERANCE).all()
    assert solution.weights.abs().max() < 10


def test_weights_to_begin_with_change_nothing_but_the_way():
    features, labels = made(200, 5, 3, 0.3)
    solution = solved(features, labels)
    again = solved(features, labels, start=solution.weights)
    torch.testing.assert_close(again.weights, solution.weights)
    elsewhere = solved(features, labels, start=torch.ones_like(solution.weights))
    torch.testing.assert_close(elsewhere.loss, solution.loss, atol=1e-5, rtol=0)


def test_soft_targets_are_fitted_as_if_each_row_stood_there_once_for_each_share():
    rng = np.random.default_rng(1)
    features, shares = rng.normal(size=(1, 40, 3)), rng.dirichlet([1, 1, 1], size=40)
    design = np.concatenate([features, np.ones((1, 40, 1))], axis=2)
    solution = minimise(torch.from_numpy(design), torch.from_numpy(shares), torch.ones((1, 1)).double())
    theirs = regression(1).fit(
        np.repeat(features[0], 3, axis=0), np.tile(np.arange(3), 40), sample_weight=shares.ravel()
    )
    np.testing.assert_allclose(solution.weights[0, 0, :, :-1].numpy(), theirs.coef_, atol=1e-3)
