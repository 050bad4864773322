import numpy as np
import pytest
from planted_concepts import made_task, planted_vectors

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.labels import labels_of
from attention_sieve.core.knowledge.probes.probe import probe
from attention_sieve.core.knowledge.reconstruction import gain, ranking, reconstruct, usual_steps
from attention_sieve.core.knowledge.report import task_report
from attention_sieve.core.knowledge.vectors import Vectors

SHAPE = (2, 3)


def made(planted=((0, 1), (1, 0), (1, 2)), is_regression=False, seed=2, **how):
    """A task of which some heads know a part each, and the layers nothing."""
    task = made_task(seed=seed, is_regression=is_regression)
    vectors = Vectors(
        heads=planted_vectors(task, SHAPE, 4, planted, strength=1.0),
        layers=planted_vectors(task, (SHAPE[0], 1), 7, seed=9)[:, :, 0],
    )
    report = task_report(task, vectors)
    return task, vectors, report, reconstruct(task, vectors, report, **how)


def test_heads_that_know_a_part_each_are_ranked_first_and_tell_more_together():
    _, _, report, found = made()
    assert set(found.heads[:3]) == {(0, 1), (1, 0), (1, 2)}
    assert len(found.heads) == 6
    assert found.n_heads.tolist() == [1, 2, 3, 4, 5, 6]
    assert found.accuracy[2] > found.accuracy[0] + 0.05
    assert found.accuracy[0] == report.accuracy[report.best_head]
    assert ((found.low < found.accuracy) & (found.accuracy < found.high)).all()
    assert 2 <= found.enough <= 4
    assert found.n_unsolved == 0


def test_each_step_is_the_probe_of_the_concatenated_vectors_alone():
    task, vectors, report, found = made(steps=(2, 5))
    labels, places = labels_of(task), ranking(report)
    for step, n_heads in enumerate((2, 5)):
        columns = [vectors.heads[:, report.layer[place], report.head[place]] for place in places[:n_heads]]
        alone = probe(np.concatenate(columns, axis=1)[:, None], labels)
        assert found.strength[step] == alone.strength[0]
        assert found.validation[step] == alone.validation[0]
        np.testing.assert_array_equal(found.predicted[step], alone.predicted[0])


def test_the_gain_and_its_interval_against_resampled_examples():
    _, _, report, found = made()
    gained = gain(found, report, 3)
    right = found.predicted[2] == found.gold, report.right[report.best_layer]
    assert gained.percent == pytest.approx(100 * (right[0].mean() - right[1].mean()) / right[1].mean())
    rng, drawn = np.random.default_rng(1), []
    for _ in range(4_000):
        rows = rng.integers(0, len(found.gold), len(found.gold))
        drawn.append(100 * (right[0][rows].mean() / right[1][rows].mean() - 1))
    assert (gained.low, gained.high) == pytest.approx(tuple(np.quantile(drawn, [0.025, 0.975])), rel=0.08)
    assert gained.low > 0


def test_heads_that_know_nothing_gain_nothing():
    _, _, report, found = made(planted=())
    gained = gain(found, report, 3)
    assert gained.low < 0 < gained.high


def test_numbers_of_heads_that_are_tried():
    assert usual_steps(6, 3) == (1, 2, 3, 4, 5, 6)
    assert usual_steps(12, 3, every=1, growth=1.5) == (1, 2, 3, 4, 6, 9, 12)
    steps = usual_steps(144, 12)
    assert steps[:24] == tuple(range(1, 25))
    assert steps[24:] == (26, 29, 32, 35, 38, 42, 46, 51, 56, 62, 68, 75, 82, 90, 99, 109, 120, 132, 144)


@pytest.mark.parametrize("steps", [(), (0, 1), (3, 7)])
def test_a_number_of_heads_that_is_not_there_is_refused(steps):
    with pytest.raises(AnalysisError, match="Choose numbers from 1 to 6"):
        made(steps=steps)
