"""Sieves of a batch of texts as weights: every score is a weighted sum of attention entries.

Rows of attention sum to 1, so the token score (mean attention in the sieve over mean attention in the text) of query i
is n_i / |sieve| times the attention inside the sieve, where n_i is the number of keys that i can attend to: all
tokens of the text, i + 1 in a causal model, or those in the window of the layer; the sieve is restricted to them. The
average over the queries with a non-empty sieve is a weighted sum, too, and so is the share above chance: the mean of
(s_i - u_i) / (1 - u_i), with the attention s_i of query i inside its sieve and u_i = |sieve| / n_i. This module
computes the weights in NumPy, with memory linear in the number of tokens.
Source: Pande et al. 2021, sieve bias score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.attention.settings import UNLIMITED, Reach, Window, live_keys
from core.passes.texts import PassText
from core.roles.measures import (
    DIRECTIONS,
    MEASURES,
    ROW_MEASURES,
    ROW_SHARES,
)
from core.roles.pair_sieves import oriented, pair_sieves
from core.roles.references import row_references
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
    """Weight of each query's column sums (the local band, then INDICATORS) in each of ROW_MEASURES, then in each of
    ROW_SHARES."""
    entry_at: Int[np.ndarray, "entry 3"]
    """Text, query and key of the attention entries that syntactic measures read, sorted by text and query."""
    entry_measure: Int[np.ndarray, " entry"]
    """Index into SYNTACTIC_MEASURES followed by SYNTACTIC_SHARES."""
    entry_weight: Float[np.ndarray, " entry"]
    applicable: Bool[np.ndarray, "text measure"]
    """False if a text has no score: no such token, a single segment, or no such relation."""
    at_chance: Float[np.ndarray, "text share"]
    """Sum of uniform attention in each of SHARES, to be subtracted; NaN if a text has no such share."""
    uniform: Float[np.ndarray, "text reference"]
    """Score of uniform attention by REFERENCES; NaN where not applicable."""
    greatest: Float[np.ndarray, "text reference"]
    """Greatest possible score by REFERENCES."""


def batch_sieves(texts: Sequence[PassText], causal: bool, reach: Reach = UNLIMITED) -> BatchSieves:
    """Sieves of a batch of texts, padded at the end to the longest, for layers with the same window."""
    n_queries = max(len(text.queries.ids) for text in texts)
    indicators = np.zeros((len(texts), max(len(text.keys.ids) for text in texts), len(INDICATORS)))
    row_weights = np.zeros((len(texts), n_queries, 1 + len(INDICATORS), len(ROW_MEASURES) + len(ROW_SHARES)))
    sizes = [(len(text.queries.ids), len(text.keys.ids)) for text in texts]
    live_of = {size: live_keys(*size, causal, reach) for size in set(sizes)}
    live = [live_of[size] for size in sizes]
    pairs = pair_sieves(texts, live)
    at_chance, references = [], []
    alike: dict[tuple[object, ...], _TextRows] = {}
    for row, (text, bounds) in enumerate(zip(texts, live)):
        key = _layout(text)
        of_text = alike[key] = alike.get(key) or _text_rows(text, bounds, causal)
        indicators[row, : len(text.keys.ids)] = of_text.indicators
        row_weights[row, : len(bounds)] = of_text.weights
        at_chance.append(of_text.at_chance)
        references.append(of_text.references)
    rows_uniform, rows_greatest = (np.stack(arrays) for arrays in zip(*references))
    uniform = np.concatenate([rows_uniform, np.where(np.isnan(pairs.greatest), np.nan, 1)], axis=1)
    return BatchSieves(
        indicators=indicators,
        row_weights=row_weights,
        entry_at=pairs.entry_at,
        entry_measure=pairs.entry_measure,
        entry_weight=pairs.entry_weight,
        applicable=~np.isnan(uniform[:, : len(MEASURES)]),
        at_chance=np.concatenate([np.stack(at_chance), pairs.at_chance], axis=1),
        uniform=uniform,
        greatest=np.concatenate([rows_greatest, pairs.greatest], axis=1),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _TextRows:
    """The sieves of one text that do not depend on its relations."""

    indicators: Float[np.ndarray, "key indicator"]
    weights: Float[np.ndarray, "query column row_measure"]
    """Of ROW_MEASURES, then of ROW_SHARES."""
    at_chance: Float[np.ndarray, " row_share"]
    references: tuple[Float[np.ndarray, " row_reference"], Float[np.ndarray, " row_reference"]]


def _layout(text: PassText) -> tuple[object, ...]:
    """Key that is equal for texts with equal sieves, as most texts of the same length have."""
    queries, keys = text.queries, text.keys
    of_keys = (keys.segments.tobytes(), keys.is_cls.tobytes(), keys.is_sep.tobytes())
    return (queries is keys, queries.segments.tobytes(), *of_keys)


def _text_rows(text: PassText, live: Int[np.ndarray, "query 2"], causal: bool) -> _TextRows:
    visible = live[:, 1] - live[:, 0]
    scores, shares, at_chance = _row_weights(_row_sieves(text, live, causal), visible)
    return _TextRows(
        indicators=_key_indicators(text.keys),
        weights=np.concatenate([scores, shares], axis=2),
        at_chance=at_chance,
        references=row_references(scores, visible),
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
    key_sets = {name: is_in_set[key] for name, is_in_set in zip(INDICATORS, _key_indicators(text.keys).T.astype(bool))}
    is_self = text.queries is text.keys
    if role.startswith("delimiter"):
        names = {"delimiter:cls": ("cls",), "delimiter:sep": ("sep",)}.get(role, ("cls", "sep"))
        cells |= np.any([key_sets[name] for name in names], axis=0)
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
                    attending, attended = oriented(pair, direction)
                    cells |= np.isin(query, attending)[:, None] & np.isin(key, attended)
    return cells & (key <= query[:, None]) if causal else cells


def _key_indicators(text: TokenizedText) -> Float[np.ndarray, "key indicator"]:
    is_first = np.arange(len(text.ids)) == 0
    sets = (text.is_cls, text.is_sep, text.segments == 0, text.segments == 1, is_first)
    return np.stack(sets, axis=1).astype(np.float64)


@dataclass(frozen=True, eq=False)
class _RowSieve:
    """A sieve of keys that are summed in columns: the local band, then INDICATORS."""

    columns: Bool[np.ndarray, "query column"]
    """Columns whose keys are in each query's sieve; a key is in one of them at most."""
    size: Int[np.ndarray, " query"]
    """Number of keys in each query's sieve."""


