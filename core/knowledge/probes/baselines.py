"""Baselines that use no vectors: class frequencies, text length, and words."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.knowledge.labels import LENGTH, MAJORITY, WORDS, BaselinePredictions, TaskLabels, score
from attention_sieve.core.knowledge.probes.probe import probe
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import pair_features

MOST_WORDS: Final = 1_000
"""Number of words that are counted: the most frequent ones of the training part."""
_WORD: Final = re.compile(r"\w+")


def baselines(task: Task, labels: TaskLabels) -> tuple[BaselinePredictions, ...]:
    """Three baselines of a task: its most frequent class, the length of its texts alone, and the words in them.

    The last two are probes like those of heads: on the numbers of words and characters of each segment and their
    squares, and on counts of the MOST_WORDS most frequent words, combined by `pair_features` for pairs.
    """
    train, gold = labels.gold[labels.train], labels.gold[labels.test]
    most_frequent = np.bincount(train.astype(int)).argmax() if labels.bins is None else train.mean()
    predictions = {
        MAJORITY: np.full(len(gold), float(most_frequent)),
        LENGTH: probe(_lengths(task)[:, None], labels).predicted[0],
        WORDS: probe(_word_counts(task, labels)[:, None], labels).predicted[0],
    }
    return tuple(
        BaselinePredictions(name=name, score=float(score(predicted, gold, task.is_regression)), predicted=predicted)
        for name, predicted in predictions.items()
    )


def _lengths(task: Task) -> Float[np.ndarray, "example column"]:
    sizes = np.array(
        [
            [size for segment in example.text.segments for size in (len(segment.split()), len(segment))]
            for example in task.examples
        ],
        float,
    )
    return np.concatenate([sizes, sizes**2], axis=1)


def _word_counts(task: Task, labels: TaskLabels) -> Float[np.ndarray, "example column"]:
    words = [[_WORD.findall(segment.lower()) for segment in example.text.segments] for example in task.examples]
    frequencies = Counter(word for row in labels.train for segment in words[row] for word in segment)
    column = {word: index for index, (word, _) in enumerate(frequencies.most_common(MOST_WORDS))}
    first, *others = (_counts([segments[side] for segments in words], column) for side in range(len(words[0])))
    return pair_features(first, others[0]) if others else first


def _counts(texts: Sequence[Sequence[str]], column: dict[str, int]) -> Float[np.ndarray, "example column"]:
    counts = np.zeros((len(texts), max(1, len(column))))
    for row, words in enumerate(texts):
        for word in words:
            if word in column:
                counts[row, column[word]] += 1
    return counts
