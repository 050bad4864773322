"""The command `python -m core prune`: a score against the share of heads removed, in several orders."""

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from core.attention.settings import Head
from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.find import find_checkpoint
from core.checkpoints.saved_runs import SavedRun, find_run
from core.commands import TABLES, check_output, write_table
from core.engines.options import add_engine_options, check_engine, counted, engine_of
from core.engines.work import Engine
from core.errors import AnalysisError
from core.importance.command import cheap_measures
from core.importance.material import (
    Material,
    ablation_outcomes,
    add_metric_options,
    material_facts,
    read_material,
    results_of,
)
from core.importance.measures import damage
from core.importance.per_text import RULES
from core.importance.pruning.curves import STEPS, Curve, allowed_loss, curves_table, removable, removal_order
from core.importance.pruning.orders import (
    GREEDY,
    Ask,
    Pruning,
    Removed,
    full_outcomes,
    greedy_order,
    is_there,
    orders,
    orders_table,
    pruning_curve,
    whole_greedy_order,
    whole_orders,
)
from core.importance.pruning.over_steps import (
    SavedStep,
    StepCurve,
    beginning,
    check_alike,
    check_beginning,
    saved_steps,
    step_curves_table,
)
from core.importance.pruning.rows import CurveRows, CurveTrial
from core.importance.verdicts import NEEDS
from core.passes.question import Question
from core.texts.text import Text

WITHIN = 0.01


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    description = f"{prune.__doc__} {NEEDS}"
    parser = commands.add_parser("prune", help="draw pruning curves", description=description)
    add_metric_options(parser)
    parser.add_argument("--at-least", type=int, default=0, metavar="N", help="heads of each layer that always stay")
    parser.add_argument("--greedy", action="store_true", help=f"also take ablations anew at each of the {STEPS} steps")
    parser.add_argument(
        "--within",
        type=float,
        default=WITHIN,
        metavar="X",
        help=f"how much worse the score may get, of a loss as a share of it; {WITHIN}",
    )
    parser.add_argument(
        "--over-steps",
        action="store_true",
        help="draw them of each saved step of a fine-tuning run: --checkpoint is its folder, or its name",
    )
    parser.add_argument(
        "--orders",
        type=Path,
        help="second file to write, the orders as found on all texts: order, removed (heads), layer, head (the last of "
        "these), heads (all of these, as remove --heads takes them)",
    )
    parser.add_argument(
        "--rows", type=Path, help="folder of a Parquet data set: a file for each curve, which is not drawn again"
    )
    add_engine_options(parser)
    parser.add_argument("--output", required=True, type=Path, help="file to write: " + " or ".join(TABLES))
    parser.set_defaults(run=prune)


def prune(arguments: argparse.Namespace) -> None:
    """Write one row per order, draw and step: removed (heads), share (of all heads, 0 to 1), score (of the metric),
    delta (score minus that with all heads on), low, high (95% interval of delta, as of ablate, the orders as they are;
    empty with too few texts). Orders: each measure, the least important head first; ablation;
    reverse (of ablation); greedy; random, of which draw numbers ten. An order is found on one half of the texts, every
    second one, or every second document where these are known, and judged on the other; each text is judged once.
    Prints how many heads each order can remove at a small cost; for the random orders on average. With --over-steps the
    same of each saved step of a fine-tuning run, with a column step (of training; 0 is the checkpoint that the run
    began from, left out where it cannot be judged), fingerprint (of that step's files), and relative, relative_low,
    relative_high (score as a share of that with all heads on, with its 95% interval; empty where that score is not
    above 0).
    With --workers or --engine ray, each curve is drawn by a process of its own.
    """
    check_engine(arguments)
    check_output(arguments.output, TABLES, [arguments.texts])
    if arguments.orders:
        check_output(arguments.orders, TABLES, [arguments.texts, arguments.output])
    if arguments.over_steps:
        _prune_over_steps(arguments)
        return
    material = read_material(arguments)
    result = _curves(arguments, material)
    n_heads = _print_removable(arguments, material, result.curves)
    write_table(arguments.output, curves_table(result.curves, n_heads), _facts(arguments, material))
    if arguments.orders:
        write_table(arguments.orders, orders_table(result.whole), _facts(arguments, material))


