"""What holds of every role: the sieve that is drawn and scored is that of its definition, written as a plain rule."""

from dataclasses import replace

import numpy as np
import pytest
from made_texts import pair, text
from passing import of_source

from attention_sieve.core.attention.settings import Window
from attention_sieve.core.roles.record import DIRECTIONS
from attention_sieve.core.roles.roles import BY_NAME, DECODER_ROLES
from attention_sieve.core.roles.sieves import sieve_cells
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.relations import RELATIONS

PAIR = replace(text(3, 2), ids=np.array([90, 1, 2, 1, 91, 2, 1, 91]))  # [CLS] a a a [SEP] b b [SEP]
SINGLE = replace(
    text(5),
    ids=np.array([90, 1, 2, 1, 1, 2, 91]),
    given=GivenTokens((90, 1, 2, 1, 1, 2, 91), (1, 3), (3, 6), ((1, 3), (4, 6))),
)
UNMARKED = text(2, 2, marks=False)
RELATED = {"nsubj": [((1, 2), (3,))], "dobj": [((3,), (2,))], "amod": [((2,), (1,)), ((3,), (1, 2))]}
"""Relation -> tokens of the dependent and of its head."""


def own_segment(source, query):
    side = int(query > max(np.flatnonzero(source.segments == 0)))  # [CLS] counts as the first, separators as the second
    return np.flatnonzero(source.segments == side) if source.n_segments == 2 else []


def heads_of(name):
    return lambda source, query: [
        key for relation in RELATED if name in (relation, None) for dependent, head in RELATED[relation]
        if query in dependent for key in head
    ]  # fmt: skip


def earlier_copies(source, query):
    is_copy = (source.ids == source.ids[query]) & (source.segments >= 0) & (np.arange(len(source.ids)) < query)
    return np.flatnonzero(is_copy) if source.segments[query] >= 0 else []


def after_earlier_copies(source, query):
    return [key + 1 for key in earlier_copies(source, query) if key + 1 < query and source.segments[key + 1] >= 0]


def copied_from_needle(source, query):
    if source.given is None or query + 1 not in range(*source.given.answer):
        return []
    return [key for key in range(*source.given.needle) if source.ids[key] == source.ids[query + 1]]


def of_template(source, query):
    turns = source.given.turns if source.given else ()
    return [key for key in range(1, len(source.ids)) if turns and not any(key in range(*turn) for turn in turns)]


KEYS = {
    "local": lambda source, query: range(query - 2, query + 3),
    "delimiter": lambda source, query: np.flatnonzero(source.is_cls | source.is_sep),
    "delimiter:cls": lambda source, query: np.flatnonzero(source.is_cls),
    "delimiter:sep": lambda source, query: np.flatnonzero(source.is_sep),
    "block": own_segment,
    "sink": lambda source, query: [0],
    "syntactic": heads_of(None),
    **{f"syntactic:{name}": heads_of(name) for name in RELATIONS},
    "previous": lambda source, query: [query - 1],
    "duplicate": earlier_copies,
    "induction": after_earlier_copies,
    "retrieval": copied_from_needle,
    "template": of_template,
}
"""Keys at which a head with the role looks from a query, as far as the query sees them."""
CAUSAL_ONLY = ("sink", "induction", "retrieval")


def of_text(source):
    pairs = [pair(name, *words) for name, of_relation in RELATED.items() for words in of_relation]
    return of_source(source, pairs)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("source", [PAIR, SINGLE, UNMARKED], ids=["pair", "single", "unmarked"])
@pytest.mark.parametrize("role", BY_NAME)
def test_the_drawn_sieve_is_that_of_the_definition(role, source, causal):
    rows = [[int(cell) for cell in row] for row in sieve_cells(role, of_text(source), causal)]
    n_tokens = len(source.ids)
    seen_by = [range(query + 1 if causal else n_tokens) for query in range(n_tokens)]
    if role in CAUSAL_ONLY and not causal:
        seen_by = [()] * n_tokens
    looked_at = [set(map(int, KEYS[role](source, query))).intersection(seen_by[query]) for query in range(n_tokens)]
    assert rows == [[int(key in of_query) for key in range(n_tokens)] for of_query in looked_at]


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("role", BY_NAME)
def test_a_sieve_drawn_in_a_window_is_cut_from_the_whole(role, causal):
    whole = sieve_cells(role, of_text(PAIR), causal, DIRECTIONS)
    for queries, keys in (((0, 8), (0, 8)), ((2, 7), (4, 6)), ((5, 8), (0, 3)), ((0, 1), (7, 8))):
        part = sieve_cells(role, of_text(PAIR), causal, DIRECTIONS, Window(queries, keys))
        np.testing.assert_array_equal(part, whole[slice(*queries), slice(*keys)])


def test_both_directions_of_a_relation_are_drawn_together():
    both = sieve_cells("syntactic:nsubj", of_text(PAIR), False, DIRECTIONS)
    assert np.argwhere(both).tolist() == [[1, 3], [2, 3], [3, 1], [3, 2]]


@pytest.mark.parametrize("role", [*DECODER_ROLES, "template"])
def test_no_role_of_decoders_rests_on_a_first_token_that_begins_every_text(role):
    """But for the second token, whose previous one it is: it attracts attention for a reason of its own."""
    cells = sieve_cells(role, of_text(SINGLE), True)
    assert np.any(cells)
    assert not np.any(cells[2:, 0])
