"""Whether the results of a corpus are identical to the last bit: on both engines, and when processes are killed.

20,000 sentences in 20 shards under a small random checkpoint, two workers. Then the same with SIGKILL at 50 random
moments, to the process that was started, to a worker of it, or to all; the same command continues each time. Where few
shards are left to do, the records of some are removed, so that there is work to be killed in.
"""

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil
import transformers

from attention_sieve.core.checkpoints.find import bundled_folder
from attention_sieve.core.running import PROGRESS
from benchmarks.shared.sentences import sentences

N_TEXTS: Final = 20_000
N_SHARDS: Final = 20
KILLS: Final = 50
LONGEST_WAIT: Final = 20.0
"""Seconds from the start of a run, or from a file that it wrote, to the next kill, at most."""
TRUSTED: Final = {"ATTENTION_SIEVE_TRUSTED": os.sep, "RAY_USAGE_STATS_ENABLED": "0"}
FEWEST_LEFT: Final = 3


def main() -> None:
    n_kills = int(sys.argv[1]) if len(sys.argv) > 1 else KILLS
    with tempfile.TemporaryDirectory() as named:
        base = Path(named)
        checkpoint, texts = small_checkpoint(base / "checkpoint"), write_texts(base / "texts.txt", N_TEXTS)
        plan = ["--checkpoint", str(checkpoint), "--texts", str(texts), "--shard-size", str(N_TEXTS // N_SHARDS)]
        runs = {"local": ["--workers", "2"], "ray": ["--workers", "2", "--engine", "ray"]}
        for name, options in runs.items():
            began = time.perf_counter()
            corpus("run", *plan, "--no-parser", "--output", str(base / name), *options)
            print(f"{name}: {N_TEXTS:,} texts in {N_SHARDS} shards, {time.perf_counter() - began:.0f} s", flush=True)
        report("local = ray", digest(base / "local"), digest(base / "ray"))
        corpus("plan", *plan, "--no-parser", "--output", str(base / "killed"))
        killed = kill_often(base / "killed", n_kills)
        print(f"{sum(killed.values())} kills: {dict(killed)}", flush=True)
        corpus("run", "--output", str(base / "killed"), "--workers", "2")
        report("killed = not killed", digest(base / "local"), digest(base / "killed"))
        left = [path.name for path in (base / "killed").rglob("*.part")]
        print(f"half-written files that are left: {len(left)}")


def small_checkpoint(folder: Path) -> Path:
    """A BERT of 2 layers and 3 heads with random weights, and the bundled checkpoint's tokenizer."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(bundled_folder())
    transformers.set_seed(0)
    config = transformers.BertConfig(
        vocab_size=len(tokenizer), hidden_size=48, num_hidden_layers=2, num_attention_heads=3, intermediate_size=96
    )
    transformers.AutoModel.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def write_texts(path: Path, n: int) -> Path:
    path.write_text("\n".join(sentences(n)) + "\n", encoding="utf-8")
    return path


def command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "attention_sieve", "corpus", *arguments]


def corpus(*arguments: str) -> None:
    """Run the command to its end."""
    subprocess.run(command(*arguments), check=True, stdout=subprocess.DEVNULL, env=os.environ | TRUSTED)


def digest(folder: Path) -> dict[str, bytes]:
    """Every file below a results folder but the journal, which tells how often it was begun, and when."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != PROGRESS)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def report(what: str, one: dict[str, bytes], other: dict[str, bytes]) -> None:
    differing = [name for name in sorted({*one, *other}) if one.get(name) != other.get(name)]
    n_bytes = sum(map(len, one.values()))
    told = "the same bytes" if not differing else f"{len(differing)} files differ, {differing[0]} first"
    print(f"{what}: {len(one)} files, {n_bytes:,} bytes: {told}", flush=True)


def kill_often(folder: Path, n_kills: int) -> Counter[str]:
    """Kill runs at random moments, and start them again."""
    chance, killed = random.Random(0), Counter[str]()
    while sum(killed.values()) < n_kills:
        leave_work(folder, chance)
        process = subprocess.Popen(
            command("run", "--output", str(folder), "--workers", "2"),
            env=os.environ | TRUSTED,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        if chance.random() < 0.5:
            wait_for_a_file(folder, process)
            time.sleep(chance.uniform(0, LONGEST_WAIT / 10))
        else:
            time.sleep(chance.uniform(0, LONGEST_WAIT))
        killed[kill(process, chance)] += 1
        process.wait()
    return killed


def leave_work(folder: Path, chance: random.Random) -> None:
    records = sorted((folder / "done").glob("*.json"))
    if len(records) > N_SHARDS - FEWEST_LEFT:
        for record in chance.sample(records, N_SHARDS // 2):
            record.unlink()


def wait_for_a_file(folder: Path, process: subprocess.Popen) -> None:
    """Until the run has written something, or has ended."""
    before = files_of(folder)
    while files_of(folder) == before and process.poll() is None:
        time.sleep(0.02)


def files_of(folder: Path) -> Sequence[str]:
    return sorted(path.name for name in ("scores", "statistics", "done") for path in (folder / name).iterdir())


def kill(process: subprocess.Popen, chance: random.Random) -> str:
    """Kill the run, a worker of it and a little later the run, or all of them at once."""
    try:
        workers = [each for each in psutil.Process(process.pid).children() if "spawn_main" in " ".join(each.cmdline())]
    except psutil.NoSuchProcess:
        return "had ended"
    whom = chance.choice(("run", "worker", "all")) if workers else "run"
    for each in workers if whom == "all" else chance.sample(workers, int(whom == "worker")):
        end(each.pid)
    if whom == "worker":
        time.sleep(chance.uniform(0, LONGEST_WAIT / 4))
    end(process.pid)
    return whom


def end(pid: int) -> None:
    if psutil.pid_exists(pid):
        os.kill(pid, signal.SIGKILL)


if __name__ == "__main__":
    main()
