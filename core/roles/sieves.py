"""Sieves of a batch of texts as weights: every score is a weighted sum of attention entries.

Rows of attention sum to 1, so the token score (mean attention in the sieve over mean attention in the text) of query i
is n_i / |sieve| times the attention inside the sieve, where n_i is the number of keys that i can attend to: all
tokens of the text, i + 1 in a causal model, or those in the window of the layer; the sieve is restricted to them. The
average over the queries with a non-empty sieve is a weighted sum, too. This module computes the weights in NumPy, with
memory linear in the number of tokens.
Source: Pande et al. 2021, sieve bias score.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.attention.settings import UNLIMITED, Reach, Window, live_keys
from core.passes.texts import PassText
from core.roles.measures import DIRECTIONS, ROW_MEASURES, SYNTACTIC, SYNTACTIC_MEASURES
from core.texts.relations import TokenPair
from core.texts.tokens import TokenizedText

LOCAL_RADIUS: Final = 2
INDICATORS: Final = ("cls", "sep", "first segment", "second segment", "first token")
"""Sets of keys that do not depend on the query."""


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchSieves:
    """Sieves of a batch; texts are padded at the end."""

    indicators: Float[np.ndarray, "text key indicator"]
    """1 for the keys in each of INDICATORS."""
    row_weights: Float[np.ndarray, "text query column row_measure"]
    """Weight of each query's column sums (the local band, then INDICATORS) in each of ROW_MEASURES."""
    entry_at: Int[np.ndarray, "entry 3"]
    """Text, query and key of the attention entries that syntactic measures read, sorted by text and query."""
    entry_measure: Int[np.ndarray, " entry"]
    """Index into SYNTACTIC_MEASURES."""
    entry_weight: Float[np.ndarray, " entry"]
    applicable: Bool[np.ndarray, "text measure"]
    """False if a text has no score: no such token, a single segment, or no such relation."""


def batch_sieves(texts: Sequence[PassText], causal: bool, reach: Reach = UNLIMITED) -> BatchSieves:
    """Sieves of a batch of texts, padded at the end to the longest, for layers with the same window."""
    n_queries = max(len(text.queries.ids) for text in texts)
    indicators = np.zeros((len(texts), max(len(text.keys.ids) for text in texts), len(INDICATORS)))
    row_weights = np.zeros((len(texts), n_queries, 1 + len(INDICATORS), len(ROW_MEASURES)))
    entries: list[tuple[int, int, int, int, float]] = []
    for row, text in enumerate(texts):
        key_indicators = _key_indicators(text.keys)
        indicators[row, : len(text.keys.ids)] = key_indicators
        live = live_keys(len(text.queries.ids), len(text.keys.ids), causal, reach)
        row_weights[row, : len(text.queries.ids)] = _row_weights(text, key_indicators, live, causal)
        entries += sorted((row, *entry) for entry in _syntactic_entries(text.pairs, live))
    at = np.array([entry[:3] for entry in entries], dtype=np.int64).reshape(-1, 3)
    measure = np.array([entry[3] for entry in entries], dtype=np.int64)
    return BatchSieves(
        indicators=indicators,
        row_weights=row_weights,
        entry_at=at,
        entry_measure=measure,
        entry_weight=np.array([entry[4] for entry in entries], dtype=np.float64),
        applicable=_applicable(row_weights, at, measure),
    )


def local_band(n_tokens: int, causal: bool = False, radius: int = LOCAL_RADIUS) -> Int[np.ndarray, "query 2"]:
    """First and one-past-last key of each query's local sieve.

    Returns: key positions, clipped to the text: [0, n_tokens]; in a causal model without later keys.
    Source: Pande et al. 2021, local sieve. Their notebook counts keys past the last token; here the band ends at the
    end of the text.
    """
    query = np.arange(n_tokens)
    last = query if causal else np.minimum(query + radius, n_tokens - 1)
    return np.stack([np.maximum(query - radius, 0), last + 1], axis=1)


def query_sides(text: TokenizedText) -> Int[np.ndarray, " query"]:
    """Segment that is each query's block sieve: 0 up to the last token of the first segment, then 1.

    Special tokens are included: [CLS] to the first segment, the separators to the second.
    """
    first = np.flatnonzero(text.segments == 0)
    return (np.arange(len(text.ids)) > (first[-1] if len(first) else -1)).astype(np.int64)


