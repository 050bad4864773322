"""One typed text under both checkpoints: arcs of the chosen heads, their difference, and the predictions."""

from dataclasses import replace
from typing import TYPE_CHECKING, Final

import numpy as np
import streamlit as st

from attention_sieve.cache.looks import predicted
from attention_sieve.core.attention.settings import Head, head_name, head_names
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.arcs import MOST_HEADS
from attention_sieve.dashboard.components.arcs.look import ArcStyle, Controls, Group
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Signs, visible
from attention_sieve.dashboard.figures.text.common import in_common
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.arcs import attention_of, linked_arcs, look_at, move_window, take_look
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import Compared, Visits
from attention_sieve.dashboard.views.pickers import thirds, toggle
from attention_sieve.dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import Prediction

GROUP: Final = Group("compare")
"""Group of the arcs, which highlight, pin and scroll together and share settings."""
LEAST_ROW, ROW = 12, 36
"""Pixels of a row of the arcs."""
ROOM: Final = (240, 500)
"""Pixels that a projector, and a larger screen, leave for all rows."""
PROJECTED: Final = ((760, 352, 17, 24), (560, 240, 14, 16))
"""In pixels: greatest height of a screen, what a lesson leaves for all rows there, and the least and the usual row."""


def arcs_between(visits: Visits, shown: Compared, text: Text, far: float) -> None:
    """Draw the arcs of the chosen heads under either checkpoint, or a mixture of both.

    Args:
        far: from the reference, 0, to the compared checkpoint, 1.
    """
    try:
        heads = shown.heads[-MOST_HEADS:]
        aligned = _aligned(text, _attentions(visits, text), shown.names, heads) if heads else wording.ARCS_HINT
    except AnalysisError as error:
        show_error(error)
        return
    if isinstance(aligned, str):
        st.info(aligned)
        return
    in_a, in_b = aligned
    _fit(len(in_a.queries.tokens))
    if 0 < far < 1:
        label = f"Attention of {head_names(heads)} in a mixture of {shown.names[0]} and {shown.names[1]}"
        in_a = replace(in_a, attention=(1 - far) * in_a.attention + far * in_b.attention, label=label)
    _draw("arcs between", in_b if far == 1 else in_a)


