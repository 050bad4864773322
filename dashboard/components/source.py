"""What a browser needs to draw a component, in Streamlit or without it."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import streamlit as st

_FOLDER: Final = Path(__file__).parent


@dataclass(frozen=True, kw_only=True)
class Source:
    """Markup, styles and one script, whose default export takes data and an element as Streamlit gives them."""

    name: str
    html: str = ""
    css: str = ""
    js: str

    def registered(self) -> Any:
        """The function by which Streamlit mounts it."""
        return st.components.v2.component(
            f"attention_sieve.{self.name}", html=self.html or None, css=self.css or None, js=self.js
        )


def joined(*paths: str) -> str:
    """Files of this folder in this order, as one: a component takes a single script, and a single style sheet."""
    return "\n".join((_FOLDER / path).read_text("utf-8") for path in paths)
