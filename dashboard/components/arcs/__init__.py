"""Attention arcs of chosen heads: the Python face of the view that the html, css and scripts beside it draw."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float, Int

from core.attention.settings import head_name
from dashboard.components.arcs.look import Look, read_look
from dashboard.components.packing import as_text, base64_of
from dashboard.components.selection import push
from dashboard.components.terms import TERM_STYLE
from dashboard.figures.appearance import HEAD_COLORS, LESS, MORE, WORD_COLORS, head_color
from dashboard.figures.text.arcs_svg import DEFAULT_SHARE, LEAST_DIFFERENCE, visible
from dashboard.figures.text.sides import Side
from dashboard.glossary import TERMS

MOST_HEADS: Final = 12
SIDES: Final = ("from", "to")
"""Queries and keys, as the scripts call them."""
MOST_TOKENS_UNSCROLLED: Final = 256
SCROLL_HEIGHT: Final = 640
ROW_SUM_SLACK: Final = 0.02
"""Rows of half-precision attention miss 1 by about this much in a long text."""
SCRIPTS: Final = (
    "../page.js",
    "../later.js",
    "../terms/term.js",
    "numbers.js",
    "table.js",
    "links.js",
    "drawing.js",
    "matrix.js",
    "controls.js",
    "tokens.js",
    "words.js",
    "pointer.js",
    "together.js",
    "preview.js",
    "look.js",
    "arcs.js",
)
"""Joined to one module, in this order: a component takes a single script."""

AS_IT_WAS: Final = Look()

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "attention_sieve.arcs",
    html=(_HERE / "arcs.html").read_text("utf-8"),
    css="\n".join(path.read_text("utf-8") for path in (TERM_STYLE, _HERE / "arcs.css")),
    js="\n".join((_HERE / script).read_text("utf-8") for script in SCRIPTS),
    isolate_styles=True,
)


def attention_arcs(
    *,
    key: str,
    queries: Side,
    keys: Side | None = None,
    attention: Float[np.ndarray, "chosen query key"],
    heads: Sequence[tuple[int, int]],
    causal: bool = False,
    sieve: tuple[str, Bool[np.ndarray, "query key"]] | None = None,
    label: str,
    height: int | None = None,
    share: float = DEFAULT_SHARE,
    look: Look = AS_IT_WAS,
    on_look: Callable[[Look], None] | None = None,
    group: str | None = None,
    frame: str | None = None,
    grid: str | None = None,
    controls: Literal["with", "without", "alone"] = "with",
    signed: bool = False,
    more: str = "more attention",
    less: str = "less attention",
    ask: tuple[str, str] | None = None,
    on_ask: Callable[[str, int], None] | None = None,
) -> None:
    """Show where chosen heads look in one text: arcs under the pointer, or the same heads as matrices.

    With `signed`, where one head looks more and where it looks less: a difference of two such maps, drawn in two
    colours. Shares are then of what a query's differences come to, more and less alike, and hidden special tokens leave
    the rest as it is.

    Pointer, pin and switches work in the browser; what the reader has set comes back a moment later, for the link.

    Args:
        key: the view's name on the page.
        queries: the tokens that attend: those of a text, or of a window into it.
        keys: the tokens attended to; None where these are the queries.
        attention: of the chosen heads; rows sum to 1, or to less where the keys are part of a text. With `signed` of
            one head, between -1 and 1; rows sum to 0, unless the keys are part of a text.
        heads: layer and head of each chosen head, in the order of their colours; 1 to 12.
        causal: whether a query sees only itself and the tokens before it.
        sieve: a role's name and its sieve, to lay over the arcs.
        label: what the view shows, for screen readers.
        height: most pixels the rows take before they scroll; by default windows and long texts (over 256) scroll.
        share: where the slider starts: the top share of each query's attention that is drawn, counted of the whole
            row, whether it lies in the window or not.
        look: how the view is set when it comes to the page.
        on_look: called with what the reader has set.
        group: views of the same text and the same group point, pin and scroll together and have the same switches and
            share; where one has too many links to draw, all draw the share that it can.
        frame: what a grid of the same text calls it, whose patterns are then previewed.
        grid: key of the grid that the arrow keys take to the next head or layer; None where there is none.
        controls: whether the switches stand above the picture, or are left out, or stand alone: of a group, one view
            can be the switches for the pictures of the others.
        signed: whether `attention` is a difference: the compared checkpoint minus the reference.
        more: what a weight above 0 means.
        less: what a weight below 0 means.
        ask: what a button says beside a pinned query, and beside a pinned key; None for no such button.
        on_ask: called with "from" or "to" and the position of the pinned token in the whole text, before the run that
            follows a press of that button.

    Raises: ValueError where shapes, heads or row sums do not fit.
    """
    same, keys = keys is None or keys is queries, keys or queries
    shape = (len(queries.tokens), len(keys.tokens))
    _check_heads(attention, shape, heads)
    if signed:
        _check_difference(attention, whole=not keys.is_part)
    else:
        _check_attention(attention, whole=not keys.is_part)
    if not 0 < share <= 1:
        raise ValueError(f"The share must be above 0 and at most 1, got {share}.")
    if sieve is not None and sieve[1].shape != shape:
        raise ValueError(f"A sieve for {shape[0]} queries and {shape[1]} keys has that shape, got {sieve[1].shape}.")
    scrolls = max(shape) > MOST_TOKENS_UNSCROLLED or queries.is_part or keys.is_part
    data = {
        "label": label,
        "means": {"query": TERMS["query"], "key": TERMS["key"]},
        "queries": _side_data(queries),
        "keys": None if same else _side_data(keys),
        "heads": [
            {"name": head_name(layer, head), "color": head_color(number), "dashed": number >= len(HEAD_COLORS)}
            for number, (layer, head) in enumerate(heads)
        ],
        "wordPens": [{"color": color, "dashed": False} for color in WORD_COLORS],
        "signed": _signs(more, less) if signed else None,
        "attention": _steps(attention) if signed else _quantised(attention),
        "inside": _row_sums(attention) if keys.is_part and not signed else None,
        "sieve": None if sieve is None else _sieve_data(*sieve, attention, _seen_keys(queries, keys, causal)),
        "height": height or (SCROLL_HEIGHT if scrolls else None),
        "share": share,
        "group": group,
        "ask": None if ask is None else dict(zip(SIDES, ask)),
        "frame": frame,
        "grid": grid,
        "controls": controls,
        "look": push(key, "look", look.parameters, None)[1],
        "tells": on_look is not None,
    }
    _mount(
        key=key,
        data=as_text(data),
        width="stretch",
        height="content",
        on_asked_change=partial(_take_asked, key, dict(zip(SIDES, (queries, keys))), on_ask),
        on_look_change=partial(_take_look, key, on_look),
    )


def _take_look(key: str, on_look: Callable[[Look], None] | None) -> None:
    """Hand on what the reader has set."""
    state = st.session_state.get(key)
    said = state.get("look") if isinstance(state, Mapping) else None
    if on_look is not None and isinstance(said, Mapping):
        on_look(read_look(said))


def _take_asked(key: str, sides: Mapping[str, Side], on_ask: Callable[[str, int], None] | None) -> None:
    """Hand on the pinned token that the reader asks about."""
    asked = st.session_state[key]["asked"]
    side, token = asked["side"], int(asked["token"])
    if on_ask is not None and side in sides and 0 <= token < sides[side].length:
        on_ask(side, token)


def _check_heads(attention: np.ndarray, shape: tuple[int, int], heads: Sequence[tuple[int, int]]) -> None:
    if not 1 <= len(heads) <= MOST_HEADS:
        raise ValueError(f"Arcs show 1 to {MOST_HEADS} heads, got {len(heads)}.")
    if len(set(heads)) < len(heads):
        raise ValueError(f"Each head can be shown once, got {', '.join(head_name(*head) for head in heads)}.")
    if attention.shape != (len(heads), *shape):
        raise ValueError(
            f"{len(heads)} heads, {shape[0]} queries and {shape[1]} keys need attention of shape "
            f"{(len(heads), *shape)}, got {attention.shape}."
        )


def _check_attention(attention: np.ndarray, *, whole: bool) -> None:
    """A head that was removed from its checkpoint has weights of 0 only."""
    if not np.isfinite(attention).all() or attention.min() < 0:
        raise ValueError("Attention has negative or missing weights; give the weights after the softmax.")
    excess = attention[attention.any(axis=(1, 2))].sum(axis=-1, dtype=np.float64) - 1
    furthest = (np.abs(excess) if whole else excess).max(initial=0)
    if furthest > ROW_SUM_SLACK:
        rule = "sums to 1" if whole else "sums to at most 1"
        raise ValueError(f"Each query's attention {rule}; one row is off by {furthest:.3g}.")


def _check_difference(attention: np.ndarray, *, whole: bool) -> None:
    if len(attention) > 1:
        raise ValueError(f"A difference of attention is drawn for one head at a time, got {len(attention)}.")
    if not np.isfinite(attention).all() or np.abs(attention).max() > 1 + ROW_SUM_SLACK:
        raise ValueError("Differences of attention lie between -1 and 1; subtract the weights after the softmax.")
    furthest = np.abs(attention.sum(axis=-1, dtype=np.float64)).max()
    if furthest > 2 * ROW_SUM_SLACK and whole:
        raise ValueError(f"Each query's differences sum to 0; one row sums to {furthest:.3g}.")


def _signs(more: str, less: str) -> dict[str, Any]:
    """What the two colours mean, the second with dashes, and what is too small to draw."""
    pens = [{"color": MORE, "dashed": False}, {"color": LESS, "dashed": True}]
    return {"more": more, "less": less, "pens": pens, "least": LEAST_DIFFERENCE}


def _side_data(side: Side) -> dict[str, Any]:
    words = _from_zero(side.words)
    return {
        "tokens": [visible(token) for token in side.tokens],
        "special": [int(is_special) for is_special in side.special],
        "segments": [int(segment) for segment in side.segments],
        "words": [int(word) for word in words],
        "wordLabels": _word_labels(side.tokens, words),
        "name": side.name,
        "start": side.start,
        "whole": side.length,
    }


def _from_zero(words: Int[np.ndarray, " token"]) -> Int[np.ndarray, " token"]:
    """The same words numbered from 0: those of a window begin anywhere."""
    numbered = np.full(len(words), -1)
    numbered[words >= 0] = np.unique(words[words >= 0], return_inverse=True)[1]
    return numbered


def _quantised(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """Square roots in 256 steps: errors of 0.004 near a weight of 1 and 0.000004 near 0, at one byte a weight."""
    steps = np.rint(np.sqrt(np.clip(attention, 0, 1)) * 255).astype(np.uint8)
    return base64_of(steps)


def _steps(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """Differences in even steps, 32767 up and as many down, so that equal weights stay equal."""
    return base64_of(np.rint(np.clip(attention, -1, 1) * 32767).astype("<i2"))


def _row_sums(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """How much of each query's attention stays in the window, in 65536 steps."""
    inside = np.clip(attention.sum(axis=-1, dtype=np.float64), 0, 1)
    return base64_of(np.rint(inside * 65535).astype("<u2"))


