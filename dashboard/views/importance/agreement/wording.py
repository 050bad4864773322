"""Sentences of the tab that compares cheaper measures with ablation."""

from collections.abc import Mapping, Sequence
from typing import Final

from attention_sieve.core.importance.agreement import Agreement
from attention_sieve.core.importance.measures import ABLATION, BATCH_SIZE
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.plain import plain

TAB: Final = "Cheaper measures"
SEE: Final = (
    "Switching off every head in turn takes as many passes as there are heads. The measures below need one pass, some "
    "with gradients, for all heads together. Do they put the heads in the same order?"
)
NORMALISE: Final = "Divide gradients by the layer's norm"
NORMALISE_HELP: Final = (
    "Divides the gradient measures of each layer by their Euclidean norm over its heads, as Michel et al. do: heads "
    "of different layers are then compared as if every layer mattered equally."
)
MEASURE: Final = "Measure"
MEASURE_HELP: Final = (
    "The measure that is drawn head by head, and within each layer; to begin with, the one that agrees best."
)
SCALE: Final = "Axes"
RANKS: Final = "ranks"
VALUES: Final = "values"
SCALE_HELP: Final = (
    "Spearman's correlation compares ranks only; rank 1 is the least important head. Values show what ranks hide, "
    "such as a few heads that matter far more than all others."
)
INTERVALS: Final = (
    "The intervals show how much a correlation would vary with other texts like these. On resampled texts both "
    "orders are noisier than over the corpus, so an interval can lie below its dot."
)
RANK: Final = " (rank)"
NOTHING: Final = "None of the cheaper measures can be computed for this checkpoint."
TABLE: Final = "All correlations in a table"

PRODUCT: Final = "the head's output times the gradient of the loss; absolute value of each"
ABOUT: Final[Mapping[str, str]] = {
    "gradient per token": f"{PRODUCT} token's sum (as in the code of Michel et al.)",
    "gradient per text": f"{PRODUCT} text's sum (as in the paper of Michel et al.)",
    "gradient per batch": f"{PRODUCT} sum over {BATCH_SIZE} texts (as in some re-implementations)",
    "attribution against zero": "estimated rise of the loss if the head gave nothing",
    "attribution against mean": "estimated rise of the loss if the head gave its mean output",
    "wanda-sp": "size of the head's output times the weights that read it; no gradient",
    "flap": "how much that output varies; no gradient",
    "confidence": "largest attention weight of a query, on average; no gradient",
    "relevance": "share of the prediction that goes through the head",
}
"""What each measure is, in a few words."""


def conserved(share: float) -> str:
    return (
        f"Of the relevance that is propagated, {100 * share:.0f}% reaches the tokens (median over texts). In a model "
        "without biases, all of it does."
    )


def summary(agreements: Sequence[Agreement], n_heads: int) -> str:
    order = sorted(
        (agreement for agreement in agreements if agreement.spearman[0] == agreement.spearman[0]),
        key=lambda agreement: -agreement.spearman[0],
    )
    if not order:
        return NOTHING
    closest = (
        f"Over {counted(n_heads, 'head')}, **{order[0].measure}** comes closest to the order of {ABLATION}: Spearman's "
        f"correlation {_with_interval(order[0])}."
    )
    if len(order) == 1:
        return closest
    return f"{closest} Farthest from it is **{order[-1].measure}** with {_with_interval(order[-1])}."


def _with_interval(agreement: Agreement) -> str:
    value, low, high = (values[0] for values in (agreement.spearman, agreement.low, agreement.high))
    return f"{value:.2f}" if low != low else f"{value:.2f} (95% interval {low:.2f} to {high:.2f})"


def left_out(name: str, reason: str) -> str:
    return f"Without {name}: {plain(reason)}"
