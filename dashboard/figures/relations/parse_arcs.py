"""A sentence between two sets of arcs: its dependency tree above, and below the predictions of a head; and the
sentences of a text with both."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final
from xml.etree import ElementTree as ET

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.texts.relations import ROOT, Dependencies
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.figure import INK
from attention_sieve.dashboard.figures.sheet import DARK, FONT, SHEET, Block, Size, TextStyle, printable, sheet, write
from attention_sieve.dashboard.figures.text.arcs import visible

NOWHERE: Final = int(np.iinfo(np.int64).min)
"""Stands for no prediction."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PredictedSentence:
    words: tuple[str, ...]
    heads: Int[np.ndarray, " word"]
    """Index of each word's head in the sentence; ROOT for a root."""
    relations: tuple[str, ...]
    predicted: Int[np.ndarray, " word"]
    """Index of the predicted head of each word in the sentence; out of range for one outside the sentence, and NOWHERE
    for a word without a prediction."""
    judged: Bool[np.ndarray, " word"]
    """Words whose prediction is drawn."""
    is_paired: bool = False
    """Whether its relations are pairs that a file marks, each from its first word to its second, and no tree."""

    @property
    def right(self) -> Bool[np.ndarray, " word"]:
        return self.judged & (self.predicted == self.heads)


def sentence(
    words: Sequence[str],
    dependencies: Dependencies,
    predicted: Int[np.ndarray, " word"],
    judged: Bool[np.ndarray, " word"],
    span: tuple[int, int],
    is_paired: bool = False,
) -> PredictedSentence:
    """Extract a sentence from a text.

    Args:
        predicted: head of each word as predicted by an attention head; below 0 for none.
        judged: words whose prediction is drawn.
        span: first and one-past-last word of the sentence.
    """
    start, stop = span
    heads, sentence_predictions = dependencies.heads[start:stop], predicted[start:stop]
    return PredictedSentence(
        words=tuple(words[start:stop]),
        heads=np.where(heads == ROOT, ROOT, heads - start),
        relations=dependencies.relations[start:stop],
        predicted=np.where(sentence_predictions < 0, NOWHERE, sentence_predictions - start),
        judged=judged[start:stop],
        is_paired=is_paired,
    )


def sentences(heads: Int[np.ndarray, " word"]) -> list[tuple[int, int]]:
    """First and one-past-last word of each sentence of a text: sentences end where no arc of the trees crosses."""
    n_words = len(heads)
    words = np.arange(n_words)
    ends = np.where(heads == ROOT, words, heads)
    across = np.zeros(n_words + 1, int)
    np.add.at(across, np.minimum(words, ends) + 1, 1)
    np.add.at(across, np.maximum(words, ends) + 1, -1)
    cuts = np.flatnonzero(np.cumsum(across)[: n_words + 1] == 0).tolist()
    return list(pairwise(cuts))


RIGHT_COLOR, WRONG_COLOR = HEAD_COLORS[:2]
LETTER: Final = 8.2
"""Width of a letter of a word in pixels; East Asian letters have twice the width."""
SMALL: Final = 6.4
"""Width of a letter of a relation's name in pixels."""
GAP: Final = 18
STEP: Final = 21
"""Pixels between an arc and the next higher one."""
LOWEST: Final = 26
"""Height of the lowest arc."""
ASIDE: Final = 5
"""Pixels from the middle of a word to the start of its arcs, so that incoming and outgoing arcs do not overlap."""
MARGIN: Final = 16
ABOVE_WORDS: Final = 20
"""Pixels from the words up to the ends of the arcs above them."""
BELOW_WORDS: Final = 12
RIGHT: Final = "right"
WRONG: Final = "wrong"
CHECK: Final = "✓"
OUTSIDE: Final = {-1: "←", 1: "→"}
"""Signs of predictions before and after the sentence."""
LONGEST_WORD: Final = 24
_WORD, _JUDGED = (TextStyle(15, "middle", weight, color=None) for weight in ("400", "700"))
_RELATION, _CHECK = (TextStyle(size, "middle", color=None) for size in (11, 13))

