"""A full class: students who type sentences and move tau at one server, how long each waits, and whether each is right.

Every student is a page of the real dashboard without a browser; students and server share this machine's cores. Waiting
ends when the whole grid is there; what a browser takes to draw it is measured in browser_speed.py. Kinds of class:

- all at once: everybody types at the same instant, and again when the last one has the grid. The worst case. - at their
own pace: everybody looks 5 to 10 seconds at each answer before typing on, and 1 to 3 before moving tau;
  the same beside a long corpus, for as long as that is being scored.
"""

import argparse
import asyncio
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text
from benchmarks.shared.lesson import (
    BESIDE_CORPUS,
    MEMORY_AT,
    OWN_PACE,
    Class,
    Record,
    all_at_once,
    at_their_own_pace,
    closed_page,
    open_for_a_corpus,
    warm_up,
)
from benchmarks.shared.sentences import sentences
from benchmarks.shared.server import Dashboard, prepare, serve
from benchmarks.shared.visitors import visitor

GOAL: Final = 2.0
"""Seconds from typing to scores for 95 in 100."""
GOAL_THROUGHPUT: Final = 2.0
GOAL_MEMORY: Final = 1.1
TOLERANCE: Final = 2e-4
SMALL: Final = 0.01
"""A score under this is a head that does not look there at all."""
SLICES: Final = 4
"""Throughput is measured in so many turns each way, since the machine may be slower at one time than at another."""


def main() -> None:
    asked = arguments()
    from benchmarks.shared.material import print_machine

    print_machine()
    texts = sentences(asked.students * (asked.at_once + asked.paced + asked.beside) + 2 * asked.corpus)
    typed, corpora = texts[: -2 * asked.corpus], texts[-2 * asked.corpus :]
    record = Record()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        with serve(Path(folder)) as server:
            seconds, kept = asyncio.run(lesson(server, record, asked, typed, corpora))
            n_tracebacks = server.tracebacks()
    report_waits(record, asked, seconds)
    n_wrong = report_answers(record, n_tracebacks)
    report_memory(record)
    report_closed(asked.corpus, *kept)
    report_throughput(asked.students, typed)
    if n_wrong:
        sys.exit(1)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A full class at one server.")
    parser.add_argument("--students", type=int, default=32)
    parser.add_argument(
        "--at-once",
        type=int,
        default=10,
        help="sentences per student while everybody types at once; default: %(default)s",
    )
    parser.add_argument(
        "--paced", type=int, default=5, help="sentences per student at their own pace; default: %(default)s"
    )
    parser.add_argument(
        "--beside", type=int, default=5, help="sentences per student beside a long corpus; default: %(default)s"
    )
    parser.add_argument(
        "--corpus", type=int, default=1500, help="number of texts of the long corpus; default: %(default)s"
    )
    return parser.parse_args()


async def lesson(
    server: Dashboard, record: Record, asked: argparse.Namespace, typed: Sequence[str], corpora: Sequence[str]
) -> tuple[float, tuple[int, int]]:
    """Everything that happens at the server.

    Returns: seconds of the long corpus, and what report_closed says of the one whose page was closed.
    """
    async with AsyncExitStack() as stack:
        students = [await stack.enter_async_context(visitor(server.address)) for _ in range(asked.students)]
        together = Class(server, record)
        await students[0].open()
        await warm_up(students[0])
        await asyncio.gather(*(together.open(student) for student in students))
        own = [typed[number :: asked.students] for number in range(asked.students)]
        first, second = asked.at_once, asked.at_once + asked.paced
        await all_at_once(together, students, [each[:first] for each in own])
        together.kind = OWN_PACE
        await at_their_own_pace(together, students, [each[first:second] for each in own])
        reader = await stack.enter_async_context(visitor(server.address))
        await open_for_a_corpus(reader)
        together.kind = BESIDE_CORPUS
        beside = asyncio.ensure_future(at_their_own_pace(together, students, [each[second:] for each in own]))
        begun = time.perf_counter()
        record.wrong += (await reader.type("\n".join(corpora[: asked.corpus]), "corpus_text")).complaints
        seconds = time.perf_counter() - begun
        together.kind = OWN_PACE
        await beside
        return seconds, await closed_page(server, corpora[asked.corpus :])


def report_waits(record: Record, asked: argparse.Namespace, seconds: float) -> None:
    print(f"{asked.students} students, {os.cpu_count()} cores, MiniLM 6x12; the corpus has {asked.corpus:,} texts")
    print(f"{'from typing to scores':<34}{'goal':>6}{'median':>9}{'p95':>8}{'worst':>8}{'times':>8}   (seconds)")
    for kind, waits in record.typed.items():
        report_line(kind, waits, f"{GOAL:.1f}")
    print("from tau to the redrawn grid")
    for kind, waits in record.moved.items():
        report_line(kind, waits, "")
    print(f"The long corpus took {seconds:.0f} s.")


