"""What a browser needs to draw a component, in Streamlit or without it: its files, and data encoded for its script."""

import base64
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float, UInt8

from attention_sieve.dashboard.figures.appearance import RoleLook

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


def quantised(attention: Float[np.ndarray, "*axes"]) -> UInt8[np.ndarray, "*axes"]:
    """Square roots in 256 steps: errors of 0.004 near a weight of 1 and 0.000004 near 0, at one byte a weight."""
    return np.rint(np.sqrt(np.clip(attention, 0, 1)) * 255).astype(np.uint8)


def base64_of(array: np.ndarray) -> str:
    """The bytes of an array, in C order, as text that JSON can hold; `bytesOf` in `page.js` reads them."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def look_data(look: RoleLook) -> dict[str, str]:
    """How a role is drawn in a view."""
    return {"label": look.label, "letter": look.letter, "color": look.color, "ink": look.ink}


def as_text(data: Mapping[str, Any]) -> dict[str, str]:
    """Data of the first screen as JSON text, which `dataOf` in `page.js` reads.

    Streamlit searches every list and dict passed to a component for tables, and imports pandas to do so, which would
    delay the first grid by half a second or more. It passes text on unchanged.
    """
    return {"text": json.dumps(data)}
