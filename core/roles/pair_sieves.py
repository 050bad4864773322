"""Sieves of the measures of pairs of a batch: which attention entries are read, with which weights.

A measure here is a role in one direction or in both. All measures of all texts are computed at once, as numbers of
cells: a cell is one measure's view of the attention of one query to one key of one text.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.measures import RoleSet
from attention_sieve.core.roles.record import DIRECTIONS, Pairs, Role
from attention_sieve.core.texts.relations import TokenPair


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSieves:
    """Sieves of a batch for its pairs of words."""

    entry_at: Int[np.ndarray, "entry 3"]
    """Text, query and key of the attention entries that are read, sorted by text and query."""
    entry_measure: Int[np.ndarray, " entry"]
    """Index into the roles' measures of pairs followed by their shares of pairs."""
    entry_weight: Float[np.ndarray, " entry"]
    at_chance: Float[np.ndarray, "text pair_share"]
    """Sum of uniform attention in each share of pairs; NaN if a text has no such share."""
    greatest: Float[np.ndarray, "text pair_share"]
    """Greatest possible score of each measure of pairs, then of both directions of each role that has two; NaN if a
    text has no such pair."""


def pair_sieves(
    texts: Sequence[PassText],
    live: Sequence[Int[np.ndarray, "_ 2"]],
    causal: bool,
    roles: RoleSet,
    first_key: int = 0,
) -> PairSieves:
    """The sieves of a batch, which hold no key before `first_key`.

    A score is the mean over pairs of the attention between their tokens, relative to uniform attention; its greatest
    value has every query attend to its key of largest weight alone. A share is the mean over queries, and the sieve of
    a query is every piece at the other end of its relations, so that a head can put all of its attention inside.
    """
    n_texts, n_measures = len(texts), len(roles.pair_shares)
    n_queries, n_keys = max(len(text.queries.ids) for text in texts), max(len(text.keys.ids) for text in texts)
    shape = (n_measures, n_texts, n_queries, n_keys)
    cell_numbers, weights, n_visible = _cells(texts, live, causal, roles, shape, first_key)
    cells, first, cell_of = np.unique(cell_numbers, return_index=True, return_inverse=True)
    measure, text, query, key = np.unravel_index(cells, shape)
    group = measure * n_texts + text
    n_groups = n_measures * n_texts

    # Cells are sorted, so that those of one row, which is a query of a measure and a text, follow each other.
    row_starts = np.flatnonzero(np.diff(cells // shape[3], prepend=-1))
    group_of_row = group[row_starts]
    score_weight = np.bincount(cell_of, weights, minlength=len(cells))
    largest = np.maximum.reduceat(score_weight, row_starts) if len(cells) else score_weight
    has_cells = np.bincount(group, minlength=n_groups) > 0
    greatest = np.where(has_cells, np.bincount(group_of_row, largest, minlength=n_groups), np.nan)

    n_in_row = np.diff(row_starts, append=len(cells))
    by_chance = n_in_row / n_visible[first[row_starts]]
    share_weight, at_chance = _row_shares(by_chance, group_of_row, n_groups)
    share_weight = np.repeat(share_weight, n_in_row)

    n_scored = len(roles.pair_measures)
    scored, shared = measure < n_scored, share_weight > 0
    at = np.stack([text, query, key], axis=1)
    entry_at = np.concatenate([at[scored], at[shared]])
    order = np.lexsort((entry_at[:, 1], entry_at[:, 0]))
    entry_measure = np.concatenate([measure[scored], n_scored + measure[shared]])
    return PairSieves(
        entry_at=entry_at[order],
        entry_measure=entry_measure[order],
        entry_weight=np.concatenate([score_weight[scored], share_weight[shared]])[order],
        at_chance=at_chance.reshape(n_measures, n_texts).T,
        greatest=greatest.reshape(n_measures, n_texts).T,
    )


def oriented(pair: TokenPair, direction: str) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of the attending word, and of the attended word."""
    return (pair.dependent, pair.head) if direction == DIRECTIONS[0] else (pair.head, pair.dependent)


def _cells(
    texts: Sequence[PassText],
    live: Sequence[Int[np.ndarray, "_ 2"]],
    causal: bool,
    roles: RoleSet,
    shape: tuple[int, ...],
    first_key: int,
) -> tuple[Int[np.ndarray, " seen"], Float[np.ndarray, " seen"], Int[np.ndarray, " seen"]]:
    """Cells as numbers in an array of measures, texts, queries and keys; once for each pair that has it.

    Returns: cells; weight of each in its measure's score; number of keys that its query can attend to.
    """
    none = np.zeros(0, np.int64)
    parts: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(none, np.zeros(0), none)]
    alike: dict[tuple[object, ...], list[tuple[Role, Pairs]]] = {}
    for role in roles.paired:
        if isinstance(role.sieve, Pairs):
            alike.setdefault((role.sieve.find, role.applies), []).append((role, role.sieve))
    for same_pairs in alike.values():
        role, sieve = same_pairs[0]
        pairs = [sieve.find(text) if role.applies(text, causal) else () for text in texts]
        parts.append(_cells_of_roles(_cells_of_pairs(pairs, live, first_key), pairs, same_pairs, roles, shape))
    numbers, weights, n_visible = zip(*parts)
    return np.concatenate(numbers), np.concatenate(weights), np.concatenate(n_visible)


def _cells_of_roles(
    cells: tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray],
    pairs: Sequence[Sequence[TokenPair]],
    alike: Sequence[tuple[Role, Pairs]],
    roles: RoleSet,
    shape: tuple[int, ...],
) -> tuple[Int[np.ndarray, " seen"], Float[np.ndarray, " seen"], Int[np.ndarray, " seen"]]:
    """The cells of roles that share the pairs of each text, of which each takes those with its name, or all."""
    text, query, key, pair, n_visible = cells
    names = np.array([token_pair.name for text_pairs in pairs for token_pair in text_pairs], dtype=object)
    relative = 1 / np.bincount(pair, 1 / n_visible, minlength=2 * len(names))[pair]
    cells_of = [_role_cells(role, sieve, pair, names) for role, sieve in alike]
    cell = np.concatenate(cells_of)  # every pair counts for each role that takes it
    role_index, direction = np.repeat(np.arange(len(alike)), list(map(len, cells_of))), pair[cell] % 2

    group = (role_index * len(DIRECTIONS) + direction) * shape[1] + text[cell]
    is_first = np.diff(pair, prepend=-1)[cell] != 0
    n_of_group = np.bincount(group, is_first, minlength=len(alike) * len(DIRECTIONS) * shape[1])
    n_directions = (n_of_group.reshape(len(alike), len(DIRECTIONS), shape[1]) > 0).sum(axis=1)
    weights = relative[cell] / n_of_group[group]
    one_way, both_ways = _measure_numbers([role for role, _ in alike], roles)
    at = (text[cell], query[cell], key[cell])
    has_both = both_ways[role_index] >= 0
    both = tuple(axis[has_both] for axis in (both_ways[role_index], *at))
    return (
        np.concatenate(
            [np.ravel_multi_index((one_way[role_index, direction], *at), shape), np.ravel_multi_index(both, shape)]
        ),
        np.concatenate([weights, (weights / n_directions[role_index, text[cell]])[has_both]]),
        np.concatenate([n_visible[cell], n_visible[cell][has_both]]),
    )


def _role_cells(
    role: Role, sieve: Pairs, pair: Int[np.ndarray, " cell"], names: np.ndarray
) -> Int[np.ndarray, " own_cell"]:
    """Indices of the cells of a role's pairs: in both directions, or in the first."""
    is_own = np.ones(len(pair), bool) if sieve.name is None else (names == sieve.name)[pair // 2]
    return np.flatnonzero(is_own if role.directions else is_own & (pair % 2 == 0))


def _measure_numbers(
    alike: Sequence[Role], roles: RoleSet
) -> tuple[Int[np.ndarray, "role direction"], Int[np.ndarray, " role"]]:
    """Indices of each role's measures among the shares of pairs, and that of the mean of both directions, or -1."""
    number = {name: index for index, name in enumerate(roles.pair_shares)}
    one_way = [
        [number[f"{role.name} {direction}" if role.directions else role.name] for direction in DIRECTIONS]
        for role in alike
    ]
    return np.array(one_way), np.array([number.get(f"{role.name} both", -1) for role in alike])


def _cells_of_pairs(
    pairs: Sequence[Sequence[TokenPair]], live: Sequence[Int[np.ndarray, "_ 2"]], first_key: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cells of each pair of words in one direction, then in the other: every token of the attending word to every token
    of the attended one that it can see.

    Args:
        live: first and one-past-last key that each query of each text can attend to.
        first_key: keys before it are in no sieve.

    Returns: text, query, key, pair and number of visible keys of each cell; pair 2 i is the i-th in the first of
        DIRECTIONS, and 2 i + 1 in the second.
    """
    sides = [side for text_pairs in pairs for pair in text_pairs for side in oriented(pair, DIRECTIONS[0])]
    tokens = np.concatenate([np.zeros(0, np.int64), *sides])
    sizes = np.array([len(side) for side in sides], np.int64)
    starts = np.cumsum(sizes) - sizes
    attended = np.arange(len(sides)) ^ 1  # the other side of the same pair
    n_cells = sizes * sizes[attended]
    pair = np.repeat(np.arange(len(sides)), n_cells)
    offset = np.arange(len(pair)) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    n_keys = sizes[attended][pair]
    query, key = tokens[starts[pair] + offset // n_keys], tokens[starts[attended][pair] + offset % n_keys]
    text = np.repeat(np.arange(len(pairs)), list(map(len, pairs)))[pair // 2]
    n_queries = np.array([len(bounds) for bounds in live])
    start, end = np.concatenate(live)[(np.cumsum(n_queries) - n_queries)[text] + query].T
    is_visible = (np.maximum(start, first_key) <= key) & (key < end)
    return text[is_visible], query[is_visible], key[is_visible], pair[is_visible], (end - start)[is_visible]


def _row_shares(
    by_chance: Float[np.ndarray, " row"], group: Int[np.ndarray, " row"], n_groups: int
) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, " group"]]:
    """Weight of a query's attention inside its sieve in the mean share above chance, and what chance adds to the mean.

    Args:
        by_chance: part of the keys in the sieve, more than 0. A query whose sieve holds every key has no choice,
            and does not take part.

    Returns: weights; by group, the sum of weights times by_chance, NaN where no query takes part.
    """
    has_choice = by_chance < 1
    n_taking_part = np.bincount(group, has_choice, minlength=n_groups)
    weights = has_choice / (np.where(has_choice, 1 - by_chance, 1) * np.maximum(1, n_taking_part[group]))
    at_chance = np.bincount(group, weights * by_chance, minlength=n_groups)
    return weights, np.where(n_taking_part > 0, at_chance, np.nan)
