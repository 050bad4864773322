"""The card of a head: one picture of 1200 x 630 pixels, the size that sites show of a link."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.figure import percent
from attention_sieve.dashboard.figures.roles.distributions import HeadScores, head_scores
from attention_sieve.dashboard.figures.sheet import (
    DARK,
    FONT,
    PER_INCH,
    Box,
    TextStyle,
    chart_block,
    printable,
    svg_png,
    text_width,
    wrapped,
    write,
)

WIDTH, HEIGHT = 1200, 630
MARGIN: Final = 52
ROOM: Final = WIDTH - 2 * MARGIN
MOST_BLOCKS: Final = 64
"""Rows, and columns, of the drawn pattern; of a longer text each stands for the mean over several tokens."""
_MUTED: Final = "#4F6367"
_MARKED: Final = "#D55E00"
_TOP: Final = 226
"""Upper end of the three pictures."""
_PATTERN: Final = 276
_LINKS: Final = (372, 344)
"""Left end and width."""
_SCORES: Final = (752, 396)
"""Left end and width."""
_SCORES_SCALE: Final = 1.2


@dataclass(frozen=True, kw_only=True)
class CardLink:
    """How much one word, or token, looks at another one."""

    query: str
    key: str
    share: float
    """0 to 1."""
    rows: tuple[int, ...]
    """Tokens of the query in the text."""
    columns: tuple[int, ...]
    """Tokens of the key."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadCard:
    """What the card of a head says. All words are data: they may come from texts and files."""

    checkpoint: str
    scores: HeadScores
    name: str
    sentence: str
    pattern: Float[np.ndarray, "row column"]
    """Attention in the text, 0 to 1: of its tokens, or of blocks of a text that is too long to be drawn."""
    text: str
    links: tuple[CardLink, ...]
    about_links: str
    control: str
    notes: tuple[str, ...]
    """Lines at the foot: on what the name was judged, and where the numbers come from."""
    facts: Mapping[str, str]
    """Provenance."""
    found: str = ""
    """What a player says of the head; empty for none."""

    @property
    def title(self) -> str:
        """What the card is of, in a line."""
        return f"{self.name}: {head_name(*self.scores.head)} of {self.checkpoint}"


def card_svg(card: HeadCard) -> str:
    """The card as SVG, with its provenance as the description."""
    size = {"width": str(WIDTH), "height": str(HEIGHT), "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img", **size})
    ET.SubElement(svg, "title").text = printable(card.title)
    ET.SubElement(svg, "desc").text = "\n".join(printable(f"{name}: {fact}") for name, fact in card.facts.items())
    Box(0, 0, WIDTH, HEIGHT).fill(svg, "#FFFFFF")
    layer, head = card.scores.head
    found_width = text_width(card.found, 22) if card.found else 0
    whose = f"{cut(card.checkpoint, ROOM - found_width - 320, 22)}  ·  layer {layer}, head {head}"
    write(svg, MARGIN, 64, whose, TextStyle(22, color=_MUTED))
    write(svg, WIDTH - MARGIN, 64, card.found, TextStyle(22, "end", "600", _MARKED))
    size_of_name = min(52.0, 52 * ROOM / text_width(card.name, 54))
    write(svg, MARGIN, 122, cut(card.name, ROOM, size_of_name), TextStyle(size_of_name, weight="700"))
    for order, line in enumerate(_lines(card.sentence, ROOM, 24, 2)):
        write(svg, MARGIN, 162 + 30 * order, line, TextStyle(24))
    _draw_pattern(svg, card)
    _draw_links(svg, card)
    _draw_scores(svg, card)
    ET.SubElement(svg, "line", {"x1": f"{MARGIN}", "x2": f"{WIDTH - MARGIN}", "y1": "554", "y2": "554"} | _RULE)
    write(svg, WIDTH - MARGIN, 602, "Attention Sieve", TextStyle(20, "end", "700", _MUTED))
    for order, line in enumerate([part for note in card.notes for part in _lines(note, ROOM - 200, 12, 2)][:3]):
        write(svg, MARGIN, 574 + 16 * order, line, TextStyle(12, color=_MUTED))
    return ET.tostring(svg, encoding="unicode")


def card_png(card: HeadCard) -> bytes:
    """The card as PNG of WIDTH x HEIGHT pixels, with its provenance as metadata; in the fonts of the machine, and where
    it has none, in Liberation Sans, which the converter brings."""
    return svg_png(card_svg(card), card.title, card.facts, dots_per_inch=PER_INCH)


def card_file(card: HeadCard, suffix: str) -> bytes:
    """The card as a file, by its suffix: .svg or .png."""
    return card_svg(card).encode() if suffix == ".svg" else card_png(card)


