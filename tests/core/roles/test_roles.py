import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from attention_sieve.core.roles.roles import (
    COARSE_ROLES,
    DECODER_ROLES,
    FINE_ROLES,
    ROLES,
    combinations,
    shown_roles,
    similar_heads,
)
from attention_sieve.core.statistics.by_role import overlap

LAYERS, HEADS = 2, 3
ANY_HOLDS = arrays(bool, (len(ROLES), LAYERS, HEADS), elements=st.booleans())


def holding(**heads: str) -> np.ndarray:
    """`holds` of 2 layers and 3 heads from the roles of each head, written L0H2="local block"."""
    holds = np.zeros((len(ROLES), LAYERS, HEADS), bool)
    for place, held in heads.items():
        for role in held.split():
            holds[ROLES.index(role), int(place[1]), int(place[3])] = True
    return holds


EXAMPLE = holding(
    L0H0="local", L0H1="local syntactic delimiter delimiter:cls", L0H2="delimiter delimiter:cls", L1H2="local syntactic"
)


def test_share_of_no_heads_is_nan():
    none_of_either = overlap(EXAMPLE, ROLES, "block", "syntactic:amod")
    assert (none_of_either.first, none_of_either.second, none_of_either.both) == (0, 0, 0)
    assert all(map(math.isnan, (none_of_either.share_first, none_of_either.share_second, none_of_either.share_union)))
    without_first = overlap(EXAMPLE, ROLES, "block", "local")
    assert math.isnan(without_first.share_first)
    assert (without_first.share_second, without_first.share_union) == (0.0, 0.0)


@given(ANY_HOLDS)
def test_overlap_equals_python_sets_of_heads(holds):
    local, block = ({*zip(*np.nonzero(holds[ROLES.index(role)]), strict=True)} for role in ("local", "block"))
    found = overlap(holds, ROLES, "local", "block")
    assert (found.first, found.second, found.both) == (len(local), len(block), len(local & block))
    if local and block:
        shares = [len(local & block) / len(heads) for heads in (local, block, local | block)]
        assert [found.share_first, found.share_second, found.share_union] == shares


def test_combinations_list_heads_in_reading_order_without_finer_kinds():
    assert combinations(EXAMPLE, ROLES) == {
        frozenset({"local"}): ((0, 0),),
        frozenset({"local", "syntactic", "delimiter"}): ((0, 1),),
        frozenset({"delimiter"}): ((0, 2),),
        frozenset(): ((1, 0), (1, 1)),
        frozenset({"local", "syntactic"}): ((1, 2),),
    }


def test_combinations_of_chosen_roles_ignore_the_others():
    assert combinations(EXAMPLE, ROLES, chosen=("delimiter:cls",)) == {
        frozenset(): ((0, 0), (1, 0), (1, 1), (1, 2)),
        frozenset({"delimiter:cls"}): ((0, 1), (0, 2)),
    }


def test_a_role_that_was_not_scored_is_held_by_no_head():
    assert combinations(EXAMPLE[:1], ("local",)) == {
        frozenset({"local"}): ((0, 0), (0, 1), (1, 2)),
        frozenset(): ((0, 2), (1, 0), (1, 1)),
    }


def applying(*roles):
    """Scores that are numbers in one head of these roles and nowhere else."""
    scores = np.full((len(ROLES), LAYERS, HEADS), np.nan)
    for role in roles:
        scores[ROLES.index(role), 1, 2] = 1.0
    return scores


@pytest.mark.parametrize(
    ("applies", "coarse", "fine"),
    [
        (("local", "delimiter", "delimiter:cls"), COARSE_ROLES, [role for role in FINE_ROLES if role != "sink"]),
        (("local", "sink"), ("local", "syntactic", "sink", "block"), [f for f in FINE_ROLES if f[:9] == "syntactic"]),
        (("sink", "delimiter"), COARSE_ROLES, FINE_ROLES),
    ],
    ids=["encoder", "decoder without delimiters", "decoder with delimiters"],
)
def test_a_sink_is_shown_for_decoders_in_place_of_delimiters_where_there_are_none(applies, coarse, fine):
    assert shown_roles(applying(*applies), ROLES) == (coarse, tuple(fine))


def test_similar_heads_are_those_with_the_smallest_distance_of_logarithms_or_of_shares():
    means = np.array([[[0.0, 1.0, 3.0]], [[0.0, 1.0, 0.0]]])
    assert similar_heads(means, (0, 0)) == [((0, 1), 1.0), ((0, 2), pytest.approx(2**0.5))]
    shares = np.array([[[-1.5, 0.5, -1.0]], [[1.0, 1.0, np.nan]]])
    assert similar_heads(shares, (0, 0), logarithmic=False) == [((0, 2), 0.5), ((0, 1), 2.0)]


def test_in_a_causal_model_previous_takes_the_place_of_local_and_what_applies_nowhere_is_not_shown():
    names = (*ROLES, *DECODER_ROLES)
    applies = {"local", "syntactic", "sink", "previous", "duplicate"}
    means = np.stack([np.full((2, 3), 1.0 if name in applies else np.nan) for name in names])
    coarse, fine = shown_roles(means, names)
    assert coarse == ("previous", "syntactic", "sink", "duplicate")
    assert fine[0] == "local"
    assert "sink" not in fine
    without_previous, _ = shown_roles(means[: len(ROLES)], ROLES)
    assert without_previous == ("local", "syntactic", "sink", "block")
