"""A text that is given many times is no more evidence for a role than one that is given once."""

import numpy as np
import pandas as pd
import pytest

import attention_sieve as sieve
from attention_sieve.__main__ import main

LINES = ("The old dog chased a cat.", "She closed the shop.", "Birds eat red worms.")
REPEATED = (*LINES, *[LINES[0]] * 27)
NOTE = "Equal texts count once: 27 of 30 repeat others."
TESTED = ["texts", "mean", "p", "p_adjusted", "low", "high", "holds", "stability", "evidence"]


@pytest.fixture
def tables(bundled, tmp_path, capsys):
    """The table of roles over lines, what the command says, and the file of their scores."""

    def of(lines, name):
        texts, scores, out = (tmp_path / f"{name}{suffix}" for suffix in (".txt", ".parquet", " roles.parquet"))
        texts.write_text("\n".join(lines))
        read = ["--checkpoint", "bundled", "--texts", str(texts)]
        assert main(["score", *read, "--output", str(scores)]) == 0
        capsys.readouterr()
        assert main(["roles", *read, "--output", str(out)]) == 0
        return pd.read_parquet(out), capsys.readouterr().err, scores

    return of


def assert_same(table, expected):
    pd.testing.assert_frame_equal(table[TESTED], expected[TESTED], rtol=1e-4, atol=1e-5)


def test_a_line_given_28_times_counts_once(tables, tmp_path, capsys):
    once, says_once, _ = tables(LINES, "once")
    many, says_many, scores = tables(REPEATED, "many")
    assert_same(many, once)
    assert many.texts.max() == 3
    assert NOTE in says_many
    assert "With so few texts (3)" in says_many
    assert "Equal texts" not in says_once
    assert (once.attrs.get("equal texts left out"), many.attrs["equal texts left out"]) == (None, "27")
    tested = tmp_path / "tested.csv"
    assert main(["roles", str(scores), "--output", str(tested)]) == 0
    assert NOTE in capsys.readouterr().err
    assert_same(pd.read_csv(tested), once)


def test_a_single_line_given_30_times_is_one_text_without_a_test(bundled):
    table = sieve.roles(bundled, [LINES[0]] * 30).table
    assert not table.holds.any()
    assert table.p.isna().all()


def test_a_table_of_scores_names_the_first_text_that_is_equal(tables, tmp_path, capsys):
    _, _, scores = tables((LINES[1], *LINES), "shop")
    table = pd.read_parquet(scores)
    assert table.groupby("text").equal_to.unique().map(list).to_dict() == {0: [0], 1: [1], 2: [0], 3: [3]}
    table.assign(equal_to="shop").to_parquet(scores)
    assert main(["roles", str(scores), "--output", str(tmp_path / "out.csv")]) == 2
    assert "not the index of a text. Score the texts again." in capsys.readouterr().err


def test_differences_of_two_checkpoints_count_equal_texts_once(tables, tmp_path, capsys):
    compared = []
    for name, lines in (("once", LINES), ("many", REPEATED)):
        _, _, scores = tables(lines, name)
        other, out = tmp_path / "other.parquet", tmp_path / f"{name} compared.parquet"
        table = pd.read_parquet(scores)
        table.score += 0.1 * (table.text % 3 + 1) * (table.text < 3)  # the repeated ones stay as they are
        table.to_parquet(other)
        assert main(["compare", str(scores), str(other), "--output", str(out)]) == 0
        compared.append(pd.read_parquet(out))
        assert (NOTE in capsys.readouterr().err) == (name == "many")
    once, many = compared
    assert np.isfinite(once.p).any()
    np.testing.assert_allclose(many.p, once.p, rtol=1e-4, atol=1e-5)
    assert many.texts.max() == 3


def test_pairs_at_the_same_distance_count_equal_texts_once(bundled, tables, tmp_path, capsys):
    pairs = []
    for name, lines in (("once", LINES), ("many", REPEATED)):
        texts, counts, out = (tmp_path / f"{name}{suffix}" for suffix in (".txt", " counts.csv", " pairs.csv"))
        texts.write_text("\n".join(lines))
        arguments = ["controls", "--checkpoint", "bundled", "--texts", str(texts), "--output", str(counts)]
        assert main([*arguments, "--pairs", str(out)]) == 0
        assert (NOTE in capsys.readouterr().err) == (name == "many")
        pairs.append(pd.read_csv(out))
    columns = ["texts", "related", "control", "p_control", "holds"]
    pd.testing.assert_frame_equal(pairs[1][columns], pairs[0][columns], rtol=1e-4, atol=1e-5)
