"""Do a few heads predict more than the best layer? Tables modelled on that of Jo and Myaeng 2020.

For the sample checkpoint (made if it is not there), the bundled one, and the same with random weights, on eleven tasks
made from the English Web Treebank, which lie beside the repository; where they do not, nothing is measured. Vectors are
kept, so that a second run reads no text. One of the checkpoints can be named, and then some of the tasks, as in
`python -m benchmarks.findings.few_heads bundled tree_depth past_present`.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint, load_checkpoint, randomly_initialised
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.finetuning.command import sample_checkpoint
from attention_sieve.core.knowledge.files.folders import read_tasks
from attention_sieve.core.knowledge.kept_vectors import read_task
from attention_sieve.core.knowledge.reconstruction import Gain, Reconstruction, gain, reconstruct
from attention_sieve.core.knowledge.report import TaskReport, task_report, texts_of
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.running import read_progress
from benchmarks.shared.markdown import header, row

FOLDER: Final = Path(__file__).parents[3] / "shared" / "data" / "probing_ud"
TASKS: Final = (
    "sentence_length", "word_content", "tree_depth", "tree_depth_matched", "top_deprels", "bigram_shift",
    "past_present", "subj_number", "obj_number", "odd_man_out", "coordination_inversion",
)  # fmt: skip
RANDOM: Final = "random-weights"
CHECKPOINTS: Final = (SAMPLE_FINE_TUNING, BUNDLED, RANDOM)
SETTINGS: Final = PassSettings()
N_THREADS: Final = 2
COLUMNS: Final = (
    "task", "tested", "majority", "length", "bag of words",
    "best head", "last layer", "best layer", "best heads", "gain",
)  # fmt: skip


def main() -> None:
    import torch

    if not FOLDER.is_dir():
        print("There are no tasks beside the repository; nothing is measured.", file=sys.stderr)
        return
    torch.set_num_threads(N_THREADS)
    for name in sys.argv[1:2] or CHECKPOINTS:
        checkpoint = loaded(name)
        print(f"\n`{name}`, accuracy in %, with 95% intervals:")
        header(*COLUMNS)
        gains = [report_task(checkpoint, task) for task in sys.argv[2:] or TASKS]
        more, less = sum(each.low > 0 for each in gains), sum(each.high < 0 for each in gains)
        print(f"\nThe best heads together tell more in {more} of {len(gains)} tasks, and less in {less}.", flush=True)


def loaded(name: str) -> Checkpoint:
    """The sample checkpoint, the bundled one, or one of its architecture before any training."""
    progress = read_progress(checkpoints_folder() / SAMPLE_FINE_TUNING) if name == SAMPLE_FINE_TUNING else None
    if name == SAMPLE_FINE_TUNING and (progress is None or progress.state != "finished"):
        sample_checkpoint(argparse.Namespace(device="cpu"))
    files = randomly_initialised(find_checkpoint(BUNDLED), 0) if name == RANDOM else find_checkpoint(name)
    return load_checkpoint(files, device="cpu")


def report_task(checkpoint: Checkpoint, name: str) -> Gain:
    """Print the row of a task, in Markdown; the best heads are as many as a layer has."""
    (task,) = read_tasks(FOLDER / f"{name}.txt.gz")
    prepared, _ = prepare_all(checkpoint, texts_of(task), SETTINGS, "error")
    reading = read_task(checkpoint, task, prepared, SETTINGS, "cls", lambda work, _: work)
    task, vectors = reading.task, reading.vectors
    report, n_heads = task_report(task, vectors), vectors.shape[1]
    together = reconstruct(task, vectors, report, (n_heads,))
    gained = gain(together, report, n_heads)
    row(*cells(report, together, gained))
    return gained


def cells(report: TaskReport, together: Reconstruction, gained: Gain) -> Sequence[str]:
    head, layer = report.best_head, report.best_layer
    return (
        report.task.replace("_", " "),
        str(report.n_test),
        *(f"{100 * one.score:.0f}" for one in report.baselines),
        f"{shown(report, head)} {head_name(int(report.layer[head]), int(report.head[head]))}",
        shown(report, len(report.layer) - 1),
        f"{shown(report, layer)} layer {report.layer[layer]}",
        shown(together, 0),
        f"{gained.percent:+.0f}% ({gained.low:+.0f} to {gained.high:+.0f})",
    )


def shown(scores: TaskReport | Reconstruction, place: int) -> str:
    """An accuracy with its interval."""
    return f"{100 * scores.accuracy[place]:.0f} ({100 * scores.low[place]:.0f}-{100 * scores.high[place]:.0f})"


if __name__ == "__main__":
    main()