def _word_labels(tokens: Sequence[str], word_of: Int[np.ndarray, " token"]) -> list[str]:
    """Each word's text from its pieces, by word number."""
    labels = [""] * (int(word_of.max()) + 1)
    for token, word in zip(tokens, word_of):
        if word >= 0:
            labels[word] += token.removeprefix("##") if labels[word] else token
    return [visible(label) for label in labels]


def _sieve_data(
    role: str,
    sieve: Bool[np.ndarray, "query key"],
    attention: Float[np.ndarray, "chosen query key"],
    seen_keys: Int[np.ndarray, " query"],
) -> dict[str, Any]:
    """The overlay, and how much of each head's attention falls in it; `even` is what evenly spread attention gives."""
    has_cells = sieve.any(axis=1)
    inside = (attention * sieve).sum(axis=-1, dtype=np.float64)[:, has_cells]
    n_seen = seen_keys[has_cells]
    return {
        "role": role,
        "cells": base64_of(np.packbits(sieve)),
        "queries": int(has_cells.sum()),
        "inside": [round(float(mean), 4) for mean in inside.mean(axis=1)] if has_cells.any() else [],
        "even": round(float((sieve.sum(axis=1)[has_cells] / n_seen).mean()), 4) if has_cells.any() else None,
    }


def _seen_keys(queries: Side, keys: Side, causal: bool) -> Int[np.ndarray, " query"]:
    """Keys of the whole text that each query can see: all of them, or in a causal model itself and those before."""
    positions = queries.start + np.arange(len(queries.tokens))
    return positions + 1 if causal else np.full(len(positions), keys.length)
