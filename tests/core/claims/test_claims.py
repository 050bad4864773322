"""Claims about heads: on heads that are built by hand, on random ones, against hand values, and those that are none."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from planted_copies import BEFORE, INDUCTION, RULER, save_planted_copies
from scipy.stats import spearmanr

import attention_sieve as sieve
from attention_sieve.__main__ import main
from attention_sieve.core.claims.claim import Claim, claim_of
from attention_sieve.core.errors import AnalysisError


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    return save_planted_copies(tmp_path_factory.mktemp("planted") / "copies")


@pytest.fixture
def told(tmp_path, capsys):
    """told(checkpoint, claim, *options) -> status, the table, and what the command says."""

    def run(checkpoint, claimed, *options, suffix="parquet"):
        output = tmp_path / f"claim.{suffix}"
        output.unlink(missing_ok=True)
        of_claim = ["claim", "--checkpoint", str(checkpoint), "--device", "cpu", "--output", str(output)]
        status = main([*of_claim, *options, claimed])
        read = {"parquet": pd.read_parquet, "csv": pd.read_csv}[suffix]
        return status, read(output) if output.exists() else None, capsys.readouterr().err

    return run


@pytest.mark.parametrize(
    ("sentence", "heads", "role"),
    [
        ("L16 H19, L11 H15 are retrieval heads", ((16, 19), (11, 15)), "retrieval"),
        ("Layer 3, head 0 is a previous-token head.", ((3, 0),), "previous"),
        ("the heads L1H2 and 4-5 and 4.6 are attention sinks", ((1, 2), (4, 5), (4, 6)), "sink"),
        ("l1 h2 and L1 H2: duplicate token heads", ((1, 2),), "duplicate"),
        ("5-1 nsubj", ((5, 1),), "syntactic:nsubj"),
        ("Induction heads: L10 H7", ((10, 7),), "induction"),
    ],
)
def test_a_sentence_names_heads_and_a_role(sentence, heads, role):
    assert claim_of(sentence) == Claim(heads, role)


def test_scores_by_head_are_numbers_or_lists_whose_mean_counts():
    scores = {"16-19": 0.75, "L2 H0": [0.0, 0.5]}
    assert claim_of(scores, "retrieval") == Claim(((16, 19), (2, 0)), "retrieval", (0.75, 0.25))
    assert claim_of(json.dumps(scores), "retrieval") == claim_of(scores, "retrieval")


@pytest.mark.parametrize(
    ("claimed", "role", "says"),
    [
        ("All heads are wonderful", None, "names no head"),
        ("L1 H2 is wonderful", None, "'wonderful', at character 10 of the claim, is no role"),
        ("L1 H2 is not an induction head", None, "'not induction', at character 10"),
        ("L1 H2", None, "names no role"),
        ("L1 H2 is an induction head", "retrieval", "about the role induction, and the role beside it is retrieval"),
        ({"1-2": 0.5}, None, "of which role"),
        ({"head": 0.5}, "sink", "'head' is no head"),
        ({"1-2": 0.5, "L1 H2": 0.4}, "sink", "has a score already"),
        ({"1-2": []}, "sink", r"The score of '1-2' is \[\]"),
        ({"1-2": [True]}, "sink", "The score of '1-2'"),
        ({"1-2": float("nan")}, "sink", "The score of '1-2' is nan"),
        ({}, "sink", "no scores"),
        ('{"1-2": 0.5,\n"3-4" 1}', "sink", "line 2, character 7"),
        ("[0.5]", "sink", "These are no scores by head"),
    ],
)
def test_what_is_no_claim_gets_a_sentence_with_the_place(claimed, role, says):
    with pytest.raises(AnalysisError, match=says):
        claim_of(claimed, role)


def test_a_head_that_is_built_holds_a_ruler_only_holds_at_its_distance_and_a_uniform_one_does_not(planted, told):
    status, table, says = told(planted, "L1 H0, L1 H1, L0 H1 are induction heads", "--number", "7")
    assert status == 0
    assert list(zip(table["layer"], table["head"]))[:2] == [INDUCTION, RULER]
    assert table.verdict.tolist() == ["holds", "only as a positional ruler", "does not hold"]
    assert table["mean"][0] > 0.9
    assert table["mean"][1] < 0.2
    assert table.positional.tolist() == pytest.approx([table["mean"][0], 1, 0], abs=0.1)
    assert (table.permuted.abs() < 0.05).all()
    assert table["rank"][0] == 1
    assert table.evidence[0] > 20 > 1 > table.evidence[2]
    assert "L1 H1 only as a positional ruler" in says
    called = sieve.claim(planted, "L1 H0, L1 H1, L0 H1", role="induction", number=7, device="cpu")
    pd.testing.assert_frame_equal(called.table, table, rtol=1e-5, atol=1e-6)
    assert called.result.summary in says
    _, table, _ = told(planted, "L0 H0 and L0 H1 are previous-token heads", "--number", "4", suffix="csv")
    assert (table["layer"][0], table["head"][0]) == BEFORE
    assert table.verdict.tolist() == ["holds", "does not hold"]
    assert table.positional.isna().all()


def test_a_ranking_is_compared_with_the_measured_one(planted, told, tmp_path):
    scores = {"0-0": 0.1, "0-1": 0.2, "1-0": 0.9, "1-1": [0.3, 0.5]}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    status, table, says = told(planted, str(tmp_path / "scores.json"), "--role", "induction", "--number", "8")
    assert status == 0
    assert table.claimed.tolist() == [0.1, 0.2, 0.9, 0.4]
    value = spearmanr(table.claimed, table["mean"]).statistic
    assert float(table.attrs["spearman"]) == pytest.approx(value, abs=1e-5)
    assert -1 <= float(table.attrs["spearman low"]) <= float(table.attrs["spearman high"]) <= 1
    assert "p random sets" not in table.attrs, "all heads are named"
    assert f"Spearman's {value:.2f}" in says
    _, of_two, _ = told(planted, "0-0, 1-0", "--role", "induction", "--number", "8")
    as_high = [sum(pair) >= of_two["mean"].sum() - 1e-9 for pair in combinations(table["mean"], 2)]
    assert float(of_two.attrs["p random sets"]) == pytest.approx(np.mean(as_high), abs=0.04)


def test_the_same_claim_is_tested_on_other_texts_and_in_other_checkpoints(planted, folders, told, tmp_path):
    texts = [f"{line} {line} {line}" for line in ("the old dog ran", "a cat saw the shop", "she sold her car")]
    (tmp_path / "mine.txt").write_text("\n".join(texts))
    claimed, bert = "L1 H0, L1 H1 are induction heads", str(folders("bert"))
    also = ("--number", "3", "--also", f"{tmp_path / 'mine.txt'}@French", "--also", bert, "--also", "probe texts")
    status, table, says = told(planted, claimed, *also)
    assert status == 0
    assert table.tested_in.unique().tolist() == [str(planted)]
    assert table.tested_on.tolist() == ["probe texts"] * 2 + ["mine.txt"] * 2 + ["probe texts"] * 2
    assert table.verdict.tolist()[:2] == table.verdict.tolist()[4:]
    assert f"{planted}, mine.txt: holds for 1 of 2 (L1 H0).\n{bert}, probe texts: The claim cannot be tested" in says
    alone = told(planted, claimed, "--texts", str(tmp_path / "mine.txt"))[1]
    columns = ["layer", "head", "verdict", "mean", "p_adjusted", "evidence"]
    pd.testing.assert_frame_equal(table[columns][2:4].reset_index(drop=True), alone[columns], rtol=1e-5, atol=1e-6)
    called = sieve.claim(planted, claimed, number=3, also={"mine.txt": texts, bert: bert})
    pd.testing.assert_frame_equal(called.table[columns], table[columns][:4], rtol=1e-5, atol=1e-6)
    assert called.result.summary in says
    status, _, says = told(planted, claimed, "--also", str(tmp_path / "gone"))
    assert (status, "gone" in says) == (2, True)


def test_no_random_claim_holds_on_random_weights(folders, told):
    """All heads, as many roles as there are for decoders: the weights are drawn wide, so that heads are sharp."""
    everywhere = ", ".join(f"{layer}-{head}" for layer, head in np.ndindex(2, 3))
    for role in ("previous", "induction", "duplicate"):
        status, table, _ = told(folders("gpt2"), f"{everywhere} are {role} heads", "--number", "8")
        assert status == 0
        assert set(table.verdict) == {"does not hold"}


def test_syntactic_claims_are_compared_with_words_at_the_same_distance(bundled, told, tmp_path):
    texts = [
        "The old dog chased a cat.",
        "She closed the shop.",
        "A man who sings sold his car.",
        "Birds eat red worms.",
    ]
    (tmp_path / "texts.txt").write_text("\n".join(texts))
    status, table, says = told(
        "bundled", "L2 H8 looks", "--role", "syntactic:nsubj", "--texts", str(tmp_path / "texts.txt")
    )
    assert (status, table) == (2, None), "a claim with a word that is no role, beside the option"
    assert "'looks'" in says
    _, table, says = told("bundled", "2-8, 0-0", "--role", "syntactic:nsubj", "--texts", str(tmp_path / "texts.txt"))
    assert table.positional.notna().all()
    assert table.p_positional.notna().all()
    assert "other words at the same distance" in says


@pytest.mark.parametrize(
    ("checkpoint", "claimed", "options", "says"),
    [
        ("planted", "L9 H1 is an induction head", (), "has no head L9 H1"),
        ("planted", "L0 H1 is a local head", (), "no probe texts for the role local"),
        ("planted", "L0 H1", ("--role", "magic"), "There is no role 'magic'"),
        ("planted", "gone.json", ("--role", "sink"), "gone.json cannot be read"),
        ("bert", "L0 H1 is an induction head", ("--number", "2"), "only models whose tokens look back alone"),
    ],
)
def test_bad_claims_are_refused_with_a_sentence(checkpoint, claimed, options, says, planted, folders, told):
    status, table, said = told(planted if checkpoint == "planted" else folders(checkpoint), claimed, *options)
    assert (status, table) == (2, None)
    assert says in said
