"""What a figure draws."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.sheet import figure_svg
from attention_sieve.dashboard.figures.text.arcs import Side

SVG = "{http://www.w3.org/2000/svg}"
Picture = TypeVar("Picture")


class Drawn(Mapping[str, Picture]):
    """Figures by name, each drawn once, when it is first asked for: tests are collected without drawing any."""

    def __init__(self, drawers: Mapping[str, Callable[[], Picture]]):
        self.drawers, self.drawn = drawers, dict[str, Picture]()

    def __getitem__(self, name: str) -> Picture:
        if name not in self.drawn:
            self.drawn[name] = self.drawers[name]()
        return self.drawn[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.drawers)

    def __len__(self) -> int:
        return len(self.drawers)


def rows(figure: Figure, kind: str) -> pd.DataFrame:
    return figure.data[figure.data["kind"] == kind]


def layers(spec: dict) -> Iterator[dict]:
    """The layers of a chart that have marks."""
    for layer in spec["layer"]:
        yield from layers(layer) if "layer" in layer else [layer]


def texts_of(svg: str) -> list[str]:
    """Every text in an SVG; fails where it is no XML."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [line.text or "" for text in texts for line in (list(text) or [text])]


def _placed(svg: str) -> Iterator[tuple[ElementTree.Element, float, float, float]]:
    """Each line of text with its place on the page, and by how much it is scaled."""

    def walk(element: ElementTree.Element, x: float, y: float, scale: float) -> Iterator[tuple]:
        for name, given in re.findall(r"(translate|scale|rotate)\(([^)]*)\)", element.get("transform") or ""):
            numbers = [float(number) for number in re.split(r"[ ,]+", given.strip())]
            if name == "translate":
                x, y = x + scale * numbers[0], y + scale * (numbers[1] if len(numbers) > 1 else 0)
            elif name == "scale":
                scale *= numbers[0]
        if element.tag == f"{SVG}text" and "".join(element.itertext()) and element.get("opacity") != "0":
            yield element, x + scale * float(element.get("x", 0)), y + scale * float(element.get("y", 0)), scale
        for child in element:
            yield from walk(child, x, y, scale)

    return walk(ElementTree.fromstring(svg), 0, 0, 1)


def smallest_letters(svg: str) -> float:
    return min(scale * float(text.get("font-size").removesuffix("px")) for text, _, _, scale in _placed(svg))


def cut_off(svg: str) -> list[str]:
    root = ElementTree.fromstring(svg)
    width, height = (float(root.get(name)) for name in ("width", "height"))
    return ["".join(text.itertext()) for text, x, y, _ in _placed(svg) if not (0 <= x <= width and 0 <= y <= height)]


def drawn_texts(figure: Figure) -> list[str]:
    return texts_of(figure_svg(figure, title="A title", caption=[]))


def plain(tokens: list[str], **changes: object) -> Side:
    """Tokens that are all ordinary words."""
    n_tokens = len(tokens)
    fields = {"special": np.zeros(n_tokens, bool), "segments": np.zeros(n_tokens, int), "words": np.arange(n_tokens)}
    return Side(tokens=tokens, **fields | changes)
