"""Inspect: type a text, see which heads do what in it, and where a chosen head looks."""

from contextlib import nullcontext

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from cache.inference import Engine, Inference
from core.analysis import TextAttention
from core.errors import AnalysisError, TextTooLong
from core.measures import DIRECTIONS, role_scores
from core.roles import COARSE_ROLES, FINE_ROLES, ROLES
from core.sieves import sieve_cells
from core.texts import Text, read_typed, write_typed
from core.tokens import SPECIAL, TooLong
from dashboard import controls, state, wording
from dashboard.components.arcs import MOST_HEADS, attention_arcs
from dashboard.components.grid import role_grid
from dashboard.components.thumbnails import head_thumbnails
from dashboard.downloads import drawing_downloads
from dashboard.figures.arcs_svg import DEFAULT_SHARE, arcs_svg, head_name
from dashboard.figures.grid_svg import grid_svg
from dashboard.samples import EXAMPLE
from dashboard.state import Choice, Head
from dashboard.views.corpus import Corpus, ask_about_long_texts, corpus, kept_corpus
from dashboard.views.head_card import head_card, head_summary
from dashboard.views.layout import halves

EXAMPLE_TYPED = write_typed([EXAMPLE])


def show() -> None:
    """Draw the page."""
    st.title("Inspect")
    st.markdown(wording.INSPECT_SEE)
    typed = st.text_area(
        wording.YOUR_TEXTS,
        EXAMPLE_TYPED,
        key="text",
        height=80,
        help=wording.PAIRS_HOWTO,
        bind="query-params",
        persist_state="session",
    )
    try:
        _inspect(typed)
    except AnalysisError as error:
        controls.show_error(error)
    with st.expander(wording.HOW):
        st.markdown(wording.FORMULA)
        st.markdown(wording.NOT_EXPLANATION)


def _inspect(typed: str) -> None:
    text = _text_on_screen(read_typed(typed))
    chosen = state.choice()
    engine, inference = controls.engine(chosen), controls.inference()
    looked, scores = _look(inference, engine, chosen, text)
    texts, problem = _corpus_texts(chosen)
    tested = kept_corpus(inference, engine, chosen, texts) if texts else None
    if problem is not None:
        controls.show_error(problem)
    left, right = halves()
    with left:
        heads = _grid(engine, chosen, text, scores, tested)
        if heads:
            head_summary(chosen, scores, tested, heads[-1])
            _thumbnails(looked, heads[-1])
    with right:
        _arcs(engine, chosen, text, looked, heads)
    if not texts and problem is None:
        st.info(wording.WAIT_UPLOAD if chosen.corpus == controls.UPLOAD else wording.WAIT_TYPED)
    elif tested is not None:
        ask_about_long_texts(tested.too_long)
        if heads:
            head_card(engine, chosen, scores, tested, heads[-1])
    elif texts and corpus(inference, engine, chosen, texts) is not None:
        # What is drawn stayed in view meanwhile; the next run takes the tests from memory.
        st.rerun()


def _corpus_texts(chosen: Choice) -> tuple[tuple[Text, ...], AnalysisError | None]:
    """The corpus, or what is wrong with it: that is no reason not to draw the text on screen."""
    try:
        return controls.corpus_texts(chosen), None
    except AnalysisError as error:
        return (), error


def _text_on_screen(texts: tuple[Text, ...]) -> Text:
    """The one text, or the one of several that the reader picks; the link holds its number."""
    if len(texts) == 1:
        return texts[0]
    linked = st.query_params.get("number", "1")
    number = st.session_state.get("number", int(linked) - 1 if linked.isascii() and linked.isdigit() else 0)
    st.session_state["number"] = min(max(number, 0), len(texts) - 1)
    picked = st.selectbox(
        wording.ON_SCREEN,
        range(len(texts)),
        format_func=lambda i: f"{i + 1}: {state.shortened(' ||| '.join(texts[i].segments))}",
        key="number",
        persist_state="session",
    )
    st.query_params["number"] = str(picked + 1)
    return texts[picked]


def _look(
    inference: Inference, engine: Engine, chosen: Choice, text: Text
) -> tuple[TextAttention, Float[np.ndarray, "role layer head"]]:
    """The text's attention and scores; a text that is too long is cut only when the reader says so."""
    try:
        return _looked(inference, engine, chosen, text, "error")
    except TextTooLong:
        if not st.toggle(wording.CUT_THIS, key="cut", bind="query-params", persist_state="session"):
            raise
    return _looked(inference, engine, chosen, text, "truncate")


def _looked(
    inference: Inference, engine: Engine, chosen: Choice, text: Text, too_long: TooLong
) -> tuple[TextAttention, Float[np.ndarray, "role layer head"]]:
    """The same with a spinner while a checkpoint has to be loaded first."""
    waits = not inference.is_loaded(engine) and inference.kept_measures(engine, (text,), too_long="truncate") is None
    loading = wording.loading(controls.plain(engine.files.name))
    # A place of its own keeps what follows where it is, whether there is something to wait for or not.
    with st.empty(), st.spinner(loading, show_time=True) if waits else nullcontext():
        looked = inference.attention(engine, text, too_long=too_long)
        measured = inference.measures(engine, (text,), too_long="truncate")
    return looked, role_scores(measured.measures, chosen.score_settings)[0]


