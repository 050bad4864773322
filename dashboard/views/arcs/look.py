"""How the arcs of the text on screen are set; Inspect and Compare share it, and the link restores it."""

from dataclasses import dataclass
from typing import Final

import streamlit as st

from dashboard import link, wording
from dashboard.components.arcs import attention_arcs
from dashboard.components.arcs.look import NAMES, Look, read_look
from dashboard.figures.text.sides import Side

linked_arcs: Final = st.fragment(attention_arcs)
"""The same arcs, of which a change of their settings runs nothing else of the page."""
LOOK: Final = "arcs look"


@dataclass(frozen=True)
class _Held:
    """What is set, and on which tokens."""

    tokens: int
    look: Look


def look_at(queries: Side, keys: Side) -> Look:
    """How the arcs of these tokens are set: on a first visit as the link asks.

    A pin holds only on the tokens on which it was set.
    """
    tokens = hash((*queries.tokens, queries.start, *keys.tokens, keys.start))
    held: _Held | None = st.session_state.get(LOOK)
    if link.asks_for(NAMES) or held is None:
        look = _linked(queries, keys)
    elif held.tokens == tokens:
        look = held.look
    else:
        look = Look(**{**held.look.parameters, "pin": ""}).on(queries, keys)
    st.session_state[LOOK] = _Held(tokens, look)
    link.put(NAMES, look.parameters)
    return look


def look_now() -> Look:
    """How the arcs are set at this moment."""
    held: _Held = st.session_state[LOOK]
    return held.look


def take_look(look: Look) -> None:
    """Remember what the reader has set, and write it to the address bar."""
    st.session_state[LOOK] = _Held(st.session_state[LOOK].tokens, look)
    link.put(NAMES, look.parameters)


def _linked(queries: Side, keys: Side) -> Look:
    """What the link asks for; says what of it there is not."""
    linked = {name: value for name in NAMES if (value := link.take(name))}
    look = read_look(linked)
    shown = look.on(queries, keys)
    for name in NAMES:
        if name in linked and not getattr(look, name):
            link.say(wording.no_such_look(name, link.quoted(linked[name])))
        elif name in linked and not getattr(shown, name):
            link.say(wording.not_in_text(name, link.quoted(linked[name])))
    return shown
