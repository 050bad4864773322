import numpy as np

from attention_sieve.core.generation.fetching import fetching, fetching_table

IDS = np.array([7, 3, 7, 5])
"""Of the tokens so far; 7 follows, of which there are two earlier copies."""
ROW = np.array(
    [
        [[0.1, 0.2, 0.6, 0.1, 0.0], [0.25, 0.25, 0.25, 0.25, 0.0], [np.nan] * 5],
        [[0.0, 0.9, 0.0, 0.1, 0.0], [0.5, 0.0, 0.5, 0.0, 0.0], [0.0, 0.0, 0.1, 0.9, 0.0]],
    ]
)
ADDED = np.array([[0.5, -1.0, np.nan], [0.0, 2.0, 0.1]])
TOKENS = ("A", "b", "A", "c", "A")


def test_the_most_attended_key_its_share_and_that_of_copies_are_as_by_hand():
    found = fetching(ROW, IDS, 7)
    np.testing.assert_array_equal(found.most, [[2, 0, -1], [1, 0, 3]])
    np.testing.assert_allclose(found.share, [[0.6, 0.25, np.nan], [0.9, 0.5, 0.9]])
    np.testing.assert_allclose(found.on_copies, [[0.7, 0.5, np.nan], [0.0, 1.0, 0.1]])
    assert found.by_chance == 0.5
    new = fetching(ROW, IDS, 99)
    np.testing.assert_allclose(new.on_copies, [[0, 0, np.nan], [0, 0, 0]])
    assert new.by_chance == 0


def test_heads_are_ranked_by_what_they_say_for_the_token():
    table = fetching_table(fetching(ROW, IDS, 7), ADDED, TOKENS)
    assert list(table["name"]) == ["L1 H1", "L0 H0", "L1 H2", "L1 H0", "L0 H1"]
    assert table.iloc[1].to_dict() == {
        "name": "L0 H0", "layer": 0, "head": 0, "adds": 0.5, "looks at": "A", "position": 2, "share": 0.6,
        "on copies": 0.7,
    }  # fmt: skip


def test_where_that_is_not_known_attention_on_copies_ranks_them():
    table = fetching_table(fetching(ROW, IDS, 7), None, TOKENS)
    assert list(table["name"]) == ["L1 H1", "L0 H0", "L0 H1", "L1 H2", "L1 H0"]
    assert "adds" not in table
