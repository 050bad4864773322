"""The command `python -m attention_sieve trials`: runs a table of trials."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.find import choose_device
from attention_sieve.core.checkpoints.folders import trials_folder
from attention_sieve.core.engines.options import add_engine_options, check_engine, counted, engine_of
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import parse_json
from attention_sieve.core.knowledge.command import report_line, together_line
from attention_sieve.core.knowledge.trials.result import STAGES, TrialResult, TrialStage
from attention_sieve.core.knowledge.trials.run import Trials, run_on, run_table, trial_runner
from attention_sieve.core.knowledge.trials.trial import Trial, name_of, trial_of
from attention_sieve.core.options import add_device_option, add_dtype_option, add_journal_option
from attention_sieve.core.running import Journal, Progress
from attention_sieve.core.texts.tables import read_table
from attention_sieve.core.texts.text import decoded, read_bytes

MOST_TRIALS: Final = 10_000
TABLES: Final = (".csv", ".jsonl")


def add_commands(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "trials", help="probe many checkpoints for many tasks, as listed in a table", description=trials.__doc__
    )
    parser.add_argument("--table", required=True, type=Path, help="table with a trial per line: .csv or .jsonl")
    parser.add_argument("--output", type=Path, help="folder for the results; default: the program's cache folder")
    parser.add_argument(
        "--stages",
        type=stages_of,
        default=STAGES,
        help=f"stages to run, separated by commas; default: {','.join(STAGES)}",
    )
    add_device_option(parser)
    add_dtype_option(parser)
    add_journal_option(parser)
    add_engine_options(parser)
    parser.set_defaults(run=trials, folder_of_run="journal")


def trials(arguments: argparse.Namespace) -> None:
    """Probe many checkpoints for many tasks: run each trial of a table, one after the other or in parallel.

    A trial is a line of the table, with the columns checkpoint and data (the file of a task), and optionally pooling,
    seed, attention, random_weights, text_columns, label_column, part_column, is_regression and too_long. The result of
    each trial is a Parquet file with one row; results that already exist are not computed again.

    Stages:
        heads: probe every head and layer on its own
        controls: control tasks and code lengths
        together: probe the best heads together

    Each stage is run for all trials before the next one starts. With --workers or --engine ray, each process runs all
    stages of a trial before its next trial. A trial that fails is retried once, then reported.
    """
    check_engine(arguments)
    table = read_trials(arguments.table.suffix, read_bytes(arguments.table))
    journal = Journal(arguments.journal)
    try:
        results = _results(arguments, table, journal)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_stopped(journal.progress)) from None
    for result in results:
        name, report = name_of(result.trial), result.report
        print(report_line(name, report))
        if result.together is not None:
            print(together_line(name, report, result.together, result.n_heads_of_layer))
    if journal.progress.state == "stopped":
        print(_stopped(journal.progress), file=sys.stderr)
    if failed := journal.progress.failed:
        raise AnalysisError(" ".join(f"{failure.piece}: {failure.why}" for failure in failed))


def _stopped(progress: Progress) -> str:
    return (
        f"Stopped after {progress.step:,} of {progress.steps:,} stages of trials; run the same command again to "
        "continue."
    )


def _results(arguments: argparse.Namespace, table: Sequence[Trial], journal: Journal) -> list[TrialResult]:
    folder = arguments.output or trials_folder()
    if arguments.engine == "local" and arguments.workers in (None, 1):
        return run_table(table, Trials(folder, arguments.device, arguments.dtype), arguments.stages, journal)
    engine = counted(engine_of(arguments, choose_device(arguments.device)), "trial")
    begin = partial(trial_runner, folder, arguments.device, arguments.dtype, arguments.stages)
    return run_on(engine, table, begin, len(arguments.stages), journal)


def stages_of(text: str) -> tuple[TrialStage, ...]:
    """Parse stages separated by commas, in the order in which they are computed."""
    names = [name.strip() for name in text.split(",")]
    if unknown := [name for name in names if name not in STAGES]:
        raise argparse.ArgumentTypeError(f"there is no stage {unknown[0][:40]!r}; choose some of {','.join(STAGES)}")
    return tuple(stage for stage in STAGES if stage in names)


def read_trials(suffix: str, content: bytes) -> tuple[Trial, ...]:
    """Read the trials of a table, without duplicates.

    Args:
        suffix: .csv with a header, or .jsonl with one object per line.

    Raises: AnalysisError, with the line; TextError for bytes that are not text.
    """
    if suffix.lower() not in TABLES:
        raise AnalysisError(f"A table of trials ends in {' or '.join(TABLES)}, got {suffix[:20]!r}. Choose another.")
    text = decoded(content)
    rows = [row for _, row in read_table(text, ".csv")] if suffix.lower() == ".csv" else _objects(text)
    if not rows:
        raise AnalysisError("The table has no trial. Write a checkpoint and data in each line.")
    if len(rows) > MOST_TRIALS:
        raise AnalysisError(f"The table has {len(rows):,} trials and at most {MOST_TRIALS:,} are run. Split it.")
    distinct: dict[Trial, None] = {}
    for number, row in enumerate(rows, 1):
        try:
            distinct[trial_of({str(name): value for name, value in row.items()})] = None
        except AnalysisError as error:
            raise AnalysisError(f"Trial {number:,}: {error}") from None
    return tuple(distinct)


def _objects(text: str) -> list[dict[str, Any]]:
    objects = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            value = parse_json(line)
        except ValueError as error:
            raise AnalysisError(f"Line {number:,} is no JSON ({error}). Correct it.") from None
        if not isinstance(value, dict):
            raise AnalysisError(f"Line {number:,} is no JSON object. Write a trial as one.")
        objects.append(value)
    return objects
