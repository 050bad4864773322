"""The heads of a small model at its saved steps, as an animated GIF."""

from collections.abc import Sequence
from io import BytesIO
from typing import Final

import numpy as np
from jaxtyping import Float
from PIL import Image, ImageDraw, ImageFont

from attention_sieve.core.attention.settings import head_name

CELL: Final = 112
GAP: Final = 12
LINE: Final = 24
"""Sizes in pixels: side of a head, space between heads, height of a line of text."""
BEAT: Final = 300
REST: Final = 2_500
"""Milliseconds that a step, and the last one, is seen."""


def film(
    attention: Sequence[Float[np.ndarray, "layer head query key"]], captions: Sequence[str], comment: str
) -> bytes:
    """A frame for each step, each head a square: queries from top to bottom, the darker the more attention.

    Args:
        attention: of the same text at each step, 0 to 1.
        captions: said above each frame.
        comment: where it comes from, kept in the file.
    """
    frames = [_frame(weights, caption) for weights, caption in zip(attention, captions, strict=True)]
    file = BytesIO()
    frames[0].save(
        file,
        "GIF",
        save_all=True,
        append_images=frames[1:],
        duration=[BEAT] * (len(frames) - 1) + [REST],
        loop=0,
        comment=comment.encode(),
    )
    return file.getvalue()


def _frame(weights: Float[np.ndarray, "layer head query key"], caption: str) -> Image.Image:
    n_layers, n_heads = weights.shape[:2]
    size = (GAP + n_heads * (CELL + GAP), GAP + LINE + n_layers * (LINE + CELL + GAP))
    frame = Image.new("L", size, 255)
    pen, font = ImageDraw.Draw(frame), ImageFont.load_default(14)
    pen.text((GAP, GAP), caption, 0, font)
    for layer, head in np.ndindex(n_layers, n_heads):
        left, top = GAP + head * (CELL + GAP), GAP + LINE + layer * (LINE + CELL + GAP)
        pen.text((left, top + 4), head_name(layer, head), 0, font)
        darkness = np.rint(255 * (1 - weights[layer, head])).astype(np.uint8)
        frame.paste(Image.fromarray(darkness).resize((CELL, CELL), Image.Resampling.NEAREST), (left, top + LINE))
        pen.rectangle((left - 1, top + LINE - 1, left + CELL, top + LINE + CELL), outline=160)
    return frame
