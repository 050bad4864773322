"""Attention arcs of chosen heads: the Python face of the view that the html, css and scripts beside it draw."""

import base64
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float, Int

from dashboard.figures.appearance import HEAD_COLORS, head_color
from dashboard.figures.arcs_svg import DEFAULT_SHARE, head_name, visible

MOST_HEADS: Final = 12
MOST_TOKENS_UNSCROLLED: Final = 256
SCROLL_HEIGHT: Final = 640
ROW_SUM_SLACK: Final = 0.02
"""Rows of half-precision attention miss 1 by about this much in a long text."""
SCRIPTS: Final = (
    "numbers.js",
    "drawing.js",
    "matrix.js",
    "controls.js",
    "tokens.js",
    "words.js",
    "pointer.js",
    "together.js",
    "arcs.js",
)
"""Joined to one module, in this order: a component takes a single script."""

_HERE = Path(__file__).parent
_mount = st.components.v2.component(
    "attention_sieve.arcs",
    html=(_HERE / "arcs.html").read_text("utf-8"),
    css=(_HERE / "arcs.css").read_text("utf-8"),
    js="\n".join((_HERE / script).read_text("utf-8") for script in SCRIPTS),
    isolate_styles=True,
)


def attention_arcs(
    *,
    key: str,
    tokens: Sequence[str],
    special: Bool[np.ndarray, " token"],
    segments: Int[np.ndarray, " token"],
    word_of: Int[np.ndarray, " token"],
    attention: Float[np.ndarray, "chosen query key"],
    heads: Sequence[tuple[int, int]],
    sieve: tuple[str, Bool[np.ndarray, "query key"]] | None = None,
    label: str,
    height: int | None = None,
    share: float = DEFAULT_SHARE,
    group: str | None = None,
) -> None:
    """Show where chosen heads look in one text: arcs under the pointer, or the same heads as matrices.

    Pointer, pin and switches stay in the browser: nothing comes back, and no interaction runs the page again.

    Args:
        key: the view's name on the page.
        tokens: as shown; any text is safe.
        special: True for tokens that the tokenizer added.
        segments: 0 or 1; -1 for special tokens.
        word_of: number of the token's word in the whole text; -1 for special tokens.
        attention: of the chosen heads; rows sum to 1.
        heads: layer and head of each chosen head, in the order of their colours; 1 to 12.
        sieve: a role's name and its sieve, to lay over the arcs.
        label: what the view shows, for screen readers.
        height: most pixels the rows take before they scroll; by default long texts (over 256 tokens) scroll.
        share: where the slider starts: the top share of each query's attention that is drawn.
        group: views of the same text and the same group point, pin and scroll together.

    Raises: ValueError where shapes, heads or row sums do not fit.
    """
    _check_tokens(tokens, special, segments, word_of)
    _check_attention(attention, len(tokens), heads)
    if not 0 < share <= 1:
        raise ValueError(f"The share must be above 0 and at most 1, got {share}.")
    if sieve is not None and sieve[1].shape != (len(tokens), len(tokens)):
        raise ValueError(
            f"A sieve for {len(tokens)} tokens has shape {(len(tokens), len(tokens))}, got {sieve[1].shape}."
        )
    scrolls = len(tokens) > MOST_TOKENS_UNSCROLLED
    data = {
        "label": label,
        "tokens": [visible(token) for token in tokens],
        "special": [int(is_special) for is_special in special],
        "segments": [int(segment) for segment in segments],
        "words": [int(word) for word in word_of],
        "wordLabels": _word_labels(tokens, word_of),
        "heads": [
            {"name": head_name(layer, head), "color": head_color(number), "dashed": number >= len(HEAD_COLORS)}
            for number, (layer, head) in enumerate(heads)
        ],
        "attention": _quantised(attention),
        "sieve": None if sieve is None else _sieve_data(*sieve, attention),
        "height": height or (SCROLL_HEIGHT if scrolls else None),
        "share": share,
        "group": group,
    }
    _mount(key=key, data=data, width="stretch", height="content")


def _check_tokens(tokens: Sequence[str], special: np.ndarray, segments: np.ndarray, word_of: np.ndarray) -> None:
    if not tokens:
        raise ValueError("Arcs need at least one token, got none.")
    for name, values in (("special", special), ("segments", segments), ("word_of", word_of)):
        if values.shape != (len(tokens),):
            raise ValueError(f"{name} needs one value for each of {len(tokens)} tokens, got shape {values.shape}.")


def _check_attention(attention: np.ndarray, n_tokens: int, heads: Sequence[tuple[int, int]]) -> None:
    if not 1 <= len(heads) <= MOST_HEADS:
        raise ValueError(f"Arcs show 1 to {MOST_HEADS} heads, got {len(heads)}.")
    if len(set(heads)) < len(heads):
        raise ValueError(f"Each head can be shown once, got {', '.join(head_name(*head) for head in heads)}.")
    if attention.shape != (len(heads), n_tokens, n_tokens):
        raise ValueError(
            f"{len(heads)} heads and {n_tokens} tokens need attention of shape {(len(heads), n_tokens, n_tokens)}, "
            f"got {attention.shape}."
        )
    if not np.isfinite(attention).all() or attention.min() < 0:
        raise ValueError("Attention has negative or missing weights; give the weights after the softmax.")
    furthest = np.abs(attention.sum(axis=-1, dtype=np.float64) - 1).max()
    if furthest > ROW_SUM_SLACK:
        raise ValueError(f"Each query's attention sums to 1; one row is off by {furthest:.3g}.")


def _quantised(attention: Float[np.ndarray, "chosen query key"]) -> str:
    """Square roots in 256 steps: errors of 0.004 near a weight of 1 and 0.000004 near 0, at one byte a weight."""
    steps = np.rint(np.sqrt(np.clip(attention, 0, 1)) * 255).astype(np.uint8)
    return _base64(steps)


def _base64(values: np.ndarray) -> str:
    return base64.b64encode(np.ascontiguousarray(values).tobytes()).decode("ascii")


def _word_labels(tokens: Sequence[str], word_of: Int[np.ndarray, " token"]) -> list[str]:
    """Each word's text from its pieces, by word number; a number that no token has gets no text."""
    labels = [""] * (int(word_of.max()) + 1)
    for token, word in zip(tokens, word_of):
        if word >= 0:
            labels[word] += token.removeprefix("##") if labels[word] else token
    return [visible(label) for label in labels]


def _sieve_data(
    role: str, sieve: Bool[np.ndarray, "query key"], attention: Float[np.ndarray, "chosen query key"]
) -> dict[str, Any]:
    """The overlay, and how much of each head's attention falls in it; `even` is what evenly spread attention gives."""
    has_cells = sieve.any(axis=1)
    inside = (attention * sieve).sum(axis=-1, dtype=np.float64)[:, has_cells]
    n_seen = _seen_keys(attention)[has_cells]
    return {
        "role": role,
        "cells": _base64(np.packbits(sieve)),
        "queries": int(has_cells.sum()),
        "inside": [round(float(mean), 4) for mean in inside.mean(axis=1)] if has_cells.any() else [],
        "even": round(float((sieve.sum(axis=1)[has_cells] / n_seen).mean()), 4) if has_cells.any() else None,
    }


def _seen_keys(attention: Float[np.ndarray, "chosen query key"]) -> Int[np.ndarray, " query"]:
    """Keys each query can see: all of them, or in a causal model itself and those before."""
    n_tokens = attention.shape[-1]
    causal = not np.triu(attention, 1).any()
    return np.arange(1, n_tokens + 1) if causal else np.full(n_tokens, n_tokens)
