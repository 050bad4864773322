"""One number per head as a coloured grid: the scale that the page and the file share, and the file."""

from collections.abc import Collection, Sequence
from math import isnan, log10
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Bool, Float

from dashboard.figures.appearance import AMOUNT, LESS, MORE, head_color, ink_on, mixed
from dashboard.figures.grid_svg import CELL, DARK, LEFT, STEP, sheet, square, text_width, write, write_caption

MINUS: Final = "\N{MINUS SIGN}"
NOT_APPLICABLE: Final = "not applicable"
ROUND_NUMBERS: Final = (1, 1.5, 2, 3, 4, 5, 7.5, 10)
FAINT: Final = "#C9C9C9"
RAMP: Final = 120
_STEPS: Final = 24
"""Of the ramp in the legend."""


def round_bound(largest: float) -> float:
    """A round number at or above the largest of some amounts, as the end of a scale that several maps share.

    Returns: 1 where the largest is 0 or NaN: of no difference at all there is no scale.
    """
    if not largest > 0:
        return 1.0
    size = 10.0 ** np.floor(log10(largest))
    return float(next(step * size for step in ROUND_NUMBERS if step * size >= largest * (1 - 1e-9)))


def short_number(value: float, bound: float, signed: bool) -> str:
    """A number as a cell has room for it: at most three characters and, where numbers have one, a sign.

    Args:
        value: the number; NaN has no text.
        bound: end of the scale, which says how many decimals matter.
        signed: whether the number is a difference.

    Returns: such as `+0.8`, `−.04` or `12`; a difference that only rounds to 0 keeps its sign.
    """
    if isnan(value):
        return ""
    if value == 0:
        return "0"
    decimals = 0 if bound >= 10 else 1 if bound >= 1 else 2 if bound >= 0.1 else 3
    size = f"{abs(value):.{decimals}f}"
    if bound < 1:
        size = size.removeprefix("0")
    return f"{(MINUS if value < 0 else '+') if signed else ''}{size}"


def end_labels(values: Float[np.ndarray, "layer head"], bound: float, signed: bool) -> tuple[str, str]:
    """Both ends of the scale, with a sign for "and beyond" where some value is."""
    end = f"{bound:.3g}"
    high = ("≥ " if (values > bound).any() else "") + ("+" if signed else "") + end
    return ("≤ " if (values < -bound).any() else "") + MINUS + end if signed else "0", high


def check_head_map(
    values: Float[np.ndarray, "layer head"],
    bound: float,
    signed: bool,
    outlined: Bool[np.ndarray, "layer head"] | None,
) -> None:
    """See that numbers, scale and outlines fit.

    Raises: ValueError that names what does not.
    """
    if not 0 < bound < np.inf:
        raise ValueError(f"The scale's bound must be above 0 and finite, got {bound}.")
    if np.isinf(values).any():
        raise ValueError(f"{int(np.isinf(values).sum())} values are infinite; give NaN where nothing applies.")
    if not signed and (values < 0).any():
        raise ValueError(f"A scale from 0 has no place for {np.nanmin(values):.3g}; use the signed scale.")
    if outlined is not None and outlined.shape != values.shape:
        raise ValueError(f"Outlines need one value per head, shape {values.shape}, got {outlined.shape}.")


def head_map_svg(
    *,
    values: Float[np.ndarray, "layer head"],
    bound: float,
    signed: bool,
    outlined: Bool[np.ndarray, "layer head"] | None = None,
    outline: str = "",
    title: str,
    caption: Sequence[str] = (),
    low_label: str = "",
    high_label: str = "",
    chosen: Collection[tuple[int, int]] = (),
) -> str:
    """The map on white: rows layers, columns heads.

    Args:
        values: one number per head; NaN where it does not apply.
        bound: end of the scale; what lies beyond has the end's colour and its own number.
        signed: whether the scale runs from -bound over 0 to bound, or from 0 to bound.
        outlined: heads with a heavy outline.
        outline: what the outline means.
        title: first line of the picture.
        caption: lines beneath the picture: checkpoints, settings, number of texts.
        low_label: what the low end means.
        high_label: what the high end means.
        chosen: heads to frame, in the colours of their order.

    Returns: an SVG document.
    Raises: ValueError where bound, values and outlines do not fit.
    """
    check_head_map(values, bound, signed, outlined)
    layers, heads = values.shape
    low, high = end_labels(values, bound, signed)
    ends = f"{low_label} {low}".strip(), f"{high} {high_label}".strip()
    marks = [("outline", outline)] if outlined is not None else []
    marks += [("hatch", NOT_APPLICABLE)] if np.isnan(values).any() else []
    top = 112 + 26 * len(marks)
    ramp = RAMP + sum(text_width([end], 13) for end in ends) + 16
    texts = max(text_width([title], 20), text_width([*caption, *(text for _, text in marks)], 13), ramp) + 48
    width = max(LEFT + heads * STEP + 16, texts)
    svg = sheet(width, top + layers * STEP + 20 + 18 * len(caption) + 12, title)
    _hatching(svg)
    _ramp(svg, ends, signed)
    for order, (mark, text) in enumerate(marks):
        _mark(svg, 16, 76 + 26 * order, mark, text)
    _axes(svg, layers, heads, top)
    for (layer, head), value in np.ndenumerate(values):
        is_outlined = outlined is not None and bool(outlined[layer, head])
        _cell(svg, LEFT + head * STEP, top + layer * STEP, float(value), bound, signed, is_outlined)
    for order, (layer, head) in enumerate(chosen):
        _frame(svg, LEFT + head * STEP - 2, top + layer * STEP - 2, CELL + 4, head_color(order), 3)
    write_caption(svg, 16, top + layers * STEP + 22, caption)
    return ET.tostring(svg, encoding="unicode")


