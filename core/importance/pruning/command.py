"""The command `python -m attention_sieve prune`: a score against the share of heads removed, in several orders."""

import argparse
import hashlib
import inspect
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np
import pandas as pd

from attention_sieve.core.answering import Question, find_in
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.checkpoints.saved_runs import SavedRun, find_run
from attention_sieve.core.commands import TABLES, answers, check_output, progress_bar, write, write_table
from attention_sieve.core.engines.options import add_engine_options, check_engine, counted, engine_of
from attention_sieve.core.engines.work import tried_twice
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.analysis import IMPORTANCE_ANALYSIS
from attention_sieve.core.importance.material import CommandInput, material_facts, read_material
from attention_sieve.core.importance.pruning import orders
from attention_sieve.core.importance.pruning.curves import COLUMNS, STEPS, Curve, curves_table, removable, removal_order
from attention_sieve.core.importance.pruning.over_steps import (
    STEP_COLUMNS,
    SavedStep,
    StepCurve,
    check_alike,
    check_beginning,
    saved_steps,
    step_curves_table,
)
from attention_sieve.core.importance.question import REPLACEMENTS
from attention_sieve.core.importance.settings import MetricSettings
from attention_sieve.core.importance.usage import LABELLED_TEXTS
from attention_sieve.core.importance.wording import NEEDS
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_inputs_options,
    add_output_option,
    add_random_weights_option,
    add_resume_option,
    add_settings_options,
    column_list,
    settings_of,
)
from attention_sieve.core.pauses import pausing
from attention_sieve.core.running import STOP, Journal, carried_out
from attention_sieve.core.texts.text import Text

Done = TypeVar("Done")

WITHIN = 0.01
FORMAT: Final = 3
NUMBERS: Final = ("score", "delta", "low", "high")
MATRICES: Final = ("by_unit", "differs", "drawn")
"""A list for each step."""


@dataclass(frozen=True, kw_only=True)
class CurveRows:
    """Curves in the folder of a run: one file per curve, with a row for each share of heads."""

    folder: Path
    facts: Mapping[str, str]
    """Provenance of the curves."""

    def read(self, trial: orders.CurveTrial) -> Curve | None:
        """Read a curve that was drawn before; None if there is none, or it cannot be read."""
        try:
            rows = pd.read_parquet(self._path(trial))
            return Curve(
                order=trial.order[0],
                draw=trial.order[1],
                n_removed=rows["removed"].to_numpy(int),
                **{name: rows[name].to_numpy(float) for name in NUMBERS},
                **{name: np.stack(rows[name].to_list(), axis=1) for name in MATRICES},
            )
        except (OSError, ValueError, KeyError, IndexError):
            return None

    def write(self, trial: orders.CurveTrial, curve: Curve) -> None:
        """Write a curve.

        Raises: AnalysisError if that fails.
        """
        rows = pd.DataFrame(
            {
                "order": curve.order,
                "draw": curve.draw,
                "removed": curve.n_removed,
                **{name: getattr(curve, name) for name in NUMBERS},
                **{name: list(getattr(curve, name).T) for name in MATRICES},
                **self.facts,
            }
        )
        write(self._path(trial), partial(rows.to_parquet, index=False))

    def _path(self, trial: orders.CurveTrial) -> Path:
        """File of a curve, named by a digest of everything that it depends on."""
        key = [FORMAT, dict(self.facts), trial.order, [half.tolist() for half in trial.by_half]]
        return self.folder / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()}.parquet"


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "prune",
        help="remove more and more heads, and measure the metric",
        description="".join(
            [
                inspect.getdoc(prune) or "",
                column_list("Columns", COLUMNS),
                column_list("Additional columns with --over-steps", STEP_COLUMNS),
                column_list("Columns of --orders", orders.ORDER_COLUMNS),
                f"\n\n{NEEDS}",
            ]
        ),
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_resume_option(parser)
    add_inputs_options(parser, LABELLED_TEXTS)
    add_settings_options(parser, MetricSettings())
    parser.add_argument(
        "--replace",
        default="zero",
        choices=REPLACEMENTS,
        help="what replaces the output of a head that is ablated to find an order: zero, or its mean over all tokens "
        "of the texts; removed heads are always zero; default: %(default)s",
    )
    parser.add_argument(
        "--at-least",
        type=int,
        default=0,
        metavar="N",
        help="never remove the N most important heads of each layer; default: %(default)s",
    )
    parser.add_argument(
        "--greedy",
        action="store_true",
        help=f"add a greedy order, which repeats the ablations at each of the {STEPS} steps",
    )
    parser.add_argument(
        "--within",
        type=float,
        default=WITHIN,
        metavar="X",
        help="largest cost that counts as small: loss of score, or relative increase of a loss; default: %(default)s",
    )
    parser.add_argument(
        "--over-steps",
        action="store_true",
        help="compute the curves for each saved step of a fine-tuning run; --checkpoint is the folder or name of the "
        "run",
    )
    parser.add_argument(
        "--orders", type=Path, help="second file to write: the order in which heads are removed, found on all texts"
    )
    parser.add_argument(
        "--rows",
        type=Path,
        help="folder in which each finished curve is saved as a Parquet file, so that a repeated command skips it, and "
        "in which progress is recorded; to stop the run, create a file named stop in it",
    )
    add_engine_options(parser)
    add_output_option(parser)
    parser.set_defaults(run=prune, folder_of_run="rows")


