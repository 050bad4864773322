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
from core.importance.material import Material, ablated, add_metric_options, asked, material_facts, read_material
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
from core.passes.question import Question
from core.texts.text import Text

WITHIN = 0.01


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("prune", help="draw pruning curves", description=prune.__doc__)
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


def prune(chosen: argparse.Namespace) -> None:
    """Write one row per order, draw and step: removed (heads), share (of all heads, 0 to 1), score (of the metric),
    delta (score minus that with all heads on), low, high (95% interval of delta, by paired bootstrap over texts, the
    orders as they are). Orders: each measure, the least important head first; ablation; reverse (of ablation); greedy;
    random, of which draw numbers ten. An order is found on one half of the texts, every second one, or every second
    document where these are known, and judged on the other; each text is judged once. Prints how many heads each order
    can remove at a small cost; for the random orders on average. With --over-steps the same of each saved step of a
    fine-tuning run, with a column step (of training; 0 is the checkpoint that the run began from, left out where it
    cannot be judged), fingerprint (of that step's files), and relative, relative_low, relative_high (score as a share
    of that with all heads on, with its 95% interval; empty where that score is not above 0).
    With --workers or --engine ray, each curve is drawn by a process of its own.
    """
    check_engine(chosen)
    check_output(chosen.output, TABLES, [chosen.texts])
    if chosen.orders:
        check_output(chosen.orders, TABLES, [chosen.texts, chosen.output])
    if chosen.over_steps:
        _prune_over_steps(chosen)
        return
    material = read_material(chosen)
    drawn = _curves(chosen, material)
    n_heads = _print_removable(chosen, material, drawn.curves)
    write_table(chosen.output, curves_table(drawn.curves, n_heads), _facts(chosen, material))
    if chosen.orders:
        write_table(chosen.orders, orders_table(drawn.whole), _facts(chosen, material))


def _prune_over_steps(chosen: argparse.Namespace) -> None:
    """Curves of the saved steps of the run that is given as the checkpoint, one after the other."""
    if chosen.random_weights is not None:
        raise AnalysisError("With random weights all steps are alike. Leave out --random-weights, or --over-steps.")
    if chosen.orders:
        raise AnalysisError("Orders are those of one checkpoint. Leave out --over-steps, or --orders.")
    run = find_run(chosen.checkpoint)
    steps = saved_steps(run)
    last = find_checkpoint(steps[-1].checkpoint)
    for step in steps:
        check_alike(find_checkpoint(step.checkpoint), last, chosen.metric)
    found: list[StepCurve] = []
    fingerprints: dict[int, str] = {}
    n_heads = 0
    facts: dict[str, str] = {}
    # The checkpoint that the run began from comes last: what is wrong with all of them is said of a saved step.
    for saved in (*steps, None):
        at_step = _at_beginning(chosen, run, last) if saved is None else (saved, read_material(_of(chosen, saved)))
        if at_step is None:
            continue
        step, material = at_step
        print(f"Step {step.step:,}, {step.checkpoint}")
        curves = _curves(chosen, material).curves
        n_heads, facts = _print_removable(chosen, material, curves), _facts(chosen, material)
        fingerprints[step.step] = facts.pop("fingerprint")
        found += [StepCurve(step=step.step, curve=each) for each in curves]
    rows = step_curves_table(sorted(found, key=lambda each: each.step), n_heads)
    rows.insert(1, "fingerprint", rows["step"].map(fingerprints))
    write_table(chosen.output, rows, facts | {"checkpoint": run.name})


def _of(chosen: argparse.Namespace, step: SavedStep) -> argparse.Namespace:
    """The same options for a saved step."""
    return argparse.Namespace(**{**vars(chosen), "checkpoint": step.checkpoint})


def _at_beginning(
    chosen: argparse.Namespace, run: SavedRun, last: CheckpointFiles
) -> tuple[SavedStep, Material] | None:
    """Step 0; None, which is said on standard error, where it cannot be judged, as one without a classifier."""
    try:
        step = beginning(run)
        files = find_checkpoint(step.checkpoint)
        check_beginning(run, files)
        check_alike(files, last, chosen.metric)
        return step, read_material(_of(chosen, step))
    except AnalysisError as error:
        print(f"Without step 0: {error}", file=sys.stderr)
        return None


@dataclass(frozen=True, eq=False, kw_only=True)
class _Drawn:
    """Curves of a checkpoint in all orders."""

    curves: list[Curve]
    whole: dict[str, Removed]
    """Orders as found on all texts."""


