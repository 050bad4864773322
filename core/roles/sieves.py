"""Sieves of a batch of texts as weights: every score is a weighted sum of attention entries.

Rows of attention sum to 1, so the token score (mean attention in the sieve over mean attention in the text) of query i
is n_i / |sieve| times the attention inside the sieve, where n_i is the number of keys that i can attend to: all
tokens of the text, i + 1 in a causal model, or those in the window of the layer; the sieve is restricted to them. The
average over the queries with a non-empty sieve is a weighted sum, too, and so is the share above chance: the mean of
(s_i - u_i) / (1 - u_i), with the attention s_i of query i inside its sieve and u_i = |sieve| / n_i. This module
computes the weights in NumPy, with memory linear in the number of tokens.
The references of the scores, which are those of uniform attention and the greatest possible ones, depend on a text's
sieves, too, and not on the checkpoint's attention. The head that a text shows first is found by the sieve of relations.
Source: Pande et al. 2021, sieve bias score.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import UNLIMITED, Head, Reach, Window, highest_head, live_keys
from attention_sieve.core.passes.texts import PassText, TextAttention, with_relations
from attention_sieve.core.roles.measures import USUAL, RoleSet
from attention_sieve.core.roles.pair_sieves import oriented, pair_sieves
from attention_sieve.core.roles.record import DIRECTIONS, Band, Keys, KeySet, Pairs, Role
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import SPECIAL

NEWTON_STEPS: Final = 6
"""Enough for the precision of float64 in texts of 2 to 100,000 tokens."""


@dataclass(frozen=True)
class Columns:
    """The sums of attention that some roles read: each band and each set of keys once, however many roles share it."""

    roles: RoleSet

    @cached_property
    def bands(self) -> tuple[Band, ...]:
        """Bands of the sieves, which are the first columns."""
        return tuple(dict.fromkeys(role.sieve for role in self.roles.records if isinstance(role.sieve, Band)))

    @cached_property
    def key_sets(self) -> tuple[KeySet, ...]:
        """Sets of keys of the sieves, which are the columns after the bands."""
        sieves = (role.sieve for role in self.roles.records)
        return tuple(dict.fromkeys(key_set for sieve in sieves if isinstance(sieve, Keys) for key_set in sieve.sets))

    def __len__(self) -> int:
        return len(self.bands) + len(self.key_sets)

    def of(self, sieve: Keys | Band | Pairs) -> list[int]:
        """Indices of the columns of a sieve; none for pairs, which are read entry by entry."""
        if isinstance(sieve, Band):
            return [self.bands.index(sieve)]
        key_sets = sieve.sets if isinstance(sieve, Keys) else ()
        return [len(self.bands) + self.key_sets.index(key_set) for key_set in key_sets]


@dataclass(frozen=True, eq=False, kw_only=True)
class BatchSieves:
    """Sieves of a batch; texts are padded at the end."""

    columns: Columns
    """The sums that are weighted, and the roles whose measures they make."""
    indicators: Float[np.ndarray, "text key key_set"]
    """1 for the keys in each set of the columns."""
    row_weights: Float[np.ndarray, "text query column row_measure"]
    """Weight of each query's columns in each of the roles' row measures, then in the shares of the same roles."""
    entry_at: Int[np.ndarray, "entry 3"]
    """Text, query and key of the attention entries that measures of pairs read, sorted by text and query."""
    entry_measure: Int[np.ndarray, " entry"]
    """Index into the roles' measures of pairs followed by their shares of pairs."""
    entry_weight: Float[np.ndarray, " entry"]
    applicable: Bool[np.ndarray, "text measure"]
    """False if a text has no score: no such token, a single segment, or no such relation."""
    at_chance: Float[np.ndarray, "text share"]
    """Sum of uniform attention in each share, to be subtracted; NaN if a text has no such share."""
    uniform: Float[np.ndarray, "text reference"]
    """Score of uniform attention by the roles' references; NaN where not applicable."""
    greatest: Float[np.ndarray, "text reference"]
    """Greatest possible score by the roles' references."""


