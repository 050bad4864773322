"""Draws the first screen first: content below it waits until the browser has drawn it.

Tables, charts and formulas each need a library, which Chromium would load and run before it draws the first grid. So
the first run of a visit leaves them out; when the browser has drawn it, it requests the next run, which draws
everything. This happens once per visit.
"""

from pathlib import Path
from typing import Final

import streamlit as st

FIRST_SCREEN: Final = "first screen"
"""Key of the component, and prefix of the key in the session."""
_IS_DRAWN: Final = f"{FIRST_SCREEN} is drawn"
_HERE: Final = Path(__file__).parent
_mount: Final = st.components.v2.component(
    "attention_sieve.first_screen",
    js="\n".join(path.read_text("utf-8") for path in (_HERE.parent / "later.js", _HERE / "first_screen.js")),
)


def first_screen_is_drawn() -> bool:
    """Whether content below the first screen may be drawn."""
    return st.session_state.get(_IS_DRAWN, False)


def go_on_when_drawn() -> None:
    """Have the browser request the next run when it has drawn this one. Call it last."""
    _mount(key=FIRST_SCREEN, height="content", on_drawn_change=_remember)


def _remember() -> None:
    st.session_state[_IS_DRAWN] = True