def _curves(chosen: argparse.Namespace, material: Material) -> _Drawn:
    pruning = pruning_of(material, chosen.at_least)
    _ = pruning.half  # too few texts are refused before the work is done, and too many heads that shall stay
    removal_order(np.zeros(pruning.is_there.shape), chosen.at_least)
    outcomes = ablated(material)
    ablation, full = damage(outcomes, material.score), full_outcomes(outcomes)
    measures = cheap_measures(material, False, RULES[0])
    by_name, whole = orders(pruning, ablation, measures), whole_orders(pruning, ablation, measures)
    if chosen.greedy and (greedy := greedy_order(pruning, asker(material, "greedy order"))):
        by_name[GREEDY, 0] = greedy
        if (
            chosen.orders
            and (order := whole_greedy_order(pruning, asker(material, "greedy order, all texts"))) is not None
        ):
            whole[GREEDY] = order
    trials = [CurveTrial(order=order, by_half=by_half, full=full) for order, by_half in by_name.items()]
    rows = CurveRows(chosen.rows, _facts(chosen, material))
    known = {trial.order: rows.read(trial) for trial in trials}
    missing = [trial for trial in trials if known[trial.order] is None]
    for trial, each in _drawn(chosen, material, missing):
        rows.write(trial, each)
        known[trial.order] = each
    return _Drawn(curves=[each for each in known.values() if each is not None], whole=whole)


def _drawn(
    chosen: argparse.Namespace, material: Material, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    """Curves drawn in this process, or on the engine that was chosen."""
    if chosen.engine == "local" and chosen.workers in (None, 1):
        return _drawn_here(chosen, material, trials)
    return _drawn_on(counted(engine_of(chosen, material.checkpoint.device), "curve"), chosen, trials)


def _drawn_here(
    chosen: argparse.Namespace, material: Material, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    for trial in trials:
        yield trial, _curve(chosen, material, trial)


def _drawn_on(
    engine: Engine, chosen: argparse.Namespace, trials: Sequence[CurveTrial]
) -> Iterator[tuple[CurveTrial, Curve]]:
    """Curves on an engine; those that fail are tried once more, and then told."""
    waiting: Sequence[CurveTrial] = trials
    for is_last in (False, True):
        failed: list[CurveTrial] = []
        why: list[str] = []
        for outcome in engine(partial(curve_runner, chosen), waiting):
            trial = waiting[outcome.index]
            if outcome.result is None:
                failed.append(trial)
                why.append(f"Order {trial.order[0]}, draw {trial.order[1]}: {outcome.why}")
            else:
                yield trial, outcome.result
        if failed and is_last:
            raise AnalysisError(" ".join(why))
        waiting = failed


def curve_runner(chosen: argparse.Namespace) -> Callable[[CurveTrial], Curve]:
    """What a process begins with: it reads the material once, and draws one curve after the other."""
    return partial(_curve, chosen, read_material(chosen))


def _curve(chosen: argparse.Namespace, material: Material, trial: CurveTrial) -> Curve:
    pruning = pruning_of(material, chosen.at_least)
    ask = asker(material, f"curve of {trial.order[0]}")
    drawn = pruning_curve(pruning, trial.order, trial.by_half, trial.full, ask)
    if drawn is None:
        raise RuntimeError("A command has every answer.")
    return drawn


def _facts(chosen: argparse.Namespace, material: Material) -> dict[str, str]:
    return material_facts(chosen, material) | {"at least": str(chosen.at_least)}


def pruning_of(material: Material, at_least: int) -> Pruning:
    """What heads are removed from, and what that is judged by."""
    attention = material.checkpoint.attentions[material.settings.kind]
    gone = (*attention.removed, *material.settings.off)
    return Pruning(
        metric=material.metric,
        score=material.score,
        documents=material.documents,
        is_there=is_there((attention.n_layers, attention.n_heads), gone),
        at_least=at_least,
    )


def asker(material: Material, doing: str) -> Ask:
    """Answers questions about some of the prepared texts, under a progress bar."""
    every = sorted(material.prepared)

    def ask(question: Question[Text, Any], places: np.ndarray, off: tuple[Head, ...], _: int) -> list[Any]:
        some = {every[place]: material.prepared[every[place]] for place in places.tolist()}
        settings = replace(material.settings, off=tuple(sorted({*material.settings.off, *off})))
        return asked(replace(material, prepared=some, settings=settings), question, material.texts, doing)

    return ask


def _print_removable(chosen: argparse.Namespace, material: Material, curves: Sequence[Curve]) -> int:
    """Say how many heads each order can remove; returns how many there are."""
    score, full, within = material.score, float(curves[0].score[0]), chosen.within
    n_heads = pruning_of(material, chosen.at_least).n_heads
    unit = " of it" if score.name == "loss" else ""
    allowed = f"{within}{unit} (95% interval)"
    print(f"Heads, of {n_heads}, that can go before the {score.name} is worse by more than {allowed}:")
    for found in removable(curves, score.sign, allowed_loss(score, full, within)):
        interval = "" if np.isnan(found.low) else f" ({found.low:.0f} to {found.high:.0f})"
        print(f"{found.order:<26}{found.n:>5}{interval}")
    return n_heads
