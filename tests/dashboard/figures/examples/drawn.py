"""What a figure draws."""

from collections.abc import Callable, Iterator, Mapping
from typing import TypeVar
from xml.etree import ElementTree

import numpy as np
import pandas as pd

from attention_sieve.dashboard.figures.export import figure_svg
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.text.sides import Side

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
    """The rows of one kind."""
    return figure.data[figure.data["kind"] == kind]


def layers(spec: dict) -> Iterator[dict]:
    """The layers of a chart that have marks."""
    for layer in spec["layer"]:
        yield from layers(layer) if "layer" in layer else [layer]


def texts_of(svg: str) -> list[str]:
    """Every text in an SVG; fails where it is no XML."""
    texts = ElementTree.fromstring(svg).iter(f"{SVG}text")
    return [line.text or "" for text in texts for line in (list(text) or [text])]


def drawn_texts(figure: Figure) -> list[str]:
    """Every text in the drawn figure."""
    return texts_of(figure_svg(figure, title="A title", caption=[]))


def plain(tokens: list[str], **changes: object) -> Side:
    """Tokens that are all ordinary words."""
    n_tokens = len(tokens)
    fields = {"special": np.zeros(n_tokens, bool), "segments": np.zeros(n_tokens, int), "words": np.arange(n_tokens)}
    return Side(tokens=tokens, **fields | changes)
