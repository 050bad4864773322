"""The vectors of a task's texts: read from the cache, or computed in one pass and cached."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.knowledge.kept_vectors import read_vectors, vectors_folder, vectors_key, write_vectors
from attention_sieve.core.knowledge.question import vectors_question
from attention_sieve.core.knowledge.report import texts_of
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import Pooling, TextVectors, Vectors
from attention_sieve.core.passes.question import answer
from attention_sieve.core.passes.texts import PassText

Batch = Sequence[tuple[int, TextVectors]]
"""Index and vectors of each text of a batch."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskReading:
    """A task as a checkpoint reads it."""

    checkpoint: Checkpoint
    settings: PassSettings
    """Which attention, and which heads are off."""
    pooling: Pooling
    """Where vectors are read."""
    task: Task
    """Without the examples that are left out."""
    texts: tuple[PassText, ...]
    """Those of its examples, in their order; for pairs, all first texts first."""
    vectors: Vectors
    """Of these texts."""


def read_task(
    checkpoint: Checkpoint,
    task: Task,
    prepared: Mapping[int, PassText],
    settings: PassSettings,
    pooling: Pooling,
    watch: Callable[[Iterable[Batch], int], Iterable[Batch]],
) -> TaskReading:
    """Read the vectors of a task's texts from the cache, or in one pass.

    Args:
        checkpoint: loaded.
        task: whose texts are read.
        prepared: those of `texts_of(task)` that are not left out, by index; a pair is left out if one of its texts is.
        settings: which attention, and which heads are off.
        pooling: where vectors are read.
        watch: watch(batches, number of texts) passes the batches on, and may report progress.

    Raises: AnalysisError if a text lacks the token of the pooling, or the vectors cannot be written.
    """
    texts, n_examples = texts_of(task), len(task.examples)
    left_out = {index % n_examples for index in range(len(texts)) if index not in prepared}
    indices = [index for index in range(len(texts)) if index % n_examples not in left_out]
    usable_texts = [texts[index] for index in indices]
    key = vectors_key(checkpoint, usable_texts, settings, pooling)
    vectors = read_vectors(vectors_folder(), key)
    if vectors is None:
        usable_prepared = {row: prepared[index] for row, index in enumerate(indices)}
        batches = watch(
            answer(checkpoint, vectors_question(pooling), usable_texts, usable_prepared, settings), len(usable_texts)
        )
        vectors = write_vectors(vectors_folder(), key, len(usable_texts), batches)
    examples = tuple(example for index, example in enumerate(task.examples) if index not in left_out)
    return TaskReading(
        checkpoint=checkpoint,
        settings=settings,
        pooling=pooling,
        task=replace(task, examples=examples),
        texts=tuple(prepared[index] for index in indices),
        vectors=vectors,
    )
