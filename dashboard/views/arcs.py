"""Attention of the chosen heads: arcs, with settings that the link restores, and the overview of a long text."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head, Window, head_name, head_names
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.measures import SyntacticDirection
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import link, state, wording
from attention_sieve.dashboard.components.arcs import MOST_HEADS, MOST_TOKENS_UNSCROLLED, attention_arcs
from attention_sieve.dashboard.components.arcs.look import (
    NAMES,
    ArcSettings,
    AskedLink,
    Asking,
    GridBeside,
    Overlay,
    read_look,
)
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import Sieves, frame_of, grammar_in, sieves_in
from attention_sieve.dashboard.components.overview import Overview, attention_overview
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.text.arcs import CROSS, DEFAULT_SHARE, AttentionMaps, Side, arcs_svg, sides
from attention_sieve.dashboard.files.downloads import drawing_downloads
from attention_sieve.dashboard.files.provenance import command
from attention_sieve.dashboard.languages import language, say
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import one_of
from attention_sieve.dashboard.views.text.on_screen import text_facts
from attention_sieve.dashboard.views.word_links import wording as words_wording
from attention_sieve.dashboard.views.word_links.choice import take_token

linked_arcs: Final = st.fragment(attention_arcs)
"""Arcs in a fragment: changing their settings reruns nothing else of the page."""
LOOK: Final = "arcs look"
LEAST_SHARE_OF_SINKS: Final = 0.02
"""Smaller ones may be rounding: drawn attention is kept in half precision."""
_PINNED: Final = "times that the page has pinned a token"


@dataclass(frozen=True)
class _SavedLook:
    tokens: int
    look: ArcSettings


def look_at(queries: Side, keys: Side) -> ArcSettings:
    """The settings of the arcs for these tokens; on a first visit, those in the link.

    A pin is kept only for the tokens on which it was set.
    """
    tokens = hash((*queries.tokens, queries.start, *keys.tokens, keys.start))
    saved: _SavedLook | None = st.session_state.get(LOOK)
    if link.asks_for(NAMES) or saved is None:
        look = _linked(queries, keys)
    elif saved.tokens == tokens:
        look = saved.look
    else:
        look = ArcSettings(**{**saved.look.parameters, "pin": ""}).on(queries, keys)
    st.session_state[LOOK] = _SavedLook(tokens, look)
    link.put(NAMES, look.parameters)
    return look


def look_now() -> ArcSettings:
    saved: _SavedLook = st.session_state[LOOK]
    return saved.look


def pin_word(text_attention: TextAttention, token: int) -> None:
    """Pin a token that looks, by its position in the whole text. Call it before the arcs are drawn."""
    take_look(replace(look_at(*sides(text_attention)), pin=f"from-{token}"))
    st.session_state[_PINNED] = n_pinned() + 1


def n_pinned() -> int:
    return st.session_state.get(_PINNED, 0)


def take_look(look: ArcSettings) -> None:
    """Remember the reader's settings, and write them to the address bar."""
    st.session_state[LOOK] = _SavedLook(st.session_state[LOOK].tokens, look)
    link.put(NAMES, look.parameters)


def _linked(queries: Side, keys: Side) -> ArcSettings:
    """The settings in the link; reports those that are invalid or do not fit the tokens."""
    values = {name: value for name in NAMES if (value := link.take(name))}
    look = read_look(values)
    applicable = look.on(queries, keys)
    for name in NAMES:
        if name in values and not getattr(look, name):
            link.say(wording.no_such_look(name, link.quoted(values[name])))
        elif name in values and not getattr(applicable, name):
            link.say(wording.not_in_text(name, link.quoted(values[name])))
    return applicable


_sieves: Final[WeakKeyDictionary[TextAttention, dict[tuple[SyntacticDirection, tuple[str, ...]], Sieves]]] = (
    WeakKeyDictionary()
)
"""Sieves by attention, and by direction and roles."""


