"""All heads of a layer, or of the whole model, as small matrices to choose from."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float, Int, UInt8

from core.attention.settings import head_name
from dashboard.components.packing import base64_of

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
    names: tuple[str, str] = ("queries", "keys"),
    on_change: Callable[[], None] | None = None,
) -> tuple[int, int] | None:
    """Show heads as small matrices; a click chooses one.

    Args:
        key: the view's name on the page; `on_change` finds the head at `st.session_state[key]["head"]`.
        attention: of every layer and head in one text, between its tokens or between stretches of it; the share of a
            query's attention that a key, or a stretch of keys, gets.
        layer: the layer to show; None for the whole model.
        chosen: the head that is marked as chosen.
        label: what the view shows, for screen readers.
        names: what runs down and what runs across.
        on_change: called when the reader chooses a head.

    Returns: layer and head the reader chose just now, else `chosen`.
    """
    n_layers, n_heads = attention.shape[:2]
    if layer is not None and not 0 <= layer < n_layers:
        raise ValueError(f"Layer {layer} is not one of the {n_layers} layers, which count from 0.")
    layers = range(n_layers) if layer is None else range(layer, layer + 1)
    n_queries, n_keys = attention.shape[2:]
    shape = _shape(n_queries, n_keys, len(layers) * n_heads)
    thumbnails = np.stack([_thumbnails(attention[at], *shape) for at in layers])
    data = {
        "label": label,
        "shape": list(shape),
        "names": list(names),
        "heads": [[at, head, head_name(at, head)] for at in layers for head in range(n_heads)],
        "perRow": n_heads,
        "pixels": base64_of(thumbnails),
        "push": _push(key, chosen),
    }
    result = _mount(key=key, data=data, on_head_change=on_change or _nothing, width="stretch", height="content")
    return _valid(result.head, n_layers, n_heads) or chosen


def _shape(n_queries: int, n_keys: int, n_thumbnails: int) -> tuple[int, int]:
    """Pixels down and across: as long as the text, within what is affordable."""
    affordable = int((MOST_PIXELS / n_thumbnails) ** 0.5)
    most = min(LARGEST_SIDE, max(SMALLEST_SIDE, affordable))
    return min(n_queries, most), min(n_keys, most)


def _thumbnails(
    attention: Float[np.ndarray, "head query key"], down: int, across: int
) -> UInt8[np.ndarray, "head down across"]:
    """Attention from stretches of queries to stretches of keys, as square roots in 256 steps."""
    from_starts, from_lengths = _stretches(attention.shape[1], down)
    to_starts, to_lengths = _stretches(attention.shape[2], across)
    sums = np.add.reduceat(np.add.reduceat(attention, from_starts, axis=1), to_starts, axis=2)
    # Stretches differ in length by one token; scaling all to the mean length keeps even attention even.
    even = sums / (from_lengths[:, None] * to_lengths) * (attention.shape[2] / across)
    return np.rint(np.sqrt(np.clip(even, 0, 1)) * 255).astype(np.uint8)


def _stretches(n_tokens: int, count: int) -> tuple[Int[np.ndarray, " stretch"], Int[np.ndarray, " stretch"]]:
    """First token and length of each of `count` stretches."""
    starts = np.arange(count) * n_tokens // count
    return starts, np.diff(np.append(starts, n_tokens))


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
