"""A few texts with words marked in two ways; a click selects a text."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import streamlit as st

from attention_sieve.dashboard.components.source import Source, joined

Mark = Literal["", "strong", "lined"]
"""How a part of a text is shown: plain, bold, or underlined."""

_mount: Final = Source(
    name="marked_texts",
    html='<ul class="texts"></ul>',
    css=joined("marked_texts/marked_texts.css"),
    js=joined("page.js", "marked_texts/marked_texts.js"),
).registered()


@dataclass(frozen=True, kw_only=True)
class DrawnText:
    parts: tuple[tuple[str, Mark], ...]
    """Consecutive parts with their marks; together the whole text."""
    says: str
    """The meaning of the marks, for screen readers."""


def marked_texts(texts: Sequence[DrawnText], *, key: str, label: str, on_pick: Callable[[int], None]) -> None:
    """Draw texts below each other; `on_pick` is called with the index of a clicked one, before the run that follows."""

    def handle_change() -> None:
        index = st.session_state[key]["picked"]
        if type(index) is int and 0 <= index < len(texts):
            on_pick(index)

    data = {
        "label": label,
        "texts": [[list(part) for part in text.parts] for text in texts],
        "says": [text.says for text in texts],
    }
    _mount(key=key, data=data, on_picked_change=handle_change, width="stretch", height="content")