def batch_sieves(
    texts: Sequence[PassText], causal: bool, reach: Reach = UNLIMITED, roles: RoleSet = USUAL, first_key: int = 0
) -> BatchSieves:
    """Sieves of a batch of texts, padded at the end to the longest, for layers with the same window.

    Args:
        first_key: keys before it are in no sieve, though queries see them: 1 leaves the first token out.
    """
    columns, n_queries = Columns(roles), max(len(text.queries.ids) for text in texts)
    indicators = np.zeros((len(texts), max(len(text.keys.ids) for text in texts), len(columns.key_sets)))
    row_weights = np.zeros((len(texts), n_queries, len(columns), 2 * len(roles.rows)))
    sizes = [(len(text.queries.ids), len(text.keys.ids)) for text in texts]
    live_of = {size: live_keys(*size, causal, reach) for size in set(sizes)}
    live = [live_of[size] for size in sizes]
    pairs = pair_sieves(texts, live, causal, roles, first_key)
    at_chance, references = [], []
    alike: dict[tuple[object, ...], _TextRows] = {}
    for row, (text, bounds) in enumerate(zip(texts, live)):
        parts = _Parts.of(text, causal, columns)
        rows = alike[parts.key] = alike.get(parts.key) or _text_rows(parts, bounds, causal, columns, first_key)
        indicators[row, first_key : len(text.keys.ids)] = parts.key_sets[first_key:]
        row_weights[row, : len(bounds)] = rows.weights
        at_chance.append(rows.at_chance)
        references.append(rows.references)
    rows_uniform, rows_greatest = (np.stack(arrays) for arrays in zip(*references))
    uniform = np.concatenate([rows_uniform, np.where(np.isnan(pairs.greatest), np.nan, 1)], axis=1)
    return BatchSieves(
        columns=columns,
        indicators=indicators,
        row_weights=row_weights,
        entry_at=pairs.entry_at,
        entry_measure=pairs.entry_measure,
        entry_weight=pairs.entry_weight,
        applicable=~np.isnan(uniform[:, : len(roles.measures)]),
        at_chance=np.concatenate([np.stack(at_chance), pairs.at_chance], axis=1),
        uniform=uniform,
        greatest=np.concatenate([rows_greatest, pairs.greatest], axis=1),
    )


@dataclass(frozen=True, eq=False, kw_only=True)
class _Parts:
    """The parts of one text that the sieves of sets of keys and of bands depend on."""

    n_queries: int
    key_sets: Bool[np.ndarray, "key key_set"]
    sides: dict[str, Int[np.ndarray, " query"]]
    """By role: which one of its sets is the sieve of each query."""
    applies: tuple[bool, ...]
    """By the roles of rows."""

    @classmethod
    def of(cls, text: PassText, causal: bool, columns: Columns) -> "_Parts":
        """The parts of a text."""
        rows = columns.roles.rows
        applies = tuple(role.applies(text, causal) for role in rows)
        sets = [key_set(text) for key_set in columns.key_sets]
        return cls(
            n_queries=len(text.queries.ids),
            key_sets=np.array(sets, dtype=bool).reshape(len(sets), len(text.keys.ids)).T,
            sides={
                role.name: role.sieve.side(text)
                for role, applies_here in zip(rows, applies)
                if applies_here and isinstance(role.sieve, Keys) and role.sieve.side
            },
            applies=applies,
        )

    @property
    def key(self) -> tuple[object, ...]:
        """Key that is equal for texts with equal sieves, as most texts of the same length have."""
        sides = (side.tobytes() for side in self.sides.values())
        return (self.n_queries, len(self.key_sets), self.key_sets.tobytes(), self.applies, *sides)


@dataclass(frozen=True, eq=False, kw_only=True)
class _TextRows:
    """The sieves of one text that do not depend on its pairs."""

    weights: Float[np.ndarray, "query column row_measure"]
    """Of the row measures, then of the shares of the same roles."""
    at_chance: Float[np.ndarray, " row_share"]
    references: tuple[Float[np.ndarray, " row_reference"], Float[np.ndarray, " row_reference"]]


