"""Vectors of the texts of a task, cached on disk: one memory-mapped safetensors file per corpus, written batch by
batch, of limited size."""

import hashlib
import json
import math
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.commands import write_whole
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import parse_json
from attention_sieve.core.knowledge.report import texts_of
from attention_sieve.core.knowledge.task import Task
from attention_sieve.core.knowledge.vectors import Pooling, TextVectors, Vectors
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text, texts_sha256

MOST_BYTES: Final = 4 << 30
"""Limit of all files together; the least recently read ones are deleted first."""
FORMAT: Final = 1
SUFFIX: Final = ".safetensors"
FLOAT32: Final = "F32"
ALIGNED: Final = 8
"""The header is padded with spaces to a multiple of this number of bytes."""
LARGEST_HEADER: Final = 10_000
NAMES: Final = ("heads", "layers")
Batch = Sequence[tuple[int, TextVectors]]
"""Index and vectors of each text of a batch."""


def vectors_folder() -> Path:
    """Folder of the files, beside the store; it may not exist yet."""
    return program_folder() / "vectors"


def vectors_key(checkpoint: Checkpoint, texts: Sequence[Text], settings: PassSettings, pooling: Pooling) -> str:
    """Name of the file: a SHA-256 of everything that the vectors depend on."""
    content = json.dumps(
        [FORMAT, checkpoint.files.fingerprint, checkpoint.files.seed, checkpoint.dtype, checkpoint.device,
         settings.kind, sorted(settings.off), pooling, texts_sha256(texts)]
    )  # fmt: skip
    return hashlib.sha256(content.encode()).hexdigest()


def read_vectors(folder: Path, key: str) -> Vectors | None:
    """Read-only, memory-mapped vectors of a file; None if it does not exist or is damaged."""
    path = folder / f"{key}{SUFFIX}"
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(ALIGNED), "little")
            header = parse_json(file.read(length)) if 0 < length <= LARGEST_HEADER else None
        if not isinstance(header, dict) or not set(NAMES) <= set(header):
            return None
        first, parts = ALIGNED + length, [header[name] for name in NAMES]
        if path.stat().st_size != first + max(part["data_offsets"][1] for part in parts):
            return None
        os.utime(path)
        heads, layers = (
            np.memmap(path, np.float32, "r", first + part["data_offsets"][0], tuple(part["shape"])) for part in parts
        )
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: not JSON, or not UTF-8
        return None
    return Vectors(heads=heads, layers=layers)


def write_vectors(
    folder: Path, key: str, n_texts: int, batches: Iterable[Batch], most_bytes: int = MOST_BYTES
) -> Vectors:
    """Write the vectors of a corpus batch by batch, in single precision, and return them memory-mapped.

    The file gets its final name once it is complete. Then the least recently read files are deleted to make room.

    Args:
        folder: of the files; created if missing.
        key: from `vectors_key`.
        n_texts: number of texts, whose indices are 0 to n_texts - 1.
        batches: index and vectors of each text, in any order.
        most_bytes: limit of all files together.

    Raises: AnalysisError if the vectors alone exceed the limit, or cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / f"{key}{SUFFIX}", lambda part: _fill(part, n_texts, batches, most_bytes))
    except OSError as error:
        raise AnalysisError(
            f"The vectors cannot be written to {folder} ({error.strerror}). Free some space, or choose another folder."
        ) from None
    _make_room(folder, most_bytes, key)
    vectors = read_vectors(folder, key)
    if vectors is None:
        raise RuntimeError(f"{key} was written and cannot be read.")
    return vectors


def _fill(path: Path, n_texts: int, batches: Iterable[Batch], most_bytes: int) -> None:
    arrays: list[np.memmap] = []
    for batch in batches:
        for index, vectors in batch:
            if not arrays:
                arrays = _create(path, [(n_texts, *vectors.heads.shape), (n_texts, *vectors.layers.shape)], most_bytes)
            arrays[0][index], arrays[1][index] = vectors.heads, vectors.layers
    for array in arrays:
        array.flush()


def _create(path: Path, shapes: Sequence[tuple[int, ...]], most_bytes: int) -> list[np.memmap]:
    sizes = [math.prod(shape) * np.dtype(np.float32).itemsize for shape in shapes]
    if sum(sizes) > most_bytes:
        raise AnalysisError(
            f"The vectors of {shapes[0][0]:,} texts take {sum(sizes) / 2**30:.1f} GB and at most "
            f"{most_bytes / 2**30:.1f} GB can be cached. Give fewer texts."
        )
    ends = np.cumsum([0, *sizes]).tolist()
    header = json.dumps(
        {
            name: {"dtype": FLOAT32, "shape": shape, "data_offsets": [start, end]}
            for name, shape, start, end in zip(NAMES, shapes, ends, ends[1:])
        }
    ).encode()
    header += b" " * (-len(header) % ALIGNED)
    first = ALIGNED + len(header)
    with path.open("wb") as file:
        file.write(len(header).to_bytes(ALIGNED, "little") + header)
        file.truncate(first + sum(sizes))
    return [
        np.memmap(path, np.float32, mode="r+", offset=first + start, shape=shape) for start, shape in zip(ends, shapes)
    ]


def _make_room(folder: Path, most_bytes: int, key: str) -> None:
    """Delete the least recently read files, except that of this key."""
    states = [(path, path.stat()) for path in folder.glob(f"*{SUFFIX}") if path.stem != key]
    total = (folder / f"{key}{SUFFIX}").stat().st_size + sum(state.st_size for _, state in states)
    for path, state in sorted(states, key=lambda entry: entry[1].st_mtime_ns):
        if total <= most_bytes:
            return
        path.unlink(missing_ok=True)
        total -= state.st_size


@dataclass(frozen=True, eq=False, kw_only=True)
class TaskReading:
    """A task as a checkpoint reads it."""

    checkpoint: Checkpoint
    settings: PassSettings
    pooling: Pooling
    task: Task
    """Without the examples that are left out."""
    texts: tuple[PassText, ...]
    """Those of its examples, in their order; for pairs, all first texts first."""
    vectors: Vectors


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
        prepared: those of `texts_of(task)` that are not left out, by index; a pair is left out if one of its texts is.
        watch: watch(batches, number of texts) passes the batches on, and may report progress.

    Raises: AnalysisError if a text lacks the token of the pooling, or the vectors cannot be written.
    """
    texts, n_examples = texts_of(task), len(task.examples)
    left_out = {index % n_examples for index in range(len(texts)) if index not in prepared}
    indices = [index for index in range(len(texts)) if index % n_examples not in left_out]
    usable_texts, usable_prepared = [texts[index] for index in indices], [prepared[index] for index in indices]
    key = vectors_key(checkpoint, usable_texts, settings, pooling)
    vectors = read_vectors(vectors_folder(), key)
    if vectors is None:
        from attention_sieve.core.knowledge.observer import text_vectors

        batches = watch(text_vectors(checkpoint, usable_prepared, settings, pooling), len(usable_texts))
        vectors = write_vectors(vectors_folder(), key, len(usable_texts), batches)
    examples = tuple(example for index, example in enumerate(task.examples) if index not in left_out)
    return TaskReading(
        checkpoint=checkpoint,
        settings=settings,
        pooling=pooling,
        task=replace(task, examples=examples),
        texts=tuple(usable_prepared),
        vectors=vectors,
    )
