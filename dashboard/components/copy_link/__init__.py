"""A button that copies the address of what is on screen."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.dashboard.components.packing import as_text

_HERE: Final = Path(__file__).parent
_mount: Final = st.components.v2.component(
    "attention_sieve.copy_link",
    html=(_HERE / "copy_link.html").read_text("utf-8"),
    css=(_HERE / "copy_link.css").read_text("utf-8"),
    js=(_HERE / "copy_link.js").read_text("utf-8"),
    isolate_styles=True,
)


def copy_link(left_out: Sequence[str]) -> None:
    """Draw the button; if the browser does not allow copying, it shows the address, selected.

    Args:
        left_out: sentences about what the link does not hold, shown after copying.
    """
    _mount(key="copy link", data=as_text({"left_out": " ".join(left_out)}), height="content")
