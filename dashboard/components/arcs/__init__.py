"""Attention arcs of chosen heads: the Python function of the component."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.roles import role_title
from attention_sieve.dashboard.components.arcs.look import (
    AS_USUAL,
    ArcSettings,
    ArcStyle,
    AskedLink,
    Asking,
    GridBeside,
    Overlay,
    read_look,
)
from attention_sieve.dashboard.components.source import Selection, Source, as_text, base64_of, joined, push, quantised
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LESS, MORE, TARGETS, WORD_COLORS, head_color
from attention_sieve.dashboard.figures.text.arcs import (
    DEFAULT_SHARE,
    LEAST_DIFFERENCE,
    AttentionMaps,
    Side,
    Signs,
    visible,
)
from attention_sieve.dashboard.glossary import TERMS

MOST_HEADS: Final = 12
SIDES: Final = ("from", "to")
"""Names of queries and keys in the scripts."""
MOST_TOKENS_UNSCROLLED: Final = 256
SCROLL_HEIGHT: Final = 640
ROW_SUM_SLACK: Final = 0.02
"""Rows of half-precision attention miss 1 by about this much in a long text."""
SOURCE: Final = Source(
    name="arcs",
    html=joined("arcs/arcs.html"),
    css=joined("view.css", "switch.css", "terms/term.css", "arcs/arcs.css"),
    js=joined(
        "page.js",
        "later.js",
        "terms/term.js",
        "arcs/numbers.js",
        "arcs/table.js",
        "arcs/links.js",
        "arcs/targets.js",
        "arcs/drawing.js",
        "arcs/matrix.js",
        "arcs/controls.js",
        "arcs/tokens.js",
        "arcs/words.js",
        "arcs/asked.js",
        "arcs/pointer.js",
        "arcs/together.js",
        "arcs/preview.js",
        "arcs/look.js",
        "arcs/arcs.js",
    ),
)
_mount: Final = SOURCE.registered()


def attention_arcs(
    maps: AttentionMaps,
    selection: Selection[ArcSettings],
    style: ArcStyle = AS_USUAL,
    *,
    overlay: Overlay | None = None,
    grid: GridBeside | None = None,
    asking: Asking | None = None,
) -> None:
    """Show where chosen heads look in one text: arcs under the pointer, or the same heads as matrices.

    With signs, where one head attends more and where less: the difference of two such maps, in two colours. Shares
    are then shares of the sum of the absolute differences of a query, and hiding special tokens does not rescale the
    rest.

    Pointer, pin and switches work in the browser, which sends the settings back a moment later, for the link. Windows
    and texts of over MOST_TOKENS_UNSCROLLED tokens scroll.

    Args:
        maps: what is drawn, of 1 to 12 heads.
        grid: of the heads; None if there is none.
        asking: what is asked of the reader; None for nothing.

    Raises: ValueError where heads, row sums or the sieve do not fit.
    """
    n_looks, look = push(selection.key, "look", selection.initial.parameters, selection.reset, again=True)
    data = arcs_data(maps, style, overlay=overlay, grid=grid, asking=asking)
    _mount(
        key=selection.key,
        data=as_text({**data, "look": look, "looks": n_looks, "tells": selection.on_change is not None}),
        width="stretch",
        height="content",
        on_asked_change=partial(_take_question, selection.key, dict(zip(SIDES, (maps.queries, maps.keys))), asking),
        on_look_change=partial(_take_look, selection),
    )


def arcs_data(
    maps: AttentionMaps,
    style: ArcStyle = AS_USUAL,
    *,
    overlay: Overlay | None = None,
    grid: GridBeside | None = None,
    asking: Asking | None = None,
) -> dict[str, Any]:
    """What the script of the arcs reads, but for the settings of the view; as `attention_arcs`."""
    attention, queries, keys = maps.attention, maps.queries, maps.keys
    _check(maps)
    sieve = None if overlay is None else overlay.chosen
    if sieve is not None and sieve[1].shape != (shape := attention.shape[1:]):
        raise ValueError(f"A sieve for {shape[0]} queries and {shape[1]} keys has that shape, got {sieve[1].shape}.")
    offered = dict.fromkeys((*overlay.roles, *(sieve or ())[:1])) if overlay else ()
    scrolls = max(attention.shape[1:]) > MOST_TOKENS_UNSCROLLED or queries.is_part or keys.is_part
    return {
        "label": maps.label,
        "means": {"query": TERMS["query"], "key": TERMS["key"]},
        "queries": _side_data(queries),
        "keys": None if keys is queries else _side_data(keys),
        "heads": [_head_data(number, head, style) for number, head in enumerate(maps.heads)],
        "targets": [
            {"name": name, "label": _special(keys, name) or label, "color": color}
            for name, (label, color) in TARGETS.items()
        ],
        "grammar": None if overlay is None or overlay.grammar is None else base64_of(np.packbits(overlay.grammar)),
        "wordPens": [{"color": color, "dashed": False} for color in WORD_COLORS],
        "signed": None if maps.signs is None else _signs(maps.signs),
        "attention": _steps(attention) if maps.signs else base64_of(quantised(attention)),
        "inside": row_sums(attention) if keys.is_part and not maps.signs else None,
        "sieve": None if sieve is None else sieve_data(*sieve, maps),
        "sieves": [(role, role_title(role)) for role in offered],
        "height": style.height or (SCROLL_HEIGHT if scrolls else None),
        "share": DEFAULT_SHARE,
        "group": None if style.group is None else style.group.name,
        "text": None if style.group is None else style.group.text,
        "ask": None if asking is None else dict(zip(SIDES, (asking.about_query, asking.about_key))),
        "asked": None if asking is None or asking.link is None else _asked_data(asking.link),
        "frame": None if grid is None else grid.frame,
        "grid": None if grid is None else grid.key,
        "controls": style.controls,
    }


def _take_look(selection: Selection[ArcSettings]) -> None:
    """Pass on the settings that the reader has changed."""
    state = st.session_state.get(selection.key)
    value = state.get("look") if isinstance(state, Mapping) else None
    if selection.on_change is not None and isinstance(value, Mapping):
        selection.on_change(read_look(value))


def _take_question(key: str, sides: Mapping[str, Side], asking: Asking | None) -> None:
    """Pass on the pinned token that the reader asks about."""
    question = st.session_state[key]["asked"]
    side, token = question["side"], int(question["token"])
    if asking is not None and side in sides and 0 <= token < sides[side].length:
        asking.take(side, token)


def _check(maps: AttentionMaps) -> None:
    if not 1 <= len(maps.heads) <= MOST_HEADS:
        raise ValueError(f"Arcs show 1 to {MOST_HEADS} heads, got {len(maps.heads)}.")
    if len(set(maps.heads)) < len(maps.heads):
        raise ValueError(f"Each head can be shown once, got {', '.join(head_name(*head) for head in maps.heads)}.")
    check_rows = _check_difference if maps.signs else _check_attention
    check_rows(maps.attention)


def _check_attention(attention: np.ndarray) -> None:
    """Check that rows sum to at most 1: less where keys lie outside of a window, or an attention sink takes a part."""
    if not np.isfinite(attention).all() or attention.min() < 0:
        raise ValueError("Attention has negative or missing weights; give the weights after the softmax.")
    furthest = (attention.sum(axis=-1, dtype=np.float64) - 1).max(initial=0)
    if furthest > ROW_SUM_SLACK:
        raise ValueError(f"Each query's attention sums to at most 1; one row is off by {furthest:.3g}.")


def _check_difference(attention: np.ndarray) -> None:
    if not np.isfinite(attention).all() or np.abs(attention).max() > 1 + ROW_SUM_SLACK:
        raise ValueError("Differences of attention lie between -1 and 1; subtract the weights after the softmax.")


def _head_data(number: int, head: Head, style: ArcStyle) -> dict[str, Any]:
    is_dashed = number >= len(HEAD_COLORS) or head in style.dashed
    return {"name": head_name(*head), "color": head_color(number), "dashed": is_dashed}


def _asked_data(asked: AskedLink) -> dict[str, Any]:
    return {"query": asked.query, "guess": asked.guess, "is_answered": asked.is_answered}


def _signs(signs: Signs) -> dict[str, Any]:
    """Meaning of the two colours, the second dashed, and the smallest difference drawn."""
    pens = [{"color": MORE, "dashed": False}, {"color": LESS, "dashed": True}]
    return {"more": signs.more, "less": signs.less, "pens": pens, "least": LEAST_DIFFERENCE}


def _side_data(side: Side) -> dict[str, Any]:
    words = np.full(len(side.words), -1)
    # In a window the numbers of words start anywhere.
    words[side.words >= 0] = np.unique(side.words[side.words >= 0], return_inverse=True)[1]
    return {
        "tokens": [visible(token) for token in side.tokens],
        "special": [int(is_special) for is_special in side.special],
        "segments": [int(segment) for segment in side.segments],
        "words": [int(word) for word in words],
        "kinds": list(side.kinds),
        "wordLabels": _word_labels(side.tokens, words),
        "name": side.name,
        "start": side.start,
        "whole": side.length,
    }


def _special(side: Side, kind: str) -> str | None:
    """A special token of this kind among those of a side."""
    tokens = zip(side.tokens, side.special, side.kinds, strict=False)  # kinds may be unknown
    return next((visible(token) for token, is_special, of in tokens if is_special and of == kind), None)


def _steps(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """Differences in equal steps, 32767 above and below 0, so that equal weights stay equal."""
    return base64_of(np.rint(np.clip(attention, -1, 1) * 32767).astype("<i2"))


def row_sums(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """Share of each query's attention to keys in the window, in 65536 steps."""
    inside = np.clip(attention.sum(axis=-1, dtype=np.float64), 0, 1)
    return base64_of(np.rint(inside * 65535).astype("<u2"))


