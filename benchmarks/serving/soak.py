"""A dashboard under mixed work for minutes: sentences, moves of tau, long corpora typed and uploaded, pages that are
closed in the middle of their work, and other programs that write to the same store and are killed.

`make soak` runs it with 32 people for 10 minutes; `python -m benchmarks.serving.soak --people 8 --minutes 2` for less.
Each person is a page without a browser, who looks 5 to 10 seconds at each answer. Goals: no error, no wrong answer,
memory at most 5% more at the end than after the first minute, and 95 of 100 sentences answered within 1.5 seconds.

The minutes begin once the memory of findings is full, since until then it grows as it should. With the 256 MB that it
has by default that takes 8 minutes, with the 96 MB that it has here 3, and everybody is answered as fast.
"""

import argparse
import asyncio
import random
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import psutil

from attention_sieve.cache.store.store import Store
from benchmarks.serving.full_class import report_answers
from benchmarks.shared import material
from benchmarks.shared.lesson import LOOKS, READS, TAUS, Class, Record, open_for_a_corpus, warm_up
from benchmarks.shared.sentences import sentences
from benchmarks.shared.server import ROOT, Dashboard, prepare, serve
from benchmarks.shared.visitors import Visitor, is_progress, visitor

GOAL_MEMORY: Final = 1.05
GOAL_P95: Final = 1.5
GOAL_TAU: Final = 0.5
"""Seconds of a typed sentence, and of a moved tau, for 95 in 100."""
FILLED_AFTER: Final = 180.0
"""Seconds until the memory of findings is full."""
FIRST_MINUTE: Final = 60.0
SAMPLES: Final = 15
"""Number of measurements of the server's memory in the last third of each minute."""
CORPUS: Final = 200
"""Texts of a corpus that one person types, and waits for or leaves, or uploads."""
MOVES_TAU, LEAVES, TYPES_CORPUS, UPLOADS = 0.3, 0.1, 0.03, 0.02
"""Shares of sentences after which a person does so."""
KILLED_EVERY: Final = 20.0
"""Seconds from one killed writer to the next."""
WRITER: Final = """
import itertools, sys
from pathlib import Path
import numpy as np
from attention_sieve.cache.store.store import Store
store = Store(Path(sys.argv[1]))
print("begun", flush=True)
for number in itertools.count():
    store.put_many({f"soak {number % 50} {part}": {"a": np.full(20_000, number % 251, np.uint8)} for part in "ab"})
"""
"""A program that writes the same 100 rows over and over."""


@dataclass(frozen=True)
class State:
    """Of the server's process."""

    n_bytes: int
    n_files: int
    """Open files and connections."""

    @classmethod
    def of(cls, server: Dashboard) -> "State":
        """As it is now."""
        process = psutil.Process(server.pid)
        return cls(process.memory_info().rss, process.num_fds())


async def person(together: Class, address: str, texts: list[str], until: float, seed: int) -> None:
    """Open the page, type, move tau, request a corpus, close the page in the middle of an answer and come back."""
    chance = random.Random(seed)
    while texts and time.monotonic() < until:
        async with visitor(address) as page:
            await together.open(page)
            while texts and time.monotonic() < until:
                await asyncio.sleep(chance.uniform(*READS))
                sentence = texts.pop()
                act = chance.random()
                if act < LEAVES:
                    await left_alone(page, sentence)
                    break
                await together.type(page, sentence)
                if act < LEAVES + TYPES_CORPUS + UPLOADS:
                    corpus = [texts.pop() for _ in range(min(CORPUS, len(texts)))]
                    if act < LEAVES + TYPES_CORPUS:
                        await a_corpus(together.record, address, corpus, chance)
                    else:
                        await an_upload(together.record, address, corpus)
                elif act < LEAVES + TYPES_CORPUS + UPLOADS + MOVES_TAU:
                    await asyncio.sleep(chance.uniform(*LOOKS))
                    await together.move_tau(page, chance.choice(TAUS), sentence)


async def left_alone(page: Visitor, sentence: str) -> None:
    """Type a sentence, and close the page before the answer arrives."""
    await within(0.05, page.type(sentence))


async def within(seconds: float, work: Awaitable[object]) -> None:
    try:
        await asyncio.wait_for(work, seconds)
    except TimeoutError:
        return


async def a_corpus(record: Record, address: str, texts: list[str], chance: random.Random) -> None:
    """Ask for the roles over a corpus in another page; every second time it is closed while that is computed."""
    async with visitor(address) as reader:
        await open_for_a_corpus(reader)
        leaves = chance.random() < 0.5
        answer = await reader.type("\n".join(texts), "corpus_text", until=is_progress if leaves else None)
        record.wrong += answer.complaints


