"""A sentence whose terms explain themselves: pointed at, focused or tapped, each opens what it means."""

from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Final

import streamlit as st

from dashboard import glossary
from dashboard.components.packing import as_text

_HERE: Final = Path(__file__).parent
TERM_SCRIPT: Final = _HERE / "term.js"
TERM_STYLE: Final = _HERE / "term.css"
"""Of a single term, for the views that have terms in them; the script needs `page.js`."""
_SCRIPTS: Final = (_HERE.parent / "page.js", TERM_SCRIPT, _HERE / "sentence.js")
_STYLES: Final = (TERM_STYLE, _HERE / "sentence.css")
_mount: Final = st.components.v2.component(
    "attention_sieve.terms",
    html="<p></p>",
    css="\n".join(path.read_text("utf-8") for path in _STYLES),
    js="\n".join(path.read_text("utf-8") for path in _SCRIPTS),
    isolate_styles=True,
)


def sentence(said: str, *, key: str) -> None:
    """Write a sentence of the project's own wording, with its terms.

    Args:
        said: with `**strong**` and `*emphasised*` words, as in Markdown.
        key: the sentence's name on the page.
    """
    parts = [asdict(piece) for piece in glossary.pieces(said)]
    with st.container(gap=None, key=f"sentence {key}"):
        # The same words, unseen, which are there at once: what stands below does not move when the terms have come.
        words = escape("".join(part["text"] for part in parts))
        st.html(f'<p class="room" aria-hidden="true">{words}</p>')
        _mount(key=key, data=as_text({"pieces": parts}), width="stretch", height="content")
