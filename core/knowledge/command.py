"""The commands `python -m attention_sieve knowledge` and `reconstruct`: probes of single heads, and of several
together."""

import argparse
import inspect
import sys
from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    write_table,
)
from attention_sieve.core.knowledge.files.folders import read_tasks
from attention_sieve.core.knowledge.files.labelled import LABEL_COLUMN, PART_COLUMNS, TaskColumns
from attention_sieve.core.knowledge.kept_vectors import TaskReading, read_task
from attention_sieve.core.knowledge.reconstruction import Reconstruction, gain, ranking, reconstruct
from attention_sieve.core.knowledge.report import (
    TaskReport,
    code_lengths,
    corrected,
    selectivity,
    task_report,
    texts_of,
)
from attention_sieve.core.knowledge.task import Task, check_task
from attention_sieve.core.knowledge.vectors import POOLINGS, Pooling, usual_pooling
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_text_columns_option,
    add_too_long_option,
    column_list,
)

COLUMNS: Final = {
    "task": "name of the task",
    "layer": "index of the layer, from 0",
    "head": "index of the head, from 0; -1 for the output of the layer",
    "strength": "strength of the L2 penalty, chosen on the validation part",
    "accuracy": "accuracy on the test part; for a regression, Pearson's correlation",
    "low": "lower end of its 95% confidence interval",
    "high": "upper end of this interval",
    "majority": "accuracy of always predicting the most frequent class",
    "n_train": "number of examples in the training part",
    "n_validation": "number in the validation part",
    "n_test": "number in the test part",
}
DETAILS: Final = {
    "validation": "accuracy on the validation part",
    "length": "accuracy of a probe on the length of the text",
    "bag_of_words": "accuracy of a probe on its bag of words",
    "control": "accuracy on a control task, which has the same labels in random order",
    "selectivity": "accuracy minus control",
    "selectivity_low": "lower end of its 95% confidence interval",
    "selectivity_high": "upper end of this interval",
    "bits": "online code length of the labels",
    "compression": "how many times shorter it is than a uniform code",
    "p_majority": "one-sided p-value of being better than the most frequent class (McNemar's test)",
    "p_length": "the same of being better than the probe on the length",
    "p_bag_of_words": "the same of being better than the probe on the bag of words",
    "p_adjusted": "p_majority, corrected over heads and tasks",
}
SIZES: Final = ("n_train", "n_validation", "n_test")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    columns = f"{column_list('Columns', COLUMNS)}{column_list('Additional columns with --details', DETAILS)}"
    described = f"{inspect.cleandoc(knowledge.__doc__ or '')}{columns}"
    parser = add_task_command(commands, "knowledge", "probe the output vector of each head for a task", described)
    parser.add_argument(
        "--details", action="store_true", help="add baselines, a control task, description lengths and p-values"
    )
    parser.set_defaults(run=knowledge)
    parser = add_task_command(
        commands, "reconstruct", "probe the best heads together, for more and more heads", reconstruct_tasks.__doc__
    )
    parser.add_argument(
        "--every", action="store_true", help="probe every number of heads; without it, larger numbers in larger steps"
    )
    parser.set_defaults(run=reconstruct_tasks)


def add_task_command(commands: Any, name: str, summary: str, description: str | None) -> argparse.ArgumentParser:
    """Add a command that reads tasks and a checkpoint, with the options that all such commands have."""
    parser: argparse.ArgumentParser = commands.add_parser(name, help=summary, description=description)
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    parser.add_argument(
        "--data",
        required=True,
        type=Path,
        help="task: a file in SentEval's format, a table of labelled texts, or a folder of such files",
    )
    add_text_columns_option(parser)
    parser.add_argument(
        "--label-column",
        default=LABEL_COLUMN,
        help="column of a table that holds the labels; default: %(default)s",
    )
    parser.add_argument(
        "--part-column",
        help=f"column of a table that assigns each row to train, validation or test; default: "
        f"{', '.join(PART_COLUMNS)} if there is one, otherwise rows are split at random",
    )
    labels = parser.add_mutually_exclusive_group()
    labels.add_argument(
        "--classes",
        dest="is_regression",
        action="store_false",
        help="treat labels as classes, even if they are numbers",
    )
    labels.add_argument(
        "--regression", dest="is_regression", action="store_true", help="treat labels as numbers to predict"
    )
    parser.set_defaults(is_regression=None)
    parser.add_argument(
        "--pooling",
        choices=POOLINGS,
        help="vector that represents a text: at [CLS], at the last token, or the mean over tokens; default: as in the "
        "paper, cls for encoders and last for decoders",
    )
    add_too_long_option(parser)
    add_output_option(parser)
    return parser


