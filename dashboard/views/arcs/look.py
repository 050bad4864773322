"""Settings of the arcs, shared by Inspect and Compare and restored by the link."""

from dataclasses import dataclass, replace
from typing import Final

import streamlit as st

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard import link, wording
from attention_sieve.dashboard.components.arcs import attention_arcs
from attention_sieve.dashboard.components.arcs.look import NAMES, ArcSettings, read_look
from attention_sieve.dashboard.figures.text.arcs import Side, sides

linked_arcs: Final = st.fragment(attention_arcs)
"""Arcs in a fragment: changing their settings reruns nothing else of the page."""
LOOK: Final = "arcs look"
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
