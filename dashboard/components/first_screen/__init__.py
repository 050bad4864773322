"""Draws the first screen first: content below it waits until the browser has drawn it.

Tables, charts and formulas each need a library, which Chromium would load and run before it draws the first grid. So
the first run of a visit leaves them out; when the browser has drawn it, it requests the next run, which draws
everything. This happens once per visit.
"""

from typing import Final

import streamlit as st

from attention_sieve.dashboard.components.source import Source, joined

FIRST_SCREEN: Final = "first screen"
"""Key of the component, and prefix of the key in the session."""
_IS_DRAWN: Final = f"{FIRST_SCREEN} is drawn"
_mount: Final = Source(name="first_screen", js=joined("later.js", "first_screen/first_screen.js")).registered()


def first_screen_is_drawn() -> bool:
    """Whether content below the first screen may be drawn."""
    return st.session_state.get(_IS_DRAWN, False)


def go_on_when_drawn() -> None:
    """Have the browser request the next run when it has drawn this one. Call it last."""
    _mount(key=FIRST_SCREEN, height="content", on_drawn_change=_remember)


def _remember() -> None:
    st.session_state[_IS_DRAWN] = True
