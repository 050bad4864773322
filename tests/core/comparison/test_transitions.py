from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from statsmodels.stats.contingency_tables import mcnemar

from attention_sieve.core.comparison.transitions import (
    RoleChange,
    Transition,
    busiest_layers,
    changed_heads,
    changes_per_layer,
    depths,
    head_moved_most,
    role_changes,
    role_moved_most,
    transitions,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.roles import COARSE_ROLES

NAMES = ("local", "block", "delimiter:sep")
NONE = frozenset()
SOME_ROLES = arrays(bool, (3, 3, 4))


def holding(*held, shape=(3, 2, 3)):
    """Which head holds which role; each of `held` is a role's place, layer and head."""
    holds = np.zeros(shape, bool)
    for place in held:
        holds[place] = True
    return holds


BEFORE = holding((0, 0, 0), (0, 0, 1), (1, 0, 1), (1, 1, 2), (2, 1, 1))
AFTER = holding((0, 0, 0), (1, 0, 1), (0, 1, 2), (1, 1, 2), (1, 1, 0), (0, 1, 1), (2, 0, 2))


def test_transitions_worked_by_hand():
    local, block = frozenset({"local"}), frozenset({"block"})
    assert transitions(BEFORE, AFTER, NAMES) == (
        Transition(NONE, local, ((1, 1),)),
        Transition(NONE, block, ((1, 0),)),
        Transition(local | block, block, ((0, 1),)),
        Transition(block, local | block, ((1, 2),)),
        Transition(NONE, NONE, ((0, 2),)),
        Transition(local, local, ((0, 0),)),
    )


def test_transitions_of_most_heads_come_first_within_changed_and_unchanged():
    before, after = holding(), holding((0, 0, 0), (0, 1, 2), (1, 0, 1))
    found = transitions(before, after, NAMES)
    assert [(sorted(one.after), len(one.heads)) for one in found] == [(["local"], 2), (["block"], 1), ([], 3)]
    assert found[0].heads == ((0, 0), (1, 2))


def test_other_roles_can_be_asked_about():
    found = transitions(BEFORE, AFTER, NAMES, chosen=("delimiter:sep", "sink"))
    assert [(one.before, one.after, one.heads) for one in found[:2]] == [
        (NONE, frozenset({"delimiter:sep"}), ((0, 2),)),
        (frozenset({"delimiter:sep"}), NONE, ((1, 1),)),
    ]
    assert len(found) == 3


@given(SOME_ROLES, SOME_ROLES)
def test_every_head_stands_in_exactly_one_transition(before, after):
    found = transitions(before, after, NAMES)
    assert sorted(head for one in found for head in one.heads) == list(np.ndindex(3, 4))
    assert len({(one.before, one.after) for one in found}) == len(found)
    for one in found:
        for layer, head in one.heads:
            for holds, side in ((before, one.before), (after, one.after)):
                assert {"local", "block"} & side == {
                    name for name, held in zip(NAMES[:2], holds[:2, layer, head]) if held
                }
    moved = [one.before != one.after for one in found]
    assert moved == sorted(moved, reverse=True)
    changed = changed_heads(before, after, NAMES)
    assert changed.sum() == sum(len(one.heads) for one in found if one.before != one.after)


def test_changes_of_roles_worked_by_hand():
    assert role_changes(BEFORE, AFTER, NAMES) == (
        RoleChange("local", 2, 3, gained=2, lost=1, kept=1, where_gained=(1, 1, 2), where_lost=(0, 0, 1)),
        RoleChange("block", 2, 3, gained=1, lost=0, kept=2, where_gained=(1, 1, 1), where_lost=None),
        RoleChange("delimiter:sep", 1, 1, gained=1, lost=1, kept=0, where_gained=(0, 0, 1), where_lost=(1, 1, 1)),
    )
    (all_lost,) = role_changes(holding(shape=(1, 2, 3)) | True, holding(shape=(1, 2, 3)), ("local",))
    assert (all_lost.lost, all_lost.where_lost, all_lost.p) == (6, (0, 1, 6), 2 / 2**6)


@given(SOME_ROLES, SOME_ROLES)
def test_changes_of_roles_equal_mcnemars_exact_test(before, after):
    for change, first, second in zip(role_changes(before, after, NAMES), before, after):
        table = [[(first & second).sum(), (first & ~second).sum()], [(~first & second).sum(), (~first & ~second).sum()]]
        expected = mcnemar(table, exact=True).pvalue if change.gained + change.lost else 1
        assert change.p == pytest.approx(expected, rel=1e-12)
        assert (change.kept, change.lost, change.gained) == (table[0][0], table[0][1], table[1][0])
        assert (change.before, change.after) == (change.kept + change.lost, change.kept + change.gained)


def test_gained_and_lost_are_counted_by_layer():
    gained, lost = changes_per_layer(BEFORE, AFTER)
    assert gained.tolist() == [[0, 2], [0, 1], [1, 0]]
    assert lost.tolist() == [[1, 0], [0, 0], [0, 1]]


def test_heads_that_change_only_other_roles_are_not_changed():
    assert np.argwhere(changed_heads(BEFORE, AFTER, NAMES)).tolist() == [[0, 1], [1, 0], [1, 1], [1, 2]]
    assert np.argwhere(changed_heads(BEFORE, AFTER, NAMES, chosen=("delimiter:sep",))).tolist() == [[0, 2], [1, 1]]
    assert not changed_heads(BEFORE, AFTER, NAMES, chosen=("sink",)).any()


def changed_by_layer(*counts):
    return np.arange(5) < np.array(counts)[:, None]


@pytest.mark.parametrize(("counts", "expected"), [((0, 0, 0), None), ((2, 2, 2), (0, 1, 4)), ((1, 2, 3, 1), (1, 2, 5))])
def test_the_busiest_layers_are_the_shortest_run_with_two_thirds(counts, expected):
    assert busiest_layers(changed_by_layer(*counts)) == expected


@given(arrays(bool, st.tuples(st.integers(1, 6), st.just(4))))
def test_the_busiest_layers_hold_two_thirds_and_no_shorter_run_does(changed):
    per_layer, found = changed.sum(axis=1), busiest_layers(changed)
    if found is None:
        assert not changed.any()
        return
    first, last, held = found
    assert held == per_layer[first : last + 1].sum() >= 2 / 3 * per_layer.sum() - 1e-9
    length = last - first
    shorter = [per_layer[start : start + length].sum() for start in range(len(per_layer) - length + 1)]
    assert max(shorter) < 2 / 3 * per_layer.sum() - 1e-9


def test_depths_reach_from_the_input_to_the_output_and_one_layer_lies_between():
    assert (depths(3).tolist(), depths(1).tolist()) == ([0, 0.5, 1], [0.5])


@pytest.mark.parametrize(
    "compared",
    [
        lambda a, b: transitions(a, b, NAMES),
        lambda a, b: role_changes(a, b, NAMES),
        lambda a, b: changed_heads(a, b, NAMES, COARSE_ROLES),
        changes_per_layer,
    ],
)
def test_roles_of_other_layers_or_heads_get_a_sentence(compared):
    for shape, written in (((3, 4, 3), "4 x 3"), ((3, 2, 12), "2 x 12")):
        with pytest.raises(AnalysisError, match=f"has 2 layers x 3 heads and the compared checkpoint {written}, so"):
            compared(BEFORE, holding(shape=shape))
    with pytest.raises(ValueError, match="3 and 2 roles"):
        compared(BEFORE, holding(shape=(2, 2, 3)))


def test_roles_that_do_not_name_the_axis_are_an_error():
    with pytest.raises(ValueError, match="3 and 3 roles for the role names"):
        transitions(BEFORE, AFTER, ("local",))


FOUR_ROLES = ("local", "block", "delimiter", "sink")
holding_four = partial(holding, shape=(4, 2, 3))


def differing(**roles):
    """Differences of every head of the named roles; those of the others are 0."""
    return np.array([np.full((2, 3), roles.get(role, 0.0)) for role in FOUR_ROLES])


@pytest.mark.parametrize(
    ("before", "after", "difference", "of", "most"),
    [
        # Most heads, gained or lost, however far the scores of another role moved.
        (holding_four((2, 0, 0)), holding_four((2, 1, 1), (0, 0, 0)), differing(block=9.0), FOUR_ROLES, "delimiter"),
        # As many heads: the scores decide, up and down alike.
        (holding_four(), holding_four((0, 0, 0), (1, 0, 0)), differing(local=0.5, block=-0.6), FOUR_ROLES, "block"),
        (holding_four(), holding_four(), differing(local=0.5, sink=-2.0), FOUR_ROLES, "sink"),
        # Only the roles that are asked about.
        (holding_four(), holding_four((3, 0, 0), (3, 0, 1)), differing(block=0.1), ("local", "block"), "block"),
        # Nothing moved, or nothing can be told: the first.
        (holding_four(), holding_four(), differing(), ("block", "local"), "block"),
        (holding_four(), holding_four(), differing(local=np.nan, block=0.1), ("local", "block"), "block"),
    ],
)
def test_the_role_that_moved_most(before, after, difference, of, most):
    assert role_moved_most(before, after, difference, FOUR_ROLES, of) == most


@pytest.mark.parametrize(
    ("difference", "head"),
    [
        ([[0.1, -0.2, 0.0], [0.0, np.nan, 0.1]], (0, 1)),
        ([[0.1, 0.3, 0.0], [-0.3, 0.3, 0.1]], (0, 1)),
        ([[0.0, 0.0], [0.0, np.nan]], (0, 0)),
        ([[0.1], [0.2], [-0.4]], (2, 0)),
    ],
)
def test_the_head_that_moved_most(difference, head):
    assert head_moved_most(np.array(difference)) == head
