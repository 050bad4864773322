"""Curves of a score while heads are removed order by order: what the command and the page share.

An order is found on one half of the texts and judged on the other, and the other way round. What a checkpoint makes of
the texts is asked for through a function that the caller gives, so that answers can be kept. Does not import torch.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from core.attention.settings import Head
from core.importance.effects import Draws, halves
from core.importance.measures import ABLATION, Measure, damage
from core.importance.metrics import Score, TextOutcomes
from core.importance.pruning.curves import (
    RANDOM_ORDERS,
    Curve,
    curve,
    gatings,
    n_removed,
    random_importance,
    removal_order,
)
from core.importance.question import ablation_question, gated_question
from core.passes.metric import Metric
from core.passes.question import Question
from core.texts.text import Text

REVERSE: Final = "reverse"
RANDOM: Final = "random"
GREEDY: Final = "greedy"

Order = tuple[str, int]
"""Name of an order and, of random ones, the number of the draw; 0 for every other."""
Removed = Int[np.ndarray, "removed 2"]
ByHalf = tuple[Removed, Removed]
"""Heads to remove, the least important first: when texts of half 0 are judged, found on half 1; and the other way."""
Ask = Callable[[Question[Text, Any], Int[np.ndarray, " place"], tuple[Head, ...], int], Sequence[Any] | None]
"""Answers a question about the texts in some places, with some heads off, that takes so many passes of each text; None
where the answer cannot be had now."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pruning:
    """What heads are removed from, and what that is judged by."""

    metric: Metric
    score: Score
    """Of all texts."""
    documents: Sequence[str | None]
    """Of each text, None where it is not known; a document is never in both halves."""
    is_there: Bool[np.ndarray, "layer head"]
    """Whether the checkpoint has the head, and it is on."""
    at_least: int = 0
    """So many heads of each layer always stay."""

    @cached_property
    def half(self) -> Int[np.ndarray, " text"]:
        """Half of each text.

        Raises: AnalysisError for fewer than two texts, or documents.
        """
        return halves(self.documents)

    @cached_property
    def draws(self) -> Draws:
        """Corpora drawn from the texts."""
        return Draws(self.documents)

    @property
    def n_heads(self) -> int:
        """Heads that are there."""
        return int(self.is_there.sum())

    def found_on(self, side: int) -> Float[np.ndarray, "1 text"]:
        """Weights of the texts on which an order is found that texts of one half are judged by."""
        return (self.half != side)[None].astype(float)

    def order(self, importance: Float[np.ndarray, "layer head"]) -> Removed:
        """Heads to remove by their importance. A measure that has no value for a head finds nothing in it.

        Raises: AnalysisError where a layer has not as many heads as shall stay.
        """
        some = np.where(np.isnan(importance), -np.inf, importance)
        return removal_order(np.where(self.is_there, some, np.nan), self.at_least)

    def counts(self, order: Removed) -> Int[np.ndarray, " step"]:
        """How many heads of an order are removed at each step."""
        return n_removed(self.n_heads, len(order))


def orders(pruning: Pruning, ablation: Measure, measures: Sequence[Measure]) -> dict[Order, ByHalf]:
    """Orders of removal: of ablation, its reverse, of each measure, and random ones.

    Args:
        pruning: over the texts of the measures.
        ablation: how much worse the score is without each head.
        measures: cheaper ones.

    Raises: AnalysisError for fewer than two texts, or documents, and where a layer has not as many heads as shall stay.
    """
    return {
        (ABLATION, 0): order_by(pruning, ablation),
        (REVERSE, 0): order_by(pruning, ablation, -1),
        **{(measure.name, 0): order_by(pruning, measure) for measure in measures},
        **random_orders(pruning),
    }


def random_orders(pruning: Pruning) -> dict[Order, ByHalf]:
    """Orders that know nothing of the heads: a control."""
    n_layers, n_heads = pruning.is_there.shape
    drawn = [pruning.order(random_importance(n_layers, n_heads, draw)) for draw in range(RANDOM_ORDERS)]
    return {(RANDOM, draw): (order, order) for draw, order in enumerate(drawn)}


def order_by(pruning: Pruning, measure: Measure, sign: int = 1) -> ByHalf:
    """The order of a measure, found on each half of the texts.

    Args:
        pruning: over the texts of the measure.
        measure: of importance.
        sign: -1 to remove the most important head first.
    """
    first, second = (pruning.order(sign * measure.over(pruning.found_on(side))[0]) for side in (0, 1))
    return first, second


def whole_orders(pruning: Pruning, ablation: Measure, measures: Sequence[Measure]) -> dict[str, Removed]:
    """Orders as found on all texts, by name: those to remove heads by, once the curves have told which and how many.

    Raises: AnalysisError where a layer has not as many heads as shall stay.
    """
    n_texts, n_layers, n_heads = len(pruning.documents), *pruning.is_there.shape
    by_ablation = ablation.values(n_texts)
    importance = {ABLATION: by_ablation, REVERSE: -by_ablation}
    importance |= {measure.name: measure.values(n_texts) for measure in measures}
    importance[RANDOM] = random_importance(n_layers, n_heads, 0)
    return {name: pruning.order(values) for name, values in importance.items()}