def sieve_cells(
    role: str,
    text: PassText,
    causal: bool,
    directions: Sequence[str] = DIRECTIONS[:1],
    window: Window | None = None,
) -> Bool[np.ndarray, "query key"]:
    """A role's sieve as a boolean map, for display; all False if the role is not applicable.

    Args:
        role: one of ROLES.
        text: prepared, with its relations.
        causal: whether tokens cannot attend to later tokens.
        directions: for syntactic roles, of DIRECTIONS.
        window: the part of the map to return; None for the whole map.
    """
    window = window or Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
    query, key = np.arange(*window.queries), np.arange(*window.keys)
    cells = np.zeros((len(query), len(key)), dtype=bool)
    key_sets = {name: held[key] for name, held in zip(INDICATORS, _key_indicators(text.keys).T.astype(bool))}
    is_self = text.queries is text.keys
    if role.startswith("delimiter"):
        wanted = {"delimiter:cls": ("cls",), "delimiter:sep": ("sep",)}.get(role, ("cls", "sep"))
        cells |= np.any([key_sets[name] for name in wanted], axis=0)
    elif role == "sink" and causal:
        cells |= key_sets["first token"]
    elif role == "local" and is_self:
        start, end = local_band(len(text.queries.ids), causal)[query, :, None].swapaxes(0, 1)
        cells |= (start <= key) & (key < end)
    elif role == "block" and is_self and text.queries.n_segments == 2:
        side = query_sides(text.queries)[query, None]
        cells |= np.where(side == 0, key_sets["first segment"], key_sets["second segment"])
    elif role.startswith("syntactic"):
        for pair in text.pairs:
            if role in ("syntactic", f"syntactic:{pair.name}"):
                for direction in directions:
                    attending, attended = _oriented(pair, direction)
                    cells |= np.isin(query, attending)[:, None] & np.isin(key, attended)
    return cells & (key <= query[:, None]) if causal else cells


def _key_indicators(text: TokenizedText) -> Float[np.ndarray, "key indicator"]:
    is_first = np.arange(len(text.ids)) == 0
    sets = (text.is_cls, text.is_sep, text.segments == 0, text.segments == 1, is_first)
    return np.stack(sets, axis=1).astype(np.float64)


def _row_weights(
    text: PassText, indicators: Float[np.ndarray, "key indicator"], live: Int[np.ndarray, "query 2"], causal: bool
) -> Float[np.ndarray, "query column row_measure"]:
    """Weights of one text; columns are the local band and INDICATORS, measures are ROW_MEASURES."""
    queries, n_queries = text.queries, len(text.queries.ids)
    start, end = live.T
    visible = end - start
    before = np.concatenate([np.zeros((1, len(INDICATORS))), np.cumsum(indicators, axis=0)])
    cls, sep, first, second, first_token = (before[end] - before[start]).T
    weights = np.zeros((n_queries, 1 + len(INDICATORS), len(ROW_MEASURES)))
    weigh = {name: weights[:, :, measure] for measure, name in enumerate(ROW_MEASURES)}
    weigh["delimiter"][:, 1] = weigh["delimiter"][:, 2] = _mean_weights(visible, cls + sep)
    weigh["delimiter:cls"][:, 1] = _mean_weights(visible, cls)
    weigh["delimiter:sep"][:, 2] = _mean_weights(visible, sep)
    if causal:
        weigh["sink"][:, 5] = _mean_weights(visible, first_token)
    if queries is text.keys:
        band = local_band(n_queries, causal)
        weigh["local"][:, 0] = _mean_weights(visible, np.minimum(band[:, 1], end) - np.maximum(band[:, 0], start))
        if queries.n_segments == 2:
            side = query_sides(queries)
            own = _mean_weights(visible, np.where(side == 0, first, second))
            weigh["block without entropy"][:, 3] = own * (side == 0)
            weigh["block without entropy"][:, 4] = own * (side == 1)
    return weights


def _mean_weights(visible: np.ndarray, size: np.ndarray) -> Float[np.ndarray, " query"]:
    """n_i / |sieve|, divided by the number of queries with a non-empty sieve; 0 for the other queries."""
    taking_part = size > 0
    return np.where(taking_part, visible / np.maximum(size, 1), 0.0) / max(1, taking_part.sum())


def _oriented(pair: TokenPair, direction: str) -> tuple[np.ndarray, np.ndarray]:
    return (pair.dependent, pair.head) if direction == DIRECTIONS[0] else (pair.head, pair.dependent)


def _syntactic_entries(
    pairs: Sequence[TokenPair], live: Int[np.ndarray, "query 2"]
) -> Iterator[tuple[int, int, int, float]]:
    """Query, key, measure and weight of every entry of one text; a measure is the mean over its pairs."""
    for direction in DIRECTIONS:
        by_name = [(pair.name, _pair_entries(*_oriented(pair, direction), live)) for pair in pairs]
        for role in SYNTACTIC:
            measure = SYNTACTIC_MEASURES.index(f"{role} {direction}")
            seen = [entries for name, entries in by_name if entries and role in ("syntactic", f"syntactic:{name}")]
            for entries in seen:
                yield from ((query, key, measure, weight / len(seen)) for query, key, weight in entries)


def _pair_entries(
    queries: np.ndarray, keys: np.ndarray, live: Int[np.ndarray, "query 2"]
) -> list[tuple[int, int, float]]:
    """Entries of one pair: attention between its tokens, relative to uniform attention."""
    bounds = {i: live[i].tolist() for i in queries.tolist()}
    cells = [(i, j) for i, (start, end) in bounds.items() for j in keys.tolist() if start <= j < end]
    uniform = sum(1 / (bounds[i][1] - bounds[i][0]) for i, _ in cells)
    return [(i, j, 1 / uniform) for i, j in cells]


def _applicable(row_weights: np.ndarray, at: np.ndarray, measure: np.ndarray) -> Bool[np.ndarray, "text measure"]:
    by_row = (row_weights != 0).any(axis=(1, 2))
    syntactic = np.zeros((len(row_weights), len(SYNTACTIC_MEASURES)), dtype=bool)
    syntactic[at[:, 0], measure] = True
    return np.concatenate([by_row, by_row[:, -1:], syntactic], axis=1)
