"""How long a run takes to end once it is asked to stop, and until its process has gone.

Each kind of run, under the bundled checkpoint and on little data, is asked to stop at several moments after its first
report: while it imports torch, loads weights, downloads, parses, or works. A row per kind and moment says what it was
doing, the seconds until its journal says that it has ended (goal: 2), and the seconds until its process has gone, or
its thread where it is work of the dashboard. The index of packages from which reviews are downloaded never answers,
unless PIP_DOWNLOADS names a folder in which they are. Names of some kinds may follow the command.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from attention_sieve import ROOT
from attention_sieve.core.running import PROGRESS, Progress, ask_to_stop, read_progress
from benchmarks.serving.run_kills import CLASSES, ENVIRONMENT, run, small_checkpoint
from benchmarks.shared.sentences import sentences

MOMENTS: Final = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Seconds from the first report to the request; another is made once the first step or piece is done."""
LOOK: Final = 0.01
LONGEST: Final = 60.0
N_TEXTS: Final = 400
OF_PAGES: Final = 40
"""Texts of the runs of pages."""
APP: Final = ROOT / "dashboard" / "app.py"
TUNED: Final = "tuned"
"""Name of a checkpoint with saved steps."""


@dataclass(frozen=True, kw_only=True)
class Begun:
    """A run that was begun."""

    journal: Path
    is_there: Callable[[], bool]
    """Whether its process, or its thread, is."""

    @property
    def works(self) -> bool:
        """Whether a first step or piece is done, of it or of a run within it."""
        journals = (path.parent for path in self.journal.rglob(PROGRESS))
        return any((read_progress(journal) or Progress("left")).step > 0 for journal in journals)


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of run."""

    name: str
    begin: Callable[[Path], Begun]
    """Anew, in a folder of its own."""


def main() -> None:
    only = sys.argv[1:]
    with tempfile.TemporaryDirectory() as named, silent_index() as index:
        base = Path(named)
        os.environ["ATTENTION_SIEVE_CACHE"] = str(base / "store")
        print(f"{'kind':24} {'asked':>8} {'ended':>6} {'gone':>6}  doing", flush=True)
        for kind in (*command_kinds(base, index), *page_kinds(base)):
            if not only or kind.name in only:
                for number, seconds in enumerate((*MOMENTS, None)):
                    print(stopped(kind, base / f"{kind.name} {number}".replace(" ", "-"), seconds), flush=True)


def stopped(kind: Kind, folder: Path, seconds: float | None) -> str:
    """The row of a run that is asked to stop so many seconds after its first report, or at its first step."""
    begun = kind.begin(folder)
    first = waited(lambda: is_on(begun.journal), begun)
    if seconds is not None:
        time.sleep(seconds)
    else:
        waited(lambda: begun.works, begun)
    progress = read_progress(begun.journal)
    if not first or progress is None or progress.state != "running":
        return f"{kind.name:24} {'':8} {'':6} {'':6}  had ended: {'' if progress is None else progress.message}"
    doing = progress.message or progress.piece or f"step {progress.step} of {progress.steps}"
    ask_to_stop(begun.journal)
    asked = time.perf_counter()
    waited(lambda: not is_on(begun.journal), begun)
    ended = time.perf_counter() - asked
    waited(lambda: not begun.is_there(), begun)
    gone = time.perf_counter() - asked
    state = (read_progress(begun.journal) or Progress("left")).state
    moment = "at work" if seconds is None else f"{seconds:.1f} s"
    return f"{kind.name:24} {moment:>8} {ended:6.2f} {gone:6.2f}  {doing}{'' if state == 'stopped' else f' ({state})'}"


def is_on(journal: Path) -> bool:
    return (read_progress(journal) or Progress("left")).state == "running"


def waited(is_enough: Callable[[], bool], begun: Begun) -> bool:
    """Wait until something is so; False if the run is gone before, or it takes too long."""
    until = time.perf_counter() + LONGEST
    while time.perf_counter() < until:
        if is_enough():
            return True
        if not begun.is_there():
            return is_enough()
        time.sleep(LOOK)
    return False


def process(journal: Path, *arguments: str, **variables: str) -> Begun:
    """Begin a command of this project."""
    command = [sys.executable, "-m", "attention_sieve", *arguments]
    one = subprocess.Popen(
        command, env={**ENVIRONMENT, **os.environ, **variables}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    return Begun(journal=journal, is_there=lambda: one.poll() is None)


@contextmanager
def silent_index() -> Iterator[str]:
    """The address of an index of packages that takes every request and answers none."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}/simple"


