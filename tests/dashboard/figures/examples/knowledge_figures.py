"""The figures of the page Knowledge, drawn of random numbers."""

import numpy as np
from drawn import Drawn

from attention_sieve.core.knowledge.reconstruction import Reconstruction
from attention_sieve.core.knowledge.report import Estimate
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.knowledge.estimates import (
    CheckpointScores,
    TaskGain,
    gain_dots,
    scores_of_checkpoints,
)
from attention_sieve.dashboard.figures.knowledge.in_layers import scores_by_layer, sorted_heads
from attention_sieve.dashboard.figures.knowledge.ranked import effect_of_number, localisation_curves
from attention_sieve.dashboard.figures.knowledge.task_similarity import similarity_of_tasks
from attention_sieve.dashboard.figures.knowledge.words import ACCURACY, CORRELATION, Scores

SHAPE = (3, 5)
CHANCE = np.random.default_rng(8)
HEADS = CHANCE.uniform(0.4, 0.9, SHAPE)
MANY = CHANCE.normal(size=(30, 20))
HOLED = np.where(np.arange(15).reshape(SHAPE) == 7, np.nan, HEADS)
NOTHING = np.full(SHAPE, np.nan)
TASKS = ("length", "tense", "tree_depth", "a task with a name that is much too long <b>")
SIMILARITY = np.array([[1, 0.2, -0.4, 0.1], [0.2, 1, 0.3, 0.7], [-0.4, 0.3, 1, 0.0], [0.1, 0.7, 0.0, 1]])
WORDS = ScatterTexts(title="Tasks", x="syntactic", y="semantic", reading=("dot: a head",), description="By tasks.")
BASELINES = {"majority": 0.5, "bag of words": 0.99, "length": 0.52}
SCORES = [Scores(label="bundled", heads=HOLED), Scores(label="random weights", heads=HEADS - 0.1)]


def estimate(value, half=0.05):
    return Estimate(value, value - half, value + half)


def gained(task, together):
    return TaskGain(
        task=task, n_heads=5, last=estimate(0.5), best=estimate(0.6), best_layer=1, together=estimate(together)
    )


def checkpoint(label, value, together=True):
    return CheckpointScores(
        label=label,
        best_head=estimate(value),
        best_layer=estimate(value + 0.1),
        together=estimate(value + 0.15) if together else None,
    )


def together(accuracy, validation, is_regression=False):
    n_steps = len(accuracy)
    return Reconstruction(
        task="tense",
        is_regression=is_regression,
        heads=tuple((place // 5, place % 5) for place in range(15)),
        n_heads=np.arange(1, n_steps + 1),
        strength=np.ones(n_steps),
        validation=np.array(validation),
        accuracy=np.array(accuracy),
        low=np.array(accuracy) - 0.1,
        high=np.array(accuracy) + 0.1,
        predicted=np.zeros((n_steps, 4)),
        gold=np.zeros(4),
        n_choosing=100,
        n_unsolved=0,
    )


FOUND = together([0.6, 0.7, 0.72, 0.71], [0.6, 0.75, 0.76, 0.77])
FIGURES = Drawn(
    {
        "localisation": lambda: localisation_curves(SCORES, BASELINES, ACCURACY),
        "localisation without baselines": lambda: localisation_curves(SCORES[:1], {}, CORRELATION),
        "by layer": lambda: scores_by_layer(SCORES, np.array([0.6, 0.7, 0.65]), BASELINES, ACCURACY, [(1, 1), (0, 2)]),
        "by layer of few heads": lambda: scores_by_layer(
            [Scores(label="one", heads=HEADS[:, :2])], np.array([0.6, 0.7, 0.65]), {}, CORRELATION
        ),
        "by layer of equal heads": lambda: scores_by_layer(
            [Scores(label="one", heads=np.full(SHAPE, 0.5))], np.full(3, 0.5), {"majority": 0.5}, ACCURACY
        ),
        "sorted": lambda: sorted_heads(HOLED - 0.6, "above the best baseline", [(1, 1)]),
        "sorted, many": lambda: sorted_heads(MANY, "above the best baseline"),
        "sorted, equal": lambda: sorted_heads(np.zeros(SHAPE), "above the best baseline"),
        "similarity": lambda: similarity_of_tasks(SIMILARITY, TASKS),
        "similarity of two": lambda: similarity_of_tasks(SIMILARITY[:2, :2], TASKS[:2]),
        "scatter by layer": lambda: head_scatter(HOLED, HEADS, WORDS, [(0, 0)], by_layer=True),
        "gains": lambda: gain_dots([gained(task, value) for task, value in zip(TASKS, (0.7, 0.55, 0.6, 0.65))]),
        "number of heads": lambda: effect_of_number(FOUND, 0.68, ACCURACY),
        "number of heads, regression": lambda: effect_of_number(together([0.1], [0.1], True), -0.1, CORRELATION),
        "checkpoints": lambda: scores_of_checkpoints(
            [checkpoint("random weights", 0.5, False), checkpoint("bundled", 0.7)], None, ACCURACY
        ),
        "saved steps": lambda: scores_of_checkpoints(
            [checkpoint("bundled", 0.5), checkpoint("run/checkpoint-10", 0.6), checkpoint("run/checkpoint-20", 0.7)],
            [0, 10, 20],
            ACCURACY,
        ),
    }
)