Arc = tuple[int, int, str]
"""Start word, end word with the arrow, and name: a relation, RIGHT or WRONG."""


def parse_arcs_svg(sentence: PredictedSentence, *, attends: str, label: str) -> str:
    """The sentence in a row, the arcs of its tree above, and below those of a head of the checkpoint.

    Above, arrows go from head to dependent, or as marked pairs do. Below, from the attending word to its most attended
    word: solid with a check mark if the prediction is right, dashed if not. Roots are underlined; words whose
    prediction is drawn are bold.

    Args:
        attends: "dependent-to-head" if each word's own row predicts its head, else "head-to-dependent".

    Returns: an SVG element that is safe to embed in a page: all text is escaped.
    """
    picture = _picture(sentence, attends, INK)
    size = {"width": f"{picture.width:g}", "height": f"{picture.height:g}"}
    size["viewBox"] = f"0 0 {picture.width:g} {picture.height:g}"
    svg = ET.Element("svg", {"xmlns": "http://www.w3.org/2000/svg", "font-family": FONT, "role": "img", **size})
    svg.attrib |= {"aria-label": printable(label), "fill": INK}
    svg.extend(picture.drawn)
    return ET.tostring(svg, encoding="unicode")


def parse_arcs_file(
    sentence: PredictedSentence, *, attends: str, title: str, reading: str, caption: Sequence[str], size: Size = SHEET
) -> str:
    """The same as a standalone file, on white; long sentences are scaled to fit.

    Returns: an SVG document.
    """
    picture = _picture(sentence, attends, DARK)
    picture.drawn.set("fill", DARK)
    return sheet(title, [picture], reading=[reading], caption=caption, size=size)


def _picture(sentence: PredictedSentence, attends: str, ink: str) -> Block:
    middles, width = _middles(sentence)
    above = [
        (*((word, head) if sentence.is_paired else (head, word)), sentence.relations[word])
        for word, head in enumerate(sentence.heads.tolist())
        if head != ROOT
    ]
    below, leaving = _predictions(sentence, attends)
    baseline = MARGIN + ABOVE_WORDS + _height(above) + 12
    end = baseline + BELOW_WORDS + _height(below) + (44 if leaving else 22)
    svg = ET.Element("g")
    for arc, level in zip(above, _levels(above)):
        _arc(svg, middles, arc, baseline - ABOVE_WORDS, -LOWEST - STEP * level, ink)
    for arc, level in zip(below, _levels(below)):
        _arc(svg, middles, arc, baseline + BELOW_WORDS, LOWEST + STEP * level, ink)
    for word, side in leaving:
        _stub(svg, middles[word], baseline + BELOW_WORDS, end - 12, side)
    _words(svg, sentence, middles, baseline)
    return Block(svg, width, end + 14)


def _words(svg: ET.Element, sentence: PredictedSentence, middles: Sequence[float], baseline: float) -> None:
    for word, x in enumerate(middles):
        style = _JUDGED if sentence.judged[word] else _WORD
        write(svg, x, baseline, _shortened(sentence.words[word]), style)
        if sentence.heads[word] == ROOT and not sentence.is_paired:
            svg[-1].set("text-decoration", "underline")


def _predictions(sentence: PredictedSentence, attends: str) -> tuple[list[Arc], list[tuple[int, int]]]:
    """Arcs below the words, and words whose arc leaves the sentence, with the side."""
    arcs, leaving, right = list[Arc](), list[tuple[int, int]](), sentence.right
    for word in np.flatnonzero(sentence.judged & (sentence.predicted != NOWHERE)).tolist():
        head = int(sentence.predicted[word])
        if not 0 <= head < len(sentence.words):
            leaving.append((word, -1 if head < 0 else 1))
            continue
        ends = (word, head) if attends == "dependent-to-head" else (head, word)
        arcs.append((*ends, RIGHT if right[word] else WRONG))
    return arcs, leaving


