"""A simulated class: students who type sentences and move tau, a reader with a long corpus, and a page that is
closed."""

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.store.store import Store
from benchmarks.shared.server import Dashboard
from benchmarks.shared.visitors import Answer, Visitor, is_progress, visitor

READS, LOOKS = (5.0, 10.0), (1.0, 3.0)
"""Seconds before the next sentence, and before tau is moved."""
TAU_EVERY: Final = 3
"""Tau is moved after every sentence except each third one."""
MEMORY_AT: Final = (100, 1000)
"""Interactions after which the server's memory is read."""
ALL_AT_ONCE, OWN_PACE, BESIDE_CORPUS = "all at once", "at their own pace", "beside a long corpus"
TAUS: Final = (2.0, 4.5)
LOOKS_A_SECOND: Final = 5
QUIET_SECONDS: Final = 3
"""If the store has not grown for this long, nothing more is being written."""


@dataclass
class Record:
    """Measurements of a class."""

    typed: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from typing to scores, by the kind of class."""
    moved: dict[str, list[float]] = field(default_factory=dict)
    """Seconds from tau to the redrawn grid."""
    scores: dict[str, Float[np.ndarray, "role layer head"]] = field(default_factory=dict)
    """Scores shown in the grid for each sentence."""
    wrong: list[str] = field(default_factory=list)
    """Errors on pages, and grids that do not match the request."""
    memory: list[int] = field(default_factory=list)
    """Bytes of the server after each of MEMORY_AT interactions."""
    n_interactions: int = 0
    n_uploads: int = 0


class Class:
    """Students at one server.

    Attributes:
        kind: the current kind of class, under which waiting times are recorded.
    """

    def __init__(self, server: Dashboard, record: Record) -> None:
        self._server = server
        self.record = record
        self.kind = ALL_AT_ONCE

    async def open(self, student: Visitor) -> None:
        """Open the page."""
        self._count(await student.open())

    async def type(self, student: Visitor, sentence: str) -> None:
        """Type a sentence and note when its scores are there."""
        kind = self.kind
        answer = await student.type(sentence)
        self._count(answer)
        if answer.grid is None:
            self.record.wrong.append(f"no grid for {sentence!r}")
            return
        self.record.typed.setdefault(kind, []).append(answer.to_grid)
        self.record.scores[sentence] = answer.grid.scores

    async def move_tau(self, student: Visitor, tau: float, sentence: str) -> None:
        """Move tau: the same scores, and the roles that follow from them."""
        kind = self.kind
        answer = await student.move("tau", tau)
        self._count(answer)
        self.record.moved.setdefault(kind, []).append(answer.to_grid)
        grid, scores = answer.grid, self.record.scores.get(sentence)
        fits = grid is not None and grid.tau == tau and np.array_equal(grid.scores, scores, equal_nan=True)
        if not (fits and np.array_equal(grid.holds, grid.scores > tau)):
            self.record.wrong.append(f"tau {tau:g} did not fit {sentence!r}")

    def _count(self, answer: Answer) -> None:
        self.record.wrong += answer.complaints
        self.record.n_interactions += 1
        if self.record.n_interactions in MEMORY_AT:
            self.record.memory.append(self._server.resident_bytes())


async def warm_up(student: Visitor) -> None:
    """Wait until the checkpoint and the parser are loaded."""
    await student.type("The class has not begun yet, and nobody is waiting.")


async def all_at_once(together: Class, students: Sequence[Visitor], own: Sequence[Sequence[str]]) -> None:
    for number, line in enumerate(zip(*own)):
        await asyncio.gather(*(together.type(student, sentence) for student, sentence in zip(students, line)))
        if moves_tau(number):
            tau = TAUS[number % len(TAUS)]
            await asyncio.gather(*(together.move_tau(student, tau, text) for student, text in zip(students, line)))


async def at_their_own_pace(together: Class, students: Sequence[Visitor], own: Sequence[Sequence[str]]) -> None:
    await asyncio.gather(
        *(one_student(together, student, texts, seed) for seed, (student, texts) in enumerate(zip(students, own)))
    )


async def one_student(together: Class, student: Visitor, texts: Sequence[str], seed: int) -> None:
    chance = random.Random(seed)
    for number, sentence in enumerate(texts):
        await asyncio.sleep(chance.uniform(READS[0] if number else 0, READS[1]))
        await together.type(student, sentence)
        if moves_tau(number):
            await asyncio.sleep(chance.uniform(*LOOKS))
            await together.move_tau(student, TAUS[number % len(TAUS)], sentence)


def moves_tau(number: int) -> bool:
    return number % TAU_EVERY != 0


async def open_for_a_corpus(reader: Visitor) -> None:
    await reader.open()
    await reader.choose("corpus", "type texts")


async def closed_page(server: Dashboard, corpus: Sequence[str]) -> tuple[int, int]:
    """Close a page whose corpus has just begun.

    Returns: texts that were kept when the page was closed, and texts that were kept after that.
    """
    store = Store(server.log.parent)
    n_before = store.size()[0]
    async with visitor(server.address) as reader:
        await open_for_a_corpus(reader)
        await reader.type("\n".join(corpus), "corpus_text", until=is_progress)
    n_closed = n_last = store.size()[0]
    quiet_since = time.perf_counter()
    while time.perf_counter() - quiet_since < QUIET_SECONDS:
        await asyncio.sleep(1 / LOOKS_A_SECOND)
        if (n_now := store.size()[0]) != n_last:
            n_last, quiet_since = n_now, time.perf_counter()
    store.close()
    return n_closed - n_before, n_last - n_closed
