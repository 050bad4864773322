"""Orders in which heads are removed, and their pruning curves; shared by the command and the page.

An order is determined on one half of the texts and evaluated on the other, and vice versa. Outcomes are requested
through a function that the caller provides, so that answers can be cached. Does not import torch.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import Question
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.effects import Draws, halves
from attention_sieve.core.importance.measures import ABLATION, Measure, damage
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.pruning.curves import (
    RANDOM_ORDERS,
    Curve,
    curve,
    gatings,
    n_removed,
    random_importance,
    removal_order,
)
from attention_sieve.core.importance.question import ablation_question, gated_question
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.texts.text import Text

REVERSE: Final = "reverse"
RANDOM: Final = "random"
GREEDY: Final = "greedy"
ORDER_COLUMNS: Final = {
    "order": "name of the order",
    "removed": "number of heads removed so far",
    "layer": "layer of the head that is removed at this point, from 0",
    "head": "its index in the layer, from 0",
    "heads": "all heads removed so far, as `remove --heads` expects them",
}

Order = tuple[str, int]
"""Name of an order, and number of the draw for random ones; 0 for every other."""
Removed = Int[np.ndarray, "removed 2"]
ByHalf = tuple[Removed, Removed]
"""Heads to remove, the least important first: order for the texts of half 0, determined on half 1, and vice versa."""
AskOutcomes = Callable[[Question[Text, Any], Int[np.ndarray, " index"], tuple[Head, ...]], Sequence[Any]]
"""ask(question, indices of the texts, heads that are off) -> results."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Pruning:
    """Input of the pruning: the metric, the score and the available heads."""

    metric: Metric
    score: Score
    """Score over all texts."""
    documents: Sequence[str | None]
    """Document of each text, None where unknown; a document is never in both halves."""
    is_there: Bool[np.ndarray, "layer head"]
    """Whether the checkpoint has the head, and it is on."""
    at_least: int = 0
    """Number of heads of each layer that are never removed."""

    @cached_property
    def half(self) -> Int[np.ndarray, " text"]:
        """Half of each text.

        Raises: AnalysisError for fewer than two texts, or documents.
        """
        return halves(self.documents)

    @cached_property
    def draws(self) -> Draws:
        """Bootstrap resamples of the texts."""
        return Draws(self.documents)

    @property
    def n_heads(self) -> int:
        """Number of available heads."""
        return int(self.is_there.sum())

    def order_weights(self, side: int) -> Float[np.ndarray, "1 text"]:
        """Text weights that select the half on which the order for the texts of `side` is determined."""
        return (self.half != side)[None].astype(float)

    def order(self, importance: Float[np.ndarray, "layer head"]) -> Removed:
        """Heads to remove, by importance; a head for which the measure has no value is the least important.

        Raises: AnalysisError if a layer has fewer heads than `at_least`.
        """
        values = np.where(np.isnan(importance), -np.inf, importance)
        return removal_order(np.where(self.is_there, values, np.nan), self.at_least)

    def counts(self, order: Removed) -> Int[np.ndarray, " step"]:
        """How many heads of an order are removed at each step."""
        return n_removed(self.n_heads, len(order))


@dataclass(frozen=True, eq=False, kw_only=True)
class CurveTrial:
    """A curve to draw: plain values that can be sent to another process."""

    order: Order
    by_half: ByHalf
    full: Float[np.ndarray, "text part"]
    """Outcomes of each text with all heads on."""

    @property
    def name(self) -> str:
        """Its name in reports of a run."""
        order, draw = self.order
        return f"{order} {draw + 1}" if order == RANDOM else order


def curve_trials(
    pruning: Pruning, ablation: Measure, measures: Sequence[Measure], full: Float[np.ndarray, "text part"]
) -> list[CurveTrial]:
    """The curves to draw: of ablation, its reverse, of each cheaper measure, and random ones; `full` as of CurveTrial.

    Raises: AnalysisError for fewer than two texts, or documents, and if a layer has fewer heads than `at_least`.
    """
    by_name = {
        ABLATION: order_by(pruning, ablation),
        REVERSE: order_by(pruning, ablation, -1),
        **{measure.name: order_by(pruning, measure) for measure in measures},
    }
    trials = [CurveTrial(order=(name, 0), by_half=by_half, full=full) for name, by_half in by_name.items()]
    return [*trials, *random_trials(pruning, full)]


def random_trials(pruning: Pruning, full: Float[np.ndarray, "text part"]) -> list[CurveTrial]:
    """Random orders, as a control; `full` as of CurveTrial."""
    n_layers, n_heads = pruning.is_there.shape
    shuffled = [pruning.order(random_importance(n_layers, n_heads, draw)) for draw in range(RANDOM_ORDERS)]
    return [CurveTrial(order=(RANDOM, draw), by_half=(order, order), full=full) for draw, order in enumerate(shuffled)]


def greedy_trial(pruning: Pruning, full: Float[np.ndarray, "text part"], ask: AskOutcomes) -> CurveTrial:
    """The order from ablations repeated at each step, with the heads of earlier steps off; `full` as of CurveTrial."""
    first, second = (_greedy(pruning, pruning.order_weights(side), ask) for side in (0, 1))
    return CurveTrial(order=(GREEDY, 0), by_half=(first, second), full=full)