def where_heads_look(
    visit: Visit, screen: PassedText, heads: list[Head], grid: str, asked: AskedLink | None = None, *, says: str = ""
) -> TextAttention:
    """Draw the arcs of the chosen heads, or of the one of which a lesson asks a link; return the attention drawn.

    Args:
        says: a sentence on what the head chosen last does, as Markdown.
    """
    take = None if asked is None else asked.take
    if asked is not None and take is not None:
        heads = [asked.head]
    if not heads:
        st.info(say(language(), "no_head", most=MOST_HEADS))
        return screen.text_attention
    choice, engine = visit.choice, visit.engine
    last_heads = heads[-MOST_HEADS:]
    names = head_names(last_heads)
    with st.container():
        # Always one element above the arcs: they would lose pins and switches if their position changed.
        _title(last_heads, says, len(heads), engine.files.removed_of(screen.text_attention.text.kind))
        text_attention = _before_or_after(screen)
        if (share := _share_of_sinks(text_attention, last_heads)) > LEAST_SHARE_OF_SINKS:
            st.caption(wording.sinks(share))
        if text_attention.overview is not None:
            move_window(engine, screen.text, text_attention, text_attention.overview, last_heads)
    sieves = {} if take else sieves_on(choice, text_attention, screen.text)
    grammar = None if take else grammar_in(text_attention, screen.text)
    maps = maps_of(text_attention, last_heads, engine)
    if take is not None:
        maps = replace(maps, attention=np.zeros_like(maps.attention))
    arcs = partial(
        attention_arcs,
        maps,
        Selection("arcs", look_at(maps.queries, maps.keys), n_pinned(), take_look),
        grid=None if take else GridBeside(grid, frame_of(text_attention)),
        asking=_asking(text_attention, asked),
    )
    _keep_room(maps.queries, maps.keys)
    facts = text_facts(visit, screen.text)
    facts |= {"heads": names, **command("maps", choice, engine, [screen.text], too_long="truncate")}
    svg = None if take else partial(arcs_svg, maps)
    _arcs_and_files(arcs, partial(_overlay, sieves, grammar, maps.attention.shape[1:]), svg, facts)
    return text_attention


def _overlay(
    sieves: Sieves, grammar: Bool[np.ndarray, "query key"] | None, shape: tuple[int, ...], role: str
) -> Overlay:
    """The sieves that apply, with the chosen one, which may apply nowhere."""
    chosen = (role, sieves.get(role, np.zeros(shape, dtype=bool))) if role else None
    return Overlay(roles=tuple(sieves), chosen=chosen, grammar=grammar)


def _asking(text_attention: TextAttention, asked: AskedLink | None) -> Asking:
    """What is asked: which heads link words, or while a lesson asks for a link, nothing but that."""
    if asked is not None and asked.take is not None:
        return Asking(about_query="", about_key=asked.label, take=partial(_take_guess, asked.take), link=asked)
    return Asking(
        about_query=words_wording.ASK_FROM,
        about_key=words_wording.ASK_TO,
        take=partial(_ask, text_attention),
        link=asked,
    )


def _keep_room(queries: Side, keys: Side) -> None:
    """Reserve space for the rows of the arcs, so that nothing moves when they are drawn."""
    n_rows = max(len(queries.tokens), len(keys.tokens))
    if not look_now().view and n_rows <= MOST_TOKENS_UNSCROLLED:
        st.html(f"<style>.st-key-arcs {{ --rows: {n_rows}; }}</style>")


def maps_of(text_attention: TextAttention, heads: Sequence[Head], engine: Engine) -> AttentionMaps:
    queries, keys = sides(text_attention)
    return AttentionMaps(
        queries=queries,
        keys=keys,
        attention=attention_of(text_attention.attention, heads),
        heads=heads,
        causal=text_attention.causal,
        label=f"Attention of {head_names(heads)} in {engine.files.name}",
    )


