import numpy as np
import pytest

from attention_sieve.core.generation.attribution import Attribution, Parts
from attention_sieve.core.generation.fetching import fetching, fetching_table

IDS = np.array([7, 3, 7, 5])
"""Of the tokens so far; 7 follows, of which there are two earlier copies."""
ROW = np.array(
    [
        [[0.1, 0.2, 0.6, 0.1, 0.0], [0.25, 0.25, 0.25, 0.25, 0.0], [np.nan] * 5],
        [[0.0, 0.9, 0.0, 0.1, 0.0], [0.5, 0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9, 0.0]],
    ]
)
ALONE = np.array(
    [
        [[4.0, 0.0, 1.0, 2.0, 9.0], [-4.0, 0.0, -4.0, 0.0, 9.0], [np.nan] * 5],
        [[0.0, 0.0, 0.0, 0.0, 9.0], [3.0, 1.0, 3.0, 1.0, 9.0], [2.0, 2.0, 2.0, 2.0, 9.0]],
    ]
)
"""What each head would add for one key alone."""
PARTS = Parts(
    heads=np.array([[1.2, -2.0, np.nan], [0.0, 3.0, 2.0]]), blocks=np.array([0.25, -0.5]), embedding=0.125, end=0.0
)
ADDED = Attribution(adds=PARTS, capped=None, alone=ALONE)
TOKENS = ("A", "b", "A", "c", "A")


def test_the_most_attended_key_its_share_and_that_of_copies_are_as_by_hand():
    found = fetching(ROW, IDS, 7, None)
    np.testing.assert_array_equal(found.most, [[2, 0, -1], [1, 0, 3]])
    np.testing.assert_allclose(found.share, [[0.6, 0.25, np.nan], [0.9, 0.5, 0.9]])
    np.testing.assert_allclose(found.on_copies, [[0.7, 0.5, np.nan], [0.0, 1.0, 0.1]])
    assert found.by_chance == 0.5
    new = fetching(ROW, IDS, 99, None)
    np.testing.assert_allclose(new.on_copies, [[0, 0, np.nan], [0, 0, 0]])
    assert new.by_chance == 0


def test_what_goes_with_the_values_of_the_copies_is_as_by_hand():
    """Copies stand at 0 and 2; the other tokens' values are those of 1 and 3."""
    found = fetching(ROW, IDS, 7, ADDED)
    first = 0.1 * (4 - 1) + 0.6 * (1 - 1)
    expected = [[first, 0.5 * (-4 - 0), np.nan], [0.0, 1.0 * (3 - 1), 0.1 * (2 - 2)]]
    np.testing.assert_allclose(found.from_copies, expected, atol=1e-12)


def test_heads_are_ranked_by_what_they_took_from_copies_then_by_what_they_add():
    """L1 H2 adds more than L0 H0 and takes none of it from a copy."""
    table = fetching_table(fetching(ROW, IDS, 7, ADDED), TOKENS)
    assert list(table["name"]) == ["L1 H1", "L0 H0", "L1 H2", "L1 H0", "L0 H1"]
    assert table.iloc[1].to_dict() == {
        "name": "L0 H0", "layer": 0, "head": 0, "adds": 1.2, "from copies": pytest.approx(0.3), "looks at": "A",
        "position": 2, "share": 0.6, "on copies": 0.7,
    }  # fmt: skip


def test_without_an_earlier_copy_what_heads_add_ranks_them():
    table = fetching_table(fetching(ROW, IDS, 99, ADDED), TOKENS)
    assert list(table["name"]) == ["L1 H1", "L1 H2", "L0 H0", "L1 H0", "L0 H1"]


def test_where_that_is_not_known_attention_on_copies_ranks_them():
    table = fetching_table(fetching(ROW, IDS, 7, None), TOKENS)
    assert list(table["name"]) == ["L1 H1", "L0 H0", "L0 H1", "L1 H2", "L1 H0"]
    assert "adds" not in table


def test_the_other_parts_have_a_row_each_and_sum_with_the_heads():
    rows = ADDED.table()
    assert rows["name"].tolist() == ["L0 MLP", "L1 MLP", "embedding", "last biases"]
    assert rows["layer"].isna().tolist() == [False, False, True, True]
    assert rows["adds"].sum() + np.nansum(PARTS.heads) == pytest.approx(PARTS.total)
