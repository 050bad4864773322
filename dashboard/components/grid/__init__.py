"""The grid of roles: every head of a checkpoint at a glance, and the way to choose heads."""

import base64
from collections.abc import Callable, Collection, Hashable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from dashboard.components.choosing import Head, choose, chosen_heads, register
from dashboard.figures.appearance import LOOKS

__all__ = ["Head", "chosen_heads", "role_grid"]

_mount: Final = register("role_grid", Path(__file__).parent)


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
    data = {
        **_picture(roles, scores, holds, p_values, held_before, shown),
        "before": before,
        "off": sorted(list(head) for head in off),
        "p_name": p_name,
        "tau": float(tau),
        "filled": filled,
        "highlight": None if highlight is None else sorted(list(head) for head in highlight),
    }
    return choose(
        _mount,
        key=key,
        data=data,
        layers=layers,
        heads=heads,
        label=label,
        chosen=chosen,
        reset=reset,
        on_change=on_change,
    )


def _picture(
    roles: Sequence[str],
    scores: Float[np.ndarray, "role layer head"],
    holds: Bool[np.ndarray, "role layer head"],
    p_values: Float[np.ndarray, "role layer head"] | None,
    held_before: Bool[np.ndarray, "role layer head"] | None,
    shown: Sequence[str] | None,
) -> dict[str, Any]:
    states = holds.astype(np.uint8)
    if held_before is not None:
        states = states + 2 * held_before.astype(np.uint8)
    return {
        "roles": [_look(role) for role in roles],
        "shown": [roles.index(role) for role in (roles if shown is None else shown)],
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
