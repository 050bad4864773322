"""An SVG picture drawn in Python, in the colours of the page; it scrolls if it is wider than the page."""

from pathlib import Path
from typing import Final

import streamlit as st

_HERE: Final = Path(__file__).parent
_mount = st.components.v2.component(
    "attention_sieve.drawing",
    html='<div class="drawing" role="region" tabindex="0"></div>',
    css=(_HERE / "drawing.css").read_text("utf-8"),
    js=(_HERE / "drawing.js").read_text("utf-8"),
    isolate_styles=True,
)


def drawing(svg: str, *, key: str, label: str) -> None:
    """Show a picture.

    Args:
        svg: an SVG element written by ElementTree, so that text in it is escaped; currentColor is the text colour of
            the page.
    """
    _mount(key=key, data={"svg": svg, "label": label}, width="stretch", height="content")
