"""The command `python -m core prune`: a score against the share of heads removed, in several orders."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from core.attention.settings import Head
from core.commands import TABLES, check_output, write_table
from core.importance.command import cheap_measures
from core.importance.curves import STEPS, Curve, allowed_loss, curves_table, removable, removal_order
from core.importance.material import Material, ablated, add_metric_options, asked, material_facts, read_material
from core.importance.measures import damage
from core.importance.per_text import RULES
from core.importance.pruning import GREEDY, Ask, Pruning, full_outcomes, greedy_order, is_there, orders, pruning_curve
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
    parser.add_argument("--output", required=True, type=Path, help="file to write: " + " or ".join(TABLES))
    parser.set_defaults(run=prune)


def prune(chosen: argparse.Namespace) -> None:
    """Write one row per order, draw and step: removed (heads), share (of all heads, 0 to 1), score (of the metric),
    delta (score minus that with all heads on), low, high (95% interval of delta, by paired bootstrap over texts, the
    orders as they are). Orders: each measure, the least important head first; ablation; reverse (of ablation); greedy;
    random, of which draw numbers ten. An order is found on one half of the texts, every second one, or every second
    document where these are known, and judged on the other; each text is judged once. Prints how many heads each order
    can remove at a small cost; for the random orders on average.
    """
    check_output(chosen.output, TABLES, [chosen.texts])
    material = read_material(chosen)
    pruning = pruning_of(material, chosen.at_least)
    _ = pruning.half  # too few texts are refused before the work is done, and too many heads that shall stay
    removal_order(np.zeros(pruning.is_there.shape), chosen.at_least)
    outcomes = ablated(material)
    ablation, full = damage(outcomes, material.score), full_outcomes(outcomes)
    by_name = orders(pruning, ablation, cheap_measures(material, False, RULES[0]))
    if chosen.greedy and (greedy := greedy_order(pruning, asker(material, "greedy order"))):
        by_name[GREEDY, 0] = greedy
    drawn = [
        pruning_curve(pruning, order, by_half, full, asker(material, f"curve of {order[0]}"))
        for order, by_half in by_name.items()
    ]
    found = [of_order for of_order in drawn if of_order is not None]
    facts = material_facts(chosen, material) | {"at least": str(chosen.at_least)}
    _print_removable(found, pruning, chosen.within)
    write_table(chosen.output, curves_table(found, pruning.n_heads), facts)


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


def _print_removable(curves: Sequence[Curve], pruning: Pruning, within: float) -> None:
    score, full = pruning.score, float(curves[0].score[0])
    unit = " of it" if score.name == "loss" else ""
    print(f"Heads removed with a {score.name} worse by at most {within}{unit}, of {pruning.n_heads} (95% interval):")
    for found in removable(curves, score.sign, allowed_loss(score, full, within)):
        interval = "" if np.isnan(found.low) else f" ({found.low:.0f} to {found.high:.0f})"
        print(f"{found.order:<26}{found.n:>5}{interval}")