def _word_labels(tokens: Sequence[str], word_of: Int[np.ndarray, " token"]) -> list[str]:
    """Text of each word, joined from its tokens, by word number."""
    labels = [""] * (int(word_of.max()) + 1)
    for token, word in zip(tokens, word_of):
        if word >= 0:
            labels[word] += token.removeprefix("##") if labels[word] else token
    return [visible(label) for label in labels]


def sieve_data(role: str, sieve: Bool[np.ndarray, "query key"], maps: AttentionMaps) -> dict[str, Any]:
    """The overlay, and the share of each head's attention in it; `even` is that of uniform attention."""
    has_cells = sieve.any(axis=1)
    inside = (maps.attention * sieve).sum(axis=-1, dtype=np.float64)[:, has_cells]
    # A query sees all keys of the whole text, or in a causal model itself and those before.
    n_seen = maps.queries.start + np.flatnonzero(has_cells) + 1 if maps.causal else maps.keys.length
    return {
        "role": role_title(role),
        "cells": base64_of(np.packbits(sieve)),
        "queries": int(has_cells.sum()),
        "inside": [round(float(mean), 4) for mean in inside.mean(axis=1)] if has_cells.any() else [],
        "even": round(float((sieve.sum(axis=1)[has_cells] / n_seen).mean()), 4) if has_cells.any() else None,
    }
