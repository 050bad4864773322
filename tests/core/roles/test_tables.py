import numpy as np

from attention_sieve.core.attention.settings import head_names
from attention_sieve.core.comparison.transitions import Transition, role_change_table, role_changes, transition_table
from attention_sieve.core.texts.text import Text, texts_sha256

NAMES = ("local", "block")


def test_transitions_are_written_with_their_heads():
    both = frozenset({"block", "local", "a role of a file"})
    table = transition_table([Transition(frozenset(), both, ((3, 7), (4, 1))), Transition(both, both, ())])
    assert table.to_dict("split")["columns"] == ["before", "after", "heads", "which"]
    assert table.to_numpy().tolist() == [
        ["no role", "local, block, a role of a file", 2, "L3 H7, L4 H1"],
        ["local, block, a role of a file", "local, block, a role of a file", 0, ""],
    ]
    assert head_names([(0, 11)]) == "L0 H11"
    assert list(transition_table([]).columns) == ["before", "after", "heads", "which"]


def test_changes_of_roles_are_written_one_row_a_role():
    before = np.zeros((2, 3, 4), bool)
    after = before.copy()
    after[0, 0, :3] = True
    table = role_change_table(role_changes(before, after, NAMES))
    assert list(table.columns) == ["role", "before", "after", "gained", "lost", "kept", "p"]
    assert table.to_numpy().tolist() == [["local", 0, 3, 3, 0, 0, 0.25], ["block", 0, 0, 0, 0, 0, 1.0]]


def test_the_digest_of_texts_tells_texts_order_segments_words_and_trees_apart():
    one, other = Text(("A cat", "sat.")), Text(("A cat sat.",))
    words = (("A cat", "sat."),)
    trees = [Text(("A cat sat.",), words, heads, (("nsubj", "root"),)) for heads in (((2, 0),), ((0, 1),))]
    different = [(one, other), (other, one), (one,), (other,), *[(text,) for text in trees], ()]
    different.append((Text(("A cat sat.",), words),))
    assert len({texts_sha256(texts) for texts in different}) == len(different)
    assert texts_sha256([one]) == texts_sha256((Text(("A cat", "sat.")),))