def _grid(
    engine: Engine, chosen: Choice, text: Text, scores: Float[np.ndarray, "role layer head"], tested: Corpus | None
) -> list[Head]:
    by, finer = _grid_controls()
    tau, shown = chosen.criterion.tau, FINE_ROLES if finer else COARSE_ROLES
    holds, filled = scores > tau, wording.filled_by_text(tau)
    facts = state.text_facts(engine, text) | {"tau": f"{tau:g}"}
    if by == wording.BY_CORPUS and tested is not None:
        holds, filled = tested.tests.holds, wording.filled_by_test(tau)
        facts |= state.corpus_facts(chosen, engine, len(tested.scores))
    n_layers, n_heads = scores.shape[1:]
    heads = role_grid(
        key="inspect grid",
        roles=ROLES,
        scores=scores,
        holds=holds,
        p_values=None if tested is None else tested.tests.p_adjusted,
        p_name="p over corpus",
        shown=shown,
        tau=tau,
        filled=filled,
        label=f"Heads of {engine.files.name}, filled by {by}",
        chosen=state.chosen_heads(n_layers, n_heads, _most_local(scores)),
        reset=(engine.files.name, engine.files.fingerprint, state.n_pushed()),
        on_change=state.choose_heads,
    )
    state.put_in_link(heads)
    title = f"Heads filled by {by}"
    drawing_downloads(
        "grid",
        lambda: grid_svg(
            roles=ROLES, scores=scores, holds=holds, tau=tau, shown=shown, title=title, caption=state.caption(facts)
        ),
    )
    return heads


def _grid_controls() -> tuple[str, bool]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        by = st.segmented_control(
            wording.BY,
            (wording.BY_TEXT, wording.BY_CORPUS),
            default=wording.BY_TEXT,
            key="by",
            required=True,
            bind="query-params",
            persist_state="session",
        )
        finer = st.toggle(wording.FINER, key="finer", bind="query-params", persist_state="session")
    return by or wording.BY_TEXT, finer


def _most_local(scores: Float[np.ndarray, "role layer head"]) -> Head:
    """The head that looks at its neighbours most: a clear picture to begin with."""
    local = np.nan_to_num(scores[ROLES.index("local")])
    layer, head = np.unravel_index(local.argmax(), local.shape)
    return int(layer), int(head)


def _arcs(engine: Engine, chosen: Choice, text: Text, looked: TextAttention, heads: list[Head]) -> None:
    if not heads:
        st.info(wording.ARCS_HINT)
        return
    drawn = heads[-MOST_HEADS:]
    if len(heads) > len(drawn):
        st.info(wording.last_heads(len(drawn), len(heads)))
    attention = np.stack([looked.attention[layer, head] for layer, head in drawn])
    tokenized = looked.tokenized
    names = ", ".join(head_name(*head) for head in drawn)
    st.subheader(f"Where {names} looks" if len(drawn) == 1 else f"Where {names} look")
    attention_arcs(
        key="arcs",
        tokens=tokenized.tokens,
        special=tokenized.segments == SPECIAL,
        segments=tokenized.segments,
        word_of=tokenized.words,
        attention=attention,
        heads=drawn,
        sieve=_overlay(chosen, looked),
        label=f"Attention of {names} in {engine.files.name}",
    )
    facts = state.text_facts(engine, text) | {"drawn": f"the top {DEFAULT_SHARE:.0%} of each query's attention"}
    drawing_downloads(
        "arcs",
        lambda: arcs_svg(
            tokenized.tokens, attention, drawn, title=f"Attention of {names}", caption=state.caption(facts)
        ),
    )


def _thumbnails(looked: TextAttention, head: Head) -> None:
    layer = head[0]
    with st.expander(f"All heads of layer {layer}", True, key="thumbnails open", on_change="rerun") as expander:
        if expander.open:
            head_thumbnails(
                key="thumbnails",
                attention=looked.attention,
                layer=layer,
                chosen=head,
                label=f"Heads of layer {layer}",
                on_change=_take_thumbnail,
            )


def _take_thumbnail() -> None:
    layer, head = st.session_state["thumbnails"]["head"]
    state.push_heads([(int(layer), int(head))])


def _overlay(chosen: Choice, looked: TextAttention) -> tuple[str, Bool[np.ndarray, "query key"]] | None:
    """The sieve the reader wants to see, of those that this text has."""
    direction = chosen.score_settings.direction
    directions = DIRECTIONS if direction == "both" else (direction,)
    cells = {role: sieve_cells(role, looked.tokenized, looked.pairs, looked.causal, directions) for role in ROLES}
    usable = [role for role in ROLES if cells[role].any()]
    role = st.selectbox(
        wording.OVERLAY, (wording.NO_OVERLAY, *usable), key="sieve", bind="query-params", persist_state="session"
    )
    return (role, cells[role]) if role in cells else None
