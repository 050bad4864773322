"""Whether one visitor of a public server can keep another waiting: twelve kinds of abuse, one after the other.

`python -m benchmarks.serving.fairness` prints how long the typed sentences of a second visitor take beside each kind;
every sentence is new. Goal: 95 in 100 sentences within a second, under each. `--only WORD` runs the kinds with this
word.
`--against FOLDER` measures instead what fairness costs: kinds of work, each alone, are given in turns to this program
and to the one in that folder, such as an earlier commit. Goal: a throughput of at least .95 of the other's.
"""

import argparse
import asyncio
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Final

import numpy as np
from safetensors.numpy import load_file, save_file

from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.dashboard.public import CHECKPOINTS, PUBLIC
from benchmarks.shared import material
from benchmarks.shared.lesson import warm_up
from benchmarks.shared.sentences import sentences
from benchmarks.shared.server import ROOT, prepare, serve
from benchmarks.shared.visitors import visitor

GOAL_P95: Final = 1.0
GOAL_THROUGHPUT: Final = 0.95
N_TYPED: Final = 20
"""Sentences of the second visitor beside each kind."""
READS_SECONDS: Final = 0.2
"""Between an answer and the next sentence."""
BEGINS_SECONDS: Final = 3.0
"""Head start of the abuse."""
N_TEXTS: Final = 500
"""The most that a public server computes at once."""
N_SENTENCES: Final = 60
N_TABS: Final = 6
LONGER: Final = 6
LONG: Final = 24
"""Sentences of a text that is longer than one, and of one nearly as long as the bundled checkpoint takes."""
DOCUMENT: Final = 480_000
"""Characters of a document with mentions; ten of them fit into an upload."""
N_DOCUMENTS: Final = 10
TWO_WORDS: Final = re.compile(r"\b[a-z]+ [a-z]+(?= )")
MENTIONS_APART: Final = 800
"""Pairs of words from one mention with an antecedent to the next, so that about 500 windows hold one."""
OTHER: Final = "another"
"""Name of a second checkpoint."""
TRIALS: Final = 3
"""Runs of each program with `--against`."""
WORK: Final = """
import json, sys, time
from pathlib import Path
from benchmarks.shared.sentences import sentences
from attention_sieve.cache.answers import Engine
from attention_sieve.cache.inference import Inference
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.question import ablation_question, slopes_question
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.similarity.distances import USUAL_DISTANCES
from attention_sieve.core.similarity.analysis import distance_question
from attention_sieve.core.surface.per_text import RowSettings
from attention_sieve.core.surface.analysis import surface_question
from attention_sieve.core.texts.text import Text
inference, engine = Inference(Store(Path(sys.argv[1]))), Engine(find_checkpoint("bundled"), "cpu")
own = sentences(300)
texts = [Text((text,)) for text in own]
long = [Text((" ".join(own[start : start + 6]),)) for start in range(0, 240, 6)]
seconds = {}
for name, question, items in (
    ("heads out", ablation_question("output"), texts[:20]),
    ("slopes", slopes_question("output"), [LabelledText(text) for text in texts[:150]]),
    ("distances", distance_question(USUAL_DISTANCES), long),
    ("scores", SCORES, texts),
    ("surface", surface_question(RowSettings()), texts),
):
    inference.ask(engine, question, [items[0]])
    began = time.process_time()
    inference.ask(engine, question, items[1:])
    seconds[name] = time.process_time() - began
inference.close()
print(json.dumps(seconds))
"""
"""A program that does each kind of work in turn and prints the processor time of each, which other programs on the
machine affect least."""

Abuse = Callable[[str, Sequence[str]], Awaitable[None]]
"""Takes the server's address and many sentences that nobody else types."""


@dataclass(kw_only=True)
class Waits:
    """What the second visitor sees beside one kind of abuse."""

    seconds: list[float] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    goes_on: bool = False
    """Whether the abuse went on to the end."""


def texts_of(own: Sequence[str], n_texts: int, n_sentences: int) -> list[str]:
    """Texts of so many sentences each, all different."""
    doubled = [*own, *own]
    starts = (7 * number % len(own) for number in range(n_texts))
    return [f"Text {number}: {' '.join(doubled[start : start + n_sentences])}" for number, start in enumerate(starts)]


