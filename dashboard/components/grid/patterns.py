"""Attention patterns of all heads in one text, compressed for the cells of a grid and the preview of the arcs."""

from dataclasses import dataclass
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Float, UInt8, UInt16

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard.components.source import base64_of, quantised

MOST_WEIGHTS: Final = 540_000
"""Maximum number of weights sent for all heads, a byte each; beyond it, cells and the strongest links are sent."""
LARGEST_SIDE: Final = 64
"""Maximum number of rows or columns of a pattern, where not every weight is sent."""
BYTES_OF_LINK: Final = 3


@dataclass(frozen=True, eq=False, kw_only=True)
class Patterns:
    """Attention of every head in one text, quantised as square roots in 256 steps."""

    n_queries: int
    n_keys: int
    is_part: bool
    """Whether the keys are part of a text, so that some attention goes to keys outside."""
    cells: UInt8[np.ndarray, "layer head down across"]
    """Every weight, or the largest of each block of queries and keys."""
    keys: UInt16[np.ndarray, "layer head query link"] | None
    """Keys of each query's strongest links, strongest first; None where `cells` holds every weight."""
    weights: UInt8[np.ndarray, "layer head query link"] | None
    """Weights of the same links."""

    def data(self) -> dict[str, Any]:
        """As the script of the grid reads it."""
        links = None
        if self.keys is not None and self.weights is not None:
            links = {
                "each": self.keys.shape[-1],
                "keys": base64_of(self.keys.astype("<u2")),
                "weights": base64_of(self.weights),
            }
        return {
            "queries": self.n_queries,
            "keys": self.n_keys,
            "isPart": self.is_part,
            "shape": list(self.cells.shape[2:]),
            "cells": base64_of(self.cells),
            "links": links,
        }


_patterns: WeakKeyDictionary[TextAttention, Patterns] = WeakKeyDictionary()
_frames: WeakKeyDictionary[TextAttention, str] = WeakKeyDictionary()
_numbers = count()


def frame_of(text_attention: TextAttention) -> str:
    """Name of this attention in all its views, by which they know that they show the same."""
    return _frames.setdefault(text_attention, str(next(_numbers)))


def patterns_of(text_attention: TextAttention) -> Patterns:
    """The patterns of all heads in a text, or in the window of a long one; computed once per attention."""
    if text_attention not in _patterns:
        _patterns[text_attention] = pack_patterns(text_attention.attention, is_part=text_attention.overview is not None)
    return _patterns[text_attention]


def pack_patterns(
    attention: Float[np.ndarray, "layer head query key"], *, is_part: bool, most_weights: int = MOST_WEIGHTS
) -> Patterns:
    """Quantise every weight, or if there are too many, the largest of each cell and each query's strongest links.

    Args:
        attention: of all heads; rows sum to 1, or to less where the keys are part of a text. Heads that were removed
            from the checkpoint, NaN, have empty patterns.
        is_part: whether the keys are part of a text.
        most_weights: maximum size of all patterns in bytes, as weights or as links.
    """
    attention = np.nan_to_num(attention, nan=0)
    n_layers, n_heads, n_queries, n_keys = attention.shape
    keys = weights = None
    if attention.size <= most_weights:
        cells = quantised(attention)
    else:
        side = max(8, min(LARGEST_SIDE, int((most_weights / 2 / (n_layers * n_heads)) ** 0.5)))
        cells = quantised(_largest(attention, min(side, n_queries), min(side, n_keys)))
        n_links = max(1, min(n_keys, most_weights // (BYTES_OF_LINK * n_layers * n_heads * n_queries)))
        keys = _strongest_keys(attention, n_links)
        weights = quantised(np.take_along_axis(attention, keys.astype(np.intp), axis=-1))
    return Patterns(n_queries=n_queries, n_keys=n_keys, is_part=is_part, cells=cells, keys=keys, weights=weights)


def _largest(
    attention: Float[np.ndarray, "layer head query key"], down: int, across: int
) -> Float[np.ndarray, "layer head down across"]:
    """The largest weight of each block of queries and keys: a mean would lose a thin diagonal."""
    rows = np.arange(down) * attention.shape[2] // down
    columns = np.arange(across) * attention.shape[3] // across
    return np.maximum.reduceat(np.maximum.reduceat(attention, rows, axis=2), columns, axis=3)


def _strongest_keys(
    attention: Float[np.ndarray, "layer head query key"], n_links: int
) -> UInt16[np.ndarray, "layer head query link"]:
    """Keys of each query's strongest links, strongest first."""
    remaining = attention.copy()
    keys = np.empty((*attention.shape[:3], n_links), dtype=np.uint16)
    # Few passes over all weights take less time than sorting each row.
    for link in range(n_links):
        strongest = remaining.argmax(axis=-1, keepdims=True)
        keys[..., link] = strongest[..., 0]
        np.put_along_axis(remaining, strongest, -1, axis=-1)
    return keys
