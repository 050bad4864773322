"""The vectors of a task's texts: kept ones, or computed in one pass and kept."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.question import answer
from core.passes.texts import PassText
from core.probing_tasks.kept_vectors import read_vectors, vectors_folder, vectors_key, write_vectors
from core.probing_tasks.question import vectors_question
from core.probing_tasks.report import texts_of
from core.probing_tasks.task import Task
from core.probing_tasks.vectors import Pooling, TextVectors, Vectors

Batch = Sequence[tuple[int, TextVectors]]
"""Index and vectors of each text of a batch."""


def read_task(
    checkpoint: Checkpoint,
    task: Task,
    prepared: Mapping[int, PassText],
    settings: PassSettings,
    pooling: Pooling,
    watch: Callable[[Iterable[Batch], int], Iterable[Batch]],
) -> tuple[Task, Vectors]:
    """Vectors of a task's texts, and the task without the examples that are left out.

    Args:
        checkpoint: loaded.
        task: whose texts are read.
        prepared: each of `texts_of(task)` that is not left out, by its place; a pair without one of its texts is left
            out.
        settings: which attention, and which heads are off.
        pooling: where vectors are read.
        watch: passes batches on, of which there are so many texts, and may say how far the work is.

    Raises: AnalysisError for a pooling that a text does not have, and for vectors that cannot be kept.
    """
    texts, n_examples = texts_of(task), len(task.examples)
    left_out = {place % n_examples for place in range(len(texts)) if place not in prepared}
    kept = [place for place in range(len(texts)) if place % n_examples not in left_out]
    own = [texts[place] for place in kept]
    key = vectors_key(checkpoint, own, settings, pooling)
    vectors = read_vectors(vectors_folder(), key)
    if vectors is None:
        ready = {row: prepared[place] for row, place in enumerate(kept)}
        batches = watch(answer(checkpoint, vectors_question(pooling), own, ready, settings), len(own))
        vectors = write_vectors(vectors_folder(), key, len(own), batches)
    examples = tuple(example for place, example in enumerate(task.examples) if place not in left_out)
    return replace(task, examples=examples), vectors
