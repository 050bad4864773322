"""Where chosen heads look: arcs, and the overview of a long text."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from cache.engine import Engine
from core.attention.settings import Head, head_name, head_names
from core.passes.texts import PassText, TextAttention
from core.roles.measures import DIRECTIONS, Direction
from core.roles.roles import ROLES
from core.roles.sieves import sieve_cells
from core.texts.text import Text
from dashboard import state, wording
from dashboard.components.arcs import MOST_HEADS, MOST_TOKENS_UNSCROLLED, attention_arcs
from dashboard.components.first_screen import first_screen_is_drawn
from dashboard.components.grid.patterns import frame_of
from dashboard.components.overview import attention_overview
from dashboard.components.terms.sieve_pictures import Sieves
from dashboard.figures.text.arcs_svg import DEFAULT_SHARE, arcs_svg
from dashboard.figures.text.sides import Side
from dashboard.files import provenance
from dashboard.files.downloads import drawing_downloads
from dashboard.state import Choice
from dashboard.views.arcs.look import look_at, look_now, take_look
from dashboard.views.frame import Visit
from dashboard.views.pickers import from_list, one_of
from dashboard.views.text.on_screen import OnScreen
from dashboard.views.word_links import wording as words_wording
from dashboard.views.word_links.choice import take_token

CROSS: Final = ("target", "source")
"""What attends and what is attended to in cross-attention."""
OVERLAY_WIDTH: Final = 250
"""Pixels of the list of roles, beside the title of the arcs: its label takes one line."""
_sieves: Final[WeakKeyDictionary[TextAttention, dict[Direction, Sieves]]] = WeakKeyDictionary()
"""Of the texts that are looked at."""


def where_heads_look(visit: Visit, screen: OnScreen, heads: list[Head], grid: str) -> TextAttention:
    """Draw the arcs of the chosen heads, and for a long text the overview that moves their window.

    Args:
        visit: whose checkpoint it is.
        screen: the text.
        heads: the chosen ones.
        grid: key of the grid in which they were chosen.

    Returns: the attention that they are of, or would be where no head is chosen.
    """
    if not heads:
        st.info(wording.arcs_hint(MOST_HEADS))
        return screen.now.looked
    chosen, engine = visit.chosen, visit.engine
    drawn = heads[-MOST_HEADS:]
    names = ", ".join(head_name(*head) for head in drawn)
    with st.container():
        # One element above the arcs, whatever it holds: they would lose pins and switches if they moved.
        head_row = st.container(horizontal=True, vertical_alignment="bottom")
        head_row.subheader(f"Where {names} looks" if len(drawn) == 1 else f"Where {names} look")
        if len(heads) > len(drawn):
            st.info(wording.last_heads(len(drawn), len(heads)))
        if removed := [head for head in drawn if head in engine.files.removed_of(screen.now.looked.text.kind)]:
            st.info(wording.were_removed(head_names(removed), len(removed)))
        looked = _before_or_after(screen)
        if looked.overview is not None:
            move_window(engine, screen.text, looked, looked.overview, drawn)
        with head_row:
            overlay = _overlay(chosen, looked)
    queries, keys = sides(looked)
    attention = attention_of(looked.attention, drawn)
    arcs = partial(
        attention_arcs,
        key="arcs",
        queries=queries,
        keys=keys,
        attention=attention,
        heads=drawn,
        causal=looked.causal,
        sieve=overlay,
        label=f"Attention of {names} in {engine.files.name}",
        ask=(words_wording.ASK_FROM, words_wording.ASK_TO),
        on_ask=lambda side, token: _ask(looked, side, token),
        frame=frame_of(looked),
        grid=grid,
        look=look_at(queries, keys),
        on_look=take_look,
    )
    _keep_room(queries, keys)
    facts = provenance.text_facts(chosen, engine, screen.text)
    facts |= {"heads": names}
    _arcs_and_files(arcs, partial(arcs_svg, queries, attention, drawn, keys=keys), facts)
    return looked


def _keep_room(queries: Side, keys: Side) -> None:
    """Have the page keep room for the rows of the arcs, so that nothing moves when they are drawn."""
    n_rows = max(len(queries.tokens), len(keys.tokens))
    if not look_now().view and n_rows <= MOST_TOKENS_UNSCROLLED:
        st.html(f"<style>.st-key-arcs {{ --rows: {n_rows}; }}</style>")


def attention_of(
    attention: Float[np.ndarray, "layer head query key"], heads: Sequence[Head]
) -> Float[np.ndarray, "chosen query key"]:
    """Attention of some heads; 0 of those that were removed from the checkpoint."""
    return np.nan_to_num(np.stack([attention[layer, head] for layer, head in heads]), nan=0)


@st.fragment
def _arcs_and_files(arcs: Callable[[], None], svg: Callable[..., str], facts: Mapping[str, str]) -> None:
    """The arcs, and their files, which draw the same links: a change of the settings runs nothing else of the page."""
    arcs()
    if not first_screen_is_drawn():
        return
    look = look_now()
    share, strongest = look.top_share or DEFAULT_SHARE, look.n_strongest
    facts = {**facts, "drawn": wording.links_drawn(share, strongest)}
    title, caption = provenance.titled(f"Attention of {facts['heads']}", facts), provenance.caption(facts)
    drawing_downloads("arcs", title, facts, lambda: svg(share=share, strongest=strongest, title=title, caption=caption))


def _ask(looked: TextAttention, side: str, token: int) -> None:
    """Ask about the word of a token; the answer stands in a tab of the page, while else the arcs run alone."""
    take_token(looked, side, token)
    st.rerun()


def _before_or_after(screen: OnScreen) -> TextAttention:
    """The attention the reader wants to see where some heads are off."""
    if screen.all_on is None:
        return screen.now.looked
    options = {wording.WITHOUT: screen.now.looked, wording.ALL_HEADS_ON: screen.all_on.looked}
    return one_of(wording.ARCS_OF, options, key="arcs of")


def sides(looked: TextAttention) -> tuple[Side, Side]:
    """The window's queries and keys; the same object twice where they are the same tokens."""
    text, window = looked.text, looked.window
    if text.queries is text.keys:
        queries = Side.of(text.queries).part(*window.queries)
        return queries, queries if window.keys == window.queries else Side.of(text.keys).part(*window.keys)
    target, source = CROSS
    return Side.of(text.queries, target).part(*window.queries), Side.of(text.keys, source).part(*window.keys)


