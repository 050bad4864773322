"""The command `python -m attention_sieve erase`: whether a model uses the concepts that its heads encode."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.commands import checkpoint_facts, loaded, write_table
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.command import add_task_command, reading_of, tasks_of
from attention_sieve.core.knowledge.erasure.erasure import (
    FIRST_DRAWS,
    Erasure,
    JudgedErasure,
    draws_needed,
    erase,
    judged,
)
from attention_sieve.core.knowledge.kept_vectors import TaskReading, vectors_key
from attention_sieve.core.knowledge.reconstruction import ranking
from attention_sieve.core.knowledge.report import ALPHA, task_report
from attention_sieve.core.knowledge.vectors import usual_pooling
from attention_sieve.core.options import add_journal_option, heads
from attention_sieve.core.running import GO_ON, Journal, KeptPieces, carried_out, check_ended
from attention_sieve.core.wording import p_value

FORMAT: Final = 1
"""Of the erasures that are kept of a run."""
BEST: Final = 3
"""Default number of heads of each task from which the concept is erased."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_task_command(
        commands,
        "erase",
        "test whether the model uses the information about a task that its heads encode",
        erase_tasks.__doc__,
    )
    selection = parser.add_mutually_exclusive_group()
    selection.add_argument(
        "--heads",
        type=heads,
        help="heads to erase from, one at a time, as layer-head, such as 3-7,2-5; default: the best heads of each task",
    )
    selection.add_argument(
        "--best", type=int, default=BEST, help="number of best heads of each task to erase from; default: %(default)s"
    )
    parser.add_argument(
        "--metric",
        choices=("output", "lm"),
        help="effect to measure: change of the text vector (output), or loss of the language model (lm); default: lm "
        "if the checkpoint has a language model and is not an encoder-decoder, otherwise output",
    )
    parser.add_argument(
        "--tests", type=int, help="number of tests that p-values are corrected for; default: heads times tasks"
    )
    parser.add_argument(
        "--random",
        type=int,
        help=f"number of random erasures per head; default: {FIRST_DRAWS}, and up to {FIRST_DRAWS} per test for heads "
        "that may be used",
    )
    add_journal_option(parser, "; heads that are done are kept there, and a repeated command skips them")
    parser.set_defaults(run=erase_tasks, folder_of_run="journal")


def erase_tasks(arguments: argparse.Namespace) -> None:
    """Test whether the model uses the information about a task that single heads encode; write a row per task and head.

    The information is removed from the output of a head (amnesic probing with LEACE). The model uses it if its own
    output changes more than when the head's output is changed by the same amount along as many random directions.

    Columns:
        task: name of the task
        layer, head: index of the layer and of the head, from 0
        metric: output (change of the text vector, 1 - cosine) or lm (loss in nats)
        rank, n_channels: number of erased directions, and dimension of the head's vector
        n_texts: number of test texts
        full, erased, random: mean of the metric with nothing erased, with the information erased, and with random
            directions erased
        n_draws: number of random erasures
        excess, low, high: erased - random, and its 95% confidence interval over texts
        least_effect: effects below this do not count as used
        p: share of all erasures with an effect at least as large, the real one included; at least 1 / (1 + n_draws)
        p_adjusted: p after Holm's correction over heads and tasks
        verdict: used (p_adjusted below .05, and low above least_effect), not used, too small (the effect is below
            least_effect) or nothing to compare (all directions are erased)
        is_used: whether the verdict is used
        variance: share of the variance of the head's output that the erasure removes; the same for random erasures
        accuracy, accuracy_erased: accuracy of a probe on the head's vectors, before and after erasure
    """
    tasks = tasks_of(arguments)
    n_made, n_tests = _n_tests(arguments, len(tasks))
    names, erasures, pieces = list[str](), list[Erasure](), KeptPieces(arguments.journal)
    check_ended(arguments.journal)
    then = GO_ON if arguments.journal else ""
    with carried_out(Journal(arguments.journal, arguments.checkpoint), then) as journal:
        checkpoint, settings = loaded(arguments)
        pooling = arguments.pooling or usual_pooling(checkpoint, settings.kind)
        facts = {**checkpoint_facts(checkpoint, settings), "pooling": pooling}
        journal.plan(n_made)
        for task in tasks:
            journal.part(f"Reading {task.name}")
            reading = reading_of(checkpoint, task, settings, pooling, arguments)
            heads_of_task = arguments.heads or _best_heads(reading, arguments.best)
            depends_on = [FORMAT, *_identity(reading), arguments.metric, n_tests, arguments.random]
            kept = {head: _kept(pieces.read([*depends_on, head])) for head in heads_of_task}
            missing = [head for head in heads_of_task if kept[head] is None]
            erased = erase(
                reading,
                missing or heads_of_task,
                metric=arguments.metric,
                n_tests=n_tests,
                n_random=arguments.random,
                check=journal.check,
            )
            for head in heads_of_task:
                journal.piece(f"{task.name}, {head_name(*head)}")
                erasure = kept[head] or next(erased)
                if kept[head] is None:
                    pieces.write([*depends_on, head], asdict(erasure) | {"random": erasure.random.tolist()})
                erasures.append(erasure)
                names.append(task.name)
                journal.done(was_kept=kept[head] is not None)
        judgements = judged(erasures, n_tests)
        print("\n".join(f"{name}: {_line(judgement)}" for name, judgement in zip(names, judgements)))
        table = erasure_table(judgements)
        table.insert(0, "task", names)
        write_table(arguments.output, table, facts)