def knowledge(arguments: argparse.Namespace) -> None:
    """Train and test a linear probe on the output vector of each head, and of each layer; write a row per probe."""
    tables = []
    probed, facts = _reports(arguments)
    for reading, report in probed:
        table = _table(report)
        tables.append(_with_details(table, reading, report) if arguments.details else table)
    if arguments.details:
        p_adjusted = corrected([report for _, report in probed])
        tables = [table.assign(p_adjusted=p_values) for table, p_values in zip(tables, p_adjusted)]
    ordered = [table.sort_values(["layer", "head"]) for table in tables]
    write_table(arguments.output, pd.concat(ordered, ignore_index=True), facts)
    print("\n".join(report_line(report.task, report) for _, report in probed))


def reconstruct_tasks(arguments: argparse.Namespace) -> None:
    """Train and test a linear probe on the vectors of the n best heads together, for increasing n; write a row per n.

    Columns:
        task: name of the task
        n_heads: number of heads
        heads: these heads as layer-head, the best on the validation part first
        strength: strength of the L2 penalty, chosen on the validation part
        validation, accuracy: accuracy on the validation part and on the test part
        low, high: 95% confidence interval of the accuracy
        last_layer, best_layer: accuracy of probes on the output of the last, and of the best layer
        gain, gain_low, gain_high: gain in accuracy over the best layer in percent, and its 95% paired bootstrap
            interval
        enough: smallest number of heads within one standard error of the best accuracy on the validation part
        n_train, n_validation, n_test: number of examples in each part
    """
    tables, lines = [], []
    probed, facts = _reports(arguments)
    for reading, report in probed:
        n_heads = len(ranking(report))
        steps = range(1, n_heads + 1) if arguments.every else None
        together = reconstruct(reading.task, reading.vectors, report, steps)
        if together.n_unsolved:
            print(f"{report.task}: {together.n_unsolved} probes did not converge.", file=sys.stderr)
        tables.append(_steps_table(report, together))
        lines.append(together_line(report.task, report, together, min(reading.vectors.shape[1], n_heads)))
    write_table(arguments.output, pd.concat(tables, ignore_index=True), facts)
    print("\n".join(lines))


def _reports(arguments: argparse.Namespace) -> tuple[list[tuple[TaskReading, TaskReport]], dict[str, str]]:
    tasks = tasks_of(arguments)
    checkpoint, settings = loaded(arguments)
    pooling = arguments.pooling or usual_pooling(checkpoint, settings.kind)
    probed = []
    for task in tasks:
        reading = reading_of(checkpoint, task, settings, pooling, arguments)
        report = task_report(reading.task, reading.vectors)
        if report.n_unsolved:
            print(
                f"{task.name}: {report.n_unsolved} probes did not converge; their accuracies may be low.",
                file=sys.stderr,
            )
        probed.append((reading, report))
    return probed, {**checkpoint_facts(checkpoint, settings), "pooling": pooling}


def tasks_of(arguments: argparse.Namespace) -> tuple[Task, ...]:
    """Read the tasks that the options select.

    Raises: AnalysisError if the output cannot be written or a task cannot be probed.
    """
    check_output(arguments.output, TABLES, [arguments.data])
    columns = TaskColumns.named(arguments.text_columns, arguments.label_column, arguments.part_column)
    tasks = read_tasks(arguments.data, columns, is_regression=arguments.is_regression)
    for task in tasks:
        check_task(task)
    return tasks


