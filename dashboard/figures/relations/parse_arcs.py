"""A sentence between two sets of arcs: its dependency tree above, and below where a head attends to most."""

import unicodedata
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np

from core.texts.relations import ROOT
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import INK
from dashboard.figures.relations.sentences import NOWHERE, Sentence
from dashboard.figures.sheet import DARK, FONT, Block, printable, sheet
from dashboard.figures.text.arcs_svg import visible

RIGHT_COLOR, WRONG_COLOR = HEAD_COLORS[:2]
LETTER: Final = 8.2
"""Pixels of a letter of a word; those of East Asian scripts take two."""
SMALL: Final = 6.4
"""Pixels of a letter of a relation's name."""
GAP: Final = 18
STEP: Final = 21
"""Pixels between an arc and the next higher one."""
LOWEST: Final = 26
"""Height of the lowest arc."""
ASIDE: Final = 5
"""Pixels from a word's middle to where arcs to its dependents begin, so that those to and from it stay apart."""
MARGIN: Final = 16
ABOVE_WORDS: Final = 20
"""Pixels from the words' line up to the feet of the arcs above them."""
BELOW_WORDS: Final = 12
RIGHT: Final = "right"
WRONG: Final = "wrong"
CHECK: Final = "✓"
OUTSIDE: Final = {-1: "←", 1: "→"}
"""Signs of a prediction before the sentence, and of one after it."""
LONGEST_WORD: Final = 24

Arc = tuple[int, int, str]
"""Word at its beginning, word at its end, where the arrow is, and its name: of a relation, or RIGHT or WRONG."""


def parse_arcs_svg(drawn: Sentence, *, attends: str, label: str) -> str:
    """The sentence in a row, the arcs of its tree above, and below those of a head of the checkpoint.

    Above, arrows go from head to dependent. Below, from the word that attends to the one it attends to most: solid with
    a check mark where that is right, dashed where it is not. Roots are underlined; words whose prediction is drawn are
    bold.

    Args:
        drawn: the sentence.
        attends: "dependent-to-head" where each word's own row predicts its head, else "head-to-dependent".
        label: what is drawn, for screen readers.

    Returns: an SVG element, safe to be put into a page: whatever text it holds stays text.
    """
    picture = _picture(drawn, attends, INK)
    size = {"width": f"{picture.width:g}", "height": f"{picture.height:g}"}
    size["viewBox"] = f"0 0 {picture.width:g} {picture.height:g}"
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img", **size})
    svg.attrib |= {"aria-label": printable(label), "fill": INK}
    svg.extend(picture.drawn)
    return ET.tostring(svg, encoding="unicode")


def parse_arcs_file(drawn: Sentence, *, attends: str, title: str, reading: str, caption: Sequence[str]) -> str:
    """The same as a file of its own, on white; a long sentence is drawn smaller, so that it fits a page.

    Args:
        drawn: the sentence.
        attends: as above.
        title: above it.
        reading: what the arcs mean.
        caption: lines beneath: where the figure comes from.

    Returns: an SVG document.
    """
    picture = _picture(drawn, attends, DARK)
    picture.drawn.set("fill", DARK)
    return sheet(title, [picture], reading=[reading], caption=caption)


def _picture(drawn: Sentence, attends: str, ink: str) -> Block:
    middles, width = _middles(drawn)
    above = [(head, word, drawn.relations[word]) for word, head in enumerate(drawn.heads.tolist()) if head != ROOT]
    below, leaving = _predictions(drawn, attends)
    baseline = MARGIN + ABOVE_WORDS + _height(above) + 12
    end = baseline + BELOW_WORDS + _height(below) + (44 if leaving else 22)
    svg = ET.Element("g")
    for arc, level in zip(above, _levels(above)):
        _arc(svg, middles, arc, baseline - ABOVE_WORDS, -LOWEST - STEP * level, ink)
    for arc, level in zip(below, _levels(below)):
        _arc(svg, middles, arc, baseline + BELOW_WORDS, LOWEST + STEP * level, ink)
    for word, side in leaving:
        _stub(svg, middles[word], baseline + BELOW_WORDS, end - 12, side)
    _words(svg, drawn, middles, baseline)
    return Block(svg, width, end + 14)


def _words(svg: ET.Element, drawn: Sentence, middles: Sequence[float], baseline: float) -> None:
    for word, x in enumerate(middles):
        bold = "700" if drawn.judged[word] else "400"
        _write(svg, x, baseline, _shortened(drawn.words[word]), 15, "middle", weight=bold)
        if drawn.heads[word] == ROOT:
            svg[-1].set("text-decoration", "underline")


