"""Inspect: type a text, see which heads do what in it, and where a chosen head looks."""

from dataclasses import replace

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Engine, Inference
from core.errors import AnalysisError
from core.roles import ROLES, shown_roles
from core.texts import Text, read_typed
from dashboard import controls, provenance, state, wording
from dashboard.components.grid import role_grid
from dashboard.downloads import drawing_downloads
from dashboard.figures.grid_svg import grid_svg
from dashboard.plain import show_error
from dashboard.state import Choice, Head
from dashboard.views.attention import thumbnails, where_heads_look
from dashboard.views.corpus import Corpus, ask_about_long_texts, ask_for_texts, corpus, kept_corpus, readable
from dashboard.views.head_card import head_card, head_summary
from dashboard.views.layout import halves
from dashboard.views.on_screen import OnScreen, on_screen
from dashboard.views.similar_focus import kept_distances
from dashboard.views.switching import switch_buttons, what_changes
from dashboard.views.typed import EXAMPLE_TYPED, text_on_screen


def show() -> None:
    """Draw the page."""
    st.title("Inspect")
    st.markdown(wording.INSPECT_SEE)
    typed = controls.typed_texts(wording.YOUR_TEXTS, "text", EXAMPLE_TYPED, height=80)
    try:
        _inspect(typed)
    except AnalysisError as error:
        show_error(error)
    with st.expander(wording.HOW):
        st.markdown(wording.FORMULA)
        st.markdown(wording.NOT_EXPLANATION)


def _inspect(typed: str) -> None:
    text = text_on_screen(read_typed(typed))
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    screen = on_screen(inference, engine, chosen, text)
    state.remember_off(chosen)
    given, problem = _corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    tested = kept_corpus(inference, engine, chosen, texts) if texts else None
    if problem is not None:
        show_error(problem)
    if screen.now.looked.text.kind == "cross":
        st.info(wording.ACROSS)
    left, right = halves()
    with left:
        heads = _grid(inference, engine, chosen, screen, texts, tested)
        if heads:
            head_summary(chosen, screen.now.scores, tested, heads[-1])
            switch_buttons(chosen, heads)
            thumbnails(screen.now.looked, heads[-1])
    with right:
        where_heads_look(engine, chosen, screen, heads)
    what_changes(inference, engine, chosen, screen)
    if not texts and problem is None:
        ask_for_texts(chosen, given)
    elif tested is not None:
        ask_about_long_texts(tested.too_long)
        if heads:
            head_card(
                engine, chosen, screen.now.scores, tested, heads[-1], kept_distances(inference, engine, chosen, texts)
            )
    elif texts and corpus(inference, engine, chosen, texts) is not None:
        # What is drawn stayed in view meanwhile; the next run takes the tests from memory.
        st.rerun()


def _corpus_texts(chosen: Choice) -> tuple[tuple[Text, ...], AnalysisError | None]:
    """The corpus, or what is wrong with it: that is no reason not to draw the text on screen."""
    try:
        return controls.corpus_texts(chosen), None
    except AnalysisError as error:
        return (), error


def _grid(
    inference: Inference,
    engine: Engine,
    chosen: Choice,
    screen: OnScreen,
    texts: tuple[Text, ...],
    tested: Corpus | None,
) -> list[Head]:
    by, finer = _grid_controls()
    tau, scores = chosen.criterion.tau, screen.now.scores
    shown = shown_roles(scores)[1 if finer else 0]
    holds, filled = scores > tau, wording.filled_by_text(tau)
    before = None if screen.all_on is None else screen.all_on.scores > tau
    facts = provenance.text_facts(chosen, engine, screen.text) | {"tau": f"{tau:g}"}
    if by == wording.BY_CORPUS and tested is not None:
        holds, filled = tested.tests.holds, wording.filled_by_test(tau)
        facts |= provenance.corpus_facts(chosen, engine, len(tested.scores))
        before = None
        if chosen.off and (all_on := kept_corpus(inference, engine, replace(chosen, off=()), texts)) is not None:
            before = all_on.tests.holds
    n_layers, n_heads = scores.shape[1:]
    heads = role_grid(
        key="inspect grid",
        roles=ROLES,
        scores=scores,
        holds=holds,
        held_before=before,
        before=wording.AGAINST,
        off=chosen.off,
        p_values=None if tested is None else tested.tests.p_adjusted,
        p_name="p over corpus",
        shown=shown,
        tau=tau,
        filled=filled,
        label=f"Heads of {engine.files.name}, filled by {by}",
        chosen=state.chosen_heads(n_layers, n_heads, _most_local(scores)),
        reset=(engine.files.name, engine.files.fingerprint, chosen.pass_settings(engine).kind, state.n_pushed()),
        on_change=state.choose_heads,
    )
    state.put_in_link(heads)
    title = f"Heads filled by {by}"
    drawing_downloads(
        "grid",
        lambda: grid_svg(
            roles=ROLES,
            scores=scores,
            holds=holds,
            off=chosen.off,
            tau=tau,
            shown=shown,
            title=title,
            caption=provenance.caption(facts),
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
