"""All heads of a layer, or of the whole model, as small matrices to choose from."""

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float, UInt8

from dashboard.figures.arcs_svg import head_name

LARGEST_SIDE: Final = 32
SMALLEST_SIDE: Final = 8
MOST_PIXELS: Final = 160_000
"""Of all thumbnails together; more heads get coarser ones."""

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "attention_sieve.thumbnails",
    html=(_HERE / "thumbnails.html").read_text("utf-8"),
    css=(_HERE / "thumbnails.css").read_text("utf-8"),
    js=(_HERE / "thumbnails.js").read_text("utf-8"),
    isolate_styles=True,
)


def head_thumbnails(
    *,
    key: str,
    attention: Float[np.ndarray, "layer head query key"],
    layer: int | None,
    chosen: tuple[int, int] | None,
    label: str,
    on_change: Callable[[], None] | None = None,
) -> tuple[int, int] | None:
    """Show heads as small matrices; a click chooses one.

    Args:
        key: the view's name on the page; `on_change` finds the head at `st.session_state[key]["head"]`.
        attention: of every layer and head in one text.
        layer: the layer to show; None for the whole model.
        chosen: the head that is marked as chosen.
        label: what the view shows, for screen readers.
        on_change: called when the reader chooses a head.

    Returns: layer and head the reader chose just now, else `chosen`.
    """
    n_layers, n_heads = attention.shape[:2]
    if layer is not None and not 0 <= layer < n_layers:
        raise ValueError(f"Layer {layer} is not one of the {n_layers} layers, which count from 0.")
    layers = range(n_layers) if layer is None else range(layer, layer + 1)
    side = _side(attention.shape[-1], len(layers) * n_heads)
    thumbnails = np.stack([_thumbnails(attention[at], side) for at in layers])
    data = {
        "label": label,
        "side": side,
        "heads": [[at, head, head_name(at, head)] for at in layers for head in range(n_heads)],
        "perRow": n_heads,
        "pixels": base64.b64encode(thumbnails.tobytes()).decode("ascii"),
        "push": _push(key, chosen),
    }
    result = _mount(key=key, data=data, on_head_change=on_change or _nothing, width="stretch", height="content")
    return _valid(result.head, n_layers, n_heads) or chosen


def _side(n_tokens: int, n_thumbnails: int) -> int:
    affordable = int((MOST_PIXELS / n_thumbnails) ** 0.5)
    return min(n_tokens, LARGEST_SIDE, max(SMALLEST_SIDE, affordable))


def _thumbnails(attention: Float[np.ndarray, "head query key"], side: int) -> UInt8[np.ndarray, "head side side"]:
    """Attention from a query to each of `side` stretches of the text, as square roots in 256 steps."""
    n_tokens = attention.shape[-1]
    starts = np.arange(side) * n_tokens // side
    lengths = np.diff(np.append(starts, n_tokens))
    sums = np.add.reduceat(np.add.reduceat(attention, starts, axis=1), starts, axis=2)
    # Stretches differ in length by one token; scaling all to the mean length keeps even attention even.
    even = sums / (lengths[:, None] * lengths) * (n_tokens / side)
    return np.rint(np.sqrt(np.clip(even, 0, 1)) * 255).astype(np.uint8)


def _push(key: str, chosen: tuple[int, int] | None) -> dict[str, Any]:
    """The choice to mark, numbered; the same as last time while the browser already marks `chosen`.

    The browser marks its own clicks. Sending each one back would send all thumbnails again.
    """
    memory = st.session_state.setdefault(f"{key} marked", {"marked": None, "push": {"number": 0, "head": None}})
    clicked = (st.session_state.get(key) or {}).get("head")
    if clicked is not None:
        memory["marked"] = tuple(clicked)
    if chosen != memory["marked"]:
        memory["marked"] = chosen
        memory["push"] = {"number": memory["push"]["number"] + 1, "head": chosen}
    push: dict[str, Any] = memory["push"]
    return push


def _valid(head: object, n_layers: int, n_heads: int) -> tuple[int, int] | None:
    """What came back from the browser, if it is a head of this model."""
    if not isinstance(head, list | tuple) or len(head) != 2 or not all(isinstance(place, int) for place in head):
        return None
    layer, number = head
    return (layer, number) if 0 <= layer < n_layers and 0 <= number < n_heads else None


def _nothing() -> None:
    """Streamlit gives a result only where a callback is named for it."""
