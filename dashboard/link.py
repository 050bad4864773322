"""The link: query parameters that pages read and write, and messages about values that they cannot use."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

import streamlit as st
from streamlit.runtime.uploaded_file_manager import UploadedFile

from attention_sieve.dashboard import wording
from attention_sieve.dashboard.pages import NO_PAGE
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.web.session import has_stepped_back, restore_parameters

LONGEST_QUOTED: Final = 60
"""Maximum length of a quoted value, in characters."""
MOST_SAID: Final = 8
"""Maximum number of sentences about one link."""
PAGES_OWN: Final = frozenset(
    {
        "head",
        "off",
        "heads-off",
        "window",
        "role",
        "number",
        "guess",
        "written",
        "region",
        "transition",
        "lesson",
        "step",
        "said",
        "class",
        "teach",
        "language",
        "present",
    }
)
"""Parameters that no widget is bound to: pages read and check them themselves."""
_ASKED: Final = "the link asks for"
_SAID: Final = "said about the link"
_PAGE: Final = "page of the link"
_LEFT_OUT: Final = "left out of the link"
_UPLOAD_LEFT_OUT: Final = "upload left out of the link"
_WRITTEN: Final = "written to the link"
"""Key of what this page has written last of PAGES_OWN; None for a parameter that was removed."""
_SIGNS: Final = {"true": "on", "false": "off"}


def begin(page: str) -> None:
    """Store the parameters of the link on a first visit and after Back. Call it before anything reads them."""
    stepped_back = has_stepped_back()
    values = st.session_state
    written = values.pop(_WRITTEN, {})
    if stepped_back:
        restore_parameters()
    elif values.get(_PAGE) == page:
        values[_WRITTEN] = written
        # A browser that asked for this run before it had heard of what the last one wrote has a link without it, and
        # then takes the last one's, which lacks what the reader has done since: a tab, say.
        put(written, {name: value for name, value in written.items() if value is not None})
    if _PAGE not in values or stepped_back:
        values[_ASKED] = {name: tuple(st.query_params.get_all(name)) for name in st.query_params}
        _forget()
        if (name := take(NO_PAGE)) is not None:
            values[NO_PAGE] = True
            put([NO_PAGE], {})
            say(wording.no_such_page(quoted(name)))
    elif values[_PAGE] != page:
        values[_ASKED] = {}
        _forget()
    values[_PAGE] = page
    values[_LEFT_OUT] = values[_UPLOAD_LEFT_OUT] = False


def asks_for(names: Iterable[str]) -> bool:
    """Whether the link has any of these parameters, not taken yet."""
    return not st.session_state.get(_ASKED, {}).keys().isdisjoint(names)


def take(name: str) -> str | None:
    """Value of a parameter of the link; None from the second call on, when the reader's own choice counts."""
    values = st.session_state.get(_ASKED, {}).pop(name, None)
    return values[-1] if values else None


def put(names: Iterable[str], parameters: Mapping[str, str]) -> None:
    """Write the values of some parameters to the address bar; of `names`, those without a value are removed."""
    st.session_state.setdefault(_WRITTEN, {}).update(
        {name: parameters.get(name) for name in names if name in PAGES_OWN}
    )
    if changed := {name: value for name, value in parameters.items() if st.query_params.get(name) != value}:
        st.query_params.update(changed)
    for name in names:
        if name not in parameters and name in st.query_params:
            del st.query_params[name]


def say(sentence: str) -> None:
    """Add a sentence about a value of the link that cannot be shown; the page displays it."""
    sentences = st.session_state.get(_SAID, ())
    st.session_state[_SAID] = tuple(dict.fromkeys((*sentences, sentence)))[:MOST_SAID]


def check_widgets() -> None:
    """Report values of the link that no widget accepted; Streamlit drops those not offered. Call it last."""
    parameters: dict[str, tuple[str, ...]] = st.session_state.get(_ASKED, {})
    for name in [name for name in parameters if name in st.session_state and name not in PAGES_OWN]:
        values, current = parameters.pop(name), st.session_state[name]
        if not is_shown(values, current):
            say(wording.not_offered(plain(name), quoted(", ".join(values)), plain(_as_text(current))))


def show(slot: Any) -> None:
    if sentences := st.session_state.get(_SAID):
        with slot.container(key="link-said", gap="xsmall"):
            st.warning("\n\n".join(sentences), icon=":material/link_off:")
            if st.session_state.get(NO_PAGE):
                with st.container(horizontal=True, gap="small"):
                    for page in st.session_state["pages"].values():
                        st.page_link(page)
            st.button(wording.CLOSE, key="close link", type="tertiary", icon=":material/close:", on_click=_forget)


def _forget() -> None:
    st.session_state[_SAID] = ()
    st.session_state[NO_PAGE] = False


def quoted(value: str) -> str:
    """The beginning of a value, escaped for Markdown."""
    return plain(value if len(value) <= LONGEST_QUOTED else value[: LONGEST_QUOTED - 1] + "…")


def is_shown(values: Sequence[str], current: object) -> bool:
    """Whether a widget has the value in the link.

    Args:
        values: as the link writes them: one, or several for a widget with several values.
        current: the widget's value.
    """
    if isinstance(current, list | tuple):
        return len(values) == len(current) and all(map(_is_same, values, current))
    return bool(values) and _is_same(values[-1], current)


def _is_same(value: str, current: object) -> bool:
    if isinstance(current, bool):
        return value.lower() == str(current).lower()
    if isinstance(current, int | float):
        try:
            return float(value) == current
        except ValueError:
            return False
    return value == ("" if current is None else str(current))


def _as_text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, bool):
        return _SIGNS[str(value).lower()]
    return f"{value:g}" if isinstance(value, float) else str(value or "none")


def leave_out_text() -> None:
    """Record that a text on this page is too long for the link."""
    st.session_state[_LEFT_OUT] = True


def leave_out_upload() -> None:
    """Record that the page still uses an upload from before a reload, which the link does not hold."""
    st.session_state[_UPLOAD_LEFT_OUT] = True


def left_out() -> list[str]:
    values = [st.session_state[name] for name in st.session_state]
    n_uploads = sum(isinstance(value, UploadedFile) for value in values) + st.session_state[_UPLOAD_LEFT_OUT]
    texts = [wording.TEXT_LEFT_OUT] if st.session_state[_LEFT_OUT] else []
    return [wording.uploads_left_out(n_uploads), *texts] if n_uploads else texts
