"""The commands `python -m core finetune` and `python -m core sample-checkpoint`."""

import argparse
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Final

from tqdm import tqdm

from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import BUNDLED, find_checkpoint
from core.checkpoints.folders import checkpoints_folder, program_folder
from core.checkpoints.saved_runs import Progress, read_progress
from core.commands import INTERRUPTED, read_bytes
from core.finetuning.chance import NOT_ABOVE, against_chance
from core.finetuning.data import TrainingData, read_training_data
from core.finetuning.journal import Journal, check_agrees, open_run, plan_of, record, saved_step
from core.finetuning.movie_reviews import COLUMNS, movie_reviews
from core.finetuning.settings import TrainingSettings, default_settings

SETTINGS: Final = tuple(field.name for field in fields(TrainingSettings))
BY_NUMBER: Final = ("epochs", "batch_size", "held_out")
"""Settings whose defaults depend on the number of texts."""
SAMPLE: Final = "movie-reviews"
"""Name of the sample checkpoint."""
SAMPLE_SETTINGS: Final = TrainingSettings(epochs=2.0, save_steps=63)
"""250 steps, saved four times."""


def add_commands(commands: Any) -> None:
    """Add both commands to the command line's subparsers."""
    parser = commands.add_parser("finetune", help="fine-tune a checkpoint", description=finetune.__doc__)
    parser.add_argument("--checkpoint", required=True, help="a hub id, a folder, or: bundled")
    parser.add_argument("--data", required=True, type=Path, help=".csv or .tsv, also gzipped")
    parser.add_argument("--text-columns", required=True, help="column or two columns, as a,b")
    parser.add_argument("--label-column", required=True)
    parser.add_argument("--output", required=True, type=Path, help="folder of the run, newly made")
    for field, kind, summary in (
        ("epochs", float, "passes over the training texts"),
        ("learning_rate", float, "highest learning rate"),
        ("batch_size", int, "texts a step"),
        ("max_length", int, "tokens of a text; longer ones are cut"),
        ("seed", int, "of the new head, the order and the validation split"),
        ("save_steps", int, "steps between two saved checkpoints; the last only where it is not given"),
        ("held_out", float, "share of the texts to measure on"),
    ):
        default = "by the number of texts" if field in BY_NUMBER else str(getattr(TrainingSettings, field))
        parser.add_argument(f"--{field.replace('_', '-')}", type=kind, help=f"{summary} ({default})")
    parser.add_argument("--task", choices=("classes", "regression"), help="decided by the labels where not given")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    parser.add_argument("--resume", action="store_true", help="go on with the run in the output folder")
    parser.set_defaults(run=finetune)
    sample = commands.add_parser("sample-checkpoint", help="make the sample", description=sample_checkpoint.__doc__)
    sample.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    sample.set_defaults(run=sample_checkpoint)


def finetune(options: argparse.Namespace) -> None:
    """Fine-tune a checkpoint on the labelled texts of a table, and keep it in a folder."""
    columns = tuple(name.strip() for name in options.text_columns.split(","))
    data = read_training_data(
        options.data.name, read_bytes(options.data), columns, options.label_column.strip(), task=options.task
    )
    given = {name: value for name in SETTINGS if (value := getattr(options, name)) is not None}
    settings = replace(default_settings(len(data.texts)), **given)
    files = find_checkpoint(options.checkpoint)
    with _reported(open_run(options.output, plan_of(files, data, None, settings), resume=options.resume)) as journal:
        _train(journal, files, data, None, settings, options.device)


def sample_checkpoint(options: argparse.Namespace) -> None:
    """Fine-tune the bundled checkpoint on movie reviews, or go on with it, so that there is a pair to compare."""
    folder = checkpoints_folder() / SAMPLE
    progress = read_progress(folder)
    if progress is not None and progress.state == "finished":
        print(
            f"The sample checkpoint is there already, by the name {SAMPLE}: {_result(progress)}. Its folder: {folder}"
        )
        return
    step = saved_step(folder, resume=progress is not None)
    with _reported(Journal(folder, BUNDLED, step, "Fetching the movie reviews.")) as journal:
        paths = movie_reviews(program_folder() / "downloads")
        data, held_out = (read_training_data(path.name, read_bytes(path), COLUMNS[:1], COLUMNS[1]) for path in paths)
        files = find_checkpoint(BUNDLED)
        plan = plan_of(files, data, held_out, SAMPLE_SETTINGS)
        if step:
            check_agrees(folder, plan)
        else:
            record(folder, plan)
        _train(journal, files, data, held_out, SAMPLE_SETTINGS, options.device)


def _train(
    journal: Journal,
    files: CheckpointFiles,
    data: TrainingData,
    held_out: TrainingData | None,
    settings: TrainingSettings,
    device: str,
) -> None:
    from core.finetuning.finetune import finetune as train

    with tqdm(unit="step", initial=journal.step, disable=not sys.stderr.isatty()) as bar:
        progress = train(files, data, settings, journal, held_out=held_out, device=device, on_step=_shown_in(bar))
    for note in progress.notes:
        print(note, file=sys.stderr)
    if progress.state == "finished":
        print(f"Finished after {progress.steps:,} steps: {_result(progress)}. The checkpoint: {journal.folder}")
    else:
        print(f"Stopped after step {progress.step:,} of {progress.steps:,}. {_saved(journal.folder)}")


@contextmanager
def _reported(journal: Journal) -> Iterator[Journal]:
    """Context of a run that reports an interruption in its folder and on standard error."""
    try:
        with journal:
            yield journal
    except KeyboardInterrupt:
        print(f"\nInterrupted. {_saved(journal.folder)}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def _shown_in(bar: tqdm) -> Callable[[int, int], None]:
    def show(step: int, steps: int) -> None:
        bar.total = steps
        bar.update(step - bar.n)

    return show


def _saved(folder: Path) -> str:
    progress = read_progress(folder)
    if progress is None or not progress.saved:
        return "No step is saved; the same command starts again."
    return f"Step {progress.saved[-1]:,} is saved in {folder}; the same command with --resume goes on from there."


def _result(progress: Progress) -> str:
    result, beside = progress.held_out[-1], against_chance(progress)
    if result.accuracy is not None:
        sentence = f"accuracy {result.accuracy:.3f} on the validation split"
    else:
        correlation = "not defined" if result.correlation is None else f"{result.correlation:.3f}"
        sentence = f"correlation {correlation} on the validation split"
    if beside is None:
        return sentence
    return f"{sentence} ({beside.in_words}){'' if beside.is_above else f', {NOT_ABOVE}'}"