def prune(arguments: argparse.Namespace) -> None:
    """Remove more and more heads, in several orders, and measure the metric; write a row per order and step.

    An order is found on one half of the texts (every second text, or document if these are known) and evaluated on the
    other, so that each text is used once for evaluation. The orders are: by each measure of importance, the least
    important head first; by ablation; the reverse of that; greedy; and ten random orders. The command prints how many
    heads each order can remove at a small cost; for random orders, the mean. With --workers or --engine ray, the curves
    are computed in parallel processes.
    """
    check_engine(arguments)
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.orders:
        check_output(arguments.orders, TABLES, [arguments.texts, arguments.output])
    with carried_out(Journal(arguments.rows, arguments.checkpoint)) as journal:
        if arguments.over_steps:
            _prune_over_steps(arguments, journal)
        else:
            _prune_checkpoint(arguments, journal)


def _prune_checkpoint(arguments: argparse.Namespace, journal: Journal) -> None:
    material = read_material(arguments)
    result = _curves(arguments, material, journal)
    _print_removable(arguments, result)
    write_table(arguments.output, curves_table(result.curves, result.pruning.n_heads), _facts(arguments, material))
    if arguments.orders:
        write_table(arguments.orders, orders.orders_table(result.whole), _facts(arguments, material))


def _prune_over_steps(arguments: argparse.Namespace, journal: Journal) -> None:
    if arguments.random_weights is not None:
        raise AnalysisError(
            "With random weights all steps are the same. Leave out either --random-weights or --over-steps."
        )
    if arguments.orders:
        raise AnalysisError("Orders are written for a single checkpoint. Leave out either --over-steps or --orders.")
    run = find_run(arguments.checkpoint)
    steps = saved_steps(run)
    last, metric = find_checkpoint(steps[-1].checkpoint), settings_of(arguments, MetricSettings()).metric
    for step in steps:
        check_alike(find_checkpoint(step.checkpoint), last, metric)
    curves_of_steps: list[StepCurve] = []
    fingerprints: dict[int, str] = {}
    n_heads = 0
    facts: dict[str, str] = {}
    # The checkpoint that the run began from comes last, so that an error common to all is reported for a saved step.
    for n_left, saved in zip(range(len(steps) + 1, 0, -1), (*steps, None)):
        saved_step = _at_beginning(arguments, run, last) if saved is None else _at(arguments, saved)
        if saved_step is None:
            journal.plan(journal.step)  # what was planned for it is not to be done
            continue
        step, material = saved_step
        print(f"Step {step.step:,}, {step.checkpoint}")
        result = _curves(arguments, material, journal, n_left)
        _print_removable(arguments, result)
        n_heads, facts = result.pruning.n_heads, _facts(arguments, material)
        fingerprints[step.step] = facts.pop("fingerprint")
        curves_of_steps += [StepCurve(step=step.step, curve=curve) for curve in result.curves]
    rows = step_curves_table(sorted(curves_of_steps, key=lambda step_curve: step_curve.step), n_heads)
    rows.insert(1, "fingerprint", rows["step"].map(fingerprints))
    write_table(arguments.output, rows, facts | {"checkpoint": run.name})


