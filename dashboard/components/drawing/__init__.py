"""A picture that Python has drawn as SVG, in the colours of the page; wider than the page it scrolls."""

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
        svg: an SVG element as ElementTree writes it, so that what it holds of other people's text is text; what is
            drawn in currentColor takes the page's colour.
        key: the view's own key.
        label: what the picture shows, for screen readers.
    """
    _mount(key=key, data={"svg": svg, "label": label}, width="stretch", height="content")