def attention_of(
    attention: Float[np.ndarray, "layer head query key"], heads: Sequence[Head]
) -> Float[np.ndarray, "chosen query key"]:
    """Attention of some heads; 0 for those removed from the checkpoint."""
    return np.nan_to_num(np.stack([attention[layer, head] for layer, head in heads]), nan=0)


@st.fragment
def _arcs_and_files(
    arcs: Callable[..., None],
    overlay_of: Callable[[str], Overlay],
    svg: Callable[..., str] | None,
    facts: Mapping[str, str],
) -> None:
    """In a fragment, so that changing the settings of the arcs reruns nothing else of the page."""
    arcs(overlay=overlay_of(look_now().sieve))
    if svg is None or not first_screen_is_drawn():
        return
    look = look_now()
    share, strongest = look.top_share or DEFAULT_SHARE, look.n_strongest
    facts = {**facts, "drawn": wording.links_drawn(share, strongest)}
    picture = partial(svg, share=share, strongest=strongest)
    drawing_downloads("arcs", f"Attention of {facts['heads']}", facts, picture)


def _ask(text_attention: TextAttention, side: str, token: int) -> None:
    """Ask about the word of a token. The answer is in a tab of the page, so the whole page reruns."""
    take_token(text_attention, side, token)
    st.rerun()


def _share_of_sinks(text_attention: TextAttention, heads: Sequence[Head]) -> float:
    """Mean share of each query's attention that goes to no key; 0 where only part of the text is at hand."""
    rows = attention_of(text_attention.attention, heads).sum(axis=-1, dtype=np.float64)
    is_whole = text_attention.overview is None and rows.any()
    return 1 - float(rows[rows > 0].mean()) if is_whole else 0.0


def _title(last_heads: list[Head], says: str, n_chosen: int, removed: Collection[Head]) -> None:
    with st.container(key="arcs title"):
        st.markdown(f"**{head_names(last_heads)}** {says}")
    if n_chosen > len(last_heads):
        st.info(f"Arcs of the last {len(last_heads)} of {n_chosen} chosen heads.")
    if missing := [head for head in last_heads if head in removed]:
        st.info(wording.not_there(head_names(missing), len(missing)))


def _take_guess(take: Callable[[int], None], _side: str, token: int) -> None:
    """Take the pinned word as the guess. The answer is in the panel of the lesson, so the whole page reruns."""
    take(token)
    st.rerun()


def _before_or_after(screen: PassedText) -> TextAttention:
    """The attention to draw: with all heads on or, as the reader selects, without those that are off."""
    if screen.all_on is None:
        return screen.text_attention
    options = {wording.WITHOUT: screen.text_attention, wording.ALL_HEADS_ON: screen.all_on.text_attention}
    return one_of(wording.ARCS_OF, options, key="arcs of")


def move_window(
    engine: Engine,
    whole_text: Text,
    text_attention: TextAttention,
    overview: Float[np.ndarray, "layer head query_block key_block"],
    heads: list[Head],
) -> None:
    text, window = text_attention.text, text_attention.window
    names = ", ".join(head_name(*head) for head in heads)
    maps = Overview(
        attention=attention_of(overview, heads),
        heads=heads,
        tokens=(len(text.queries.ids), len(text.keys.ids)),
        block=(text_attention.block, text_attention.block),
        causal=text_attention.causal,
        names=CROSS if text.kind == "cross" else ("queries", "keys"),
        label=f"Attention of {names} in the whole text, in {engine.files.name}",
    )

    def move(to: Window) -> None:
        state.move_window(whole_text, (to.queries[0], to.keys[0]))

    attention_overview(maps, Selection("overview", window, hash((whole_text, text.kind)), move))


def sieves_on(choice: Choice, text_attention: TextAttention, text: Text) -> Sieves:
    """The sieves that apply in the window of the text on screen; `text` is as the reader wrote it."""
    direction = choice.score_settings.direction
    known, key = _sieves.setdefault(text_attention, {}), (direction, choice.roles)
    if key not in known:
        known[key] = sieves_in(text_attention, text, choice.roles, direction)
    return known[key]