def _at(arguments: argparse.Namespace, step: SavedStep) -> tuple[SavedStep, CommandInput]:
    return step, read_material(argparse.Namespace(**{**vars(arguments), "checkpoint": step.checkpoint}))


def _at_beginning(
    arguments: argparse.Namespace, run: SavedRun, last: CheckpointFiles
) -> tuple[SavedStep, CommandInput] | None:
    """Step 0; None, with a note on standard error, if it cannot be evaluated, for example without a classifier."""
    try:
        step = SavedStep(0, run.progress.checkpoint)
        files = find_checkpoint(step.checkpoint)
        check_beginning(run, files)
        check_alike(files, last, settings_of(arguments, MetricSettings()).metric)
        return _at(arguments, step)
    except AnalysisError as error:
        print(f"Without step 0: {error}", file=sys.stderr)
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Curves:
    """Curves of a checkpoint in all orders."""

    pruning: orders.Pruning
    curves: list[Curve]
    whole: dict[str, orders.Removed]
    """Orders determined on all texts, by name."""


def _curves(arguments: argparse.Namespace, material: CommandInput, journal: Journal, n_checkpoints: int = 1) -> _Curves:
    """The curves of a checkpoint, each a piece of the run; so many checkpoints have curves like these, it included."""
    pruning, ask = pruning_of(material, arguments.at_least), partial(make_ask, material, journal)
    _ = pruning.half  # raises for too few texts, as the next line does for too many heads to keep, before the work
    removal_order(np.zeros(pruning.is_there.shape), arguments.at_least)
    settings = replace(IMPORTANCE_ANALYSIS.settings, metric_settings=material.metric, replace=arguments.replace)
    finding = find_in(IMPORTANCE_ANALYSIS, material.reading, settings, partial(_watched, journal))
    for name, reason in finding.cheap.left_out:
        print(f"Without {name}: {reason}", file=sys.stderr)
    (ablation, *measures), full = finding.measures, orders.full_outcomes(finding.answers[0] or ())
    trials, whole = (
        orders.curve_trials(pruning, ablation, measures, full),
        orders.whole_orders(pruning, ablation, measures),
    )
    if arguments.greedy:
        trials.append(orders.greedy_trial(pruning, full, ask("greedy order")))
    if arguments.greedy and arguments.orders:
        whole[orders.GREEDY] = orders.whole_greedy_order(pruning, ask("greedy order, all texts"))
    rows = None if arguments.rows is None else CurveRows(folder=arguments.rows, facts=_facts(arguments, material))
    curves = {trial.order: None if rows is None else rows.read(trial) for trial in trials}
    missing = [trial for trial in trials if curves[trial.order] is None]
    journal.plan(journal.step + n_checkpoints * len(trials), n_checkpoints * len(trials))
    for _ in range(len(trials) - len(missing)):
        journal.done(was_kept=True)
    for trial, curve in _draw(arguments, material, missing, journal):
        curves[trial.order] = curve
        if rows is not None:
            rows.write(trial, curve)
        journal.done()
    return _Curves(pruning=pruning, curves=[curve for curve in curves.values() if curve is not None], whole=whole)


