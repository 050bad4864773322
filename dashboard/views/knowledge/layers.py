"""Where in the model a task can be read: heads sorted within layers, and the spread of each layer."""

from typing import Final

import streamlit as st

from attention_sieve.dashboard.figures.knowledge.by_layer import scores_by_layer
from attention_sieve.dashboard.figures.knowledge.sorted_heads import sorted_heads
from attention_sieve.dashboard.figures.knowledge.words import score_name
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import Probing, above_majority, majority
from attention_sieve.dashboard.views.layout import halves

MOST_VIOLINS: Final = 3
"""Maximum number of overlaid violins; more cannot be told apart."""


def layers(probing: Probing) -> None:
    """Draw the tab."""
    st.markdown(wording.SORTED_SEE)
    report = probing.shown.report
    name = score_name(report.is_regression)
    title = name if report.is_regression else wording.ABOVE
    left, right = halves()
    with left:
        figure = sorted_heads(above_majority(report), title, probing.heads)
        chart("heads sorted in layers", figure, probing.facts, wording.JO_MYAENG, selects=True)
    with right:
        figure = scores_by_layer(
            probing.scores[:MOST_VIOLINS], report.accuracy[~report.is_head], majority(report), name, probing.heads
        )
        chart("scores by layer", figure, probing.facts, wording.JO_VIOLINS, selects=True)