def _text_rows(
    parts: _Parts, live: Int[np.ndarray, "query 2"], causal: bool, columns: Columns, first_key: int
) -> _TextRows:
    visible = live[:, 1] - live[:, 0]
    sizes = _column_sizes(parts, live, causal, columns, first_key)
    sieves = [
        _row_sieve(role, parts, sizes, columns) if applies else _RowSieve(np.zeros_like(sizes, bool), 0 * visible)
        for role, applies in zip(columns.roles.rows, parts.applies)
    ]
    if not sieves:
        return _TextRows(
            weights=np.zeros((*sizes.shape, 0)), at_chance=np.zeros(0), references=(np.zeros(0), np.zeros(0))
        )
    scores, shares, at_chance = _row_weights(sieves, visible)
    return _TextRows(
        weights=np.concatenate([scores, shares], axis=2),
        at_chance=at_chance,
        references=row_references(scores, visible, columns.roles.weighted),
    )


def _column_sizes(
    parts: _Parts, live: Int[np.ndarray, "query 2"], causal: bool, columns: Columns, first_key: int
) -> Int[np.ndarray, "query column"]:
    """Number of keys of each column, from `first_key` on, that each query can attend to."""
    end = live[:, 1]
    start = np.minimum(np.maximum(live[:, 0], first_key), end)
    bands = [band.keys(parts.n_queries, causal).T for band in columns.bands]
    in_bands = [np.maximum(np.minimum(last, end) - np.maximum(first, start), 0)[:, None] for first, last in bands]
    before = np.zeros((len(parts.key_sets) + 1, parts.key_sets.shape[1]), int)
    np.cumsum(parts.key_sets, axis=0, out=before[1:])
    return np.concatenate([*in_bands, before[end] - before[start]], axis=1)


@dataclass(frozen=True, eq=False)
class _RowSieve:
    """A sieve of keys that are summed in columns."""

    columns: Bool[np.ndarray, "query column"]
    """Columns whose keys are in each query's sieve; a key is in one of them at most."""
    size: Int[np.ndarray, " query"]


def _row_sieve(role: Role, parts: _Parts, sizes: Int[np.ndarray, "query column"], columns: Columns) -> _RowSieve:
    """The sieve of a role that applies to a text."""
    sieve_columns, is_summed = columns.of(role.sieve), np.zeros(sizes.shape, dtype=bool)
    if role.name not in parts.sides:
        is_summed[:, sieve_columns] = True
        return _RowSieve(is_summed, sizes[:, sieve_columns].sum(axis=1))
    query, own = np.arange(len(sizes)), np.array(sieve_columns)[parts.sides[role.name]]
    is_summed[query, own] = True
    return _RowSieve(is_summed, sizes[query, own])


def with_notes(text: PassText, source: Text, roles: RoleSet) -> PassText:
    """A text with the notes on its queries that written roles need, for display; as it is where none does.

    Raises: AnalysisError if it has to be parsed and no parser is installed.
    """
    return with_relations([text], [source], roles.wanted, noted=True)[0] if roles.is_noted else text


def sieve_cells(
    role: str,
    text: PassText,
    causal: bool,
    directions: Sequence[str] = DIRECTIONS[:1],
    window: Window | None = None,
) -> Bool[np.ndarray, "query key"]:
    """A role's sieve in a window, in `directions` where it has two, for display; all False if it is not applicable."""
    window = window or Window((0, len(text.queries.ids)), (0, len(text.keys.ids)))
    query, key = np.arange(*window.queries), np.arange(*window.keys)
    cells = np.zeros((len(query), len(key)), dtype=bool)
    record = role_named(role)
    if not record.applies(text, causal):
        return cells
    match record.sieve:
        case Band() as band:
            start, end = band.keys(len(text.queries.ids), causal)[query, :, None].swapaxes(0, 1)
            cells |= (start <= key) & (key < end)
        case Keys(sets, side):
            is_in_set = np.array([key_set(text)[key] for key_set in sets])
            cells |= is_in_set.any(axis=0) if side is None else is_in_set[side(text)[query]]
        case Pairs() as pairs:
            for pair in pairs.of(text):
                for direction in directions if record.directions else DIRECTIONS[:1]:
                    attending, attended = oriented(pair, direction)
                    cells |= np.isin(query, attending)[:, None] & np.isin(key, attended)
    return cells & (key <= query[:, None]) if causal else cells


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


