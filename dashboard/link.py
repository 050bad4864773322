"""The link: what it asks for when a page is opened with it, what pages write to it, and what is said about it."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final
from urllib.parse import parse_qs

import streamlit as st
from streamlit.runtime.scriptrunner import get_script_run_ctx
from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext
from streamlit.runtime.uploaded_file_manager import UploadedFile

from dashboard import wording
from dashboard.plain import plain

LONGEST_QUOTED: Final = 60
"""Characters of a link's value that are quoted."""
MOST_SAID: Final = 8
"""Sentences about one link."""
PAGES_OWN: Final = frozenset(
    {
        "head",
        "off",
        "window",
        "number",
        "guess",
        "region",
        "transition",
        "camera",
        "lesson",
        "step",
        "said",
        "class",
        "present",
    }
)
"""Parameters that no widget is bound to: pages take and check them by themselves."""
_ASKED: Final = "the link asks for"
_SAID: Final = "said about the link"
_PAGE: Final = "page of the link"
_LEFT_OUT: Final = "left out of the link"
_SIGNS: Final = {"true": "on", "false": "off"}


def begin(page: str) -> None:
    """Note what the link asks for, on a first visit and after a step back; to be called before anything reads it.

    Args:
        page: address of the page that is opened.
    """
    context = get_script_run_ctx()
    stepped_back = context is not None and context.is_history_navigation
    values = st.session_state
    if context is not None and stepped_back:
        _restore_all(context)
    if _PAGE not in values or stepped_back:
        values[_ASKED] = {name: tuple(st.query_params.get_all(name)) for name in st.query_params}
        values[_SAID] = ()
    elif values[_PAGE] != page:
        values[_ASKED], values[_SAID] = {}, ()
    values[_PAGE] = page
    values[_LEFT_OUT] = False


def _restore_all(context: ScriptRunContext) -> None:
    """Take every parameter of the page that Back leads to.

    Streamlit drops those that a widget of the page before was bound to, such as the test settings, which both have.
    """
    whole = context.query_string
    lost = {name: values for name, values in parse_qs(whole).items() if name not in st.query_params}
    if lost:
        st.query_params.update(lost)
        with context.session_state.query_params() as parameters:
            parameters.set_initial_query_params(whole)


def asks_for(names: Iterable[str]) -> bool:
    """Whether the link asks for any of these, and nothing has taken it yet."""
    return not st.session_state.get(_ASKED, {}).keys().isdisjoint(names)


def take(name: str) -> str | None:
    """What the link asks for under a name; None from the second time on, when the reader's own choice counts."""
    asked = st.session_state.get(_ASKED, {}).pop(name, None)
    return asked[-1] if asked else None


def put(names: Iterable[str], parameters: Mapping[str, str]) -> None:
    """Write parameters to the address bar.

    Args:
        names: those that may be there; one without a value is taken away.
        parameters: values by name.
    """
    if changed := {name: value for name, value in parameters.items() if st.query_params.get(name) != value}:
        st.query_params.update(changed)
    for name in names:
        if name not in parameters and name in st.query_params:
            del st.query_params[name]


def say(sentence: str) -> None:
    """Have the page say what the link asks for in vain."""
    said = st.session_state.get(_SAID, ())
    st.session_state[_SAID] = tuple(dict.fromkeys((*said, sentence)))[:MOST_SAID]


def check_widgets() -> None:
    """Say which values of the link no widget has taken; Streamlit drops what one does not offer. To be called last."""
    asked: dict[str, tuple[str, ...]] = st.session_state.get(_ASKED, {})
    for name in [name for name in asked if name in st.session_state and name not in PAGES_OWN]:
        values, shown = asked.pop(name), st.session_state[name]
        if not is_shown(values, shown):
            say(wording.not_offered(plain(name), quoted(", ".join(values)), plain(_named(shown))))


def show(place: Any) -> None:
    """Say what the link asks for in vain, where the page keeps room for it."""
    if said := st.session_state.get(_SAID):
        with place.container(key="link-said", gap="xsmall"):
            st.warning("\n\n".join(said), icon=":material/link_off:")
            st.button(wording.CLOSE, key="close link", type="tertiary", icon=":material/close:", on_click=_forget)


def _forget() -> None:
    st.session_state[_SAID] = ()


def quoted(value: str) -> str:
    """The beginning of a value, as text."""
    return plain(value if len(value) <= LONGEST_QUOTED else value[: LONGEST_QUOTED - 1] + "…")


def is_shown(asked: Sequence[str], shown: object) -> bool:
    """Whether a widget has the value that a link asks for.

    Args:
        asked: as the link writes it: one text, or several for a widget with several values.
        shown: the widget's value.
    """
    if isinstance(shown, list | tuple):
        return len(asked) == len(shown) and all(map(_is_same, asked, shown))
    return bool(asked) and _is_same(asked[-1], shown)


def _is_same(asked: str, shown: object) -> bool:
    if isinstance(shown, bool):
        return asked.lower() == str(shown).lower()
    if isinstance(shown, int | float):
        try:
            return float(asked) == shown
        except ValueError:
            return False
    return asked == ("" if shown is None else str(shown))


def _named(shown: object) -> str:
    if isinstance(shown, list | tuple):
        return ", ".join(map(str, shown)) or "none"
    if isinstance(shown, bool):
        return _SIGNS[str(shown).lower()]
    return f"{shown:g}" if isinstance(shown, float) else str(shown or "none")


def leave_out_text() -> None:
    """Note that a text on this page is too long for the link."""
    st.session_state[_LEFT_OUT] = True


def left_out() -> list[str]:
    """What the link does not hold, in sentences."""
    values = [st.session_state[name] for name in st.session_state]
    n_uploads = sum(isinstance(value, UploadedFile) for value in values)
    texts = [wording.TEXT_LEFT_OUT] if st.session_state[_LEFT_OUT] else []
    return [wording.uploads_left_out(n_uploads), *texts] if n_uploads else texts
