"""The command `python -m attention_sieve laboratory`: watch a small model learn to continue repetitions."""

import argparse
from pathlib import Path
from typing import Any

from attention_sieve.core.checkpoints.examples import SAMPLE_TRAINING
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.finetuning.command import reported, saved_so_far
from attention_sieve.core.finetuning.journal import open_run
from attention_sieve.core.laboratory.settings import LaboratoryPlan, LaboratorySettings
from attention_sieve.core.options import add_output_option, add_settings_options, settings_of
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import read_progress


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "laboratory",
        help="train a small model on sequences that repeat, and save its steps",
        description=laboratory.__doc__,
    )
    add_output_option(parser, "new folder for the run")
    add_settings_options(parser, LaboratorySettings())
    parser.add_argument("--resume", action="store_true", help="resume the run in the output folder")
    parser.set_defaults(run=laboratory, folder_of_run="output")


def laboratory(options: argparse.Namespace) -> None:
    """Train a small model (2 layers of 4 heads) on sequences of random tokens that repeat, in about half a minute.

    It begins with random weights, and learns to continue a repetition. Its saved steps, from step 0 on, are
    checkpoints that every other command reads: in them, a head that looks at the previous token appears, and then an
    induction head. With a fixed period, the control, heads learn to look back a fixed distance instead.
    """
    _train(options.output, settings_of(options, LaboratorySettings()), resume=options.resume)


def sample_laboratory() -> None:
    """Train the model with which the page Laboratory opens, or go on with it, unless it is there."""
    folder = checkpoints_folder() / SAMPLE_TRAINING
    progress = read_progress(folder)
    if progress is None or progress.state != "finished":
        _train(folder, LaboratorySettings(), resume=progress is not None)


def _train(folder: Path, settings: LaboratorySettings, *, resume: bool) -> None:
    with reported(open_run(folder, LaboratoryPlan(settings), resume=resume)) as journal:
        with journal.beginning():
            from attention_sieve.core.laboratory.training import train  # imports torch and transformers

        with ProgressBar(unit="step", initial=journal.step) as bar:
            progress = train(settings, journal, bar.reach)
        if progress.state == "finished":
            last = progress.held_out[-1]
            print(
                f"Finished after {progress.steps:,} steps: {last.accuracy:.1%} of the copied tokens predicted, loss "
                f"{last.loss:.2f} nats. The checkpoint is in {journal.folder}"
            )
        else:
            print(f"Stopped after step {progress.step:,} of {progress.steps:,}. {saved_so_far(journal.folder)}")