def orders_table(whole: Mapping[str, Removed]) -> pd.DataFrame:
    """One row an order and head: order, removed (heads), layer, head (the last of these), and heads (all of these, as
    the command remove takes them)."""
    parts = []
    for name, order in whole.items():
        names = [f"{layer}-{head}" for layer, head in order.tolist()]
        parts.append(
            pd.DataFrame(
                {
                    "order": name,
                    "removed": np.arange(1, len(order) + 1),
                    "layer": order[:, 0],
                    "head": order[:, 1],
                    "heads": [",".join(names[: place + 1]) for place in range(len(names))],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def greedy_order(pruning: Pruning, ask: Ask) -> ByHalf | None:
    """The order of ablations that are taken anew at each step, with the heads of the steps before off.

    Returns: None where an answer cannot be had now.
    """
    first, second = (_greedy(pruning, pruning.found_on(side), ask) for side in (0, 1))
    return None if first is None or second is None else (first, second)


def whole_greedy_order(pruning: Pruning, ask: Ask) -> Removed | None:
    """The greedy order as found on all texts; None where an answer cannot be had now."""
    return _greedy(pruning, np.ones((1, len(pruning.documents))), ask)


def _greedy(pruning: Pruning, weights: Float[np.ndarray, "1 text"], ask: Ask) -> Removed | None:
    off: list[Head] = []
    places = np.flatnonzero(weights[0])
    for start, stop in _steps(pruning.counts(pruning.order(np.zeros(pruning.is_there.shape)))):
        outcomes = ask(ablation_question(pruning.metric), places, tuple(sorted(off)), pruning.n_heads)
        if outcomes is None:
            return None
        every = _at_their_places(outcomes, places, len(pruning.documents))
        importance = damage(every, pruning.score).over(weights)[0]
        for layer, head in off:
            importance[layer, head] = -np.inf
        off += [(int(layer), int(head)) for layer, head in pruning.order(importance)[start:stop]]
    return np.array(off, int).reshape(-1, 2)


def _steps(counts: Int[np.ndarray, " step"]) -> Iterator[tuple[int, int]]:
    return zip(counts[:-1].tolist(), counts[1:].tolist())


def _at_their_places(
    outcomes: Sequence[TextOutcomes], places: Int[np.ndarray, " place"], n_texts: int
) -> list[TextOutcomes]:
    """Outcomes of all texts; those that were not asked about are zeros, and get no weight."""
    known = dict(zip(places.tolist(), outcomes, strict=True))
    none = TextOutcomes(full=np.zeros_like(outcomes[0].full), without=np.zeros_like(outcomes[0].without))
    return [known.get(place, none) for place in range(n_texts)]


def pruning_curve(
    pruning: Pruning, order: Order, by_half: ByHalf, full: Float[np.ndarray, "text part"], ask: Ask
) -> Curve | None:
    """A curve, each text judged by the order that was found on the other half.

    Args:
        pruning: over the texts that are judged.
        order: its name.
        by_half: its heads.
        full: outcomes with all heads on, as of the ablations.
        ask: answers questions.

    Returns: None where an answer cannot be had now.
    """
    outcomes = pruning_outcomes(pruning, by_half, full, ask)
    if outcomes is None:
        return None
    return curve(*order, pruning.counts(by_half[0]), outcomes, pruning.score, pruning.draws)


def pruning_outcomes(
    pruning: Pruning, by_half: ByHalf, full: Float[np.ndarray, "text part"], ask: Ask
) -> Float[np.ndarray, "text step part"] | None:
    """Outcomes of each text at each step of the order that was found on the other half; see `pruning_curve`."""
    counts = pruning.counts(by_half[0])
    ends_with_none = int(counts[-1]) == pruning.n_heads
    middle, n_parts = (counts[1:-1] if ends_with_none else counts[1:]), full.shape[1]
    steps: dict[int, list[np.ndarray]] = {}
    for side in (0, 1):
        places = np.flatnonzero(pruning.half == side)
        answers = _outcomes(pruning, gatings(by_half[side], middle, *pruning.is_there.shape), places, n_parts, ask)
        # Without any head all orders are the same, so that step is a question of its own, answered once.
        last = _outcomes(pruning, np.zeros((int(ends_with_none), *pruning.is_there.shape)), places, n_parts, ask)
        if answers is None or last is None:
            return None
        steps |= {int(place): [full[place][None], *of] for place, *of in zip(places, answers, last, strict=True)}
    return np.stack([np.concatenate(steps[place]) for place in sorted(steps)])


def _outcomes(
    pruning: Pruning,
    of_heads: Float[np.ndarray, "gating layer head"],
    places: Int[np.ndarray, " place"],
    n_parts: int,
    ask: Ask,
) -> Sequence[np.ndarray] | None:
    """Outcomes of some texts under each gating, "gating part"; no gating needs no answer."""
    if not len(of_heads):
        return [np.zeros((0, n_parts))] * len(places)
    return ask(gated_question(pruning.metric, of_heads), places, (), len(of_heads))


def full_outcomes(outcomes: Sequence[TextOutcomes]) -> Float[np.ndarray, "text part"]:
    """What a checkpoint makes of each text with all heads on."""
    return np.stack([of_text.full for of_text in outcomes])


def heads_off(order: Removed, count: int) -> list[Head]:
    """The first heads of an order."""
    return [(int(layer), int(head)) for layer, head in order[:count]]


def is_there(shape: tuple[int, int], gone: Sequence[Head]) -> Bool[np.ndarray, "layer head"]:
    """Marks the heads that were neither removed nor switched off before."""
    marks = np.ones(shape, bool)
    for head in gone:
        marks[head] = False
    return marks
