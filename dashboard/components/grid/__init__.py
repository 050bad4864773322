"""The grid of roles: all heads of a checkpoint, in which the reader chooses heads, with the sieves of the roles and the
attention patterns of the heads in one text."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, Final
from weakref import WeakKeyDictionary

import numpy as np
from jaxtyping import Bool, Float, UInt8, UInt16

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.roles.hypotheses import CERTAIN, RESAMPLES, Criterion
from attention_sieve.core.roles.measures import RoleSet, SyntacticDirection
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.roles.record import DIRECTIONS, Keys
from attention_sieve.core.roles.roles import RECORDS, role_named
from attention_sieve.core.roles.sieves import sieve_cells, telling_head, with_notes
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import wording
from attention_sieve.dashboard.components.choosing import choose, heads_data, heads_source
from attention_sieve.dashboard.components.source import Selection, base64_of, look_data, quantised
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LOOKS, WORDS
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.roles.grid import FAINT, STABLE, RoleGrid
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.glossary import TERMS

MOST_TOKENS: Final = 32
"""Maximum number of queries and of keys in a picture."""


Sieves = Mapping[str, Bool[np.ndarray, "query key"]]
"""The sieve of each role that applies in a text."""


def sieves_in(
    text_attention: TextAttention, source: Text, roles: Sequence[str], direction: SyntacticDirection
) -> Sieves:
    """The sieves of the roles that apply in the window of a text; `source` is as it was written."""
    directions = DIRECTIONS if direction == "both" else (direction,)
    noted = with_notes(text_attention.text, source, RoleSet(tuple(roles)))
    sieves = {
        role: sieve_cells(role, noted, text_attention.causal, directions, text_attention.window) for role in roles
    }
    return {role: sieve for role, sieve in sieves.items() if sieve.any()}


def grammar_in(text_attention: TextAttention, source: Text) -> Bool[np.ndarray, "query key"] | None:
    """The links that a syntactic relation joins, in either direction; None where the text has no known ones."""
    return sieves_in(text_attention, source, ("syntactic",), "both").get("syntactic")


def pictures_of(text_attention: TextAttention, sieves: Sieves) -> dict[str, dict[str, Any]]:
    """The picture of each role that applies in the window of a text."""
    tokens = text_attention.text.queries.tokens[slice(*text_attention.window.queries)]
    return {role: picture(role, tokens, sieve) for role, sieve in sieves.items()}


def picture(role: str, tokens: Sequence[str], sieve: Bool[np.ndarray, "query key"]) -> dict[str, Any]:
    """What `pictureOf` in `term.js` draws: the beginning of a sieve; the tokens are the queries."""
    part = sieve[:MOST_TOKENS, :MOST_TOKENS]
    extent = "your text" if part.shape == sieve.shape else f"the first {part.shape[0]} tokens of your text"
    return {
        "tokens": [visible(token) for token in tokens[: len(part)]],
        "keys": part.shape[1],
        "cells": base64_of(np.packbits(part)),
        "color": LOOKS[role].color,
        "caption": (
            f"On {extent}: each row is a token that looks, each column a token that it can look at, in the same "
            f"order; {counted(int(part.sum()), 'square')} in colour: where the role expects it to look."
        ),
    }


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
_first_heads: WeakKeyDictionary[TextAttention, Head] = WeakKeyDictionary()
_numbers = count()


def frame_of(text_attention: TextAttention) -> str:
    """Name of this attention in all its views, by which they know that they show the same."""
    return _frames.setdefault(text_attention, str(next(_numbers)))


def first_head_of(text_attention: TextAttention) -> Head:
    """The head to show first for a text, computed once per attention."""
    if text_attention not in _first_heads:
        _first_heads[text_attention] = telling_head(text_attention)
    return _first_heads[text_attention]


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
        attention: of all heads; rows sum to 1, or to less where the keys are part of a text or a sink takes a part.
            Heads that were removed from the checkpoint, NaN, have empty patterns.
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


SOURCE: Final = heads_source("role_grid", "grid/grid.css", "later.js", "grid/patterns.js", "grid/grid.js")
_mount: Final = SOURCE.registered()


@dataclass(frozen=True, eq=False, kw_only=True)
class GridOnText:
    """What a grid shows of the text on screen."""

    pictures: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """Of the sieve of each role that applies in it, shown in the legend."""
    frame: str | None = None
    """Name of the arcs of the same text, which then preview the heads of `patterns`."""
    patterns: Patterns | None = None
    """Attention of every head, which the cells then show instead of roles."""


WITHOUT_TEXT: Final = GridOnText()


def role_grid(grid: RoleGrid, selection: Selection[list[Head]], on_text: GridOnText = WITHOUT_TEXT) -> list[Head]:
    """Draw the grid and return the heads of it that the reader has chosen, in the order they were chosen.

    Args:
        grid: What to draw; the tooltip lists all of its roles.
        selection: The chosen heads; one grid on a page keeps one key.
    """
    return choose(_mount, selection, grid_data(grid, on_text))


def grid_data(grid: RoleGrid, on_text: GridOnText = WITHOUT_TEXT) -> dict[str, Any]:
    """What the script of the grid reads, but for the chosen heads."""
    patterns, highlight = on_text.patterns, grid.highlight
    n_layers, n_heads = grid.scores.shape[1:]
    return {
        **heads_data((n_layers, n_heads), grid.label),
        "colors": list(HEAD_COLORS),  # of several heads in the arcs of a page without Streamlit
        "does": [_does(role) for role in grid.roles],
        "roles": [look_data(LOOKS[role]) for role in grid.roles],
        "means": [TERMS.get(role) for role in grid.roles],
        "pictures": [on_text.pictures.get(role) for role in grid.roles],
        "shown": grid.corners,
        "scores": base64_of(grid.scores.astype("<f4")),
        "uniform": None if grid.uniform is None else base64_of(grid.uniform.astype("<f4")),
        "greatest": None if grid.greatest is None else base64_of(grid.greatest.astype("<f4")),
        "positional": [] if grid.positional is None else np.flatnonzero(grid.positional).tolist(),
        "states": base64_of(_states(grid)),
        "compared": grid.held_before is not None,
        "far": grid.far,
        "p": None if grid.p_values is None else base64_of(grid.p_values.astype("<f4")),
        "before": grid.before,
        "off": sorted(list(head) for head in grid.off),
        "removed": np.argwhere(grid.removed).tolist(),
        "p_name": grid.p_name,
        "odds": grid.odds,
        "stays": None if grid.stability is None else base64_of(np.rint(grid.stability * RESAMPLES).astype("u1")),
        "resamples": RESAMPLES,
        "certain": CERTAIN,
        "faint": FAINT,
        "stable": STABLE,
        "tau": float(grid.tau),
        "noun": WORDS[grid.scale].short,
        "filled": grid.filled,
        "sentences": grid.sentences,
        "frame": on_text.frame,
        "patterns": None if patterns is None else patterns.data(),
        "highlight": None if highlight is None else sorted(list(head) for head in highlight),
        "shared": grid.n_shared,
        "across": grid.layers_across,
    }


def _does(role: str) -> str:
    """What a head with a role does, in the legend of a role that most heads have."""
    record = role_named(role)
    parts = [part.expects for part in RECORDS if part.part_of == role]
    if isinstance(record.sieve, Keys) and parts:
        return f"rests on {', '.join(parts)}"
    return f"{'rests on' if role == 'sink' else 'looks at'} {record.expects}"


def grid_of_text(passed: PassedText, criterion: Criterion, label: str, n_shared: int) -> RoleGrid:
    """Roles by the scores on a text, which no test can confirm; `n_shared` neighbouring heads share keys and values."""
    scored = passed.scored
    return RoleGrid(
        label=label,
        roles=scored.roles,
        scores=passed.scores,
        holds=passed.roles(criterion),
        tau=criterion.tau,
        filled=wording.filled_by_text(criterion.tau, criterion.rule, scored.scale),
        scale=scored.scale,
        uniform=scored.uniform[0],
        greatest=scored.greatest[0],
        n_shared=n_shared,
    )


def _states(grid: RoleGrid) -> np.ndarray:
    """State of each role and head: 0 none, 1 held or gained, 2 lost, 3 kept."""
    states = grid.holds.astype(np.uint8)
    return states if grid.held_before is None else states + 2 * grid.held_before.astype(np.uint8)