def _prune_over_steps(arguments: argparse.Namespace) -> None:
    """Draw the curves of each saved step of the run that --checkpoint names."""
    if arguments.random_weights is not None:
        raise AnalysisError("With random weights all steps are alike. Leave out --random-weights, or --over-steps.")
    if arguments.orders:
        raise AnalysisError("Orders are those of one checkpoint. Leave out --over-steps, or --orders.")
    run = find_run(arguments.checkpoint)
    steps = saved_steps(run)
    last = find_checkpoint(steps[-1].checkpoint)
    for step in steps:
        check_alike(find_checkpoint(step.checkpoint), last, arguments.metric)
    curves_of_steps: list[StepCurve] = []
    fingerprints: dict[int, str] = {}
    n_heads = 0
    facts: dict[str, str] = {}
    # The checkpoint that the run began from comes last, so that an error common to all is reported for a saved step.
    for saved in (*steps, None):
        at_step = (
            _at_beginning(arguments, run, last)
            if saved is None
            else (saved, read_material(_for_step(arguments, saved)))
        )
        if at_step is None:
            continue
        step, material = at_step
        print(f"Step {step.step:,}, {step.checkpoint}")
        curves = _curves(arguments, material).curves
        n_heads, facts = _print_removable(arguments, material, curves), _facts(arguments, material)
        fingerprints[step.step] = facts.pop("fingerprint")
        curves_of_steps += [StepCurve(step=step.step, curve=curve) for curve in curves]
    rows = step_curves_table(sorted(curves_of_steps, key=lambda step_curve: step_curve.step), n_heads)
    rows.insert(1, "fingerprint", rows["step"].map(fingerprints))
    write_table(arguments.output, rows, facts | {"checkpoint": run.name})


def _for_step(arguments: argparse.Namespace, step: SavedStep) -> argparse.Namespace:
    """The same options, with a saved step as the checkpoint."""
    return argparse.Namespace(**{**vars(arguments), "checkpoint": step.checkpoint})


def _at_beginning(
    arguments: argparse.Namespace, run: SavedRun, last: CheckpointFiles
) -> tuple[SavedStep, Material] | None:
    """Step 0; None, with a note on standard error, if it cannot be evaluated, for example without a classifier."""
    try:
        step = beginning(run)
        files = find_checkpoint(step.checkpoint)
        check_beginning(run, files)
        check_alike(files, last, arguments.metric)
        return step, read_material(_for_step(arguments, step))
    except AnalysisError as error:
        print(f"Without step 0: {error}", file=sys.stderr)
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Curves:
    """Curves of a checkpoint in all orders."""

    curves: list[Curve]
    whole: dict[str, Removed]
    """Orders determined on all texts, by name."""


def _curves(arguments: argparse.Namespace, material: Material) -> _Curves:
    pruning = pruning_of(material, arguments.at_least)
    _ = pruning.half  # raises for too few texts, as the next line does for too many heads to keep, before the work
    removal_order(np.zeros(pruning.is_there.shape), arguments.at_least)
    outcomes = ablation_outcomes(material)
    ablation, full = damage(outcomes, material.score), full_outcomes(outcomes)
    measures = cheap_measures(material, False, RULES[0])
    by_name, whole = orders(pruning, ablation, measures), whole_orders(pruning, ablation, measures)
    if arguments.greedy and (greedy := greedy_order(pruning, make_ask(material, "greedy order"))):
        by_name[GREEDY, 0] = greedy
        if (
            arguments.orders
            and (order := whole_greedy_order(pruning, make_ask(material, "greedy order, all texts"))) is not None
        ):
            whole[GREEDY] = order
    trials = [CurveTrial(order=order, by_half=by_half, full=full) for order, by_half in by_name.items()]
    rows = CurveRows(arguments.rows, _facts(arguments, material))
    curves = {trial.order: rows.read(trial) for trial in trials}
    missing = [trial for trial in trials if curves[trial.order] is None]
    for trial, curve in _draw(arguments, material, missing):
        rows.write(trial, curve)
        curves[trial.order] = curve
    return _Curves(curves=[curve for curve in curves.values() if curve is not None], whole=whole)