def _levels(arcs: Sequence[Arc]) -> list[int]:
    """Level of each arc, from 0: above all shorter arcs that it overlaps."""
    levels = [0] * len(arcs)
    drawn = list[int]()
    for index in sorted(range(len(arcs)), key=lambda index: (abs(arcs[index][0] - arcs[index][1]), index)):
        low, high = sorted(arcs[index][:2])
        below = [levels[other] for other in drawn if min(high, max(arcs[other][:2])) > max(low, min(arcs[other][:2]))]
        levels[index] = 1 + max(below, default=-1)
        drawn.append(index)
    return levels


def _height(arcs: Sequence[Arc]) -> float:
    return LOWEST + STEP * max(_levels(arcs), default=0)


def _middles(sentence: PredictedSentence) -> tuple[list[float], float]:
    """Middle of each word, and the total width; there is room for a relation's name between two neighbours."""
    widths = [LETTER * _letters(_shortened(word)) for word in sentence.words]
    middles, x = list[float](), float(MARGIN)
    for word, width in enumerate(widths):
        middle = x + width / 2
        if word:
            joins = [
                SMALL * _letters(sentence.relations[word_of_pair])
                for word_of_pair, neighbour in ((word, word - 1), (word - 1, word))
                if sentence.heads[word_of_pair] == neighbour
            ]
            middle = max(middle, middles[-1] + max(joins, default=0) + 2 * ASIDE + 12)
        middles.append(middle)
        x = middle + width / 2 + GAP
    return middles, x - GAP + MARGIN


def _arc(svg: ET.Element, middles: Sequence[float], arc: Arc, feet: float, height: float, ink: str) -> None:
    """An arc with an arrow at its end and its name at its crest, which is below its ends if the height is positive.

    Predictions have their own style; right ones have a check mark as their name, wrong ones no name.
    """
    (from_word, to_word, name), crest, sign = arc, feet + height, (1 if height > 0 else -1)
    look = _look(name) if sign > 0 else {"stroke": ink, "stroke-width": "1.2"}
    label = name if sign < 0 else CHECK if name == RIGHT else ""
    direction = 1 if to_word > from_word else -1
    begin, end = middles[from_word] + ASIDE * direction, middles[to_word]
    bend = min(14.0, abs(end - begin) / 2)
    path = (
        f"M{begin:g} {feet:g}Q{begin:g} {crest:g} {begin + bend * direction:g} {crest:g}"
        f"H{end - bend * direction:g}Q{end:g} {crest:g} {end:g} {feet:g}"
    )
    ET.SubElement(svg, "path", {"d": path, "fill": "none", **look})
    ET.SubElement(svg, "path", {"d": f"M{end:g} {feet:g}l-3.5 {7 * sign}h7z", "fill": look["stroke"]})
    if label:
        below, style = (13, _CHECK) if sign > 0 else (-4, _RELATION)
        write(svg, (begin + end) / 2, crest + below, label, style)


def _stub(svg: ET.Element, x: float, feet: float, end: float, side: int) -> None:
    """A prediction outside the sentence: a line past all arcs, with an arrow to its side."""
    ET.SubElement(svg, "path", {"d": f"M{x:g} {feet:g}V{end:g}", "fill": "none", **_look(WRONG)})
    write(svg, x, end + 13, OUTSIDE[side], _WORD)


def _look(kind: str) -> dict[str, str]:
    if kind == RIGHT:
        return {"stroke": RIGHT_COLOR, "stroke-width": "3"}
    return {"stroke": WRONG_COLOR, "stroke-width": "1.6", "stroke-dasharray": "5 4"}


def _shortened(word: str) -> str:
    text = visible(word)
    return text if len(text) <= LONGEST_WORD else text[: LONGEST_WORD - 1] + "…"


def _letters(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)
