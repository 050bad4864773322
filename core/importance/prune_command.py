"""The command `python -m core prune`: a score against the share of heads removed, in several orders."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from core.commands import TABLES, check_output, write_table
from core.importance.command import cheap_measures
from core.importance.curves import (
    RANDOM_ORDERS,
    STEPS,
    Curve,
    curve,
    gatings,
    most_removable,
    n_removed,
    random_importance,
    removal_order,
)
from core.importance.effects import Draws, halves
from core.importance.material import Material, ablated, add_metric_options, asked, material_facts, read_material
from core.importance.measures import damage
from core.importance.per_text import RULES
from core.importance.question import gated_question

COLUMNS = ("order", "draw", "removed", "share", "score", "delta", "low", "high")
WITHIN = 0.01
GREEDY = "greedy"
Order = tuple[str, int]


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
        help=f"how much worse the score may get; {WITHIN}",
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
    half = halves(material.documents)
    n_layers, n_heads = heads_of(material)
    removal_order(np.zeros((n_layers, n_heads)), chosen.at_least)  # too many are refused before the work is done
    by_half = [orders(part(material, half != side), chosen.at_least, chosen.greedy) for side in (0, 1)]
    draws, found = Draws(material.documents), []
    for name, draw in by_half[0]:
        outcomes: list[tuple[int, np.ndarray]] = []
        for side in (0, 1):
            order = by_half[side][name, draw]
            counts = n_removed(n_layers * n_heads, len(order))
            question = gated_question(material.metric, gatings(order, counts, n_layers, n_heads))
            own = part(material, half == side)
            outcomes += zip(sorted(own.prepared), asked(own, question, own.texts, f"curve of {name}"), strict=True)
        by_text = np.stack([of_text for _, of_text in sorted(outcomes, key=lambda one: one[0])])
        found.append(curve(name, draw, counts, by_text, material.score, draws))
    facts = material_facts(chosen, material) | {"at least": str(chosen.at_least)}
    print(f"Heads removed with a {material.score.name} worse by at most {chosen.within}, of {n_layers * n_heads}:")
    for name, n_heads_removed in most_removable(found, material.score.sign, chosen.within).items():
        print(f"{name:<26}{n_heads_removed:>5}")
    write_table(chosen.output, curves_table(found, n_layers * n_heads), facts)


def heads_of(material: Material) -> tuple[int, int]:
    """Numbers of layers and heads."""
    attention = material.checkpoint.attentions[material.settings.kind]
    return attention.n_layers, attention.n_heads


def part(material: Material, chosen: np.ndarray) -> Material:
    """The same for some of the prepared texts.

    Args:
        material: of all.
        chosen: whether each prepared text, in the order of their places, takes part.
    """
    places = [place for place, takes_part in zip(sorted(material.prepared), chosen, strict=True) if takes_part]
    rows = np.flatnonzero(chosen)

    def contributions(outcomes: np.ndarray) -> np.ndarray:
        """The score's labels are those of all texts, so theirs are put into their rows."""
        whole = np.zeros((len(chosen), *outcomes.shape[1:]), outcomes.dtype)
        whole[rows] = outcomes
        return material.score.contributions(whole)[rows]

    return replace(
        material,
        prepared={place: material.prepared[place] for place in places},
        score=replace(material.score, contributions=contributions),
    )


def orders(material: Material, at_least: int, greedy: bool) -> dict[Order, Int[np.ndarray, "removed 2"]]:
    """Every order of removal, by its name and draw, as found on these texts."""
    n_texts, shape = len(material.prepared), heads_of(material)
    ablation = damage(ablated(material), material.score).values(n_texts)
    importance: dict[Order, np.ndarray] = {("ablation", 0): ablation, ("reverse", 0): -ablation}
    for measure in cheap_measures(material, False, RULES[0]):
        importance[measure.name, 0] = measure.values(n_texts)
    importance |= {("random", draw): random_importance(*shape, draw) for draw in range(RANDOM_ORDERS)}
    found = {order: removal_order(values, at_least) for order, values in importance.items()}
    return found | ({(GREEDY, 0): greedy_order(material, ablation, at_least)} if greedy else {})


def greedy_order(
    material: Material, ablation: Float[np.ndarray, "layer head"], at_least: int
) -> Int[np.ndarray, "removed 2"]:
    """The order of ablations that are taken anew at each step, with the heads of the steps before off."""
    off: list[tuple[int, int]] = []
    n_layers, n_heads = ablation.shape
    every = removal_order(ablation, at_least)
    for start, stop in _steps(n_removed(n_layers * n_heads, len(every))):
        if start:
            without = replace(material, settings=replace(material.settings, off=tuple(sorted(off))))
            ablation = damage(ablated(without), material.score).values(len(material.prepared))
        ablation = ablation.copy()
        for head in off:
            ablation[head] = -np.inf
        off += [(int(layer), int(head)) for layer, head in removal_order(ablation, at_least)[start:stop]]
    return np.array(off, int).reshape(-1, 2)


def _steps(counts: Int[np.ndarray, " step"]) -> Iterator[tuple[int, int]]:
    return zip(counts[:-1].tolist(), counts[1:].tolist())


def curves_table(curves: list[Curve], n_heads: int) -> pd.DataFrame:
    """One row an order, draw and step, as the command's columns."""
    parts = [
        pd.DataFrame(
            {
                "order": each.order,
                "draw": each.draw,
                "removed": each.n_removed,
                "share": each.n_removed / n_heads,
                **{name: getattr(each, name) for name in COLUMNS[4:]},
            }
        )
        for each in curves
    ]
    return pd.concat(parts, ignore_index=True)