def row_references(
    row_weights: Float[np.ndarray, "query column row_measure"],
    visible: Int[np.ndarray, " query"],
    weighted: Sequence[int],
) -> tuple[Float[np.ndarray, " row_reference"], Float[np.ndarray, " row_reference"]]:
    """The references of row measures, and then of those that are weighted with entropy, for one text.

    Args:
        row_weights: weight of each query's columns in each measure. A measure is the sum over queries of a weight
            times the attention to a set of keys, so that its greatest value takes the largest weight of each query.

    Returns: score of uniform attention, and greatest score that any attention can have; NaN where not applicable.
    """
    most = row_weights.max(axis=1)
    applicable = most.any(axis=0)
    uniform = np.where(applicable, 1.0, np.nan)
    greatest = np.where(applicable, most.sum(axis=0), np.nan)
    references = np.full((2, len(weighted)), np.nan)
    for place, index in enumerate(weighted):
        if applicable[index]:
            takes_part = most[:, index] > 0
            n_keys = visible[takes_part].astype(np.float64)
            size = np.rint(n_keys / (most[takes_part, index] * len(n_keys)))
            references[:, place] = np.log(n_keys).mean(), greatest_weighted_ratio(n_keys, size).mean()
    return np.append(uniform, references[0]), np.append(greatest, references[1])


def greatest_weighted_ratio(
    n_keys: Float[np.ndarray, " query"], size: Float[np.ndarray, " query"]
) -> Float[np.ndarray, " query"]:
    """Greatest value, over all distributions, of attention to a sieve relative to uniform, times the entropy.

    For a share s inside the sieve, entropy is greatest where both parts are uniform; s (n / m) H(s) then has one
    maximum, between the share m / n of uniform attention and 1. Newton's method finds where its derivative is zero,
    in the log-odds of s, in which the derivative soon becomes a straight line.

    Args:
        n_keys: number n of keys of each query, at least 1.
        size: number m of keys of its sieve, 1 to n.
    """
    outside = np.maximum(n_keys - size, 1)
    at_chance = np.log(size / outside)
    log_odds = np.maximum(at_chance, 0)
    for _ in range(NEWTON_STEPS):
        share, above_chance = 1 / (1 + np.exp(-log_odds)), log_odds - at_chance
        derivative = 2 * share * above_chance - np.logaddexp(0, log_odds) - np.log(outside)
        log_odds = log_odds - derivative / (share * (1 + 2 * (1 - share) * above_chance))
    share = np.where(size < n_keys, 1 / (1 + np.exp(-log_odds)), 1)
    share_outside = 1 - share
    entropy = -share * np.log(share / size) - share_outside * np.log(
        np.where(share_outside > 0, share_outside, 1) / outside
    )
    return share * n_keys / size * entropy


def telling_head(text_attention: TextAttention) -> Head:
    """The head that attends to related words most, beyond what it gives to other words at the same distance.

    Each word counts with the related word for which a head's attention, less its mean attention between words at the
    same distance, is greatest; the head with the greatest sum is chosen, the first in case of a tie. A head that always
    looks one word back, or that spreads its attention evenly, has a sum of 0. In a text without relations all words
    count as related.
    """
    text, window, attention = text_attention.text, text_attention.window, text_attention.attention
    is_query = text.queries.segments[slice(*window.queries)] != SPECIAL
    is_key = text.keys.segments[slice(*window.keys)] != SPECIAL
    queries, keys = np.nonzero(is_query[:, None] & is_key)
    related = sieve_cells("syntactic", text, text_attention.causal, DIRECTIONS, window)[queries, keys]
    if not related.any():
        related = np.ones(len(queries), dtype=bool)
    best = np.full(attention.shape[:3], -np.inf)
    for distance in sorted(set((keys - queries)[related].tolist())):  # np.unique would import numpy.ma
        is_at_distance = keys - queries == distance
        at_distance = attention[:, :, queries[is_at_distance], keys[is_at_distance]]
        gains = (at_distance - at_distance.mean(axis=-1, keepdims=True))[..., related[is_at_distance]]
        rows = queries[is_at_distance & related]  # no query has two keys at one distance
        best[:, :, rows] = np.maximum(best[:, :, rows], gains)
    sums = np.where(np.isfinite(best), best, 0).sum(axis=-1)
    sums[np.isnan(attention).any(axis=(2, 3))] = -np.inf  # removed from the checkpoint
    return highest_head(sums)
