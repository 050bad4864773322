"""One number per head as a coloured grid in which the reader chooses heads."""

from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.components.choosing import choose, heads_data, heads_source
from attention_sieve.dashboard.components.source import Selection, base64_of
from attention_sieve.dashboard.figures.appearance import MUTED_PART
from attention_sieve.dashboard.figures.head_map import NOT_APPLICABLE, Detail, HeadMap

_mount: Final = heads_source("head_map", "head_map/head_map.css", "head_map/head_map.js").registered()


def head_map(picture: HeadMap, selection: Selection[list[Head]]) -> list[Head]:
    """Draw the map and return the heads of it that the reader has chosen, in the order they were chosen."""
    values, marked, cells = picture.values, picture.marked, picture.cells
    low, high = picture.ends
    less, more = picture.colors
    if picture.muted:
        less = f"color-mix(in srgb, {less} {MUTED_PART:.0%}, var(--st-background-color))"
    data = {
        **heads_data((len(values), len(values[0])), picture.label),
        "title": picture.title,
        "low": [picture.low_label, low],
        "high": [high, picture.high_label],
        "ends": {"more": more, "less": less},
        "parts": base64_of(np.clip(values / picture.bound, -1, 1).astype("<f4")),
        "texts": [[picture.written(float(value)) for value in row] for row in values],
        "cells": None if cells is None else [list(row) for row in cells],
        "missing": NOT_APPLICABLE,
        "marked": None if marked is None else base64_of(marked.astype(np.uint8)),
        "mark": picture.mark,
        "details": [{"label": detail[0], "texts": _texts(detail)} for detail in picture.details],
        "shared": picture.n_shared,
        "across": picture.layers_across,
    }
    return choose(_mount, selection, data)


def _texts(detail: Detail) -> list[list[str]]:
    _, rows = detail
    return [[cell if isinstance(cell, str) else _number(float(cell)) for cell in row] for row in rows]


def _number(value: float) -> str:
    return NOT_APPLICABLE if np.isnan(value) else f"{value:.3g}".replace("-", "\N{MINUS SIGN}")
