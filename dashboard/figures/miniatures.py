"""Small pictures of what heads do, as high as two lines of text: without letters, in colours seen on light and dark."""

from base64 import b64encode
from io import BytesIO
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8
from PIL import Image

from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, MUTED

WIDTH: Final = 112
HEIGHT: Final = 48
"""In pixels."""
GAP: Final = 12
"""Between pictures side by side."""
SHARPNESS: Final = 3
"""Pixels of a weight in a mark, so that it is not blurred where the mark is drawn larger."""
FAINTEST: Final = 0.04
"""Smallest value that is drawn."""


def cells(*matrices: Float[np.ndarray, "row column"]) -> str:
    """Matrices of numbers from 0 to 1 side by side, framed, and square if they are: the more, the fuller a cell."""
    share = (WIDTH - GAP * (len(matrices) - 1)) / len(matrices)
    return _picture("".join(_cells(matrix, place * (share + GAP), share) for place, matrix in enumerate(matrices)))


def _cells(matrix: Float[np.ndarray, "row column"], left: float, room: float) -> str:
    n_rows, n_columns = matrix.shape
    width = HEIGHT if n_rows == n_columns else room
    across, down = (width - 2) / n_columns, (HEIGHT - 2) / n_rows
    filled = "".join(
        f'<rect x="{left + 1 + column * across:.1f}" y="{1 + row * down:.1f}" width="{across:.1f}" '
        f'height="{down:.1f}" opacity="{min(matrix[row, column], 1):.2f}"/>'
        for row, column in np.argwhere(np.nan_to_num(matrix) >= FAINTEST)
    )
    frame = f'<rect x="{left + 0.5:.1f}" y=".5" width="{width - 1:.1f}" height="{HEIGHT - 1}" fill="none" '
    return f'{filled}{frame}stroke="{MUTED}"/>'


def fan(attention: Float[np.ndarray, "query key"], query: int | None = None) -> str:
    """Lines from the queries above to the keys below, the stronger the more attention; those of other queries are grey
    where one is named."""
    n_queries, n_keys = attention.shape
    lines = {True: "", False: ""}
    for row, key in np.argwhere(np.nan_to_num(attention) >= FAINTEST).tolist():
        is_muted, weight = query not in (None, row), float(attention[row, key])
        color, width, opacity = (MUTED, 0.8, 0.4 * weight) if is_muted else (HEAD_COLORS[0], 0.8 + 2 * weight, weight)
        lines[is_muted] += (
            f'<path d="M{_place(row, n_queries):.1f} 3L{_place(key, n_keys):.1f} {HEIGHT - 3}" stroke="{color}" '
            f'stroke-width="{width:.1f}" opacity="{opacity:.2f}"/>'
        )
    dots = "".join(
        f'<circle cx="{_place(token, n_tokens):.1f}" cy="{y}" r="{3 if (y, token) == (3, query) else 1.5}"/>'
        for y, n_tokens in ((3, n_queries), (HEIGHT - 3, n_keys))
        for token in range(n_tokens)
    )
    return _picture(lines[True] + lines[False] + dots)


def _place(token: int, n_tokens: int) -> float:
    return 4 + (WIDTH - 8) * (token + 0.5) / n_tokens


def bars(values: Float[np.ndarray, " bar"]) -> str:
    """Bars side by side, the highest as high as the picture."""
    room, most = WIDTH / len(values), float(np.nanmax(values)) or 1.0
    drawn = "".join(
        f'<rect x="{place * room + room / 8:.1f}" y="{HEIGHT - 1 - (HEIGHT - 2) * value / most:.1f}" '
        f'width="{room * 3 / 4:.1f}" height="{(HEIGHT - 2) * value / most:.1f}"/>'
        for place, value in enumerate(np.nan_to_num(values).tolist())
    )
    return _picture(f'{drawn}<path d="M0 {HEIGHT - 0.5}H{WIDTH}" stroke="{MUTED}"/>')


def curve(x: Float[np.ndarray, " point"], y: Float[np.ndarray, " point"]) -> str:
    """A line from the first point to the last, over the whole picture."""
    across, down = ((values - values.min()) / (np.ptp(values) or 1.0) for values in (x, y))
    points = " ".join(
        f"{3 + (WIDTH - 6) * right:.1f},{HEIGHT - 4 - (HEIGHT - 8) * up:.1f}" for right, up in zip(across, down)
    )
    line = f'<polyline points="{points}" fill="none" stroke="{HEAD_COLORS[0]}" stroke-width="2.5"/>'
    return _picture(f'{line}<path d="M.5 0V{HEIGHT - 0.5}H{WIDTH}" fill="none" stroke="{MUTED}"/>')


def _picture(drawn: str) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" '
        f'fill="{HEAD_COLORS[0]}">{drawn}</svg>'
    )


def image(svg: str) -> str:
    """The picture in HTML, beside words that say the same; where it is empty, its place."""
    size = f'style="display: block; width: {WIDTH}px; height: {HEIGHT}px"'
    source = b64encode(svg.encode()).decode()
    return f'<img alt="" {size} src="data:image/svg+xml;base64,{source}">' if svg else f"<div {size}></div>"


def pattern_mark(weights: UInt8[np.ndarray, "row column"]) -> str:
    """A pattern as a mark of a chart, where it may lie over others: the address of a PNG, the larger a weight, the
    blacker on white."""
    sharp = 255 - weights.repeat(SHARPNESS, axis=0).repeat(SHARPNESS, axis=1)
    png = BytesIO()
    Image.fromarray(sharp).save(png, "PNG", optimize=True)
    return f"data:image/png;base64,{b64encode(png.getvalue()).decode()}"