def _predictions(drawn: Sentence, attends: str) -> tuple[list[Arc], list[tuple[int, int]]]:
    """Arcs below the words, and words whose arc leaves the sentence with the side it leaves to."""
    arcs, leaving, right = list[Arc](), list[tuple[int, int]](), drawn.right
    for word in np.flatnonzero(drawn.judged & (drawn.predicted != NOWHERE)).tolist():
        head = int(drawn.predicted[word])
        if not 0 <= head < len(drawn.words):
            leaving.append((word, -1 if head < 0 else 1))
            continue
        ends = (word, head) if attends == "dependent-to-head" else (head, word)
        arcs.append((*ends, RIGHT if right[word] else WRONG))
    return arcs, leaving


def _levels(arcs: Sequence[Arc]) -> list[int]:
    """How high each arc is drawn, from 0: above all shorter ones that it overlaps."""
    levels = [0] * len(arcs)
    placed = list[int]()
    for place in sorted(range(len(arcs)), key=lambda place: (abs(arcs[place][0] - arcs[place][1]), place)):
        low, high = sorted(arcs[place][:2])
        below = [levels[of] for of in placed if min(high, max(arcs[of][:2])) > max(low, min(arcs[of][:2]))]
        levels[place] = 1 + max(below, default=-1)
        placed.append(place)
    return levels


def _height(arcs: Sequence[Arc]) -> float:
    """Of all arcs on one side of the words."""
    return LOWEST + STEP * max(_levels(arcs), default=0)


def _middles(drawn: Sentence) -> tuple[list[float], float]:
    """Middle of each word, and the width of all; a relation's name has room between two neighbours."""
    widths = [LETTER * _letters(_shortened(word)) for word in drawn.words]
    middles, x = list[float](), float(MARGIN)
    for word, width in enumerate(widths):
        middle = x + width / 2
        if word:
            joins = [
                SMALL * _letters(drawn.relations[of])
                for of, other in ((word, word - 1), (word - 1, word))
                if drawn.heads[of] == other
            ]
            middle = max(middle, middles[-1] + max(joins, default=0) + 2 * ASIDE + 12)
        middles.append(middle)
        x = middle + width / 2 + GAP
    return middles, x - GAP + MARGIN


def _arc(svg: ET.Element, middles: Sequence[float], arc: Arc, feet: float, height: float, ink: str) -> None:
    """An arc with an arrow at its end and its name at its crest, which is below its feet where the height is above 0.

    What a head predicts has its look; a right prediction has a check mark for a name, and a wrong one none.
    """
    (from_word, to_word, name), crest, down = arc, feet + height, (1 if height > 0 else -1)
    look = _look(name) if down > 0 else {"stroke": ink, "stroke-width": "1.2"}
    shown = name if down < 0 else CHECK if name == RIGHT else ""
    way = 1 if to_word > from_word else -1
    begin, end = middles[from_word] + ASIDE * way, middles[to_word]
    bend = min(14.0, abs(end - begin) / 2)
    path = (
        f"M{begin:g} {feet:g}Q{begin:g} {crest:g} {begin + bend * way:g} {crest:g}"
        f"H{end - bend * way:g}Q{end:g} {crest:g} {end:g} {feet:g}"
    )
    ET.SubElement(svg, "path", {"d": path, "fill": "none", **look})
    ET.SubElement(svg, "path", {"d": f"M{end:g} {feet:g}l-3.5 {7 * down}h7z", "fill": look["stroke"]})
    if shown:
        _write(svg, (begin + end) / 2, crest + (13 if down > 0 else -4), shown, 13 if down > 0 else 11, "middle")


def _stub(svg: ET.Element, x: float, feet: float, end: float, side: int) -> None:
    """A prediction outside the sentence: a line past all arcs, and the side it lies on."""
    ET.SubElement(svg, "path", {"d": f"M{x:g} {feet:g}V{end:g}", "fill": "none", **_look(WRONG)})
    _write(svg, x, end + 13, OUTSIDE[side], 15, "middle")


def _look(kind: str) -> dict[str, str]:
    if kind == RIGHT:
        return {"stroke": RIGHT_COLOR, "stroke-width": "3"}
    return {"stroke": WRONG_COLOR, "stroke-width": "1.6", "stroke-dasharray": "5 4"}


def _write(svg: ET.Element, x: float, y: float, text: str, size: float, anchor: str, *, weight: str = "400") -> None:
    where = {"x": f"{x:g}", "y": f"{y:g}", "font-size": f"{size:g}"}
    how = {"text-anchor": anchor, "font-weight": weight}
    ET.SubElement(svg, "text", where | how).text = printable(text)


def _shortened(word: str) -> str:
    shown = visible(word)
    return shown if len(shown) <= LONGEST_WORD else shown[: LONGEST_WORD - 1] + "…"


def _letters(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
