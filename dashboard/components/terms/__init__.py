"""A sentence with terms that open their explanation when hovered, focused or tapped."""

from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.dashboard import glossary
from attention_sieve.dashboard.components.packing import as_text

_HERE: Final = Path(__file__).parent
TERM_SCRIPT: Final = _HERE / "term.js"
TERM_STYLE: Final = _HERE / "term.css"
"""Script and style of a single term, for components that contain terms; the script needs `page.js`."""
_SCRIPTS: Final = (_HERE.parent / "page.js", TERM_SCRIPT, _HERE / "sentence.js")
_STYLES: Final = (TERM_STYLE, _HERE / "sentence.css")
_mount: Final = st.components.v2.component(
    "attention_sieve.terms",
    html="<p></p>",
    css="\n".join(path.read_text("utf-8") for path in _STYLES),
    js="\n".join(path.read_text("utf-8") for path in _SCRIPTS),
    isolate_styles=True,
)


def sentence(text: str, *, key: str) -> None:
    """Write a sentence of the project's own wording, with its terms.

    Args:
        text: with `**strong**` and `*emphasised*` words, as in Markdown.
        key: the sentence's name on the page.
    """
    parts = [asdict(piece) for piece in glossary.pieces(text)]
    with st.container(gap=None, key=f"sentence {key}"):
        # An invisible copy reserves the space at once, so that nothing below moves when the component is drawn.
        words = escape("".join(part["text"] for part in parts))
        st.html(f'<p class="room" aria-hidden="true">{words}</p>')
        _mount(key=key, data=as_text({"pieces": parts}), width="stretch", height="content")