def order_by(pruning: Pruning, measure: Measure, sign: int = 1) -> ByHalf:
    """The order of a measure, determined on each half of the texts; sign -1 removes the most important head first."""
    first, second = (pruning.order(sign * measure.over(pruning.order_weights(side))[0]) for side in (0, 1))
    return first, second


def whole_orders(pruning: Pruning, ablation: Measure, measures: Sequence[Measure]) -> dict[str, Removed]:
    """Orders determined on all texts, by name: for removing heads, once the curves show in which order and how many.

    Raises: AnalysisError if a layer has fewer heads than `at_least`.
    """
    n_texts, n_layers, n_heads = len(pruning.documents), *pruning.is_there.shape
    by_ablation = ablation.values(n_texts)
    importance = {ABLATION: by_ablation, REVERSE: -by_ablation}
    importance |= {measure.name: measure.values(n_texts) for measure in measures}
    importance[RANDOM] = random_importance(n_layers, n_heads, 0)
    return {name: pruning.order(values) for name, values in importance.items()}


def orders_table(whole: Mapping[str, Removed]) -> pd.DataFrame:
    """One row per order and head, with ORDER_COLUMNS."""
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
                    "heads": [",".join(names[: index + 1]) for index in range(len(names))],
                }
            )
        )
    return pd.concat(parts, ignore_index=True)


def whole_greedy_order(pruning: Pruning, ask: AskOutcomes) -> Removed:
    """The greedy order determined on all texts."""
    return _greedy(pruning, np.ones((1, len(pruning.documents))), ask)


def _greedy(pruning: Pruning, weights: Float[np.ndarray, "1 text"], ask: AskOutcomes) -> Removed:
    off: list[Head] = []
    indices = np.flatnonzero(weights[0])
    for start, stop in pairwise(pruning.counts(pruning.order(np.zeros(pruning.is_there.shape))).tolist()):
        outcomes = ask(ablation_question(pruning.metric), indices, tuple(sorted(off)))
        all_outcomes = _for_all_texts(outcomes, indices, len(pruning.documents))
        importance = damage(all_outcomes, pruning.score).over(weights)[0]
        for layer, head in off:
            importance[layer, head] = -np.inf
        off += [(int(layer), int(head)) for layer, head in pruning.order(importance)[start:stop]]
    return np.array(off, int).reshape(-1, 2)


def _for_all_texts(
    outcomes: Sequence[TextOutcomes], indices: Int[np.ndarray, " index"], n_texts: int
) -> list[TextOutcomes]:
    """Outcomes of all texts; zeros, which get no weight, for texts without an answer."""
    by_index = dict(zip(indices.tolist(), outcomes, strict=True))
    zeros = TextOutcomes(full=np.zeros_like(outcomes[0].full), without=np.zeros_like(outcomes[0].without))
    return [by_index.get(index, zeros) for index in range(n_texts)]


def pruning_curve(pruning: Pruning, trial: CurveTrial, ask: AskOutcomes) -> Curve:
    """A curve, each text evaluated with the order from the other half."""
    counts, outcomes = pruning.counts(trial.by_half[0]), pruning_outcomes(pruning, trial, ask)
    return curve(trial.order, counts, outcomes, pruning.score, pruning.documents, pruning.draws)


def pruning_outcomes(pruning: Pruning, trial: CurveTrial, ask: AskOutcomes) -> Float[np.ndarray, "text step part"]:
    """Outcomes of each text at each step of the order from the other half; see `pruning_curve`."""
    by_half, full = trial.by_half, trial.full
    counts = pruning.counts(by_half[0])
    ends_with_none = int(counts[-1]) == pruning.n_heads
    middle, n_parts = (counts[1:-1] if ends_with_none else counts[1:]), full.shape[1]
    steps: dict[int, list[np.ndarray]] = {}
    for side in (0, 1):
        indices = np.flatnonzero(pruning.half == side)
        answers = _outcomes(pruning, gatings(by_half[side], middle, *pruning.is_there.shape), indices, n_parts, ask)
        # Without any head all orders are the same, so that step is a separate question, answered once for all orders.
        last = _outcomes(pruning, np.zeros((int(ends_with_none), *pruning.is_there.shape)), indices, n_parts, ask)
        steps |= {
            int(index): [full[index][None], *text_outcomes]
            for index, *text_outcomes in zip(indices, answers, last, strict=True)
        }
    return np.stack([np.concatenate(steps[index]) for index in sorted(steps)])


def _outcomes(
    pruning: Pruning,
    head_gates: Float[np.ndarray, "gating layer head"],
    indices: Int[np.ndarray, " index"],
    n_parts: int,
    ask: AskOutcomes,
) -> Sequence[np.ndarray]:
    """Outcomes of some texts under each gating, "gating part"; without gatings, no question is asked."""
    if not len(head_gates):
        return [np.zeros((0, n_parts))] * len(indices)
    return ask(gated_question(pruning.metric, head_gates), indices, ())


def full_outcomes(outcomes: Sequence[TextOutcomes]) -> Float[np.ndarray, "text part"]:
    """Outcome of each text with all heads on."""
    return np.stack([outcome.full for outcome in outcomes])


def is_there(shape: tuple[int, int], missing: Sequence[Head]) -> Bool[np.ndarray, "layer head"]:
    """Whether each head is available: neither removed nor switched off."""
    present = np.ones(shape, bool)
    for head in missing:
        present[head] = False
    return present
