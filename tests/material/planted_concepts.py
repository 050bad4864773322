"""Tasks without texts and vectors in which a concept is planted, for tests of probes and reports."""

import numpy as np

from attention_sieve.core.knowledge.labels import labels_of
from attention_sieve.core.knowledge.task import PARTS, Task, TaskExample
from attention_sieve.core.knowledge.vectors import Vectors
from attention_sieve.core.texts.text import Text

SIZES = (400, 120, 150)
"""Examples of each part."""


def made_task(n_classes=2, sizes=SIZES, seed=0, is_regression=False, name="made"):
    """A task whose labels say nothing about its texts; the texts differ in length."""
    rng = np.random.default_rng(seed)
    examples = []
    for part, n_rows in zip(PARTS, sizes):
        for row in range(n_rows):
            label = f"{rng.uniform(0, 5):.2f}" if is_regression else str(rng.integers(n_classes))
            examples.append(TaskExample(Text((f"{part} {row} " + "word " * rng.integers(3, 20),)), label, part))
    return Task(name, tuple(examples), is_regression)


def planted_vectors(task, shape, n_columns, planted=(), strength=2.0, seed=1):
    """Noise [example layer head column]; in the planted heads the label shows along a direction."""
    rng, gold = np.random.default_rng(seed), labels_of(task).gold
    vectors = rng.normal(size=(len(gold), *shape, n_columns)).astype(np.float32)
    for layer, head in planted:
        direction = rng.normal(size=n_columns)
        vectors[:, layer, head] += strength * (gold - gold.mean())[:, None] * direction / np.linalg.norm(direction)
    return vectors


def stacked(batches):
    """Vectors of all texts in their order, from the batches of a pass."""
    found = dict(pair for batch in batches for pair in batch)
    heads, layers = (np.stack([getattr(found[place], name) for place in sorted(found)]) for name in ("heads", "layers"))
    return Vectors(heads=heads, layers=layers)