def _hatching(svg: ET.Element) -> None:
    size = {"width": "7", "height": "7", "patternUnits": "userSpaceOnUse", "patternTransform": "rotate(45)"}
    pattern = ET.SubElement(ET.SubElement(svg, "defs"), "pattern", {"id": "hatch", **size})
    ET.SubElement(pattern, "line", {"x1": "0", "y1": "0", "x2": "0", "y2": "7", "stroke": "#8A8A8A"})


def _ramp(svg: ET.Element, ends: tuple[str, str], signed: bool) -> None:
    """The scale as a bar between what its ends mean."""
    write(svg, 16, 62, ends[0], 13)
    start = 16 + text_width([ends[0]], 13) + 8
    for step in range(_STEPS):
        part = (step + 0.5) / _STEPS
        color = _color(2 * part - 1 if signed else part, signed)
        square(svg, start + step * RAMP / _STEPS, 50, RAMP / _STEPS + 0.3, 16, color, round_=0)
    _frame(svg, start, 50, RAMP, "#767676", 1, height=16)
    write(svg, start + RAMP + 8, 62, ends[1], 13)


def _mark(svg: ET.Element, x: float, y: float, mark: str, text: str) -> None:
    """A sign in a cell, and what it means."""
    if mark == "outline":
        _frame(svg, x + 1.5, y + 1.5, 15, DARK, 3)
    else:
        _hatched(svg, x, y, 18)
        _frame(svg, x + 0.5, y + 0.5, 17, FAINT, 1)
    write(svg, x + 25, y + 14, text, 13)


def _hatched(svg: ET.Element, x: float, y: float, side: float) -> None:
    box = {"x": f"{x:g}", "y": f"{y:g}", "width": f"{side:g}", "height": f"{side:g}", "rx": "5"}
    ET.SubElement(svg, "rect", box | {"fill": "url(#hatch)"})


def _axes(svg: ET.Element, layers: int, heads: int, top: float) -> None:
    write(svg, 16, top - 8, "Layer", 12)
    write(svg, LEFT + heads * STEP / 2, top - 25, "Head", 12, anchor="middle")
    for head in range(heads):
        write(svg, LEFT + head * STEP + CELL / 2, top - 8, str(head), 12, anchor="middle")
    for layer in range(layers):
        write(svg, LEFT - 10, top + layer * STEP + CELL / 2 + 4, str(layer), 12, anchor="end")


def _cell(svg: ET.Element, x: float, y: float, value: float, bound: float, signed: bool, is_outlined: bool) -> None:
    if isnan(value):
        _hatched(svg, x, y, CELL)
    else:
        color = _color(max(-1.0, min(value / bound, 1.0)), signed)
        square(svg, x, y, CELL, CELL, color, short_number(value, bound, signed), ink_on(color), 13, round_=5)
    if is_outlined:
        _frame(svg, x + 1.5, y + 1.5, CELL - 3, DARK, 3)
    else:
        _frame(svg, x + 0.5, y + 0.5, CELL - 1, FAINT, 1)


def _color(part: float, signed: bool) -> str:
    """The scale's colour at a part of its bound, from -1 or 0 to 1."""
    return mixed((LESS if part < 0 else MORE) if signed else AMOUNT, abs(part))


def _frame(svg: ET.Element, x: float, y: float, width: float, color: str, stroke: float, height: float = 0) -> None:
    """A rectangle without a fill; a square with round corners where it has no height of its own."""
    size = {"x": x, "y": y, "width": width, "height": height or width, "rx": 0 if height else 4}
    frame = {name: f"{value:g}" for name, value in size.items()} | {"stroke-width": f"{stroke:g}"}
    ET.SubElement(svg, "rect", frame | {"fill": "none", "stroke": color})
