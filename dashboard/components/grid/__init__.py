"""The grid of roles: every head of a checkpoint at a glance, and the way to choose heads."""

import base64
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from dashboard.components.selection import push
from dashboard.figures.appearance import HEAD_COLORS, LOOKS

Head = tuple[int, int]
"""Layer and head, both counted from 0."""

_FILES: Final = Path(__file__).parent
_mount = st.components.v2.component(
    "attention_sieve.role_grid",
    html=(_FILES / "grid.html").read_text("utf-8"),
    css=(_FILES / "grid.css").read_text("utf-8"),
    js=(_FILES / "grid.js").read_text("utf-8"),
    isolate_styles=True,
)


def role_grid(
    *,
    key: str,
    roles: Sequence[str],
    scores: Float[np.ndarray, "role layer head"],
    holds: Bool[np.ndarray, "role layer head"],
    p_values: Float[np.ndarray, "role layer head"] | None = None,
    p_name: str = "p",
    held_before: Bool[np.ndarray, "role layer head"] | None = None,
    before: str = "before",
    off: Collection[Head] = (),
    shown: Sequence[str] | None = None,
    tau: float,
    filled: str,
    label: str,
    chosen: Sequence[Head] = (),
    reset: Hashable = None,
    highlight: Collection[Head] | None = None,
    on_change: Callable[[list[Head]], None] | None = None,
) -> list[Head]:
    """Draw the grid and return the heads the reader has chosen.

    Args:
        key: The view's own key; one grid on a page keeps one key.
        roles: Names of the role axis, in order. The tooltip lists all of them.
        scores: Mean sieve bias scores; NaN where a role does not apply.
        holds: Which heads hold which role.
        p_values: What the tests gave, corrected or not; None leaves the column out.
        p_name: Head of that column, such as "p (Holm)".
        held_before: Which heads hold which role in what this is compared with; the corners then show gained, kept and
            lost.
        before: What this is compared with, as the legend names it: "against ...".
        off: Heads that are switched off; their cells are struck through.
        shown: Roles that get a corner of each cell; None shows every role.
        tau: Threshold on the mean score; the tint of a corner is its score relative to it.
        filled: What a filled corner means, in a sentence under the tooltip.
        label: What the grid shows, for screen readers.
        chosen: Heads to start from, and to return to whenever `reset` changes. Ignored on every other run.
        reset: A token; a new value makes the grid take `chosen`.
        highlight: Heads that stay bright while the others step back; None keeps all bright.
        on_change: Called with the chosen heads before the run that follows a choice.

    Returns: the chosen heads in the order they were chosen, each within the grid.
    """
    _, layers, heads = scores.shape
    wanted = [list(head) for head in _within(chosen, layers, heads)]
    rev, pushed = push(key, "chosen", wanted, reset)

    def tell() -> None:
        if on_change is not None:
            on_change(chosen_heads(st.session_state.get(key), layers, heads))

    state = _mount(
        key=key,
        data={
            **_picture(roles, scores, holds, p_values, held_before, shown),
            "before": before,
            "off": sorted(list(head) for head in off),
            "p_name": p_name,
            "tau": float(tau),
            "filled": filled,
            "label": label,
            "colors": list(HEAD_COLORS),
            "highlight": None if highlight is None else sorted(list(head) for head in highlight),
            "key": key,
            "rev": rev,
            "chosen": pushed,
        },
        default={"chosen": wanted},
        on_chosen_change=tell,
    )
    return chosen_heads(state, layers, heads)


def chosen_heads(state: object, layers: int, heads: int) -> list[Head]:
    """The heads in a grid's state that a checkpoint of this shape has; whatever else the state holds is left out.

    Args:
        state: What the browser sent, or what an earlier checkpoint left behind.
        layers: How many layers the checkpoint has.
        heads: How many heads each layer has.
    """
    found = state.get("chosen") if isinstance(state, Mapping) else None
    return _within(found if isinstance(found, list | tuple) else (), layers, heads)


def _within(places: Sequence[Any], layers: int, heads: int) -> list[Head]:
    pairs = [tuple(place) for place in places if isinstance(place, list | tuple) and len(place) == 2]
    # JSON has one kind of number and True is an int, so the kind is asked for exactly.
    inside = [
        (layer, head)
        for layer, head in pairs
        if type(layer) is int and type(head) is int and 0 <= layer < layers and 0 <= head < heads
    ]
    return list(dict.fromkeys(inside))


def _picture(
    roles: Sequence[str],
    scores: Float[np.ndarray, "role layer head"],
    holds: Bool[np.ndarray, "role layer head"],
    p_values: Float[np.ndarray, "role layer head"] | None,
    held_before: Bool[np.ndarray, "role layer head"] | None,
    shown: Sequence[str] | None,
) -> dict[str, Any]:
    _, layers, heads = scores.shape
    states = holds.astype(np.uint8)
    if held_before is not None:
        states = states + 2 * held_before.astype(np.uint8)
    return {
        "roles": [_look(role) for role in roles],
        "shown": [roles.index(role) for role in (roles if shown is None else shown)],
        "layers": layers,
        "heads": heads,
        "scores": _base64(scores.astype("<f4")),
        "states": _base64(states),
        "compared": held_before is not None,
        "p": None if p_values is None else _base64(p_values.astype("<f4")),
    }


def _look(role: str) -> dict[str, str]:
    look = LOOKS[role]
    return {"label": look.label, "letter": look.letter, "color": look.color, "ink": look.ink}


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