def corpus(page_name: str, n_texts: int, n_sentences: int, **link: str) -> Abuse:
    """Upload a corpus, and wait for what a page says of it."""

    async def abuse(address: str, own: Sequence[str]) -> None:
        async with visitor(address) as page:
            await page.open(page_name, corpus="upload a file", **link)
            await page.upload("upload", "texts.txt", "\n".join(texts_of(own, n_texts, n_sentences)).encode())

    return abuse


async def many_tabs(address: str, own: Sequence[str]) -> None:
    """Upload other sentences to Importance in many tabs at once."""
    one_tab = corpus("importance", N_SENTENCES, 1)
    await asyncio.gather(*(one_tab(address, own[number * N_SENTENCES :]) for number in range(N_TABS)))


async def pruning(address: str, own: Sequence[str]) -> None:
    """Compute how many heads can be removed, which passes every text under many gatings."""
    async with visitor(address) as page:
        await page.open("importance", corpus="upload a file", **{"importance details": "How many heads can go?"})
        await page.upload("upload", "texts.txt", "\n".join(texts_of(own, 4, 1)).encode())
        await page.click("begin curves")


async def documents(address: str, own: Sequence[str]) -> None:
    """Ask who refers to whom in long documents, which have to be parsed and cut into windows first."""
    lines = []
    for number in range(N_DOCUMENTS):
        text = f"Document {number}: {' '.join(own)} "
        text = (text * (DOCUMENT // len(text) + 1))[:DOCUMENT]
        spans = [found.span() for found in TWO_WORDS.finditer(text)]
        lines.append(json.dumps({"text": text, "clusters": list(pairwise(spans))[::MENTIONS_APART]}))
    async with visitor(address) as page:
        link = {"grammar section": "Coreference", "mentions from": "a file of your own", "window tokens": "512"}
        await page.open("grammar", **link)
        await page.upload("gold mentions", "mentions.jsonl", "\n".join(lines).encode())


async def flood(address: str, own: Sequence[str]) -> None:
    """Type long texts in many tabs at once, one after the other."""

    async def one_tab(texts: Sequence[str]) -> None:
        async with visitor(address) as page:
            await page.open()
            for text in texts:
                await page.type(text)

    await asyncio.gather(*(one_tab(texts_of(own[number * 50 :], N_TEXTS, LONG)) for number in range(N_TABS)))


KINDS: Final[dict[str, Abuse]] = {
    "60 sentences on Importance": corpus("importance", N_SENTENCES, 1),
    "500 longer texts on Importance": corpus("importance", N_TEXTS, LONGER),
    "60 sentences on Importance in each of 6 tabs": many_tabs,
    "500 long texts on Importance, cheaper measures": corpus(
        "importance", N_TEXTS, LONG, **{"importance details": "Cheaper measures"}
    ),
    "how many heads can go": pruning,
    "500 long texts on Similar heads": corpus("similarity", N_TEXTS, LONG, **{"similarity texts": "all"}),
    "500 long texts on Roles, two heads off": corpus("roles", N_TEXTS, LONG, off="1-1,2-2"),
    "500 long texts on Where heads look": corpus("surface", N_TEXTS, LONG),
    "500 long texts on Grammar": corpus("grammar", N_TEXTS, LONG),
    "10 documents of 480,000 characters on Grammar": documents,
    "500 long texts on Compare": corpus("compare", N_TEXTS, LONG, **{"with": OTHER}),
    "long texts typed in 6 tabs": flood,
}


async def beside(abuse: Abuse, address: str, typed: Sequence[str], own: Sequence[str]) -> Waits:
    """What the second visitor sees beside one kind of abuse."""
    waits = Waits()
    async with visitor(address) as page:
        await page.open()
        abusing = asyncio.ensure_future(abuse(address, own))
        await asyncio.sleep(BEGINS_SECONDS)
        for sentence in typed:
            answer = await page.type(sentence)
            waits.seconds.append(answer.to_grid)
            waits.wrong += answer.complaints
            await asyncio.sleep(READS_SECONDS)
        waits.goes_on = not abusing.done()
        abusing.cancel()
        with suppress(asyncio.CancelledError):
            await abusing
    return waits


async def all_kinds(address: str, kinds: Sequence[str]) -> bool:
    """Print the waiting times during each kind of abuse; returns whether all goals are met."""
    texts = sentences(len(KINDS) * 600 + N_TYPED * len(KINDS), seed=1)
    async with visitor(address) as first:
        await first.open()
        await warm_up(first)
    print(f"{'beside':48}    p50    p95    most")
    is_met = True
    for number, kind in enumerate(kinds):
        typed = [texts.pop() for _ in range(N_TYPED)]
        waits = await beside(KINDS[kind], address, typed, texts[number * 600 : (number + 1) * 600])
        p95 = float(np.quantile(waits.seconds, 0.95))
        remarks = [
            *waits.wrong[:1],
            *([] if waits.goes_on else ["it had ended"]),
            *(["SLOW"] if p95 > GOAL_P95 else []),
        ]
        print(
            f"{kind:48} {statistics.median(waits.seconds):6.2f} {p95:6.2f} {max(waits.seconds):6.2f} s  "
            f"{'; '.join(remarks)}",
            flush=True,
        )
        is_met &= not remarks
    return is_met


def make_another(folder: Path) -> None:
    """A second checkpoint: the bundled one with other weights."""
    shutil.copytree(find_checkpoint(BUNDLED).folder, folder)
    weights = folder / "model.safetensors"
    values = {name: (0.99 * array).astype(array.dtype) for name, array in load_file(weights).items()}
    save_file(values, weights, {"format": "pt"})


def throughput(other: Path) -> bool:
    """Print the time of each kind of work here and in another folder, in turns; returns whether the goal is met."""
    seconds: dict[Path, list[dict[str, float]]] = {ROOT: [], other: []}
    for trial in range(TRIALS):
        for root in (ROOT, other) if trial % 2 else (other, ROOT):
            with tempfile.TemporaryDirectory() as folder:
                done = subprocess.run(
                    [sys.executable, "-c", WORK, folder], cwd=root, check=True, capture_output=True, text=True
                )
            seconds[root].append(json.loads(done.stdout.splitlines()[-1]))
    print(f"processor seconds here and there, and throughput here as a share of there (goal {GOAL_THROUGHPUT})")
    totals = {root: statistics.median(sum(run.values()) for run in runs) for root, runs in seconds.items()}
    for name in seconds[ROOT][0]:
        here, there = (statistics.median(run[name] for run in seconds[root]) for root in (ROOT, other))
        print(f"{name:12} {here:5.1f}  {there:5.1f}  {there / here:.2f}")
    print(f"{'all':12} {totals[ROOT]:5.1f}  {totals[other]:5.1f}  {totals[other] / totals[ROOT]:.2f}")
    return totals[other] / totals[ROOT] >= GOAL_THROUGHPUT


def main() -> None:
    parser = argparse.ArgumentParser(description="Whether one visitor can keep another waiting.")
    parser.add_argument("--only", default="", help="run only the kinds of abuse whose name contains this word")
    parser.add_argument(
        "--against", type=Path, help="folder of another version of this program to compare throughput with"
    )
    options = parser.parse_args()
    material.print_machine(os.cpu_count() or 1)
    if options.against is not None:
        sys.exit(not throughput(options.against.resolve()))
    with tempfile.TemporaryDirectory() as folder:
        results, checkpoints = Path(folder) / "results", Path(folder) / OTHER
        results.mkdir()
        prepare(results)
        make_another(checkpoints)
        public = {PUBLIC: "1", CHECKPOINTS: os.pathsep.join((BUNDLED, str(checkpoints)))}
        with serve(results, **public) as server:
            is_met = asyncio.run(all_kinds(server.address, [kind for kind in KINDS if options.only in kind]))
            n_tracebacks = server.tracebacks()
    print(f"{n_tracebacks} tracebacks in the server's log")
    sys.exit(not is_met or n_tracebacks > 0)


if __name__ == "__main__":
    main()