async def an_upload(record: Record, address: str, texts: list[str]) -> None:
    """Ask for the roles over an uploaded file in another page."""
    async with visitor(address) as reader:
        await reader.open()
        await reader.choose("corpus", "upload a file")
        answer = await reader.upload("upload", "texts.txt", "\n".join(texts).encode())
        record.wrong += answer.complaints
        record.n_uploads += 1


async def kill_writers(folder: Path, until: float, chance: random.Random) -> int:
    """Start programs that write to the server's store, and kill each at a random moment; how many."""
    n_killed = 0
    while time.monotonic() + KILLED_EVERY < until:
        await asyncio.sleep(KILLED_EVERY)
        writer = await asyncio.create_subprocess_exec(
            sys.executable, "-c", WRITER, str(folder), cwd=ROOT, stdout=subprocess.PIPE
        )
        assert writer.stdout is not None
        if await writer.stdout.readline() != b"begun\n":
            raise RuntimeError("The writer did not begin.")
        await asyncio.sleep(chance.uniform(0, 0.3))
        writer.kill()
        await writer.wait()
        n_killed += 1
    return n_killed


async def states(server: Dashboard, until: float) -> list[State]:
    """The server's state towards the end of each minute once its memory is full, or of less than three of each third.

    Batches under way take memory for a moment, so it is the median of the last third of the minute.
    """
    await asyncio.sleep(FILLED_AFTER)
    every = min(FIRST_MINUTE, (until - time.monotonic()) / 3)
    measured = list[State]()
    while until - time.monotonic() > every / 2:
        await asyncio.sleep(2 * every / 3)
        seen = list[State]()
        for _ in range(SAMPLES):
            seen.append(State.of(server))
            await asyncio.sleep(every / 3 / SAMPLES)
        measured.append(sorted(seen, key=lambda each: each.n_bytes)[SAMPLES // 2])
    return measured


async def soak(server: Dashboard, record: Record, asked: argparse.Namespace) -> tuple[list[State], int]:
    """Everything that happens at the server. Returns its state in each minute, and how many writers were killed."""
    seconds = FILLED_AFTER + asked.minutes * 60
    texts = sentences(asked.people * int(seconds / READS[0] + 1) * 5)
    async with visitor(server.address) as first:
        await first.open()
        await warm_up(first)
    together, until = Class(server, record), time.monotonic() + seconds
    people = [
        person(together, server.address, texts[number :: asked.people], until, number) for number in range(asked.people)
    ]
    killing = kill_writers(server.log.parent, until, random.Random(asked.people))
    measured, n_killed, *_ = await asyncio.gather(states(server, until), killing, *people)
    return measured, n_killed


def sound(folder: Path) -> bool:
    """Whether the database is whole, and each row that killed writers left is whole too."""
    store = Store(folder)
    rows = store.get_many([f"soak {number} {part}" for number in range(50) for part in "ab"])
    store.close()
    whole = all(len(set(row["a"].tolist())) == 1 and len(row["a"]) == 20_000 for row in rows.values())
    with closing(sqlite3.connect(folder / "results.sqlite")) as database:
        return whole and database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def main() -> None:
    parser = argparse.ArgumentParser(description="A dashboard under mixed work.")
    parser.add_argument("--people", type=int, default=32)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--megabytes", type=int, default=96, help="of findings")
    asked = parser.parse_args()
    material.print_machine()
    record = Record()
    with tempfile.TemporaryDirectory() as folder:
        prepare(Path(folder))
        with serve(Path(folder), ATTENTION_SIEVE_MEMORY_MB=str(asked.megabytes)) as server:
            measured, n_killed = asyncio.run(soak(server, record, asked))
            n_tracebacks = server.tracebacks()
        is_sound = sound(Path(folder))
    waits = [seconds for of_kind in record.typed.values() for seconds in of_kind]
    print(
        f"{asked.people} people, {asked.minutes:g} minutes: {len(waits):,} sentences, median "
        f"{statistics.median(waits):.2f} s, p95 {np.quantile(waits, 0.95):.2f} s (goal {GOAL_P95})"
    )
    moved = [seconds for of_kind in record.moved.values() for seconds in of_kind]
    if moved:
        print(
            f"tau was moved {len(moved)} times: median {statistics.median(moved):.2f} s, p95 "
            f"{np.quantile(moved, 0.95):.2f} s (goal {GOAL_TAU}), most {max(moved):.2f} s"
        )
    first, *_, last = measured
    print(
        f"memory at the end of each minute: {', '.join(f'{one.n_bytes / 1e6:,.0f}' for one in measured)} MB; "
        f"the last is {last.n_bytes / first.n_bytes:.2f} of the first (goal {GOAL_MEMORY:.2f}); "
        f"open files {first.n_files}, {last.n_files}"
    )
    print(
        f"{record.n_uploads} corpora uploaded; {n_killed} writers killed, the store is "
        f"{'sound' if is_sound else 'TORN'}"
    )
    if report_answers(record, n_tracebacks) or not is_sound:
        sys.exit(1)


if __name__ == "__main__":
    main()
