"""Stores a text too long for the link in the browser tab: it survives a reload, and nobody else can read it."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from typing import Final

import streamlit as st

from attention_sieve.dashboard.components.source import Source, as_text, joined

_mount: Final = Source(name="kept_text", js=joined("kept_text/kept_text.js")).registered()


def mark_of(text: str) -> str:
    """Hash that identifies a text in the link without revealing it."""
    return sha256(text.encode()).hexdigest()[:16]


def keep_text(name: str, text: str) -> bool:
    """Store a text in the reader's browser tab until the tab is closed or another text takes its name.

    Returns: False once the browser has reported that it has no room.
    """
    data = {"name": name, "mark": mark_of(text), "text": text}
    state = _mount(key=f"{name} kept", data=as_text(data), on_full_change=lambda: None)
    return not (isinstance(state, Mapping) and state.get("full") == data["mark"])


def fetch_text(name: str, mark: str, on_answer: Callable[[str | None], None]) -> None:
    """Fetch a text from the browser tab; `on_answer` gets it before the next run, or None if it is not there."""
    key = f"{name} fetched"

    def handle_answer() -> None:
        answer = st.session_state[key]["found"]
        text = answer.get("text") if isinstance(answer, Mapping) else None
        on_answer(text if isinstance(text, str) and mark_of(text) == mark else None)

    _mount(key=key, data=as_text({"name": name, "mark": mark, "text": None}), on_found_change=handle_answer)