def _names(text: PassText) -> tuple[str, str]:
    """What runs down a map and what runs across."""
    return CROSS if text.kind == "cross" else ("queries", "keys")


def move_window(
    engine: Engine,
    of: Text,
    looked: TextAttention,
    overview: Float[np.ndarray, "layer head query_block key_block"],
    drawn: list[Head],
) -> None:
    """The whole text down-sampled; a click moves the window."""
    text, window = looked.text, looked.window
    names = ", ".join(head_name(*head) for head in drawn)
    attention_overview(
        key="overview",
        attention=attention_of(overview, drawn),
        heads=drawn,
        n_queries=len(text.queries.ids),
        n_keys=len(text.keys.ids),
        query_block=looked.block,
        key_block=looked.block,
        causal=looked.causal,
        names=_names(text),
        window=window,
        label=f"Attention of {names} in the whole text, in {engine.files.name}",
        reset=hash((of, text.kind)),
        on_change=lambda moved: state.move_window(of, (moved.queries[0], moved.keys[0])),
    )


def sieves_on(chosen: Choice, looked: TextAttention) -> Sieves:
    """The sieves of the text on screen, of those that it has in the window."""
    direction = chosen.score_settings.direction
    known = _sieves.setdefault(looked, {})
    if direction not in known:
        directions = DIRECTIONS if direction == "both" else (direction,)
        cells = {role: sieve_cells(role, looked.text, looked.causal, directions, looked.window) for role in ROLES}
        tokens = looked.text.queries.tokens[slice(*looked.window.queries)]
        there = {role: of_role for role, of_role in cells.items() if of_role.any()}
        known[direction] = Sieves(tokens=tuple(tokens), cells=there)
    return known[direction]


def _overlay(chosen: Choice, looked: TextAttention) -> tuple[str, Bool[np.ndarray, "query key"]] | None:
    """The sieve the reader wants to see, of those that this text has in the window."""
    usable = {role: (role, cells) for role, cells in sieves_on(chosen, looked).cells.items()}
    return from_list(wording.OVERLAY, {wording.NO_OVERLAY: None, **usable}, key="sieve", width=OVERLAY_WIDTH)