def _identity(reading: TaskReading) -> list[object]:
    """What an erasure depends on in the task and its reader, as values of JSON."""
    examples = reading.task.examples
    key = vectors_key(reading.checkpoint, [example.text for example in examples], reading.settings, reading.pooling)
    return [key, reading.task.is_regression, [[example.label, example.part] for example in examples]]


def _kept(kept: Any) -> Erasure | None:
    """An erasure as it was kept; None if it was not, or is none."""
    try:
        return Erasure(**{**kept, "head": tuple(kept["head"]), "random": np.array(kept["random"], float)})
    except (TypeError, KeyError, ValueError):
        return None


def _n_tests(arguments: argparse.Namespace, n_tasks: int) -> tuple[int, int]:
    """Number of tests made, and of those in the family; a note that --random is too few for any to be significant goes
    to standard error.

    Raises: AnalysisError for numbers below 1, or if more tests are made than --tests says.
    """
    for name in ("best", "tests", "random"):
        if (value := getattr(arguments, name)) is not None and value < 1:
            raise AnalysisError(f"--{name} is {value}. Give 1 or more.")
    made = n_tasks * (len(arguments.heads) if arguments.heads else arguments.best)
    n_tests: int = arguments.tests or made
    if n_tests < made:
        raise AnalysisError(
            f"--tests is {n_tests}, but this command makes {made} tests. Leave it out, or give {made} or more."
        )
    if arguments.random and n_tests / (1 + arguments.random) >= ALPHA:
        print(
            f"With {arguments.random:,} random erasures no p-value can be below {1 / (1 + arguments.random):.2g}, so "
            f"none of {n_tests:,} tests can be significant at {ALPHA}. Leave out --random, or give "
            f"{draws_needed(n_tests):,}.",
            file=sys.stderr,
        )
    return made, n_tests


def _best_heads(reading: TaskReading, count: int) -> list[Head]:
    report = task_report(reading.task, reading.vectors)
    return [report.head_at(place) for place in ranking(report)[:count].tolist()]


def erasure_table(judgements: Sequence[JudgedErasure]) -> pd.DataFrame:
    """One row per head and task."""
    return pd.DataFrame([_row(judgement) for judgement in judgements])


def _row(judgement: JudgedErasure) -> dict[str, Any]:
    erasure = judgement.erasure
    return {
        "layer": erasure.head[0],
        "head": erasure.head[1],
        **{name: getattr(erasure, name) for name in ("metric", "rank", "n_channels", "n_texts", "full", "erased")},
        "random": float(erasure.random.mean()),
        "n_draws": len(erasure.random),
        **{name: getattr(erasure, name) for name in ("excess", "low", "high", "least_effect", "p")},
        "p_adjusted": judgement.p_adjusted,
        "verdict": judgement.verdict,
        "is_used": judgement.verdict == "used",
        **{name: getattr(erasure, name) for name in ("variance", "accuracy", "accuracy_erased")},
    }


def _line(judgement: JudgedErasure) -> str:
    erasure = judgement.erasure
    return (
        f"{head_name(*erasure.head)} accuracy {erasure.accuracy:.3f}, {erasure.accuracy_erased:.3f} once erased; "
        f"{erasure.metric} {erasure.erased:.4g}, at random {erasure.random.mean():.4g}, difference "
        f"{erasure.excess:+.2g} ({erasure.low:+.2g} to {erasure.high:+.2g}), {p_value(erasure.p)} with "
        f"{len(erasure.random):,} draws, {p_value(judgement.p_adjusted)} corrected: {judgement.verdict}"
    )