def _fit(n_rows: int) -> None:
    """Draw the rows as low as it takes to see all of them on a projector, or on a larger screen."""
    low, high = (max(LEAST_ROW, min(ROW, room // n_rows)) for room in ROOM)
    st.html(
        f"<style>.st-key-picture {{ --arc-row: {high}px; --arc-status: none; }}"
        f"@media (max-height: 640px) {{ .st-key-picture {{ --arc-row: {low}px; }} }}</style>"
    )


def _fit_on_projector(n_rows: int) -> None:
    """The same side by side, in a lesson alone: elsewhere a page is scrolled."""
    for height, room, least, usual in PROJECTED:
        row = max(least, min(usual, room // n_rows))
        style = f".has-lesson .st-key-both-texts {{ --arc-row: {row}px; }}"
        st.html(f"<style>@media (max-height: {height}px) {{ {style} }}</style>")


def same_head_in_both(visits: Visits, shown: Compared, text: Text) -> None:
    """Draw the arcs of the chosen heads under both and their difference, and show what each checkpoint predicts."""
    try:
        heads = shown.heads[-MOST_HEADS:]
        attentions = _attentions(visits, text)
        predictions = _predictions(visits, text)
        aligned = _aligned(text, attentions, shown.names, heads) if heads else wording.ARCS_HINT
        if isinstance(aligned, str):
            st.info(aligned)
            for letter, name, prediction in zip("ab", shown.names, predictions):
                st.markdown(wording.side(letter, plain(name), prediction))
            return
        if attentions[0].overview is not None:
            move_window(visits[0].engine, text, attentions[0], attentions[0].overview, heads)
        in_a, in_b = aligned
        _fit_on_projector(len(in_a.queries.tokens))
        _draw("arcs controls", replace(in_a, label=wording.CONTROLS), "alone")
        with st.container(key="both texts"):
            left, middle, right = thirds()
        for column, letter, name, prediction, maps in zip((left, middle), "ab", shown.names, predictions, aligned):
            with column:
                st.markdown(wording.side(letter, plain(name), prediction))
                _draw(f"arcs {letter}", maps)
        difference = replace(
            in_a,
            attention=in_b.attention[-1:] - in_a.attention[-1:],
            heads=heads[-1:],
            signs=Signs(wording.MORE_ATTENTION, wording.LESS_ATTENTION),
            label=f"Difference of the attention of {head_name(*heads[-1])}, b minus a",
        )
        with right:
            st.markdown(wording.difference(head_name(*heads[-1])))
            _draw("arcs difference", difference)
    except AnalysisError as error:
        show_error(error)


def _attentions(visits: Visits, text: Text) -> tuple[TextAttention, TextAttention]:
    """The attention under both; a text too long for either is cut only if the reader asks for it."""
    try:
        return _both_attentions(visits, text, "error")
    except TextTooLong:
        if not toggle(shared_wording.CUT_THIS, key="cut"):
            raise
    return _both_attentions(visits, text, "truncate")


def _both_attentions(visits: Visits, text: Text, too_long: TooLong) -> tuple[TextAttention, TextAttention]:
    start = state.window_start(text)
    with waiting() as report:
        a, b = (
            visit.inference.look(visit.engine, text, visit.settings, start=start, too_long=too_long, report=report)[0]
            for visit in visits
        )
    return a, b


def _draw(key: str, maps: AttentionMaps, controls: Controls = "without") -> None:
    """One of the pictures, or their switches: a view of their group without a picture."""
    look = look_at(maps.queries, maps.keys)
    linked_arcs(maps, Selection(key, look, on_change=take_look), ArcStyle(controls=controls, group=GROUP))


def _aligned(
    text: Text, attentions: tuple[TextAttention, TextAttention], names: tuple[str, str], heads: list[Head]
) -> tuple[AttentionMaps, AttentionMaps] | str:
    """Attention on common tokens if both tokenise the text alike, else on words; or a sentence why neither works."""
    a, b = attentions
    attention_a, attention_b = (attention_of(text_attention.attention, heads) for text_attention in attentions)
    common = in_common(text, attentions, (attention_a, attention_b))
    if common is None:
        return (
            wording.OTHER_KIND
            if "cross" in (a.text.kind, b.text.kind) or a.text.kind != b.text.kind
            else wording.WINDOWS_DIFFER
        )
    if common.is_on_words:
        st.info(wording.ON_WORDS)
    label_a, label_b = (f"Attention of {head_names(heads)} in {name}" for name in names)
    in_a = AttentionMaps(
        queries=common.queries,
        keys=common.keys,
        attention=common.a,
        heads=heads,
        causal=a.causal,
        label=label_a,
    )
    return in_a, replace(in_a, attention=common.b, label=label_b)


def _predictions(visits: Visits, text: Text) -> list[str]:
    with waiting() as report:
        predictions: list[Prediction | None] = [
            visit.inference.on_screen(visit.engine, predicted, text, visit.settings, report=report) for visit in visits
        ]
    return [
        shared_wording.EMBEDS_ONLY if prediction is None else prediction_sentence(prediction)
        for prediction in predictions
    ]


def prediction_sentence(prediction: "Prediction") -> str:
    """The prediction in a sentence, most likely first."""
    order = np.argsort(-prediction.values, kind="stable")
    names = [plain(visible(prediction.names[index])) for index in order]
    values = [float(prediction.values[index]) for index in order]
    masked, after = (
        None if token is None else plain(visible(token)) for token in (prediction.masked, prediction.after)
    )
    return wording.predicted(names, values, prediction.unit, masked, after)
