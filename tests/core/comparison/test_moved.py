import numpy as np
import pytest

from attention_sieve.core.comparison.transitions import head_moved_most, role_moved_most

ROLES = ("local", "block", "delimiter", "sink")
NONE = np.zeros((4, 2, 3), bool)


def holding(*heads):
    """Which head holds which role; each of `heads` is a role's place, layer and head."""
    holds = NONE.copy()
    for place in heads:
        holds[place] = True
    return holds


def differing(**roles):
    """Differences of every head of the named roles; those of the others are 0."""
    return np.array([np.full((2, 3), roles.get(role, 0.0)) for role in ROLES])


@pytest.mark.parametrize(
    ("before", "after", "difference", "of", "most"),
    [
        # Most heads, gained or lost, however far the scores of another role moved.
        (holding((2, 0, 0)), holding((2, 1, 1), (0, 0, 0)), differing(block=9.0), ROLES, "delimiter"),
        # As many heads: the scores decide, up and down alike.
        (NONE, holding((0, 0, 0), (1, 0, 0)), differing(local=0.5, block=-0.6), ROLES, "block"),
        (NONE, NONE, differing(local=0.5, sink=-2.0), ROLES, "sink"),
        # Only the roles that are asked about.
        (NONE, holding((3, 0, 0), (3, 0, 1)), differing(block=0.1), ("local", "block"), "block"),
        # Nothing moved, or nothing can be told: the first.
        (NONE, NONE, differing(), ("block", "local"), "block"),
        (NONE, NONE, differing(local=np.nan, block=0.1), ("local", "block"), "block"),
    ],
)
def test_the_role_that_moved_most(before, after, difference, of, most):
    assert role_moved_most(before, after, difference, ROLES, of) == most


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
