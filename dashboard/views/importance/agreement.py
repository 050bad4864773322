"""Whether cheaper measures order heads as switching each of them off does: all measures, and one head by head."""

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.importance.agreement import NO_ORDER, Agreement
from attention_sieve.core.importance.analysis import (
    AGREEMENT_COLUMNS,
    IMPORTANCE_ANALYSIS,
    IMPORTANCE_COLUMNS,
    agreement_table,
    importance_table,
)
from attention_sieve.core.importance.finding import ImportanceFinding
from attention_sieve.core.importance.measures import ABLATION, BATCH_SIZE
from attention_sieve.core.importance.settings import ImportanceSettings
from attention_sieve.core.importance.usage import MOST_NAMED
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_scatter import ScatterTexts, head_scatter
from attention_sieve.dashboard.figures.importance.agreement import agreement_dots, layer_agreement
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.analysis import analysed
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.importance import wording as page_wording
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle

PICKER_WIDTH: Final = 280
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
UNRELIABLE: Final = "Heads with an unreliable first-order estimate"

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


def unreliable(comparison: ImportanceFinding, measure: str) -> str:
    """For which heads a first-order measure errs, with what it gives and what switching them off does; "" for none."""
    heads = comparison.unreliable_heads(measure)
    if not heads or comparison.exact is None:
        return ""
    values, exact = comparison.values[measure], comparison.exact
    named = [f"{head_name(*head)} ({values[head]:.2g}; switched off {exact[head]:.2g})" for head in heads[:MOST_NAMED]]
    more = f" and {len(heads) - MOST_NAMED:,} more" if len(heads) > MOST_NAMED else ""
    return (
        f"First-order estimate unreliable for {', '.join(named)}{more}: it gives nothing or the wrong sign, as slopes "
        "do where a softmax or a prediction is saturated."
    )


def cheaper_measures(importance: Importance) -> None:
    st.markdown(SEE)
    normalised = toggle(NORMALISE, key="normalise", help=NORMALISE_HELP)
    material, of_ablation = importance.material, importance.material.settings
    settings = ImportanceSettings(
        metric_settings=of_ablation.metric_settings, replace=of_ablation.replace, normalise=normalised
    )
    found = analysed(material.visit, IMPORTANCE_ANALYSIS, settings, material.source, asks=False)
    if found is None:
        return
    comparison = found.finding
    for name, reason in comparison.cheap.left_out:
        st.info(f"Without {name}: {plain(reason)}")
    if not comparison.agreements:
        st.info(NOTHING)
        return
    if all(np.isnan(agreement.spearman[0]) for agreement in comparison.agreements.values()):
        st.info(NO_ORDER)
        return
    facts = importance.facts | found.facts("--agreement=agreement.parquet")
    n_heads = int((~np.isnan(comparison.values[ABLATION])).sum())
    st.markdown(summary(list(comparison.agreements.values()), n_heads))
    agreement, as_ranks = _one_measure(comparison)
    left, right = halves()
    with left:
        chart("agreement with ablation", agreement_dots(list(comparison.agreements.values())), facts)
        chart(f"agreement by layer, {agreement.measure}", layer_agreement(agreement), facts)
    with right:
        _scatter(comparison, agreement, as_ranks, importance, facts)
        st.caption(f"{agreement.measure.capitalize()}: {ABOUT[agreement.measure]}.")
        if errs := unreliable(comparison, agreement.measure):
            st.caption(errs)
        st.caption(INTERVALS)
        if comparison.conserved is not None:
            st.caption(conserved(comparison.conserved))
        with st.expander(TABLE):
            rows = agreement_table(comparison)
            layers = rows["layer"].astype("string").fillna("all")
            table("correlations with ablation", rows.assign(layer=layers), facts, AGREEMENT_COLUMNS, "%.3f")
        rows = importance_table(comparison)
        if (errs_for := rows["unreliable"].fillna(False).astype(bool)).any():
            with st.expander(UNRELIABLE):
                table("unreliable estimates", rows[errs_for].drop(columns="unreliable"), facts, IMPORTANCE_COLUMNS)


def _one_measure(comparison: ImportanceFinding) -> tuple[Agreement, bool]:
    """The chosen measure (by default the one that agrees best), and whether to draw ranks."""
    best = max(comparison.agreements.values(), key=lambda agreement: np.nan_to_num(agreement.spearman[0], nan=-np.inf))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        name = from_list(
            MEASURE,
            {measure: measure for measure in comparison.agreements},
            key="cheap measure",
            start=best.measure,
            help=MEASURE_HELP,
            width=PICKER_WIDTH,
        )
        as_ranks = one_of(SCALE, {RANKS: True, VALUES: False}, key="measure axes", help=SCALE_HELP)
    return comparison.agreements[name], as_ranks


def _scatter(
    comparison: ImportanceFinding, agreement: Agreement, as_ranks: bool, importance: Importance, facts: dict[str, str]
) -> None:
    name = agreement.measure
    x, y = comparison.values[name], comparison.values[ABLATION]
    if as_ranks:
        x, y = _ranks(x), _ranks(y)
    scale = RANK if as_ranks else ""
    words = ScatterTexts(
        title=f"{name.capitalize()} against {ABLATION}",
        x=f"{name}{scale}",
        y=f"{ABLATION}: {page_wording.without_head(page_wording.SCORE_NAMES[importance.ablation.score.name])}{scale}",
        reading=("dot: a head; right and up: more important",),
        description=f"Heads by {name} and by {ABLATION}. Spearman's correlation {agreement.spearman[0]:.2f}.",
    )
    chart(f"{name} and {ABLATION}", head_scatter(x, y, words, importance.heads), facts, selects=True)


def _ranks(values: np.ndarray) -> np.ndarray:
    from scipy.stats import rankdata

    return rankdata(values, nan_policy="omit").reshape(values.shape)


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
    return f"{value:.2f}{page_wording.interval(low, high, '.2f')}"