def report_line(kind: str, waits: Sequence[float], goal: str) -> None:
    p95 = float(np.quantile(waits, 0.95))
    print(f"{'  ' + kind:<34}{goal:>6}{statistics.median(waits):>9.2f}{p95:>8.2f}{max(waits):>8.2f}{len(waits):>8}")


def report_answers(record: Record, n_tracebacks: int) -> int:
    """Compare every answer with a run of its text alone; returns how much was wrong."""
    expected = scored_one_by_one(list(record.scores))
    furthest = [
        relative_difference(shown, alone) for shown, alone in zip(record.scores.values(), expected, strict=True)
    ]
    n_far = sum(difference > TOLERANCE for difference in furthest)
    print(
        f"{len(furthest):,} answers against one text at a time: {n_far} wrong, at most {max(furthest):.1e} apart "
        f"(relative; tolerance {TOLERANCE:g}). {len(record.wrong)} other complaints, {n_tracebacks} tracebacks."
    )
    for complaint in record.wrong[:5]:
        print(f"  {complaint}")
    return n_far + len(record.wrong) + n_tracebacks


def scored_one_by_one(texts: Sequence[str]) -> list[Float[np.ndarray, "role layer head"]]:
    """Scores of each text from a pass of its own, without any store."""
    from benchmarks.shared.material import bundled  # with torch, which a test must not pay for before it runs

    checkpoint = bundled()
    return [find(ROLE_ANALYSIS, checkpoint, [Text((text,))]).scored.scores[0] for text in texts]


def relative_difference(shown: np.ndarray, expected: np.ndarray) -> float:
    """Largest difference over the expected score, or over SMALL where that is larger; infinite where one is missing."""
    if not np.array_equal(np.isnan(shown), np.isnan(expected)):
        return float("inf")
    return float(np.nanmax(np.abs(shown - expected) / np.maximum(np.abs(expected), SMALL)))


def report_memory(record: Record) -> None:
    if len(record.memory) < len(MEMORY_AT):
        print(f"Memory is read after {MEMORY_AT[-1]:,} interactions; there were {record.n_interactions:,}.")
        return
    first, last = record.memory
    print(
        f"The server's memory: {first / 1e6:,.0f} MB after {MEMORY_AT[0]} interactions, {last / 1e6:,.0f} MB after "
        f"{MEMORY_AT[1]:,}; ratio {last / first:.2f} (goal: at most {GOAL_MEMORY:.2f})"
    )


def report_closed(n_texts: int, n_kept: int, n_after: int) -> None:
    print(f"A page closed with {n_kept} of {n_texts:,} texts kept: {n_after} more were kept, and then no more.")


def report_throughput(n_threads: int, texts: Sequence[str]) -> None:
    alone, together = throughput(n_threads, texts)
    print(
        f"{len(texts)} texts one after the other: {alone:.0f} a second; asked by {n_threads} threads at once: "
        f"{together:.0f} a second; {together / alone:.2f}x (goal: {GOAL_THROUGHPUT:.1f}x)"
    )


def throughput(n_threads: int, texts: Sequence[str]) -> tuple[float, float]:
    """Texts a second through one worker without pages: asked by one thread, and by many at the same time."""
    engine = Engine(find_checkpoint("bundled"))
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as other:
        workers = [Inference(Store(Path(folder))) for folder in (one, other)]
        for worker in workers:
            worker.ask(engine, SCORES, (Text(("Ready.",)),))
        seconds = np.zeros(2)
        for start in range(SLICES):
            part = texts[start::SLICES]
            seconds[0] += clocked(ask, workers[0], engine, part)
            seconds[1] += clocked(ask_together, workers[1], engine, part, n_threads)
        for worker in workers:
            worker.store.close()
    return len(texts) / seconds[0], len(texts) / seconds[1]


def ask(worker: Inference, engine: Engine, texts: Iterable[str]) -> None:
    for text in texts:
        worker.ask(engine, SCORES, (Text((text,)),))


def ask_together(worker: Inference, engine: Engine, texts: Sequence[str], n_threads: int) -> None:
    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda number: ask(worker, engine, texts[number::n_threads]), range(n_threads)))


def clocked(work: Callable[..., None], *given: object) -> float:
    begun = time.perf_counter()
    work(*given)
    return time.perf_counter() - begun


if __name__ == "__main__":
    main()
