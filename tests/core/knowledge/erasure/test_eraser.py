import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from attention_sieve.core.knowledge.erasure.eraser import concept_eraser, random_eraser

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


@pytest.mark.parametrize("n_classes", [2, 5, N_CHANNELS + 1])
def test_random_directions_are_as_many_and_change_as_much_as_the_concept(n_classes):
    vectors, targets = rows(n_classes)
    concept = concept_eraser(vectors, targets)
    before = np.cov(vectors, rowvar=False, bias=True)
    elsewhere = vectors[:, ::-1] * 2 + 1  # the vectors that are erased need not be those that the map is fitted to
    spread = (elsewhere - vectors.mean(axis=0)).T @ (elsewhere - vectors.mean(axis=0)) / N_ROWS
    erasers = [random_eraser(vectors, concept, spread, np.random.default_rng(seed)) for seed in range(20)]
    for eraser in erasers:
        assert np.linalg.matrix_rank(eraser.removed) == eraser.rank == n_classes - 1
        taken, by_concept = (np.square(elsewhere - each(elsewhere)).sum() for each in (eraser, concept))
        assert taken == pytest.approx(by_concept)
        # Without the change of size they are projections: of the variance, in units of its own covariance, just as many
        # parts as directions are gone.
        strength = np.trace(eraser.removed) / eraser.rank
        left = np.cov(vectors - (vectors - eraser.mean) @ eraser.removed / strength, rowvar=False, bias=True)
        assert np.trace(np.linalg.solve(before, left)) == pytest.approx(N_CHANNELS - eraser.rank)
    assert concept.rank == N_CHANNELS or not np.allclose(erasers[0].removed, erasers[1].removed)


def test_random_directions_are_drawn_evenly_where_vectors_are_white():
    vectors, targets = rows(2)
    mean, root = vectors.mean(axis=0), np.linalg.cholesky(np.linalg.inv(np.cov(vectors, rowvar=False, bias=True)))
    white = (vectors - mean) @ root
    concept = concept_eraser(white, targets)
    drawn = [random_eraser(white, concept, np.eye(N_CHANNELS), np.random.default_rng(seed)) for seed in range(500)]
    removed = np.mean([each.removed for each in drawn], axis=0)
    np.testing.assert_allclose(removed, np.eye(N_CHANNELS) / N_CHANNELS, atol=0.02)


def test_where_nothing_is_erased_nothing_random_is():
    concept = concept_eraser(np.ones((4, 3)), np.eye(2)[[0, 1, 0, 1]])
    assert random_eraser(np.ones((4, 3)), concept, np.zeros((3, 3)), np.random.default_rng(0)).rank == concept.rank == 0