def _draw(
    arguments: argparse.Namespace, material: CommandInput, trials: Sequence[orders.CurveTrial], journal: Journal
) -> Iterator[tuple[orders.CurveTrial, Curve]]:
    if arguments.engine == "local" and arguments.workers in (None, 1):
        for trial in trials:
            journal.piece(trial.name)
            yield trial, _curve(arguments, material, trial, journal)
        return
    engine = counted(engine_of(arguments, material.reading.checkpoint.device), "curve")
    reasons = list[str]()
    for trial, outcome in tried_twice(engine, partial(curve_runner, arguments), trials, journal, attrgetter("name")):
        if outcome.result is None:
            reasons.append(f"Order {trial.order[0]}, draw {trial.order[1]}: {outcome.why}")
        else:
            yield trial, outcome.result
    if reasons:
        raise AnalysisError(" ".join(reasons))


def curve_runner(arguments: argparse.Namespace) -> Callable[[orders.CurveTrial], Curve]:
    """Set up a worker process: reads the material once; the returned function draws one curve, and gives it up where
    the run is asked to stop."""
    material = read_material(arguments)

    def check() -> None:
        if arguments.rows is not None and (arguments.rows / STOP).exists():
            raise AnalysisError("The run was asked to stop.")

    def draw(trial: orders.CurveTrial) -> Curve:
        with pausing(check):
            return _curve(arguments, material, trial, Journal(None))

    return draw


def _curve(arguments: argparse.Namespace, material: CommandInput, trial: orders.CurveTrial, journal: Journal) -> Curve:
    pruning = pruning_of(material, arguments.at_least)
    return orders.pruning_curve(pruning, trial, make_ask(material, journal, f"curve of {trial.order[0]}"))


def _watched(
    journal: Journal, work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None
) -> Iterator[Done]:
    """The results of all batches, one by one, under a bar of progress that the journal shares."""
    for n_done, result in enumerate(progress_bar(work, n_texts, doing), start=1):
        journal.part(doing or "forward passes", n_done, n_texts)
        yield result


def _facts(arguments: argparse.Namespace, material: CommandInput) -> dict[str, str]:
    replaced = {} if arguments.replace == "zero" else {"replaced by": arguments.replace}
    return material_facts(material) | {"at least": str(arguments.at_least)} | replaced


def pruning_of(material: CommandInput, at_least: int) -> orders.Pruning:
    """Input of the pruning: the metric, the score and the available heads."""
    pass_settings = material.reading.pass_settings
    attention = material.reading.checkpoint.attentions[pass_settings.kind]
    missing = (*attention.removed, *pass_settings.off)
    return orders.Pruning(
        metric=material.metric.metric,
        score=material.score,
        documents=material.documents,
        is_there=orders.is_there((attention.n_layers, attention.n_heads), missing),
        at_least=at_least,
    )


def make_ask(material: CommandInput, journal: Journal, doing: str) -> orders.AskOutcomes:
    """A function that answers questions about some of the prepared texts, under a bar of progress."""
    reading = material.reading
    all_indices = sorted(reading.prepared)

    def ask(question: Question[Text, Any], indices: np.ndarray, off: tuple[Head, ...]) -> list[Any]:
        prepared = {all_indices[index]: reading.prepared[all_indices[index]] for index in indices.tolist()}
        pass_settings = replace(reading.pass_settings, off=tuple(sorted({*reading.pass_settings.off, *off})))
        texts = [item.text for item in reading.inputs]
        some = replace(reading, prepared=prepared, pass_settings=pass_settings)
        return list(answers(some, question, texts, doing, partial(_watched, journal)).values())

    return ask


def _print_removable(arguments: argparse.Namespace, curves: _Curves) -> None:
    score, within = curves.pruning.score, arguments.within
    allowed = f"{within}{' of it' if score.name == 'loss' else ''} (95% interval)"
    print(
        f"Number of heads (of {curves.pruning.n_heads}) that can be removed before the {score.name} is worse by more "
        f"than {allowed}:"
    )
    for result in removable(curves.curves, score, within):
        interval = "" if np.isnan(result.low) else f" ({result.low:.0f} to {result.high:.0f})"
        print(f"{result.order:<26}{result.n:>5}{interval}")