def _draw(
    arguments: argparse.Namespace, material: Material, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    """Draw curves in this process or on the selected engine."""
    if arguments.engine == "local" and arguments.workers in (None, 1):
        return _draw_in_process(arguments, material, trials)
    return _draw_on_engine(counted(engine_of(arguments, material.checkpoint.device), "curve"), arguments, trials)


def _draw_in_process(
    arguments: argparse.Namespace, material: Material, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    for trial in trials:
        yield trial, _curve(arguments, material, trial)


def _draw_on_engine(
    engine: Engine, arguments: argparse.Namespace, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    """Draw curves on an engine; those that fail are retried once, then reported."""
    pending: Sequence[CurveTrial] = trials
    for is_last in (False, True):
        failed: list[CurveTrial] = []
        reasons: list[str] = []
        for outcome in engine(partial(curve_runner, arguments), pending):
            trial = pending[outcome.index]
            if outcome.result is None:
                failed.append(trial)
                reasons.append(f"Order {trial.order[0]}, draw {trial.order[1]}: {outcome.why}")
            else:
                yield trial, outcome.result
        if failed and is_last:
            raise AnalysisError(" ".join(reasons))
        pending = failed


def curve_runner(arguments: argparse.Namespace) -> Callable[[CurveTrial], Curve]:
    """Set up a worker process: reads the material once; the returned function draws one curve."""
    return partial(_curve, arguments, read_material(arguments))


def _curve(arguments: argparse.Namespace, material: Material, trial: CurveTrial) -> Curve:
    pruning = pruning_of(material, arguments.at_least)
    ask = make_ask(material, f"curve of {trial.order[0]}")
    curve = pruning_curve(pruning, trial.order, trial.by_half, trial.full, ask)
    if curve is None:
        raise RuntimeError("A command has every answer.")
    return curve


def _facts(arguments: argparse.Namespace, material: Material) -> dict[str, str]:
    return material_facts(arguments, material) | {"at least": str(arguments.at_least)}


def pruning_of(material: Material, at_least: int) -> Pruning:
    """Input of the pruning: the metric, the score and the available heads."""
    attention = material.checkpoint.attentions[material.settings.kind]
    missing = (*attention.removed, *material.settings.off)
    return Pruning(
        metric=material.metric,
        score=material.score,
        documents=material.documents,
        is_there=is_there((attention.n_layers, attention.n_heads), missing),
        at_least=at_least,
    )


def make_ask(material: Material, doing: str) -> Ask:
    """A function that answers questions about some of the prepared texts, under a progress bar."""
    all_indices = sorted(material.prepared)

    def ask(question: Question[Text, Any], indices: np.ndarray, off: tuple[Head, ...], _: int) -> list[Any]:
        prepared = {all_indices[index]: material.prepared[all_indices[index]] for index in indices.tolist()}
        settings = replace(material.settings, off=tuple(sorted({*material.settings.off, *off})))
        return results_of(replace(material, prepared=prepared, settings=settings), question, material.texts, doing)

    return ask


def _print_removable(arguments: argparse.Namespace, material: Material, curves: Sequence[Curve]) -> int:
    """Print how many heads each order can remove; returns the total number of heads."""
    score, full, within = material.score, float(curves[0].score[0]), arguments.within
    n_heads = pruning_of(material, arguments.at_least).n_heads
    unit = " of it" if score.name == "loss" else ""
    allowed = f"{within}{unit} (95% interval)"
    print(f"Heads, of {n_heads}, that can go before the {score.name} is worse by more than {allowed}:")
    for result in removable(curves, score.sign, allowed_loss(score, full, within)):
        interval = "" if np.isnan(result.low) else f" ({result.low:.0f} to {result.high:.0f})"
        print(f"{result.order:<26}{result.n:>5}{interval}")
    return n_heads
