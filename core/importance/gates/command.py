"""The command `python -m attention_sieve gates`: train a gate for every head, so that needless heads close."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.commands import write
from attention_sieve.core.errors import quoted
from attention_sieve.core.finetuning.data import TrainingData, read_training_data
from attention_sieve.core.finetuning.journal import check_agrees, open_run, plan_of
from attention_sieve.core.importance.gates.settings import GateSettings, TrainedGates
from attention_sieve.core.options import (
    add_attention_option,
    add_device_option,
    add_labelled_options,
    add_output_option,
    add_settings_options,
    settings_of,
)
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import (
    Journal,
    Progress,
    Stopped,
    carried_out,
    check_ended,
    read_progress,
    saved_checkpoints,
)
from attention_sieve.core.texts.text import read_bytes


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "gates", help="train gates that switch off the heads a task does not need", description=gates.__doc__
    )
    parser.add_argument("--checkpoint", required=True, help="a classifier: Hugging Face model id or folder")
    add_labelled_options(parser)
    add_output_option(parser, "folder of the runs, one for each penalty")
    parser.add_argument(
        "--penalty",
        type=penalties,
        default=(GateSettings.penalty,),
        help="weight of the penalty on open gates (lambda), or several, such as 0.01,0.02,0.05; default: "
        f"{GateSettings.penalty}",
    )
    add_attention_option(parser)
    add_settings_options(parser, GateSettings())
    add_device_option(parser)
    parser.add_argument("--resume", action="store_true", help="resume the runs in the output folder")
    parser.set_defaults(run=gates, folder_of_run="output")


def penalties(text: str) -> tuple[float, ...]:
    """Parse penalties such as `0.01,0.02`."""
    try:
        return tuple(dict.fromkeys(float(part) for part in text.split(",")))
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{quoted(text)} is not a list of penalties; write numbers, such as 0.01,0.02"
        ) from None


def gates(arguments: argparse.Namespace) -> None:
    """Train a gate for every head, with a penalty on open gates, so that heads the task does not need are switched off.

    Each penalty is a run with a folder of its own, for its saved steps and the checkpoint with the gates multiplied
    into its weights. All together are the run of the output folder; to stop it, create a file named stop there. The
    file gates.csv in the output folder has a row per penalty and head.

    Columns of gates.csv:
        penalty: weight of the penalty (lambda)
        layer, head: index of the layer and of the head, from 0
        log_alpha: trained parameter of the gate
        p_zero, p_one: probability that the gate is exactly 0, and exactly 1
        gate: value of the gate without noise, 0 to 1; 0 means that the head is switched off
    """
    columns = tuple(name.strip() for name in arguments.text_columns.split(","))
    content, label = read_bytes(arguments.data), arguments.label_column.strip()
    data = read_training_data(arguments.data.name, content, columns, label, task=arguments.task)
    files = find_checkpoint(arguments.checkpoint)
    check_ended(arguments.output)
    tables = []
    with carried_out(Journal(arguments.output, files.name), at_pauses=False) as sweep:
        sweep.plan(len(arguments.penalty))
        for penalty in arguments.penalty:
            sweep.piece(f"penalty {penalty:g}")
            settings = settings_of(arguments, GateSettings(penalty=penalty, kind=arguments.attention or files.kinds[0]))
            folder = arguments.output / f"penalty-{penalty:g}"
            trained, was_kept = _train(folder, files, data, settings, sweep, arguments)
            tables.append(gate_table(trained).assign(penalty=penalty))
            sweep.done(was_kept=was_kept)
        table = pd.concat(tables, ignore_index=True)
        write(arguments.output / "gates.csv", partial(table[["penalty", *table.columns[:-1]]].to_csv, index=False))


def gate_table(trained: TrainedGates) -> pd.DataFrame:
    """One row per head: layer, head, log_alpha, p_zero, p_one, gate."""
    layer, head = (axis.ravel() for axis in np.indices(trained.gate.shape))
    fields = ("log_alpha", "p_zero", "p_one", "gate")
    return pd.DataFrame({"layer": layer, "head": head, **{name: getattr(trained, name).ravel() for name in fields}})


def _train(
    folder: Path,
    files: CheckpointFiles,
    data: TrainingData,
    settings: GateSettings,
    sweep: Journal,
    arguments: argparse.Namespace,
) -> tuple[TrainedGates, bool]:
    """Train with one penalty, resume its run, or read its finished run; and whether it was finished before.

    Raises: Stopped if the sweep, or this run, is asked to stop.
    """
    with sweep.beginning():
        from attention_sieve.core.importance.gates.training import train_gates, trained_gates  # imports torch

    plan, progress = plan_of(files, data, None, settings), read_progress(folder) if arguments.resume else None
    was_kept = progress is not None and progress.state == "finished"
    if progress is not None and was_kept:
        check_agrees(folder, plan)
    else:
        with (
            open_run(folder, plan, resume=progress is not None, is_wanted=lambda: not sweep.stop_asked()) as journal,
            ProgressBar(unit="step", initial=journal.step) as bar,
        ):
            progress = train_gates(files, data, settings, journal, device=arguments.device, on_step=bar.reach)
    if progress.state != "finished":
        print(f"Stopped after step {progress.step:,} of {progress.steps:,}. To continue, add --resume to the command.")
        raise Stopped
    trained = trained_gates(saved_checkpoints(folder)[-1], files.removed_of(settings.kind))
    print(_result(settings.penalty, progress, trained))
    return trained, was_kept


def _result(penalty: float, progress: Progress, trained: TrainedGates) -> str:
    last = progress.held_out[-1]
    quality = f"accuracy {last.accuracy:.3f}" if last.accuracy is not None else f"loss {last.loss:.3f}"
    n_heads = int((~np.isnan(trained.gate)).sum())
    closed = ",".join(f"{layer}-{head}" for layer, head in np.argwhere(trained.gate == 0))
    remove = f" To remove the closed heads: --heads {closed}" if closed else ""
    return f"Penalty {penalty:g}: {trained.n_open} of {n_heads} heads stay open, {quality} on held-out texts.{remove}"