def reading_of(
    checkpoint: Checkpoint, task: Task, settings: PassSettings, pooling: Pooling, arguments: argparse.Namespace
) -> TaskReading:
    """A task as the checkpoint reads it; notes on weak results go to standard error."""
    prepared = prepared_texts(checkpoint, texts_of(task), settings, arguments.too_long)
    reading = read_task(
        checkpoint,
        task,
        prepared,
        settings,
        pooling,
        lambda work, n_texts: ([result] for result in progress_bar(work, n_texts, task.name)),
    )
    for note in check_task(reading.task):
        print(f"{task.name}: {note}", file=sys.stderr)
    return reading


def _table(report: TaskReport) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "task": report.task,
            **{name: getattr(report, name) for name in ("layer", "head", "strength", "accuracy", "low", "high")},
            "majority": report.baselines[0].score,
            **{name: getattr(report, name) for name in SIZES},
        }
    )


def _with_details(table: pd.DataFrame, reading: TaskReading, report: TaskReport) -> pd.DataFrame:
    names = [baseline.name.replace(" ", "_") for baseline in report.baselines]
    table = table.assign(validation=report.validation)
    table = table.assign(**{name: base.score for name, base in list(zip(names, report.baselines))[1:]})
    if not report.is_regression:
        control = selectivity(reading.task, reading.vectors, report)
        bits, uniform = code_lengths(reading.task, reading.vectors)
        table = table.assign(
            control=control.control,
            selectivity=control.selectivity,
            selectivity_low=control.low,
            selectivity_high=control.high,
            bits=bits,
            compression=uniform / bits,
        )
    return table.assign(**{f"p_{name}": values for name, values in zip(names, report.p_values)})


def report_line(name: str, report: TaskReport) -> str:
    """The best head and layer for a task, selected on the validation part, after the name of the probing."""
    head, layer = report.best_head, report.best_layer
    baselines = ", ".join(
        f"{baseline.name} {baseline.score:.3f}" for baseline in report.baselines if not np.isnan(baseline.score)
    )
    return (
        f"{name}: {head_name(*report.head_at(head))} {_shown(report, head)}; output of layer {report.layer[layer]} "
        f"{_shown(report, layer)}; {baselines}; {report.n_test:,} test examples"
    )


def _shown(report: TaskReport, place: int) -> str:
    return f"{report.accuracy[place]:.3f} ({report.low[place]:.3f} to {report.high[place]:.3f})"


def _steps_table(report: TaskReport, reconstruction: Reconstruction) -> pd.DataFrame:
    gains = [gain(reconstruction, report, int(n_heads)) for n_heads in reconstruction.n_heads]
    return pd.DataFrame(
        {
            "task": report.task,
            "n_heads": reconstruction.n_heads,
            "heads": [
                ",".join(f"{layer}-{head}" for layer, head in reconstruction.heads[:n]) for n in reconstruction.n_heads
            ],
            **{name: getattr(reconstruction, name) for name in ("strength", "validation", "accuracy", "low", "high")},
            "last_layer": report.accuracy[-1],
            "best_layer": report.accuracy[report.best_layer],
            "gain": [difference.percent for difference in gains],
            "gain_low": [difference.low for difference in gains],
            "gain_high": [difference.high for difference in gains],
            "enough": reconstruction.enough,
            **{name: getattr(report, name) for name in SIZES},
        }
    )


def together_line(name: str, report: TaskReport, together: Reconstruction, n_heads: int) -> str:
    """The paper's comparison, after the name of the probing: the best n heads together against the layers."""
    accuracy = together.estimate(n_heads).value
    gained = gain(together, report, n_heads)
    return (
        f"{name}: last layer {report.accuracy[-1]:.3f}, best layer {report.accuracy[report.best_layer]:.3f}, best "
        f"{n_heads} heads {accuracy:.3f} (gain {gained.percent:+.1f}%, {gained.low:+.1f} to {gained.high:+.1f}); "
        f"{together.enough} {'is' if together.enough == 1 else 'are'} enough"
    )
