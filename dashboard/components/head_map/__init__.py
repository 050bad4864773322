"""One number per head as a coloured grid, and the way to choose heads."""

import base64
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Bool, Float

from dashboard.components.choosing import Head, choose, register
from dashboard.figures.appearance import AMOUNT, LESS, MORE
from dashboard.figures.head_map_svg import NOT_APPLICABLE, check_head_map, end_labels, short_number

Detail = tuple[str, Sequence[Sequence[str]] | Float[np.ndarray, "layer head"]]
"""What a number is, and that number of every head, as text or to be written with three digits."""

_mount: Final = register("head_map", Path(__file__).parent)


def head_map(
    *,
    key: str,
    values: Float[np.ndarray, "layer head"],
    bound: float,
    signed: bool,
    outlined: Bool[np.ndarray, "layer head"] | None = None,
    outline: str = "",
    details: Sequence[Detail] = (),
    label: str,
    title: str,
    low_label: str = "",
    high_label: str = "",
    chosen: Sequence[Head] = (),
    reset: Hashable = None,
    on_change: Callable[[list[Head]], None] | None = None,
) -> list[Head]:
    """Draw the map and return the heads the reader has chosen.

    Args:
        key: The view's own key.
        values: One number per head; NaN where it does not apply.
        bound: End of the scale; maps of one bound can be compared. What lies beyond has the end's colour and its own
            number, and the legend says so.
        signed: Whether the scale runs from -bound over 0 to bound, or from 0 to bound.
        outlined: Heads with a heavy outline.
        outline: What the outline means, such as "differs significantly".
        details: Lines of the tooltip.
        label: What the map shows, for screen readers.
        title: What the numbers are, before the scale.
        low_label: What the low end means.
        high_label: What the high end means.
        chosen: Heads to start from, and to return to whenever `reset` changes. Ignored on every other run.
        reset: A token; a new value makes the map take `chosen`.
        on_change: Called with the chosen heads before the run that follows a choice.

    Returns: the chosen heads in the order they were chosen, each within the map.
    Raises: ValueError where bound, values, outlines and details do not fit.
    """
    check_head_map(values, bound, signed, outlined)
    layers, heads = values.shape
    low, high = end_labels(values, bound, signed)
    data = {
        "title": title,
        "low": [low_label, low],
        "high": [high, high_label],
        "ends": {"more": MORE, "less": LESS} if signed else {"more": AMOUNT, "less": None},
        "parts": _base64((np.clip(values / bound, -1, 1)).astype("<f4")),
        "texts": [[short_number(float(value), bound, signed) for value in row] for row in values],
        "missing": NOT_APPLICABLE,
        "outlined": None if outlined is None else _base64(outlined.astype(np.uint8)),
        "outline": outline,
        "details": [{"label": name, "texts": _texts(name, detail, values.shape)} for name, detail in details],
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


def _texts(name: str, detail: Any, shape: tuple[int, int]) -> list[list[str]]:
    texts = [[text if isinstance(text, str) else _number(float(text)) for text in row] for row in detail]
    if [len(row) for row in texts] != [shape[1]] * shape[0]:
        found = f"{len(texts)} rows of {sorted({len(row) for row in texts})}"
        raise ValueError(f"{name!r} needs one value per head, {shape[0]} rows of {shape[1]}, got {found}.")
    return texts


def _number(value: float) -> str:
    return NOT_APPLICABLE if np.isnan(value) else f"{value:.3g}".replace("-", "\N{MINUS SIGN}")


def _base64(array: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