def command_kinds(base: Path, index: str) -> list[Kind]:
    classifier = small_checkpoint(base / "classifier", len(CLASSES))
    texts = sentences(N_TEXTS)
    table, lines, task, trials = base / "texts.csv", base / "texts.txt", base / "task.txt", base / "trials.csv"
    rows = [f'"{text}",{CLASSES[place % 2]}' for place, text in enumerate(texts)]
    table.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    lines.write_text("\n".join(texts) + "\n", encoding="utf-8")
    parts = ("tr", "tr", "va", "te")
    labelled = [f"{parts[place // 2 % 4]}\t{CLASSES[place % 2]}\t{text}" for place, text in enumerate(texts)]
    task.write_text("\n".join(labelled) + "\n", encoding="utf-8")
    trials.write_text("checkpoint,data,seed\n" + "".join(f"bundled,{task},{seed}\n" for seed in range(20)))
    data = [f"--data={table}", "--text-columns=text", "--label-column=label", "--device=cpu", "--epochs=40"]
    bundled, few = ["--checkpoint=bundled", f"--texts={lines}"], base / "few.txt"
    few.write_text("\n".join(texts[:OF_PAGES]) + "\n", encoding="utf-8")

    def kind(name: str, arguments: Callable[[Path], list[str]], journal: str = "", **variables: str) -> Kind:
        return Kind(
            name=name,
            begin=lambda folder: process(folder / journal, *arguments(folder), **variables),
        )

    def with_reviews(folder: Path) -> list[str]:
        if "PIP_DOWNLOADS" in os.environ:
            shutil.copytree(os.environ["PIP_DOWNLOADS"], folder / "downloads")
        return []

    def trials_on(*engine: str) -> Callable[[Path], list[str]]:
        return lambda folder: ["trials", f"--table={trials}", f"--output={folder}-rows", f"--journal={folder}", *engine]

    def prune_on(*engine: str) -> Callable[[Path], list[str]]:
        return lambda folder: [
            "prune",
            "--checkpoint=bundled",
            f"--texts={few}",
            f"--rows={folder}",
            f"--output={folder}.csv",
            *engine,
        ]

    def corpus_on(*engine: str) -> Callable[[Path], list[str]]:
        return lambda folder: ["corpus", "run", *bundled, "--shard-size=20", f"--output={folder}", *engine]

    return [
        kind("finetune", lambda folder: ["finetune", "--checkpoint=bundled", *data, f"--output={folder}"]),
        Kind(
            name="sample-checkpoint",
            begin=lambda folder: process(
                folder / "checkpoints" / "movie-reviews",
                "sample-checkpoint",
                *with_reviews(folder),
                ATTENTION_SIEVE_CACHE=str(folder),
                PIP_INDEX_URL=index,
            ),
        ),
        kind("laboratory", lambda folder: ["laboratory", f"--output={folder}"]),
        kind("gates", lambda folder: ["gates", f"--checkpoint={classifier}", *data, f"--output={folder}"]),
        kind("prune", prune_on()),
        kind("prune, processes", prune_on("--workers=2")),
        kind("prune, Ray", prune_on("--workers=2", "--engine=ray")),
        kind(
            "tree-probes",
            lambda folder: [
                "tree-probes", *bundled, "--random-control", f"--journal={folder}", f"--output={folder}.csv",
            ],
        ),
        kind("trials", trials_on()),
        kind("trials, processes", trials_on("--workers=2")),
        kind("trials, Ray", trials_on("--workers=2", "--engine=ray")),
        kind(
            "erase",
            lambda folder: [
                "erase", "--checkpoint=bundled", f"--data={task}", "--best=20", f"--journal={folder}",
                f"--output={folder}.csv",
            ],
        ),
        Kind(
            name="sample-tasks",
            begin=lambda folder: process(
                folder / "run",
                "sample-tasks",
                f"--journal={folder / 'run'}",
                *with_reviews(folder),
                ATTENTION_SIEVE_CACHE=str(folder),
                PIP_INDEX_URL=index,
            ),
        ),
        kind("corpus", corpus_on("--workers=1")),
        kind("corpus, processes", corpus_on("--workers=2")),
        kind("corpus, Ray", corpus_on("--workers=2", "--engine=ray")),
    ]  # fmt: skip


def page_kinds(base: Path) -> list[Kind]:
    """The runs that the dashboard does itself, begun by the button of their page."""
    curves = {"importance details": "How many heads can go?"}
    data = [f"--data={base / 'texts.csv'}", "--text-columns=text", "--label-column=label", "--epochs=1"]

    def kind(name: str, key: str, page: str, **link: str) -> Kind:
        return Kind(name=name, begin=lambda folder: pressed(folder, key, page, link))

    def tuned(folder: Path) -> Begun:
        if not (base / TUNED).exists():
            run(
                ["finetune", f"--checkpoint={base / 'classifier'}", *data, "--save-steps=5", f"--output={base / TUNED}"]
            )
        shutil.copytree(base / TUNED, folder / "checkpoints" / TUNED)
        return pressed(
            folder, "begin step curves", "importance", {"checkpoint": TUNED, "over training": "true"} | curves
        )

    return [
        kind("curves", "begin curves", "importance", **curves),
        Kind(name="step curves", begin=tuned),
        kind("tree-probes, page", "train", "grammar", **{"grammar section": "Probes", "probe epochs": "50"}),
    ]


def pressed(folder: Path, key: str, page: str, link: Mapping[str, str]) -> Begun:
    """Open a page in the store of a folder, and press a button."""
    from streamlit.testing.v1 import AppTest
    from streamlit.util import calc_hash

    from attention_sieve.core.checkpoints.folders import program_folder
    from attention_sieve.dashboard import runs

    os.environ["ATTENTION_SIEVE_CACHE"] = str(folder)
    at: Any = AppTest.from_file(APP, default_timeout=120)
    at._page_hash = calc_hash(page)
    at.session_state["first screen is drawn"] = True
    for name, value in ({"corpus": "type texts", "corpus_text": "\n".join(sentences(OF_PAGES))} | dict(link)).items():
        at.query_params[name] = value
    at.run().button(key=key).click().run()
    (journal,) = (program_folder() / "runs").iterdir()
    return Begun(journal=journal, is_there=lambda: runs._threads[journal].is_alive())


if __name__ == "__main__":
    main()
