"""A text too long for the link, kept in the browser's tab: a reload brings it back, and nobody else can read it."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Final

import streamlit as st

from dashboard.components.packing import as_text

_mount: Final = st.components.v2.component(
    "attention_sieve.kept_text", js=(Path(__file__).parent / "kept_text.js").read_text("utf-8")
)


def mark_of(text: str) -> str:
    """What stands for a text in the link: it tells texts apart, and says nothing of what they say."""
    return sha256(text.encode()).hexdigest()[:16]


def keep_text(name: str, text: str) -> bool:
    """Keep a text in the reader's tab until that is closed.

    Args:
        name: of the text; another text of this name takes its place.
        text: any text.

    Returns: False once the browser has said that it has no room.
    """
    data = {"name": name, "mark": mark_of(text), "text": text}
    state = _mount(key=f"{name} kept", data=as_text(data), on_full_change=lambda: None)
    return not (isinstance(state, Mapping) and state.get("full") == data["mark"])


def fetch_text(name: str, mark: str, on_answer: Callable[[str | None], None]) -> None:
    """Ask the reader's tab for a text.

    Args:
        name: of the text.
        mark: of the text that is meant.
        on_answer: called before the next run with the text, or None where the tab has another or none.
    """
    key = f"{name} fetched"

    def answer() -> None:
        found = st.session_state[key]["found"]
        text = found.get("text") if isinstance(found, Mapping) else None
        on_answer(text if isinstance(text, str) and mark_of(text) == mark else None)

    _mount(key=key, data=as_text({"name": name, "mark": mark, "text": None}), on_found_change=answer)
