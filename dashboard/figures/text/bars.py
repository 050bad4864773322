"""What a model says, as bars: its likeliest words or classes, with the heads that are off and with all heads on."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Float

from attention_sieve.dashboard.figures.appearance import head_color
from attention_sieve.dashboard.figures.figure import GREY, drawable, percent
from attention_sieve.dashboard.figures.text.arcs import visible

MOST: Final = 6
"""Bars that are drawn at most."""
LONGEST: Final = 16
"""Characters of a name."""
ROW, WORDS, LENGTH, NUMBERS = 26, 132, 220, 60
"""Height of a row, and widths of its name, its longest bar and its number."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Bars:
    """Words or classes, each with its probability."""

    names: Sequence[str]
    """As they are read, the likeliest with all heads on first."""
    now: Float[np.ndarray, " name"]
    all_on: Float[np.ndarray, " name"] | None = None
    """None where no head is off."""

    @property
    def said(self) -> int:
        """Index of the likeliest one."""
        return int(self.now.argmax())

    @property
    def description(self) -> str:
        """In words, for those who do not see it."""
        before = [""] * len(self.names) if self.all_on is None else [f", was {percent(p, 0)}" for p in self.all_on]
        rows = zip(self.names, self.now, before, strict=True)
        return "What it says: " + "; ".join(f"{name} {percent(p, 0)}{was}" for name, p, was in rows)


def read_names(tokens: Sequence[str]) -> list[str]:
    """Tokens without the blanks around them, where these tell no two of them apart."""
    plain = [visible(token.strip(" ")) if token.strip() else visible(token) for token in tokens]
    return [visible(token) if plain.count(name) > 1 else name for token, name in zip(tokens, plain, strict=True)]


def bars_of(names: Sequence[str], now: Float[np.ndarray, " name"], all_on: Float[np.ndarray, " name"] | None) -> Bars:
    """The bars that are drawn: those that were likeliest keep their places, and the likeliest ones are among them."""
    order = np.argsort(-(now if all_on is None else all_on), kind="stable")
    likely = set(np.argsort(-np.maximum(now, 0 if all_on is None else all_on), kind="stable")[:MOST].tolist())
    drawn = [int(place) for place in order if int(place) in likely]
    return Bars(
        names=[names[place] for place in drawn], now=now[drawn], all_on=None if all_on is None else all_on[drawn]
    )


def bars_svg(bars: Bars, n_rows: int = MOST) -> str:
    """A row for each name: a bar as long as its probability, and a stroke where it ended with all heads on.

    It has room for `n_rows`, however many names there are, so that what stands below it keeps its place.
    """
    width, height = WORDS + 10 + LENGTH + NUMBERS, ROW * n_rows + 4
    svg = ET.Element("svg", xmlns="http://www.w3.org/2000/svg", width="100%", viewBox=f"0 0 {width} {height}")
    for row, (name, share) in enumerate(zip(bars.names, bars.now.tolist(), strict=True)):
        middle, is_said = ROW * row + ROW / 2 + 2, row == bars.said
        _text(svg, WORDS, middle, drawable(_shortened(name)), is_bold=is_said, **{"text-anchor": "end"})
        color = head_color(0) if is_said else GREY
        size = {"width": f"{max(LENGTH * share, 1):.2f}", "height": f"{ROW - 8}"}
        place = {"x": f"{WORDS + 10}", "y": f"{middle - ROW / 2 + 4}", "data-bar": drawable(name)}
        ET.SubElement(svg, "rect", {**place, **size, "fill": color})
        end = LENGTH * share
        if bars.all_on is not None:
            was = LENGTH * float(bars.all_on[row])
            path = f"M{WORDS + 10 + was:.2f},{middle - ROW / 2 + 2}v{ROW - 4}"
            ET.SubElement(svg, "path", {"d": path, "stroke": "currentColor", "stroke-width": "2", "fill": "none"})
            end = max(end, was)
        _text(svg, WORDS + 18 + end, middle, percent(share, 0), is_bold=is_said)
    return ET.tostring(svg, encoding="unicode")


def _shortened(name: str) -> str:
    return name if len(name) <= LONGEST else name[: LONGEST - 1] + "…"


def _text(svg: ET.Element, x: float, middle: float, text: str, *, is_bold: bool, **place: str) -> None:
    looks = {"font-size": "16", "font-weight": "700" if is_bold else "400", "fill": "currentColor"}
    ET.SubElement(svg, "text", {"x": f"{x:.2f}", "y": f"{middle + 6}", **looks, **place}).text = text
