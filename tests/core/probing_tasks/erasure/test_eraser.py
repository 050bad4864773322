import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from core.probing_tasks.erasure.eraser import concept_eraser, random_eraser

N_ROWS, N_CHANNELS = 400, 12


def rows(n_classes, seed=0, constant=0):
    """Correlated vectors whose mean depends on the class, and the classes as shares."""
    rng = np.random.default_rng(seed)
    classes = rng.integers(0, n_classes, N_ROWS)
    vectors = rng.standard_normal((N_ROWS, N_CHANNELS)) @ rng.standard_normal((N_CHANNELS, N_CHANNELS))
    vectors += rng.standard_normal((n_classes, N_CHANNELS))[classes] + 3
    vectors[:, :constant] = 1.5
    return vectors, np.eye(n_classes)[classes]


@pytest.mark.filterwarnings("ignore:.*torch.jit.script:DeprecationWarning")  # the package uses it when imported
@pytest.mark.parametrize("n_classes", [2, 5])
def test_the_map_is_that_of_the_published_package(n_classes):
    from concept_erasure import LeaceFitter

    vectors, targets = rows(n_classes)
    fitter = LeaceFitter.fit(
        torch.from_numpy(vectors), torch.from_numpy(targets), constrain_cov_trace=False, shrinkage=False, svd_tol=1e-8
    )
    eraser = concept_eraser(vectors, targets)
    np.testing.assert_allclose(eraser(vectors), fitter.eraser(torch.from_numpy(vectors)).numpy(), atol=1e-9)
    assert eraser.rank == n_classes - 1


@pytest.mark.parametrize("constant", [0, 3])
def test_nothing_linear_is_left_and_as_little_as_possible_is_changed(constant):
    vectors, targets = rows(3, constant=constant)
    erased = concept_eraser(vectors, targets)(vectors)
    covariance = (erased - erased.mean(axis=0)).T @ (targets - targets.mean(axis=0)) / N_ROWS
    np.testing.assert_allclose(covariance, 0, atol=1e-10)
    np.testing.assert_allclose(erased.mean(axis=0), vectors.mean(axis=0), atol=1e-10)
    np.testing.assert_allclose(erased[:, :constant], 1.5)
    classes = targets.argmax(axis=1)
    before, after = (LogisticRegression(max_iter=1000).fit(x, classes).score(x, classes) for x in (vectors, erased))
    assert before > 0.55
    assert after <= np.bincount(classes).max() / N_ROWS + 0.01


def test_values_of_a_regression_are_erased_too():
    vectors, _ = rows(2)
    values = (vectors @ np.arange(N_CHANNELS))[:, None]
    eraser = concept_eraser(vectors, values)
    np.testing.assert_allclose((eraser(vectors) - vectors.mean(axis=0)).T @ values, 0, atol=1e-6)
    assert eraser.rank == 1


def test_what_tells_nothing_is_left_as_it_is():
    vectors, targets = rows(2)
    orthogonal = targets[:, :1] - targets[:, :1].mean()
    design = np.column_stack([orthogonal, np.ones(N_ROWS)])
    vectors -= design @ np.linalg.lstsq(design, vectors, rcond=None)[0]
    eraser = concept_eraser(vectors, targets)
    assert eraser.rank == 0
    np.testing.assert_allclose(eraser(vectors), vectors)


@pytest.mark.parametrize("rank", [1, 4, N_CHANNELS])
def test_random_directions_are_as_many_and_orthogonal_where_vectors_are_white(rank):
    vectors, _ = rows(2)
    eraser = random_eraser(vectors, rank, np.random.default_rng(3))
    assert np.linalg.matrix_rank(eraser.removed) == eraser.rank == rank
    left = eraser(vectors)
    covariance, before = (np.cov(x, rowvar=False, bias=True) for x in (left, vectors))
    # Of the variance, measured in units of its own covariance, just the erased directions are gone.
    assert np.trace(np.linalg.solve(before, covariance)) == pytest.approx(N_CHANNELS - rank)
    other = random_eraser(vectors, rank, np.random.default_rng(4))
    assert rank == N_CHANNELS or not np.allclose(eraser.removed, other.removed)
