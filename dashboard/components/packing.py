"""How arrays and other data travel to the scripts of the hand-made views."""

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np


def base64_of(array: np.ndarray) -> str:
    """The bytes of an array, in C order, as text that JSON can hold; `bytesOf` in `page.js` reads them."""
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")


def as_text(data: Mapping[str, Any]) -> dict[str, str]:
    """Data of the first screen as one text, which `dataOf` in `page.js` reads.

    In every list and dict that a component is given Streamlit looks for a table, and first imports pandas to do so:
    half a second or more that the first grid would wait for. Text it passes on as it is.
    """
    return {"text": json.dumps(data)}
