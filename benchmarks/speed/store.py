"""The store: look-ups among 200,000 results, and getting a corpus's scores from the store against computing them.

Goals: 1,000 results of 200,000 in under 0.3 s; from the store at least 100 times as fast as computing.
"""

import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import numpy as np

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.roles.measures import USUAL
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.samples import EXAMPLE, read_sample

N_RESULTS: Final = 200_000
N_LOOKED_UP: Final = 1000
N_TEXTS: Final = 200
FILLED_AT_ONCE: Final = 1000
MEASURES_SHAPE: Final = (len(USUAL.measures), 6, 12)
ROUNDS: Final = 5


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        print_look_ups(Path(folder) / "large")
        print_against_computing(Path(folder) / "corpus")


def print_look_ups(folder: Path) -> None:
    start = time.perf_counter()
    fill(folder)
    print(f"{N_RESULTS:,} results of {MEASURES_SHAPE} float32 written in {time.perf_counter() - start:.1f} s")
    forget_file(folder)
    from_disk = in_new_process(look_ups_in, folder)
    (folder / "results.sqlite").read_bytes()
    in_memory = in_new_process(look_ups_in, folder)
    print(f"{f'{N_LOOKED_UP:,} looked up':<54}{'seconds':>10}{'over warm':>11}")
    for name, seconds in {
        "new process, file no longer in memory": from_disk["cold"],
        "new process, file in memory": in_memory["cold"],
        "same process, other results": in_memory["other"],
        "same process, same results (warm)": in_memory["warm"],
        "absent results": in_memory["absent"],
    }.items():
        print(f"{name:<54}{seconds:>10.4f}{seconds / in_memory['warm']:>11.2f}", flush=True)


def fill(folder: Path) -> None:
    chance = np.random.default_rng(0)
    store = Store(folder)
    for start in range(0, N_RESULTS, FILLED_AT_ONCE):
        measures = chance.random((FILLED_AT_ONCE, *MEASURES_SHAPE), dtype=np.float32)
        counts = {"n_tokens": np.array(20), "n_cut": np.array(0)}
        store.put_many({key(start + i): {**counts, "measures": of_text} for i, of_text in enumerate(measures)})
    assert store.size()[0] == N_RESULTS, "the store holds less than it was given"
    store.close()


def key(number: int) -> str:
    return hashlib.sha256(str(number).encode()).hexdigest()


def look_ups_in(folder: Path) -> dict[str, float]:
    """Seconds of each kind of look-up; runs in a process of its own."""
    chosen = random.Random().sample(range(N_RESULTS), 2 * N_LOOKED_UP)
    some, others = [[key(i) for i in part] for part in (chosen[:N_LOOKED_UP], chosen[N_LOOKED_UP:])]
    absent = [key(N_RESULTS + i) for i in chosen[:N_LOOKED_UP]]
    start = time.perf_counter()
    store = Store(folder)
    assert len(store.get_many(some)) == N_LOOKED_UP
    cold = time.perf_counter() - start
    other = seconds_of(lambda: store.get_many(others))
    warm = min(seconds_of(lambda: store.get_many(some)) for _ in range(ROUNDS))
    missed = min(seconds_of(lambda: store.get_many(absent)) for _ in range(ROUNDS))
    store.close()
    return {"cold": cold, "other": other, "warm": warm, "absent": missed}


def print_against_computing(folder: Path) -> None:
    texts, engine = corpus(), Engine(find_checkpoint(BUNDLED))
    first = Inference(Store(folder))
    first.ask(engine, SCORES, [EXAMPLE])  # loads checkpoint and parser
    computing = seconds_of(lambda: first.ask(engine, SCORES, texts))
    assert first.n_passed == N_TEXTS + 1
    first.store.close()
    cold = in_new_process(corpus_from_store, folder)
    print(f"{f'scores of {N_TEXTS} texts, MiniLM 6x12':<54}{'seconds':>10}{'speed':>11}")
    for name, seconds in {
        "computed and kept": computing,
        "from the store, new process": cold["cold"],
        "from the store, same process, nothing in memory": cold["warm"],
    }.items():
        print(f"{name:<54}{seconds:>10.4f}{computing / seconds:>11.0f}", flush=True)


def corpus() -> list[Text]:
    """The sample texts, filled up with variants of them in other words."""
    samples = read_sample("both")
    varied = [Text((f"Once more: {text.segments[0]}", *text.segments[1:])) for text in samples]
    return [*samples, *varied][:N_TEXTS]


def corpus_from_store(folder: Path) -> dict[str, float]:
    """Seconds until the scores are there: at first, and at best; runs in a process of its own."""
    texts, engine = corpus(), Engine(find_checkpoint(BUNDLED))

    seconds = []
    for _ in range(1 + ROUNDS):
        start = time.perf_counter()
        kept = Inference(Store(folder))  # nothing in memory yet
        found = kept.ask(engine, SCORES, texts)
        seconds.append(time.perf_counter() - start)
        assert len(found.results) == N_TEXTS
        assert found.results[0].measures.shape == MEASURES_SHAPE
        assert kept.n_passed == 0
        kept.store.close()
    return {"cold": seconds[0], "warm": min(seconds[1:])}


def in_new_process(measure: Callable[[Path], dict[str, float]], folder: Path) -> dict[str, float]:
    name = measure.__name__
    command = [sys.executable, "-m", "benchmarks.speed.store", name, str(folder)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def forget_file(folder: Path) -> None:
    """Ask the system to drop the file from its page cache, so that it is read from the disk again."""
    descriptor = os.open(folder / "results.sqlite", os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


def seconds_of(work: Callable[[], object]) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


if __name__ == "__main__":
    if len(sys.argv) == 3:
        print(json.dumps({of.__name__: of for of in (look_ups_in, corpus_from_store)}[sys.argv[1]](Path(sys.argv[2]))))
    else:
        main()
