"""What a browser needs to draw a component, in Streamlit or without it."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st


@dataclass(frozen=True)
class Source:
    """Markup, styles and one script, whose default export takes data and an element as Streamlit gives them."""

    name: str
    html: str
    css: str
    js: str

    def registered(self) -> Any:
        """The function by which Streamlit mounts it."""
        return st.components.v2.component(
            f"attention_sieve.{self.name}", html=self.html, css=self.css, js=self.js, isolate_styles=True
        )


def joined(paths: Sequence[Path]) -> str:
    """Scripts or styles in this order, as one: a component takes a single one of each."""
    return "\n".join(path.read_text("utf-8") for path in paths)
