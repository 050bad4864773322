"""One typed text under both checkpoints: a head's arcs in each, their difference, and what each predicts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Inference
from core.attention.settings import Head, head_name
from core.comparison.words import WordAttention, common_words, word_attention
from core.errors import AnalysisError, TextTooLong
from core.passes.texts import TextAttention, same_tokens
from core.texts.text import Text
from core.texts.tokens import SPECIAL, TooLong
from dashboard import state
from dashboard import wording as shared_wording
from dashboard.components.arcs import MOST_HEADS
from dashboard.figures.text.sides import Side
from dashboard.plain import plain, show_error
from dashboard.views.arcs.attention import attention_of, move_window, sides
from dashboard.views.arcs.look import linked_arcs, look_at, take_look
from dashboard.views.compare import wording
from dashboard.views.compare.numbers import Focus, all_heads_on
from dashboard.views.layout import thirds
from dashboard.views.pickers import toggle
from dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from core.passes.outputs import Prediction

GROUP: Final = "compare"
"""Of the views of arcs, which point, pin, scroll and are set together."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _Drawn:
    """The same heads under both checkpoints, on the same two sides."""

    queries: Side
    keys: Side
    a: Float[np.ndarray, "chosen query key"]
    b: Float[np.ndarray, "chosen query key"]
    causal: bool


def same_head_in_both(inference: Inference, focus: Focus, text: Text) -> None:
    """Draw the chosen heads' arcs under both and their difference, and say what each checkpoint predicts."""
    try:
        heads = focus.heads[-MOST_HEADS:]
        looks = _looks(inference, focus, text)
        predictions = _predictions(inference, focus, text)
        drawn = _aligned(text, *looks, heads) if heads else wording.ARCS_HINT
        if isinstance(drawn, str):
            st.info(drawn)
            for letter, name, said in zip("ab", focus.names, predictions):
                st.markdown(wording.side(letter, plain(name), said))
            return
        if looks[0].overview is not None:
            move_window(focus.pair.engines[0], text, looks[0], looks[0].overview, heads)
        _controls(drawn, heads)
        left, middle, right = thirds()
        for place, letter, name, said, attention in zip(
            (left, middle), "ab", focus.names, predictions, (drawn.a, drawn.b)
        ):
            with place:
                st.markdown(wording.side(letter, plain(name), said))
                _one_side(drawn, heads, letter, name, attention)
        with right:
            st.markdown(wording.difference(head_name(*heads[-1])))
            _difference(drawn, heads[-1])
    except AnalysisError as error:
        show_error(error)


def _looks(inference: Inference, focus: Focus, text: Text) -> tuple[TextAttention, TextAttention]:
    """The text under both; one that is too long for either is cut only when the reader says so."""
    try:
        return _looked(inference, focus, text, "error")
    except TextTooLong:
        if not toggle(shared_wording.CUT_THIS, key="cut"):
            raise
    return _looked(inference, focus, text, "truncate")


def _looked(inference: Inference, focus: Focus, text: Text, too_long: TooLong) -> tuple[TextAttention, TextAttention]:
    start = state.window_start(text)
    with waiting() as report:
        a, b = (
            inference.look(
                engine, text, all_heads_on(focus.chosen, engine), start=start, too_long=too_long, report=report
            )[0]
            for engine in focus.pair.engines
        )
    return a, b


def _controls(drawn: _Drawn, heads: list[Head]) -> None:
    """The switches of all three pictures: a view of their group that is nothing else."""
    linked_arcs(
        key="arcs controls",
        queries=drawn.queries,
        keys=drawn.keys,
        attention=drawn.a,
        heads=heads,
        causal=drawn.causal,
        label=wording.CONTROLS,
        look=look_at(drawn.queries, drawn.keys),
        on_look=take_look,
        group=GROUP,
        controls="alone",
    )


def _one_side(
    drawn: _Drawn, heads: list[Head], letter: str, name: str, attention: Float[np.ndarray, "chosen query key"]
) -> None:
    linked_arcs(
        key=f"arcs {letter}",
        queries=drawn.queries,
        keys=drawn.keys,
        attention=attention,
        heads=heads,
        causal=drawn.causal,
        label=f"Attention of {', '.join(head_name(*head) for head in heads)} in {name}",
        look=look_at(drawn.queries, drawn.keys),
        on_look=take_look,
        group=GROUP,
        controls="without",
    )


def _difference(drawn: _Drawn, head: Head) -> None:
    linked_arcs(
        key="arcs difference",
        queries=drawn.queries,
        keys=drawn.keys,
        attention=drawn.b[-1:] - drawn.a[-1:],
        heads=[head],
        causal=drawn.causal,
        label=f"Difference of the attention of {head_name(*head)}, b minus a",
        look=look_at(drawn.queries, drawn.keys),
        on_look=take_look,
        group=GROUP,
        controls="without",
        signed=True,
        more=wording.MORE_ATTENTION,
        less=wording.LESS_ATTENTION,
    )


def _aligned(text: Text, a: TextAttention, b: TextAttention, heads: list[Head]) -> _Drawn | str:
    """The heads' attention on common sides: tokens where both cut the text alike, else words; or why there are none."""
    first, second = (attention_of(looked.attention, heads) for looked in (a, b))
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


def _predictions(inference: Inference, focus: Focus, text: Text) -> list[str]:
    """What each checkpoint predicts for the text, in a sentence."""
    with waiting() as report:
        predictions: list[Prediction | None] = [
            inference.prediction(engine, text, all_heads_on(focus.chosen, engine), report=report)
            for engine in focus.pair.engines
        ]
    return [wording.NO_PREDICTION if one is None else _said(one) for one in predictions]


def _said(prediction: "Prediction") -> str:
    """The likeliest first; all of two classes."""
    order = np.argsort(-prediction.values, kind="stable")
    names = [plain(prediction.names[place].strip()) for place in order]
    values = [float(prediction.values[place]) for place in order]
    masked = None if prediction.masked is None else plain(prediction.masked)
    return wording.predicted(names, values, prediction.unit, masked)
