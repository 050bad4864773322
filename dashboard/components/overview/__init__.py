"""Overview of the attention in a long text: down-sampled maps of heads, with a window that the reader moves."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float, Int, UInt16

from attention_sieve.core.attention.settings import Window, head_name
from attention_sieve.dashboard.components.source import Selection, Source, base64_of, joined, push

MOST_HEADS: Final = 12
MOST_BLOCKS: Final = 128
ROW_SUM_SLACK: Final = 0.02
"""Rows of half-precision attention miss 1 by about this much in a long text."""
STEPS_PER_OCTAVE: Final = 1800
LEAST_OCTAVE: Final = -16
NOT_SEEN: Final = 65535
_mount: Final = Source(
    name="overview",
    html=joined("overview/overview.html"),
    css=joined("view.css", "overview/overview.css"),
    js=joined("page.js", "overview/scale.js", "overview/map.js", "overview/window.js", "overview/overview.js"),
).registered()


@dataclass(frozen=True, eq=False, kw_only=True)
class Overview:
    attention: Float[np.ndarray, "chosen query_block key_block"]
    """Mean weight of each cell, a block of queries by a block of keys; at most 128 x 128 cells."""
    heads: Sequence[tuple[int, int]]
    """Layer and head of each map; 1 to 12."""
    tokens: tuple[int, int]
    """Number of tokens of the whole text that attend, and of those attended to."""
    block: tuple[int, int]
    """Number of queries and of keys in a cell; the last block of each may be short."""
    causal: bool = False
    """Whether a query sees only itself and the tokens before it."""
    names: tuple[str, str] = ("queries", "keys")
    """Labels of the rows and of the columns."""
    label: str


def attention_overview(overview: Overview, selection: Selection[Window]) -> Window:
    """Draw the maps and return the window the reader has chosen.

    Moving the window is the only interaction that runs the page: a click or a drag on a map, or arrow keys and Enter.

    Args:
        selection: the window, whose size never changes.

    Returns: the chosen window, inside the text.
    Raises: ValueError where shapes, heads or row sums do not fit.
    """
    _check(overview)
    queries, keys = map(_stretches, overview.tokens, overview.block)
    uniform = _uniform(queries, keys, overview.causal)
    if (overview.attention[:, uniform == 0] > 0).any():
        raise ValueError("A causal head attends to no later token, but these maps do; draw them as not causal.")
    start_window = _inside(selection.initial, *overview.tokens)
    start = [start_window.queries[0], start_window.keys[0]]
    rev, pushed = push(selection.key, "start", start, selection.reset)

    def handle_change() -> None:
        if selection.on_change is not None:
            selection.on_change(chosen_window(st.session_state.get(selection.key), start_window, *overview.tokens))

    state = _mount(
        key=selection.key,
        data={
            "label": overview.label,
            "names": list(overview.names),
            "heads": [head_name(*head) for head in overview.heads],
            "tokens": list(overview.tokens),
            "block": list(overview.block),
            "causal": overview.causal,
            "ratios": base64_of(_coded(overview.attention, uniform)),
            "size": [stop - first for first, stop in (start_window.queries, start_window.keys)],
            "key": selection.key,
            "start": pushed,
            "rev": rev,
        },
        default={"start": start},
        on_start_change=handle_change,
        width="stretch",
        height="content",
    )
    return chosen_window(state, start_window, *overview.tokens)


def chosen_window(state: object, window: Window, n_queries: int, n_keys: int) -> Window:
    """The window in the state of a view, perhaps of an earlier text, moved inside this one; `window` if it has none."""
    start = state.get("start") if isinstance(state, Mapping) else None
    # JSON has one type of number and True is an int, so the type is checked exactly.
    if isinstance(start, list | tuple) and len(start) == 2 and all(type(position) is int for position in start):
        window = Window(queries=_moved(window.queries, start[0]), keys=_moved(window.keys, start[1]))
    return _inside(window, n_queries, n_keys)


def _moved(stretch: tuple[int, int], start: int) -> tuple[int, int]:
    return start, start + stretch[1] - stretch[0]


def _inside(window: Window, n_queries: int, n_keys: int) -> Window:
    return Window(queries=_within(window.queries, n_queries), keys=_within(window.keys, n_keys))


def _within(stretch: tuple[int, int], n_tokens: int) -> tuple[int, int]:
    """The range shifted into the text, and cut only if it is longer than the text."""
    start, stop = stretch
    if start >= stop:
        raise ValueError(f"A window needs tokens on both sides, got those from {start} to {stop - 1}.")
    length = min(stop - start, n_tokens)
    start = min(max(start, 0), n_tokens - length)
    return start, start + length


def _check(overview: Overview) -> None:
    attention, heads, tokens, block = overview.attention, overview.heads, overview.tokens, overview.block
    if not 1 <= len(heads) <= MOST_HEADS:
        raise ValueError(f"The overview shows 1 to {MOST_HEADS} heads, got {len(heads)}.")
    if min(*tokens, *block) < 1:
        raise ValueError(f"Tokens and blocks are at least 1, got {tokens} tokens in blocks of {block}.")
    shape = (len(heads), ceil(tokens[0] / block[0]), ceil(tokens[1] / block[1]))
    if max(shape[1:]) > MOST_BLOCKS:
        raise ValueError(
            f"The overview draws at most {MOST_BLOCKS} x {MOST_BLOCKS} cells, got {shape[1]} x {shape[2]}. "
            "Take larger blocks."
        )
    if attention.shape != shape:
        raise ValueError(
            f"{tokens[0]} queries by {tokens[1]} keys in blocks of {block[0]} x {block[1]} need attention of shape "
            f"{shape}, got {attention.shape}."
        )
    if not np.isfinite(attention).all() or attention.min() < 0:
        raise ValueError("Attention has negative or missing weights; give the weights after the softmax.")
    furthest = (attention @ _lengths(tokens[1], block[1]).astype(np.float64) - 1).max()
    if furthest > ROW_SUM_SLACK:
        raise ValueError(
            f"Mean weights times the blocks' lengths sum to at most 1 in each row; one is off by {furthest:.3g}. "
            "Give the mean weight of each cell, not its sum."
        )


def _lengths(n_tokens: int, block: int) -> Int[np.ndarray, " block"]:
    return np.diff(np.append(np.arange(0, n_tokens, block), n_tokens))


def _stretches(n_tokens: int, block: int) -> tuple[Int[np.ndarray, " block"], Int[np.ndarray, " block"]]:
    """First token and length of each block."""
    return np.arange(0, n_tokens, block), _lengths(n_tokens, block)


def _uniform(
    queries: tuple[np.ndarray, np.ndarray], keys: tuple[np.ndarray, np.ndarray], causal: bool
) -> Float[np.ndarray, "query_block key_block"]:
    """Mean weight of each cell under uniform attention over the visible keys; 0 where no key is visible."""
    (from_starts, from_lengths), (to_starts, to_lengths) = queries, keys
    if not causal:
        return np.full((len(from_starts), len(to_starts)), 1 / to_lengths.sum())
    n_seen = np.arange(1, from_lengths.sum() + 1)[:, None]
    seen_part = np.clip(n_seen - to_starts, 0, to_lengths) / to_lengths
    return np.add.reduceat(seen_part / n_seen, from_starts, axis=0) / from_lengths[:, None]


def _coded(
    attention: Float[np.ndarray, "chosen query_block key_block"], uniform: Float[np.ndarray, "query_block key_block"]
) -> UInt16[np.ndarray, "chosen query_block key_block"]:
    """Attention divided by uniform attention on a log scale, accurate to 0.02%; NOT_SEEN where no key is visible."""
    visible = np.broadcast_to(uniform > 0, attention.shape)
    ratio = np.divide(attention, uniform, out=np.zeros(attention.shape), where=visible)
    octaves = np.log2(ratio, out=np.full(attention.shape, -np.inf), where=ratio > 0)
    steps = np.clip(np.rint((octaves - LEAST_OCTAVE) * STEPS_PER_OCTAVE), 0, NOT_SEEN - 1)
    return np.where(visible, steps, NOT_SEEN).astype("<u2")