def _row_sieves(text: PassText, live: Int[np.ndarray, "query 2"], causal: bool) -> list[_RowSieve]:
    """The sieves of ROW_MEASURES; empty where a measure does not apply."""
    queries, n_queries = text.queries, len(text.queries.ids)
    start, end = live.T
    before = np.concatenate([np.zeros((1, len(INDICATORS)), dtype=int), np.cumsum(_key_indicators(text.keys), axis=0)])
    cls, sep, first, second, first_token = (before[end] - before[start]).astype(np.int64).T
    none = np.zeros_like(cls)

    def of_columns(size: np.ndarray, *columns: int) -> _RowSieve:
        is_summed = np.zeros((n_queries, 1 + len(INDICATORS)), dtype=bool)
        is_summed[:, columns] = True
        return _RowSieve(is_summed, size)

    local = block = of_columns(none)
    if queries is text.keys:
        band = local_band(n_queries, causal)
        local = of_columns(np.minimum(band[:, 1], end) - np.maximum(band[:, 0], start), 0)
        if queries.n_segments == 2:
            side = query_sides(queries)
            own = np.stack([column == 3 + side for column in range(1 + len(INDICATORS))], axis=1)
            block = _RowSieve(own, np.where(side == 0, first, second))
    return [
        local,
        of_columns(cls + sep, 1, 2),
        of_columns(cls, 1),
        of_columns(sep, 2),
        of_columns(first_token if causal else none, 5),
        block,
    ]


def _row_weights(
    sieves: Sequence[_RowSieve], visible: Int[np.ndarray, " query"]
) -> tuple[
    Float[np.ndarray, "query column row_measure"],
    Float[np.ndarray, "query column row_share"],
    Float[np.ndarray, " row_share"],
]:
    """Weights of the columns in each measure and in each share, and the shares of uniform attention."""
    size = np.stack([sieve.size for sieve in sieves], axis=-1)
    columns = np.stack([sieve.columns for sieve in sieves], axis=-1)
    takes_part = size > 0
    scores = np.where(takes_part, visible[:, None] / np.maximum(size, 1), 0.0) / np.maximum(1, takes_part.sum(axis=0))
    by_chance = size / visible[:, None]
    shares, at_chance = _share_weights(by_chance)
    return columns * scores[:, None], columns * shares[:, None], at_chance


def _share_weights(
    by_chance: Float[np.ndarray, "query *share"],
) -> tuple[Float[np.ndarray, "query *share"], Float[np.ndarray, "*share"]]:
    """Weight of a query's attention inside its sieve in the mean share above chance, and what chance adds to the mean.

    Args:
        by_chance: part of the keys that is in the sieve. A query whose sieve is empty or holds every key has no choice,
            and does not take part.
    """
    takes_part = (by_chance > 0) & (by_chance < 1)
    n_queries = takes_part.sum(axis=0)
    weights = np.where(takes_part, 1 / np.where(takes_part, 1 - by_chance, 1), 0) / np.maximum(1, n_queries)
    return weights, np.where(n_queries > 0, (weights * by_chance).sum(axis=0), np.nan)
