"""Sieves of the syntactic measures of a batch: which attention entries are read, with which weights.

A measure here is a role in one direction or in both. All measures of all texts are computed at once, as numbers of
cells: a cell is one measure's view of the attention of one query to one key of one text.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.passes.texts import PassText
from core.roles.measures import DIRECTIONS, SYNTACTIC, SYNTACTIC_MEASURES, SYNTACTIC_SHARES
from core.texts.relations import RELATIONS, TokenPair

BOTH: Final = len(DIRECTIONS)
"""Index of "both" after those of DIRECTIONS."""
N_ROLES: Final = len(SYNTACTIC)


@dataclass(frozen=True, eq=False, kw_only=True)
class PairSieves:
    """Sieves of a batch for its relations between words."""

    entry_at: Int[np.ndarray, "entry 3"]
    """Text, query and key of the attention entries that are read, sorted by text and query."""
    entry_measure: Int[np.ndarray, " entry"]
    """Index into SYNTACTIC_MEASURES followed by SYNTACTIC_SHARES."""
    entry_weight: Float[np.ndarray, " entry"]
    at_chance: Float[np.ndarray, "text syntactic_share"]
    """Sum of uniform attention in each of SYNTACTIC_SHARES; NaN if a text has no such share."""
    greatest: Float[np.ndarray, "text referenced"]
    """Greatest possible score of each of SYNTACTIC_MEASURES, then of both directions of each role; NaN if a text has no
    such relation."""


def pair_sieves(texts: Sequence[PassText], live: Sequence[Int[np.ndarray, "_ 2"]]) -> PairSieves:
    """The sieves of a batch.

    A score is the mean over pairs of the attention between their tokens, relative to uniform attention; its greatest
    value has every query attend to its key of largest weight alone. A share is the mean over queries, and the sieve of
    a query is every piece at the other end of its relations, so that a head can put all of its attention inside.

    Args:
        texts: with their relations.
        live: first and one-past-last key that each query of each text can attend to.
    """
    n_texts, n_measures = len(texts), len(SYNTACTIC_SHARES)
    shape = (n_measures, n_texts, *(max(map(len, sides)) for sides in _sides(texts)))
    cell_numbers, weights, n_visible = _cells(texts, live, shape)
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

    scored, shared = measure < len(SYNTACTIC_MEASURES), share_weight > 0
    at = np.stack([text, query, key], axis=1)
    entry_at = np.concatenate([at[scored], at[shared]])
    order = np.lexsort((entry_at[:, 1], entry_at[:, 0]))
    entry_measure = np.concatenate([measure[scored], len(SYNTACTIC_MEASURES) + measure[shared]])
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


def _sides(texts: Sequence[PassText]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return [text.queries.ids for text in texts], [text.keys.ids for text in texts]


def _cells(
    texts: Sequence[PassText], live: Sequence[Int[np.ndarray, "_ 2"]], shape: tuple[int, ...]
) -> tuple[Int[np.ndarray, " seen"], Float[np.ndarray, " seen"], Int[np.ndarray, " seen"]]:
    """Cells as numbers in an array of measures, texts, queries and keys; once for each pair that has it.

    Returns: cells; weight of each in its measure's score; number of keys that its query can attend to.
    """
    text, query, key, pair, n_visible = _cells_of_pairs(texts, live)
    names = [of_pair.name for of_text in texts for of_pair in of_text.pairs]
    role, direction = np.array([1 + RELATIONS.index(name) for name in names], np.int64)[pair // 2], pair % 2
    n_pairs = 2 * len(names)
    relative = 1 / np.bincount(pair, 1 / n_visible, minlength=n_pairs)[pair]

    def each_role(of_cell: np.ndarray) -> np.ndarray:
        """Every pair counts for its own relation and for all of them."""
        return np.tile(of_cell, 2)

    role = np.concatenate([np.zeros_like(role), role])
    group = (role * len(DIRECTIONS) + each_role(direction)) * shape[1] + each_role(text)
    is_first = each_role(np.diff(pair, prepend=-1) != 0)
    n_of_group = np.bincount(group, is_first, minlength=N_ROLES * len(DIRECTIONS) * shape[1])
    has_direction = n_of_group.reshape(N_ROLES, len(DIRECTIONS), shape[1]) > 0
    n_directions = has_direction.sum(axis=1)[role, each_role(text)]
    weights = each_role(relative) / n_of_group[group]
    at = tuple(each_role(of_cell) for of_cell in (text, query, key))
    one_way, both_ways = (each_role(direction) * N_ROLES + role, BOTH * N_ROLES + role)
    cell_numbers = [np.ravel_multi_index((measure, *at), shape) for measure in (one_way, both_ways)]
    return (
        np.concatenate(cell_numbers),
        np.concatenate([weights, weights / n_directions]),
        np.tile(each_role(n_visible), 2),
    )


def _cells_of_pairs(
    texts: Sequence[PassText], live: Sequence[Int[np.ndarray, "_ 2"]]
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Cells of each pair of words in one direction, then in the other: every token of the attending word to every token
    of the attended one that it can see.

    Returns: text, query, key, pair and number of visible keys of each cell; pair 2 i is the i-th in the first of
        DIRECTIONS, and 2 i + 1 in the second.
    """
    sides = [side for text in texts for pair in text.pairs for side in oriented(pair, DIRECTIONS[0])]
    tokens = np.concatenate([np.zeros(0, np.int64), *sides])
    sizes = np.array([len(side) for side in sides], np.int64)
    starts = np.cumsum(sizes) - sizes
    attended = np.arange(len(sides)) ^ 1  # the other side of the same pair
    n_cells = sizes * sizes[attended]
    pair = np.repeat(np.arange(len(sides)), n_cells)
    offset = np.arange(len(pair)) - np.repeat(np.cumsum(n_cells) - n_cells, n_cells)
    n_keys = sizes[attended][pair]
    query, key = tokens[starts[pair] + offset // n_keys], tokens[starts[attended][pair] + offset % n_keys]
    text = np.repeat(np.arange(len(texts)), [len(of_text.pairs) for of_text in texts])[pair // 2]
    n_queries = np.array([len(bounds) for bounds in live])
    start, end = np.concatenate(live)[(np.cumsum(n_queries) - n_queries)[text] + query].T
    is_visible = (start <= key) & (key < end)
    return text[is_visible], query[is_visible], key[is_visible], pair[is_visible], (end - start)[is_visible]


def _row_shares(
    by_chance: Float[np.ndarray, " row"], group: Int[np.ndarray, " row"], n_groups: int
) -> tuple[Float[np.ndarray, " row"], Float[np.ndarray, " group"]]:
    """Weight of a query's attention inside its sieve in the mean share above chance, and what chance adds to the mean.

    Args:
        by_chance: part of the keys in the sieve, more than 0. A query whose sieve holds every key has no choice,
            and does not take part.
        group: measure and text of each row.
        n_groups: number of measures and texts.

    Returns: weights; by group, the sum of weights times by_chance, NaN where no query takes part.
    """
    has_choice = by_chance < 1
    n_taking_part = np.bincount(group, has_choice, minlength=n_groups)
    weights = has_choice / (np.where(has_choice, 1 - by_chance, 1) * np.maximum(1, n_taking_part[group]))
    at_chance = np.bincount(group, weights * by_chance, minlength=n_groups)
    return weights, np.where(n_taking_part > 0, at_chance, np.nan)
