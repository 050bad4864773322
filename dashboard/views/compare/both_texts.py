"""One typed text under both checkpoints: the same heads' arcs, their difference, and what each says of it."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Float

from cache.inference import Inference
from core.attention.settings import Head, head_name
from core.comparison.words import WordAttention, common_words, word_attention
from core.errors import AnalysisError, TextTooLong
from core.passes.texts import TextAttention, same_tokens
from core.texts.text import Text, read_typed
from core.texts.tokens import SPECIAL, TooLong
from dashboard import controls, state
from dashboard import wording as shared_wording
from dashboard.components.arcs import MOST_HEADS, attention_arcs
from dashboard.figures.text.sides import Side
from dashboard.plain import plain, show_error
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Focus, all_heads_on
from dashboard.views.layout import halves
from dashboard.views.text.attention import move_window, sides
from dashboard.views.text.on_screen import waiting
from dashboard.views.text.typed import EXAMPLE_TYPED, text_on_screen

if TYPE_CHECKING:
    from core.passes.outputs import Prediction

GROUP: Final = "compare"
"""Of the three views of arcs, which point, pin, scroll and are set together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Drawn:
    """The same heads under both checkpoints, on the same two sides."""

    queries: Side
    keys: Side
    a: Float[np.ndarray, "chosen query key"]
    b: Float[np.ndarray, "chosen query key"]
    causal: bool


def same_head_in_both(inference: Inference, focus: Focus) -> None:
    """Draw the chosen heads' arcs under both and their difference, and what each checkpoint says of the text."""
    st.subheader(wording.TEXT)
    typed = controls.typed_texts(shared_wording.YOUR_TEXTS, "text", EXAMPLE_TYPED, height=80)
    try:
        text = text_on_screen(read_typed(typed))
        heads = focus.heads[-MOST_HEADS:]
        looks = _looks(inference, focus, text)
        drawn = _aligned(text, *looks, heads) if heads else wording.ARCS_HINT
        if isinstance(drawn, str):
            st.info(drawn)
        else:
            st.markdown(wording.TEXT_SEE)
            if looks[0].overview is not None:
                move_window(focus.pair.engines[0], text, looks[0], looks[0].overview, heads)
            _both(focus, drawn, heads)
        left, right = halves()
        with left:
            if not isinstance(drawn, str):
                _difference(drawn, heads[-1])
        with right if not isinstance(drawn, str) else left:
            _predictions(inference, focus, text)
    except AnalysisError as error:
        show_error(error)


def _looks(inference: Inference, focus: Focus, text: Text) -> tuple[TextAttention, TextAttention]:
    """The text under both; one that is too long for either is cut only when the reader says so."""
    try:
        return _looked(inference, focus, text, "error")
    except TextTooLong:
        if not st.toggle(shared_wording.CUT_THIS, key="cut", bind="query-params", persist_state="session"):
            raise
    return _looked(inference, focus, text, "truncate")


def _looked(inference: Inference, focus: Focus, text: Text, too_long: TooLong) -> tuple[TextAttention, TextAttention]:
    place, start = st.empty(), state.window_start(text)
    with place.container():
        report = waiting()
        a, b = (
            inference.look(
                engine, text, all_heads_on(focus.chosen, engine), start=start, too_long=too_long, report=report
            )[0]
            for engine in focus.pair.engines
        )
    place.empty()
    return a, b


def _both(focus: Focus, drawn: _Drawn, heads: list[Head]) -> None:
    names = ", ".join(head_name(*head) for head in heads)
    for place, letter, name, attention in zip(halves(), "ab", focus.names, (drawn.a, drawn.b)):
        with place:
            st.markdown(f"**({letter})** {plain(name)}")
            attention_arcs(
                key=f"arcs {letter}",
                queries=drawn.queries,
                keys=drawn.keys,
                attention=attention,
                heads=heads,
                causal=drawn.causal,
                label=f"Attention of {names} in {name}",
                group=GROUP,
            )


def _difference(drawn: _Drawn, head: Head) -> None:
    st.markdown(wording.difference(head_name(*head)))
    attention_arcs(
        key="arcs difference",
        queries=drawn.queries,
        keys=drawn.keys,
        attention=drawn.b[-1:] - drawn.a[-1:],
        heads=[head],
        causal=drawn.causal,
        label=f"Difference of the attention of {head_name(*head)}, b minus a",
        group=GROUP,
        signed=True,
        more=wording.MORE_ATTENTION,
        less=wording.LESS_ATTENTION,
    )


def _aligned(text: Text, a: TextAttention, b: TextAttention, heads: list[Head]) -> _Drawn | str:
    """The heads' attention on common sides: tokens where both cut the text alike, else words; or why there are none."""
    first, second = (np.stack([looked.attention[layer, head] for layer, head in heads]) for looked in (a, b))
    if same_tokens(a.text, b.text) and a.window == b.window:
        queries, keys = sides(a)
        return _Drawn(queries=queries, keys=keys, a=first, b=second, causal=a.causal)
    if "cross" in (a.text.kind, b.text.kind) or a.text.kind != b.text.kind:
        return wording.OTHER_KIND
    if a.overview is not None or b.overview is not None:
        return wording.WINDOWS_DIFFER
    read = _read_by_queries(text, a)
    common = common_words(word_attention(read, a.text.queries, first), word_attention(read, b.text.queries, second))
    st.info(wording.ON_WORDS)
    side = _side(common.a, common.n_left_out)
    return _Drawn(queries=side, keys=side, a=common.a.attention, b=common.b.attention, causal=a.causal)


def _read_by_queries(text: Text, looked: TextAttention) -> Text:
    """The segments that the queries read."""
    if looked.text.kind == "self":
        return text
    at = 0 if looked.text.kind == "encoder" else 1
    return Text((text.segments[at],), None if text.words is None else (text.words[at],))


def _side(words: WordAttention, n_left_out: int) -> Side:
    segments = np.array(words.segments)
    special = segments == SPECIAL
    numbers = np.where(special, SPECIAL, np.cumsum(~special) - 1)
    n_whole = len(words.words) + n_left_out if n_left_out else None
    return Side(tokens=words.words, special=special, segments=segments, words=numbers, n_whole=n_whole)


def _predictions(inference: Inference, focus: Focus, text: Text) -> None:
    """What each checkpoint's classifier says of the text, where one has any."""
    report = waiting()
    predictions = [
        inference.prediction(engine, text, all_heads_on(focus.chosen, engine), report=report)
        for engine in focus.pair.engines
    ]
    if all(one is None for one in predictions):
        return
    st.markdown(f"**{wording.PREDICTIONS}**")
    for letter, name, one in zip("ab", focus.names, predictions):
        named = f"**({letter})** {plain(name)}"
        st.markdown(f"{named}: {wording.NO_CLASSES}" if one is None else named)
        if one is not None:
            _prediction(one)


def _prediction(prediction: "Prediction") -> None:
    share = st.column_config.ProgressColumn(format="percent", min_value=0, max_value=1)
    value = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        pd.DataFrame({"class": prediction.names, prediction.unit: prediction.values}),
        hide_index=True,
        column_config={prediction.unit: value if prediction.unit == "value" else share},
    )
