"""The data of a text that is drawn without Streamlit."""

from typing import Any, Final

import numpy as np

from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.components.arcs import SCROLL_HEIGHT, arcs_data, row_sums, sieve_data
from attention_sieve.dashboard.components.arcs.look import ArcStyle, Overlay
from attention_sieve.dashboard.components.grid import Sieves, grammar_in, pack_patterns
from attention_sieve.dashboard.components.source import base64_of, quantised
from attention_sieve.dashboard.figures.text.arcs import AttentionMaps, Signs, sides
from attention_sieve.dashboard.figures.text.common import in_common

LEAST_OF_STEPS: Final = 0.01
"""Smallest difference of two weights that is drawn: next to 1, a step of their square roots makes one of 0.008."""
MOST_ROWS: Final = 36
"""Tokens beyond which the arcs scroll, so that the grid beside them stays in view."""


def difference_data(text: Text, looked: tuple[TextAttention, TextAttention]) -> dict[str, Any] | None:
    """What a script draws of the difference of two checkpoints in a text: the arcs but for their head, and where the
    two share words alone, all heads' attention between these; None where they share neither tokens nor words.

    The script takes the weights in equal steps of their square roots, so that two that are all but equal may differ by
    one: such differences are not drawn.
    """
    attention = [np.nan_to_num(each.attention, nan=0) for each in looked]
    n_heads = attention[0].shape[:2]
    flat = tuple(each.reshape(-1, *each.shape[2:]) for each in attention)
    common = in_common(text, looked, (flat[0], flat[1]))
    if common is None:
        return None
    shape = (len(common.queries.tokens), len(common.keys.tokens))
    maps = AttentionMaps(
        queries=common.queries,
        keys=common.keys,
        attention=np.zeros((1, *shape)),
        heads=[(0, 0)],
        causal=looked[0].causal,
        signs=Signs(),
        label="",
    )
    arcs = _without_heads(maps)
    arcs["signed"] |= {"least": LEAST_OF_STEPS}
    sides = [{"cells": base64_of(quantised(each.reshape(*n_heads, *shape)))} for each in (common.a, common.b)]
    return {"arcs": arcs, "queries": shape[0], "keys": shape[1], "sides": sides if common.is_on_words else None}


def _without_heads(maps: AttentionMaps, overlay: Overlay | None = None) -> dict[str, Any]:
    """What the arcs of a text are drawn of, but for what the script takes from all heads' attention."""
    height = SCROLL_HEIGHT if max(maps.attention.shape) > MOST_ROWS else None
    arcs = arcs_data(maps, ArcStyle(height=height), overlay=overlay)
    return {name: value for name, value in arcs.items() if name not in ("heads", "attention", "sieve", "inside")}


def text_data(text_attention: TextAttention, text: Text, sieves: Sieves, model: str) -> dict[str, Any]:
    """What `LinkedText` draws of a text: the arcs but for their heads, all heads' attention, and the sieves.

    Args:
        text_attention: the text with its attention, of which every weight is in the data, a byte each.
        text: as it was written.
        sieves: those that apply in it.
        model: name of the checkpoint, for screen readers.
    """
    queries, keys = sides(text_attention)
    attention = np.nan_to_num(text_attention.attention, nan=0)
    maps = AttentionMaps(
        queries=queries,
        keys=keys,
        attention=attention[0, :1],
        heads=[(0, 0)],
        causal=text_attention.causal,
        label=f"in {model}",
    )
    weights = pack_patterns(
        text_attention.attention,
        is_part=text_attention.overview is not None,
        most_weights=text_attention.attention.size,
    )
    return {
        "arcs": _without_heads(maps, Overlay(roles=tuple(sieves), grammar=grammar_in(text_attention, text))),
        "inside": row_sums(attention.reshape(-1, *attention.shape[2:])) if keys.is_part else None,
        "patterns": weights.data(),
        "sieves": {
            role: {name: value for name, value in sieve_data(role, cells, maps).items() if name != "inside"}
            for role, cells in sieves.items()
        },
    }
