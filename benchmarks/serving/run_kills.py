"""Whether runs lose nothing when they are killed, and how long they take to stop when they are asked.

Fine-tuning, gates, the laboratory, trials, pruning and tree probes, under small random checkpoints: each run is killed
by SIGKILL at random moments, continued by the same command each time, and compared with the same run that was left
alone: weights of a training, rows of trials, curves, probes. Then each is asked to stop once it works, and one as it
begins, while it loads its programs and its checkpoint. Goals: nothing differs, and a stop takes 2 seconds. The number
of kills, and names of some kinds, may follow the command.
"""

import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import transformers
from safetensors.numpy import load_file

from attention_sieve.core.checkpoints.find import bundled_folder
from attention_sieve.core.running import Progress, ask_to_stop, read_progress
from benchmarks.shared.sentences import sentences

KILLS: Final = 20
"""Of each kind of run."""
LONGEST: Final = 4.0
"""Seconds from a run's first report to its kill, at most."""
ENVIRONMENT: Final = os.environ | {"ATTENTION_SIEVE_TRUSTED": os.sep, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
CLASSES: Final = ("calm", "loud")
MOST_PRUNED: Final = 200
"""Texts of the pruning curves."""


@dataclass(frozen=True, kw_only=True)
class Kind:
    """A kind of run."""

    name: str
    command: Callable[[Path], list[str]]
    """Of a run in a folder, which also continues it."""
    journal: Callable[[Path], Path]
    """Folder of its reports."""
    result: Callable[[Path], str]
    """Digest of what it makes."""


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    only = sys.argv[2:]
    random.seed(0)
    with tempfile.TemporaryDirectory() as named:
        base = Path(named)
        for kind in kinds(base):
            if only and kind.name not in only:
                continue
            run(kind.command(base / f"{kind.name} alone"))
            n_done = kill_often(kind, base / f"{kind.name} killed", n_kills)
            run(kind.command(base / f"{kind.name} killed"))
            same = kind.result(base / f"{kind.name} alone") == kind.result(base / f"{kind.name} killed")
            at_work, beginning = (
                seconds_to_stop(kind, base / f"{kind.name} stopped {when}", is_at_work=is_at_work)
                for when, is_at_work in (("at work", True), ("as it begins", False))
            )
            print(
                f"{kind.name}: {n_done} kills, {'equal to' if same else 'OTHER than'} the run that was left alone; "
                f"stopped within {at_work:.1f} s at work and {beginning:.1f} s as it begins (goal 2)",
                flush=True,
            )


def kinds(base: Path) -> list[Kind]:
    checkpoint, classifier = small_checkpoint(base / "small"), small_checkpoint(base / "classifier", len(CLASSES))
    table, task = base / "texts.csv", base / "task.txt"
    texts = list(sentences(400))
    rows = [f'"{text}",{CLASSES[place % 2]}' for place, text in enumerate(texts)]
    table.write_text("\n".join(["text,label", *rows]) + "\n", encoding="utf-8")
    parts = ("tr", "tr", "va", "te")
    labelled = [f"{parts[place // 2 % 4]}\t{CLASSES[place % 2]}\t{text}" for place, text in enumerate(texts)]
    task.write_text("\n".join(labelled) + "\n", encoding="utf-8")
    lines = base / "texts.txt"
    lines.write_text("\n".join(texts[:MOST_PRUNED]) + "\n", encoding="utf-8")
    trials = base / "trials.csv"
    seeds = "\n".join(f"{checkpoint},{task},{seed}" for seed in range(60))
    trials.write_text(f"checkpoint,data,seed\n{seeds}\n", encoding="utf-8")
    data = [f"--data={table}", "--text-columns=text", "--label-column=label", "--device=cpu", "--batch-size=4"]

    def training(name: str, *options: str) -> Callable[[Path], list[str]]:
        return lambda folder: [name, *options, f"--output={folder}", *_resume(folder)]

    return [
        Kind(
            name="finetune",
            command=training("finetune", f"--checkpoint={checkpoint}", *data, "--epochs=40", "--save-steps=50"),
            journal=lambda folder: folder,
            result=weights,
        ),
        Kind(
            name="gates",
            command=training("gates", f"--checkpoint={classifier}", *data, "--epochs=40", "--save-steps=50"),
            journal=lambda folder: next(folder.glob("penalty-*"), folder),
            result=lambda folder: weights(next(folder.glob("penalty-*"))),
        ),
        Kind(
            name="laboratory",
            command=training("laboratory", "--steps=3000", "--save-steps=100"),
            journal=lambda folder: folder,
            result=weights,
        ),
        Kind(
            name="trials",
            command=lambda folder: ["trials", f"--table={trials}", f"--output={folder}", f"--journal={folder}-journal"],
            journal=lambda folder: Path(f"{folder}-journal"),
            result=lambda folder: digest(path.name.encode() for path in sorted(folder.glob("*.parquet"))),
        ),
        Kind(
            name="prune",
            command=lambda folder: [
                "prune",
                f"--checkpoint={checkpoint}",
                f"--texts={lines}",
                f"--rows={folder}",
                f"--output={folder}.csv",
            ],
            journal=lambda folder: folder,
            result=lambda folder: digest([Path(f"{folder}.csv").read_bytes()]),
        ),
        Kind(
            name="tree-probes",
            command=lambda folder: [
                "tree-probes",
                f"--checkpoint={checkpoint}",
                f"--texts={lines}",
                f"--journal={folder}",
                f"--output={folder}.csv",
                "--words=embeddings",
                "--random-control",
            ],
            journal=lambda folder: folder,
            result=lambda folder: digest([Path(f"{folder}.csv").read_bytes()]),
        ),
    ]


def _resume(folder: Path) -> list[str]:
    """Nothing to continue from is no error only where a run begins."""
    begun = any(path.is_dir() for path in (*folder.glob("checkpoint-*"), *folder.glob("penalty-*")))
    return ["--resume"] if begun else []


def small_checkpoint(folder: Path, n_classes: int = 0) -> Path:
    """A BERT of 2 layers and 3 heads with random weights, and the bundled checkpoint's tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_folder())
    transformers.set_seed(0)
    labels = {"id2label": dict(enumerate(CLASSES)), "label2id": {name: i for i, name in enumerate(CLASSES)}}
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96,
        **(labels if n_classes else {}),
    )  # fmt: skip
    kind = transformers.AutoModelForSequenceClassification if n_classes else transformers.AutoModel
    kind.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def begin(arguments: Sequence[str]) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "attention_sieve", *arguments]
    return subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def run(arguments: Sequence[str]) -> None:
    """Run a command to its end; what is finished already may be said not to be continued."""
    process = begin(arguments)
    _, errors = process.communicate()
    if process.returncode and b"finished" not in errors:
        sys.exit(f"{arguments[0]} ended with {process.returncode}. {errors.decode()}")


def kill_often(kind: Kind, folder: Path, n_kills: int) -> int:
    """Kill a run at random moments while it works, as long as it is not finished; returns how often."""
    for number in range(n_kills):
        process = begin(kind.command(folder))
        if not works(kind, folder, process, lambda progress: progress.steps > 0):
            return number
        time.sleep(random.uniform(0, LONGEST * random.random()))
        process.send_signal(signal.SIGKILL)
        process.communicate()
    return n_kills


def works(kind: Kind, folder: Path, process: "subprocess.Popen[bytes]", is_enough: Callable[[Progress], bool]) -> bool:
    """Wait until the run of a process has gone so far; False if it ends before."""
    while process.poll() is None:
        progress = read_progress(kind.journal(folder))
        if progress is not None and progress.state == "running" and is_enough(progress):
            return True
        time.sleep(0.02)
    process.communicate()
    return False


def seconds_to_stop(kind: Kind, folder: Path, *, is_at_work: bool) -> float:
    """From asking a run to the report of its end, once a first step or piece is done, or after its first report."""
    process = begin(kind.command(folder))
    if not works(kind, folder, process, lambda progress: progress.step > 0 or not is_at_work):
        sys.exit(f"{kind.name} ended before it could be stopped.")
    ask_to_stop(kind.journal(folder))
    asked = time.perf_counter()
    while (progress := read_progress(kind.journal(folder))) is not None and progress.state == "running":
        time.sleep(0.02)
    seconds = time.perf_counter() - asked
    process.communicate()
    return seconds


def weights(folder: Path) -> str:
    tensors = load_file(folder / "model.safetensors")
    return digest(name.encode() + values.tobytes() for name, values in sorted(tensors.items()))


def digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(part)
    return whole.hexdigest()


if __name__ == "__main__":
    main()
