"""One typed text under both checkpoints: arcs of the chosen heads, their difference, and the predictions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.cache.inference import Inference
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.comparison.words import WordAttention, common_words, word_attention
from attention_sieve.core.errors import AnalysisError, TextTooLong
from attention_sieve.core.passes.texts import TextAttention, same_tokens
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL, TooLong
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.arcs import MOST_HEADS
from attention_sieve.dashboard.components.arcs.values import ArcStyle, Group, Settings, Signs
from attention_sieve.dashboard.figures.text.arcs_svg import visible
from attention_sieve.dashboard.figures.text.sides import Side
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.arcs.attention import attention_of, move_window, sides
from attention_sieve.dashboard.views.arcs.look import linked_arcs, look_at, take_look
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.comparison.numbers import Focus, all_heads_on
from attention_sieve.dashboard.views.layout import thirds
from attention_sieve.dashboard.views.pickers import toggle
from attention_sieve.dashboard.views.text.on_screen import waiting

if TYPE_CHECKING:
    from attention_sieve.core.passes.outputs import Prediction

GROUP: Final = Group("compare")
"""Group of the arcs, which highlight, pin and scroll together and share settings."""


@dataclass(frozen=True, eq=False, kw_only=True)
class _AlignedAttention:
    """Attention of the same heads under both checkpoints, on common queries and keys."""

    queries: Side
    keys: Side
    a: Float[np.ndarray, "chosen query key"]
    b: Float[np.ndarray, "chosen query key"]
    causal: bool


def same_head_in_both(inference: Inference, focus: Focus, text: Text) -> None:
    """Draw the arcs of the chosen heads under both and their difference, and show what each checkpoint predicts."""
    try:
        heads = focus.heads[-MOST_HEADS:]
        attentions = _attentions(inference, focus, text)
        predictions = _predictions(inference, focus, text)
        aligned = _aligned(text, *attentions, heads) if heads else wording.ARCS_HINT
        if isinstance(aligned, str):
            st.info(aligned)
            for letter, name, prediction in zip("ab", focus.names, predictions):
                st.markdown(wording.side(letter, plain(name), prediction))
            return
        if attentions[0].overview is not None:
            move_window(focus.pair.engines[0], text, attentions[0], attentions[0].overview, heads)
        _controls(aligned, heads)
        with st.container(key="both texts"):
            left, middle, right = thirds()
        for column, letter, name, prediction, attention in zip(
            (left, middle), "ab", focus.names, predictions, (aligned.a, aligned.b)
        ):
            with column:
                st.markdown(wording.side(letter, plain(name), prediction))
                _one_side(aligned, heads, letter, name, attention)
        with right:
            st.markdown(wording.difference(head_name(*heads[-1])))
            _difference(aligned, heads[-1])
    except AnalysisError as error:
        show_error(error)


def _attentions(inference: Inference, focus: Focus, text: Text) -> tuple[TextAttention, TextAttention]:
    """The attention under both; a text too long for either is cut only if the reader asks for it."""
    try:
        return _both_attentions(inference, focus, text, "error")
    except TextTooLong:
        if not toggle(shared_wording.CUT_THIS, key="cut"):
            raise
    return _both_attentions(inference, focus, text, "truncate")


def _both_attentions(
    inference: Inference, focus: Focus, text: Text, too_long: TooLong
) -> tuple[TextAttention, TextAttention]:
    start = state.window_start(text)
    with waiting() as report:
        a, b = (
            inference.look(
                engine, text, all_heads_on(focus.chosen, engine), start=start, too_long=too_long, report=report
            )[0]
            for engine in focus.pair.engines
        )
    return a, b


def _controls(aligned: _AlignedAttention, heads: list[Head]) -> None:
    """The switches of all three pictures: a view of their group without a picture."""
    linked_arcs(
        key="arcs controls",
        queries=aligned.queries,
        keys=aligned.keys,
        attention=aligned.a,
        heads=heads,
        causal=aligned.causal,
        label=wording.CONTROLS,
        style=ArcStyle(controls="alone", group=GROUP),
        settings=_settings(aligned),
    )


def _settings(aligned: _AlignedAttention) -> Settings:
    return Settings(look=look_at(aligned.queries, aligned.keys), on_change=take_look)


def _one_side(
    aligned: _AlignedAttention,
    heads: list[Head],
    letter: str,
    name: str,
    attention: Float[np.ndarray, "chosen query key"],
) -> None:
    linked_arcs(
        key=f"arcs {letter}",
        queries=aligned.queries,
        keys=aligned.keys,
        attention=attention,
        heads=heads,
        causal=aligned.causal,
        label=f"Attention of {', '.join(head_name(*head) for head in heads)} in {name}",
        style=ArcStyle(controls="without", group=GROUP),
        settings=_settings(aligned),
    )


def _difference(aligned: _AlignedAttention, head: Head) -> None:
    linked_arcs(
        key="arcs difference",
        queries=aligned.queries,
        keys=aligned.keys,
        attention=aligned.b[-1:] - aligned.a[-1:],
        heads=[head],
        causal=aligned.causal,
        label=f"Difference of the attention of {head_name(*head)}, b minus a",
        style=ArcStyle(controls="without", group=GROUP, signs=Signs(wording.MORE_ATTENTION, wording.LESS_ATTENTION)),
        settings=_settings(aligned),
    )


def _aligned(text: Text, a: TextAttention, b: TextAttention, heads: list[Head]) -> _AlignedAttention | str:
    """Attention on common tokens if both tokenise the text alike, else on words; or a sentence why neither works."""
    attention_a, attention_b = (attention_of(text_attention.attention, heads) for text_attention in (a, b))
    if same_tokens(a.text, b.text) and a.window == b.window:
        queries, keys = sides(a)
        return _AlignedAttention(queries=queries, keys=keys, a=attention_a, b=attention_b, causal=a.causal)
    if "cross" in (a.text.kind, b.text.kind) or a.text.kind != b.text.kind:
        return wording.OTHER_KIND
    if a.overview is not None or b.overview is not None:
        return wording.WINDOWS_DIFFER
    query_text = _query_text(text, a)
    common = common_words(
        word_attention(query_text, a.text.queries, attention_a), word_attention(query_text, b.text.queries, attention_b)
    )
    st.info(wording.ON_WORDS)
    side = _side(common.a, common.n_left_out)
    return _AlignedAttention(queries=side, keys=side, a=common.a.attention, b=common.b.attention, causal=a.causal)


def _query_text(text: Text, text_attention: TextAttention) -> Text:
    """The segments of the text that the queries belong to."""
    if text_attention.text.kind == "self":
        return text
    segment = 0 if text_attention.text.kind == "encoder" else 1
    return Text((text.segments[segment],), None if text.words is None else (text.words[segment],))


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
