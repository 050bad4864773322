"""The commands `python -m attention_sieve finetune` and `python -m attention_sieve sample-checkpoint`: fine-tune a
checkpoint."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.examples import SAMPLE_FINE_TUNING
from attention_sieve.core.checkpoints.find import BUNDLED, find_checkpoint
from attention_sieve.core.checkpoints.folders import checkpoints_folder, program_folder
from attention_sieve.core.commands import INTERRUPTED
from attention_sieve.core.finetuning.chance import NOT_ABOVE, against_chance
from attention_sieve.core.finetuning.data import TrainingData, read_training_data
from attention_sieve.core.finetuning.journal import check_agrees, open_run, plan_of, record, saved_step
from attention_sieve.core.finetuning.movie_reviews import COLUMNS, movie_reviews
from attention_sieve.core.finetuning.settings import TrainingSettings, default_settings
from attention_sieve.core.options import (
    add_checkpoint_option,
    add_device_option,
    add_labelled_options,
    add_output_option,
    add_settings_options,
    settings_of,
)
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import Journal, Progress, Stopped, read_progress
from attention_sieve.core.texts.text import read_bytes

SAMPLE_SETTINGS: Final = TrainingSettings(epochs=2.0, save_steps=63)
"""250 steps, saved four times."""


def add_commands(commands: Any) -> None:
    """Add both commands to the command line's subparsers."""
    parser = commands.add_parser(
        "finetune", help="fine-tune a checkpoint on labelled texts", description=finetune.__doc__
    )
    add_checkpoint_option(parser)
    add_labelled_options(parser)
    add_output_option(parser, "new folder for the run")
    add_settings_options(parser, TrainingSettings())
    add_device_option(parser)
    parser.add_argument("--resume", action="store_true", help="resume the run in the output folder")
    parser.set_defaults(run=finetune, folder_of_run="output")
    sample = commands.add_parser(
        "sample-checkpoint",
        help="fine-tune the bundled checkpoint on movie reviews, as an example to compare",
        description=sample_checkpoint.__doc__,
    )
    add_device_option(sample)
    sample.set_defaults(run=sample_checkpoint)


def finetune(options: argparse.Namespace) -> None:
    """Fine-tune a checkpoint on a table of labelled texts, and save it in a folder.

    If there are few texts, there are more epochs, smaller batches and a larger share to measure on, unless you choose
    them.
    """
    columns = tuple(name.strip() for name in options.text_columns.split(","))
    data = read_training_data(
        options.data.name, read_bytes(options.data), columns, options.label_column.strip(), task=options.task
    )
    settings = settings_of(options, default_settings(len(data.texts)))
    files = find_checkpoint(options.checkpoint)
    with reported(open_run(options.output, plan_of(files, data, None, settings), resume=options.resume)) as journal:
        _train(journal, files, data, None, settings, options.device)


def sample_checkpoint(options: argparse.Namespace) -> None:
    """Fine-tune the bundled checkpoint on movie reviews, so that there is a pair of checkpoints to compare.

    If the run was interrupted, the same command resumes it.
    """
    folder = checkpoints_folder() / SAMPLE_FINE_TUNING
    progress = read_progress(folder)
    if progress is not None and progress.state == "finished":
        name, result = SAMPLE_FINE_TUNING, _result(progress)
        print(f"The sample checkpoint already exists, under the name {name}: {result}. It is in {folder}")
        return
    step = saved_step(folder, resume=progress is not None)
    with reported(Journal(folder, BUNDLED, step, "Fetching the movie reviews.")) as journal:
        with journal.beginning():
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
    with journal.beginning():
        from attention_sieve.core.finetuning.finetune import finetune as train  # imports torch and transformers

    with ProgressBar(unit="step", initial=journal.step) as bar:
        progress = train(files, data, settings, journal, held_out=held_out, device=device, on_step=bar.reach)
    for note in progress.notes:
        print(note, file=sys.stderr)
    if progress.state == "finished":
        print(f"Finished after {progress.steps:,} steps: {_result(progress)}. The checkpoint is in {journal.folder}")
    else:
        print(f"Stopped after step {progress.step:,} of {progress.steps:,}. {saved_so_far(journal.folder)}")


@contextmanager
def reported(journal: Journal) -> Iterator[Journal]:
    """Context of a run that says on standard output that it was asked to stop, and on standard error that it was
    interrupted."""
    try:
        with journal:
            yield journal
    except Stopped:  # before the first step
        print(f"Stopped. {saved_so_far(journal.folder)}")
    except KeyboardInterrupt:
        print(f"\nInterrupted. {saved_so_far(journal.folder)}", file=sys.stderr)
        raise SystemExit(INTERRUPTED) from None


def saved_so_far(folder: Path) -> str:
    """What is saved of a run that was stopped, and how to continue."""
    progress = read_progress(folder)
    if progress is None or not progress.saved:
        return "No step was saved; the same command starts again."
    is_sample = folder == checkpoints_folder() / SAMPLE_FINE_TUNING
    action = "run the same command again" if is_sample else "add --resume to the command"
    return f"Step {progress.saved[-1]:,} is saved in {folder}; to continue from there, {action}."


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
