"""The command `python -m core erase`: whether a model uses what its heads carry."""

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
"""Heads of each task from which it is erased, unless told."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_task_command(commands, "erase", "whether a model uses what its heads carry", erase_tasks.__doc__)
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--heads", type=heads, help="layer-head, such as 3-7,2-5; else the best ones of each task")
    which.add_argument("--best", type=int, default=BEST, help=f"so many of the best heads; {BEST} unless told")
    parser.add_argument("--metric", choices=("output", "lm"), help="text vector or language-model loss, if it has one")
    parser.add_argument("--random", type=int, default=RANDOM_ERASURES, help=f"draws; {RANDOM_ERASURES} unless told")
    parser.set_defaults(run=erase_tasks)


def erase_tasks(chosen: argparse.Namespace) -> None:
    """Erase what tells of a task from the output of single heads, and see whether the model's output changes more than
    where as many random directions are erased.

    Writes task, layer, head, metric (output: change of the text vector, 1 - cosine; lm: loss in nats), rank (directions
    erased) of n_channels, n_texts, full, erased and random (mean outcomes; random over all draws), excess (erased minus
    random), its 95% interval low and high over the texts, p (share of draws with at least the outcome of the concept,
    which counts as one), is_used (p at most .05 and low above 0), variance and random_variance (shares of
    the head's variance that are erased), accuracy and accuracy_erased (of a probe on the head's vectors, before and
    after).
    """
    tasks = tasks_of(chosen)
    checkpoint, asked = loaded(chosen)
    pooling = chosen.pooling or usual_pooling(checkpoint, asked.kind)
    metric = chosen.metric or usual_metric(checkpoint)
    tables = []
    for task in tasks:
        read, texts, vectors = read_texts_of(checkpoint, task, asked, pooling, chosen)
        found = erase(
            checkpoint,
            read,
            vectors,
            texts,
            asked,
            chosen.heads or best_heads(task_report(read, vectors), chosen.best),
            pooling=pooling,
            metric=metric,
            n_random=chosen.random,
        )
        tables.append(erasure_table(found).assign(task=task.name))
        print("\n".join(f"{task.name}: {_line(each)}" for each in found))
    table = pd.concat(tables, ignore_index=True)
    ordered = ["task", *(column for column in table.columns if column != "task")]
    write_table(chosen.output, table[ordered], facts_of(checkpoint, asked, pooling))


def best_heads(report: TaskReport, count: int) -> list[Head]:
    """The heads that are best on the validation part."""
    return [(int(report.layer[place]), int(report.head[place])) for place in ranking(report)[:count]]


def erasure_table(found: list[Erasure]) -> pd.DataFrame:
    """A row for each head."""
    return pd.DataFrame(
        [
            {
                "layer": each.head[0],
                "head": each.head[1],
                "metric": each.metric,
                "rank": each.rank,
                "n_channels": each.n_channels,
                "n_texts": each.n_texts,
                "full": each.full,
                "erased": each.erased,
                "random": float(each.random.mean()),
                "excess": each.excess,
                "low": each.low,
                "high": each.high,
                "p": each.p,
                "is_used": each.is_used,
                "variance": each.variance,
                "random_variance": each.random_variance,
                "accuracy": each.accuracy,
                "accuracy_erased": each.accuracy_erased,
            }
            for each in found
        ]
    )


def _line(each: Erasure) -> str:
    return (
        f"{head_name(*each.head)} accuracy {each.accuracy:.3f}, {each.accuracy_erased:.3f} once erased; {each.metric} "
        f"{each.erased:.4g}, at random {each.random.mean():.4g}, difference {each.excess:+.2g} ({each.low:+.2g} to "
        f"{each.high:+.2g}), p = {each.p:.2g}"
    )