_RULE: Final = {"stroke": "#D5DADB", "stroke-width": "1"}


def _draw_pattern(svg: ET.Element, card: HeadCard) -> None:
    """The attention as fields, dark for much, with the links framed; below it the text."""
    rows, columns = (min(MOST_BLOCKS, length) for length in card.pattern.shape)
    field = _PATTERN / max(rows, columns)
    group = ET.SubElement(svg, "g", {"transform": f"translate({MARGIN} {_TOP})", "class": "pattern"})
    fields = _means(card.pattern, rows, columns)
    for row, column in np.ndindex(rows, columns):
        share = float(fields[row, column])
        gap = min(1.0, 0.08 * field)
        box = Box(field * column, field * row, field - gap, field - gap)
        box.fill(group, DARK, 0.03 + 0.97 * min(1.0, share) ** 0.6 if share > 0 else 0.03)
    for link in card.links if card.pattern.shape == (rows, columns) else ():
        top, left = min(link.rows), min(link.columns)
        height, width = max(link.rows) + 1 - top, max(link.columns) + 1 - left
        Box(field * left, field * top, field * width, field * height).inner(-1, 0).frame(group, _MARKED, 2.5)
    below = _TOP + field * rows + 22
    for order, line in enumerate(_lines(card.text, _PATTERN + 20, 14, max(1, int((548 - below) // 18) + 1))):
        write(svg, MARGIN, below + 18 * order, line, TextStyle(14, color=_MUTED))


def _means(pattern: Float[np.ndarray, "row column"], rows: int, columns: int) -> Float[np.ndarray, "block key_block"]:
    """The mean attention between blocks of about as many tokens each."""
    for axis, n_blocks in ((0, rows), (1, columns)):
        pattern = np.stack([part.mean(axis=axis) for part in np.array_split(pattern, n_blocks, axis=axis)], axis=axis)
    return pattern


def _draw_links(svg: ET.Element, card: HeadCard) -> None:
    """Each link as a line that is the thicker the more the query looks at the key, with its share."""
    left, width = _LINKS
    lines = _lines(card.about_links, width, 16, 3)
    for order, line in enumerate(lines):
        write(svg, left, _TOP + 14 + 20 * order, line, TextStyle(16, color=_MUTED))
    top = _TOP + 24 + 20 * len(lines)
    word = 0.36 * width
    for order, link in enumerate(card.links):
        y = top + 30 + 56 * order
        ends = {"x1": f"{left + word + 6:g}", "x2": f"{left + width - word - 8:g}", "y1": f"{y:g}", "y2": f"{y:g}"}
        width_of_line = max(1.5, 16 * link.share)
        ET.SubElement(svg, "line", ends | {"stroke": _MARKED, "stroke-width": f"{width_of_line:.3g}"})
        write(svg, left + word, y + 6, cut(link.query, word, 19), TextStyle(19, "end"))
        write(svg, left + width - word, y + 6, cut(link.key, word, 19), TextStyle(19))
        write(svg, left + width / 2, y - 6 - width_of_line / 2, percent(link.share, 0), TextStyle(14, "middle"))
    for order, line in enumerate(_lines(card.control, width, 15, 4)):
        write(svg, left, top + 20 + 56 * max(1, len(card.links)) + 19 * order, line, TextStyle(15, color=_MUTED))


def _draw_scores(svg: ET.Element, card: HeadCard) -> None:
    """The raincloud of *Scores*, without its legend."""
    left, width = _SCORES
    short = WORDS[card.scores.scale].short
    write(svg, left, _TOP + 14, f"Each {short} a dot; large: mean; diamond: this text", TextStyle(14, color=_MUTED))
    chart = chart_block(head_scores(card.scores, has_legend=False), width / _SCORES_SCALE)
    scale = min(width / chart.width, (548 - _TOP - 22) / chart.height)
    place = {"transform": f"translate({left} {_TOP + 22}) scale({scale:.4g})", "class": "scores"}
    group = ET.SubElement(svg, "g", place)
    group.append(chart.drawn)


def _lines(text: str, width: float, size: float, most: int) -> list[str]:
    """The first lines of a text, at most so many; an ellipsis stands for the rest."""
    lines = wrapped(text, width, size) if text else []
    return lines if len(lines) <= most else [*lines[: most - 1], cut(f"{lines[most - 1]}…", width, size)]


def cut(text: str, width: float, size: float) -> str:
    """A text on one line, with an ellipsis for what is beyond its width."""
    if text_width(text, size) <= width:
        return text
    n = len(text)
    while n > 1 and text_width(f"{text[:n]}…", size) > width:
        n -= 1
    return f"{text[:n].rstrip('…')}…"
