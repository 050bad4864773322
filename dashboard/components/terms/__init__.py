"""A sentence with terms that open their explanation when hovered, focused or tapped."""

from dataclasses import asdict
from html import escape
from typing import Final

import streamlit as st

from attention_sieve.dashboard import glossary
from attention_sieve.dashboard.components.source import Source, as_text, joined

_mount: Final = Source(
    name="terms",
    html="<p></p>",
    css=joined("terms/term.css", "terms/sentence.css"),
    js=joined("page.js", "terms/term.js", "terms/sentence.js"),
).registered()


def sentence(text: str, *, key: str) -> None:
    """Write a sentence of the project's own wording, with its terms and `**strong**` and `*emphasised*` words."""
    parts = [asdict(piece) for piece in glossary.pieces(text)]
    with st.container(gap=None, key=f"sentence {key}"):
        # An invisible copy reserves the space at once, so that nothing below moves when the component is drawn.
        words = escape("".join(part["text"] for part in parts))
        st.html(f'<p class="room" aria-hidden="true">{words}</p>')
        _mount(key=key, data=as_text({"pieces": parts}), width="stretch", height="content")
