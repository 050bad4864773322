"""The command `python -m core erase`: whether a model uses the concepts that its heads encode."""

import argparse
from typing import Any, Final

import pandas as pd

from core.attention.settings import Head, head_name
from core.commands import heads, loaded, write_table
from core.probing_tasks.command import add_task_command, facts_of, read_texts_of, tasks_of
from core.probing_tasks.erasure.erasure import RANDOM_ERASURES, Erasure, erase, usual_metric
from core.probing_tasks.reconstruction import ranking
from core.probing_tasks.report import TaskReport, task_report
from core.probing_tasks.vectors import usual_pooling

BEST: Final = 3
"""Default number of heads of each task from which the concept is erased."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_task_command(commands, "erase", "whether a model uses what its heads carry", erase_tasks.__doc__)
    selection = parser.add_mutually_exclusive_group()
    selection.add_argument("--heads", type=heads, help="layer-head, such as 3-7,2-5; else the best ones of each task")
    selection.add_argument("--best", type=int, default=BEST, help=f"so many of the best heads; {BEST} unless told")
    parser.add_argument("--metric", choices=("output", "lm"), help="text vector or language-model loss, if it has one")
    parser.add_argument("--random", type=int, default=RANDOM_ERASURES, help=f"draws; {RANDOM_ERASURES} unless told")
    parser.set_defaults(run=erase_tasks)


def erase_tasks(arguments: argparse.Namespace) -> None:
    """Erase what tells of a task from the output of single heads, and see whether the model's output changes more than
    where as many random directions are erased.

    Writes task, layer, head, metric (output: change of the text vector, 1 - cosine; lm: loss in nats), rank (directions
    erased) of n_channels, n_texts, full, erased and random (mean outcomes; random over all draws), excess (erased minus
    random), its 95% interval low and high over the texts, p (share of draws with at least the outcome of the concept,
    which counts as one), is_used (p at most .05 and low above 0), variance and random_variance (shares of
    the head's variance that are erased), accuracy and accuracy_erased (of a probe on the head's vectors, before and
    after).
    """
    tasks = tasks_of(arguments)
    checkpoint, settings = loaded(arguments)
    pooling = arguments.pooling or usual_pooling(checkpoint, settings.kind)
    metric = arguments.metric or usual_metric(checkpoint)
    tables = []
    for task in tasks:
        usable_task, texts, vectors = read_texts_of(checkpoint, task, settings, pooling, arguments)
        erasures = erase(
            checkpoint,
            usable_task,
            vectors,
            texts,
            settings,
            arguments.heads or best_heads(task_report(usable_task, vectors), arguments.best),
            pooling=pooling,
            metric=metric,
            n_random=arguments.random,
        )
        tables.append(erasure_table(erasures).assign(task=task.name))
        print("\n".join(f"{task.name}: {_line(erasure)}" for erasure in erasures))
    table = pd.concat(tables, ignore_index=True)
    ordered = ["task", *(column for column in table.columns if column != "task")]
    write_table(arguments.output, table[ordered], facts_of(checkpoint, settings, pooling))


def best_heads(report: TaskReport, count: int) -> list[Head]:
    """The heads that are best on the validation part."""
    return [(int(report.layer[place]), int(report.head[place])) for place in ranking(report)[:count]]


def erasure_table(erasures: list[Erasure]) -> pd.DataFrame:
    """One row per head."""
    return pd.DataFrame(
        [
            {
                "layer": erasure.head[0],
                "head": erasure.head[1],
                "metric": erasure.metric,
                "rank": erasure.rank,
                "n_channels": erasure.n_channels,
                "n_texts": erasure.n_texts,
                "full": erasure.full,
                "erased": erasure.erased,
                "random": float(erasure.random.mean()),
                "excess": erasure.excess,
                "low": erasure.low,
                "high": erasure.high,
                "p": erasure.p,
                "is_used": erasure.is_used,
                "variance": erasure.variance,
                "random_variance": erasure.random_variance,
                "accuracy": erasure.accuracy,
                "accuracy_erased": erasure.accuracy_erased,
            }
            for erasure in erasures
        ]
    )


def _line(erasure: Erasure) -> str:
    return (
        f"{head_name(*erasure.head)} accuracy {erasure.accuracy:.3f}, {erasure.accuracy_erased:.3f} once erased; "
        f"{erasure.metric} {erasure.erased:.4g}, at random {erasure.random.mean():.4g}, difference "
        f"{erasure.excess:+.2g} ({erasure.low:+.2g} to {erasure.high:+.2g}), p = {erasure.p:.2g}"
    )
