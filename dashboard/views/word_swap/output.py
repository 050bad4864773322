"""What the changed word does to the output."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.cache.looks import swapped
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.text.on_screen import text_facts, waiting
from attention_sieve.dashboard.views.word_swap import wording

if TYPE_CHECKING:
    from attention_sieve.core.comparison.swap_output import Likelihood, SwapOutput


def output_of_both(visit: Visit, texts: tuple[Text, Text]) -> None:
    with waiting() as report:
        output = visit.inference.on_screen(visit.engine, swapped, *texts, visit.settings, report=report)
    st.subheader(wording.OUTPUT)
    left, right = halves()
    with left:
        st.metric(wording.ANGLE, f"{output.angle:.1f}°", help=wording.ANGLE_HELP, border=True)
    with right:
        _predictions(visit, texts, output)


def _predictions(visit: Visit, texts: tuple[Text, Text], output: "SwapOutput") -> None:
    if output.head is not None:
        moves = shared_wording.output_moves(output.head.unit, output.head.distance)
        st.markdown(moves, help=None if output.head.distance is None else shared_wording.MOVES_HELP)
        name = "class" if output.head.token is None else "next token"
        columns = {name: list(map(visible, output.head.names)), "(a)": output.head.before, "(b)": output.head.after}
        _table(visit, texts, "predictions", pd.DataFrame(columns), output.head.unit == "value")
    if output.likelihoods:
        st.markdown(wording.LIKELIHOOD, help=wording.LIKELIHOOD_HELP)
        _table(visit, texts, "words in place", _likelihoods(output.likelihoods), is_value=False)
        if output.n_left_out:
            st.markdown(wording.left_out(len(output.likelihoods), output.n_left_out))
    elif output.head is None:
        st.markdown(wording.ONLY_ENCODER if visit.settings.kind == "encoder" else shared_wording.EMBEDS_ONLY)


def _likelihoods(likelihoods: Sequence["Likelihood"]) -> pd.DataFrame:
    rows = [
        {
            "word in (a)": each.pair.a.text if each.pair.a else "",
            "(a)": np.nan if each.a is None else each.a,
            "word in (b)": each.pair.b.text if each.pair.b else "",
            "(b)": np.nan if each.b is None else each.b,
        }
        for each in likelihoods
    ]
    return pd.DataFrame(rows)


def _table(visit: Visit, texts: tuple[Text, Text], file: str, table: pd.DataFrame, is_value: bool) -> None:
    bar = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    column = st.column_config.NumberColumn(format="%.3f") if is_value else bar
    st.dataframe(table, hide_index=True, column_config={"(a)": column, "(b)": column})
    facts = text_facts(visit, texts[0])
    table_downloads(file, table, facts | {"changed text": texts[1].segments[0]})
