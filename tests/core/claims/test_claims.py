"""Claims about heads: on heads that are built by hand, on random ones, against hand values, and those that are none."""

import json
from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from planted_copies import BEFORE, BLOCK, INDUCTION, RULER, save_planted_copies
from scipy.stats import spearmanr

import attention_sieve as sieve
from attention_sieve.__main__ import main
from attention_sieve.core.claims.claim import Claim, claim_of
from attention_sieve.core.claims.judge import judge
from attention_sieve.core.claims.probe import ClaimSettings, ProbedRole
from attention_sieve.core.claims.tables import notes
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import RoleScores, ScoreSettings
from attention_sieve.core.statistics.cases import LEAST_TIMES


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
        ("L2 H0 is a direct object head", ((2, 0),), "syntactic:dobj"),
        ("L2 H0, L2 H8: direct objects", ((2, 0), (2, 8)), "syntactic:dobj"),
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
        ("L1 H2 is an amod and an nsubj head", None, "names 2 roles: amod and nsubj. Each has a test"),
        ("L1 H2 is an induction head, L3 H0 a direct object head", None, "names 2 roles: induction and direct object"),
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
    status, table, says = told(planted, "L1 H0, L1 H1, L0 H1 are induction heads", "--number", "12")
    assert status == 0
    assert list(zip(table["layer"], table["head"]))[:2] == [INDUCTION, RULER]
    assert table.verdict.tolist() == ["holds", "only as a positional ruler", "does not hold"]
    assert table["mean"][0] > 0.9
    assert table["mean"][1] < 0.2
    assert table.positional.tolist() == pytest.approx([table["mean"][0], 1, 0], abs=0.1)
    assert table.compared.tolist() == pytest.approx(table["mean"].tolist()), (
        "the two are beside each other, in one unit"
    )
    assert (table.permuted.abs() < 0.05).all()
    assert table["rank"][0] == 1
    assert table.evidence[0] > 20 > 1 > table.evidence[2]
    assert table.failed.tolist() == ["", "tau; permuted keys; distance", "tau; permuted keys"]
    assert "L1 H1 only as a positional ruler (failing tau p = 1.00, permuted keys p = " in says
    assert "L0 H1 does not hold (failing tau p = 1.00, permuted keys):" in says
    assert "For odds, shares below 0 count as 0." in says
    called = sieve.claim(planted, "L1 H0, L1 H1, L0 H1", role="induction", number=12, device="cpu")
    pd.testing.assert_frame_equal(called.table, table, rtol=1e-5, atol=1e-6)
    assert called.result.summary in says
    assert table.constant.tolist()[0]
    assert table.p_adjusted.isna()[0]


def test_a_constant_score_has_no_p_and_holds_by_its_mean_over_ten_texts_alone(planted, told):
    claimed = "L0 H0 and L0 H1 are previous-token heads"
    for number, verdict in (("9", "no test"), ("10", "holds")):
        _, table, says = told(planted, claimed, "--number", number, suffix="csv")
        assert (table["layer"][0], table["head"][0]) == BEFORE
        assert table.verdict.tolist() == [verdict, "does not hold"]
        assert table.constant.tolist() == [True, False]
        assert table.positional.isna().all()
        assert ("fewer than 10: others may well give other verdicts" in says) == (number == "9")
    assert "constant, so that the mean decides" in says


def test_equal_texts_count_once_and_documents_are_units(bundled, told, tmp_path):
    claimed, texts = "L0 H2 is a previous-token head", tmp_path / "texts.txt"
    texts.write_text("The old dog chased a cat.\nThe old  dog chased a cat.")
    status, table, says = told("bundled", claimed, "--texts", str(texts))
    assert (status, table) == (2, None)
    assert "one text alone (2 texts are equal, and count once)" in says
    texts.write_text("The old dog chased a cat.\nShe closed the shop.\nThe old dog chased a cat.")
    _, table, says = told("bundled", claimed, "--texts", str(texts))
    assert (table.n_texts[0], table.n_documents.isna().all()) == (2, True)
    assert "Equal texts count once: 1 of 3 repeats another." in says
    assert "If the heads were chosen on these very texts, test them on others" in says
    assert "Documents are unknown" in says
    rows = [("a", "The old dog chased a cat."), ("a", "She closed the shop."), ("b", "Birds eat red worms.")]
    named = tmp_path / "named.jsonl"
    named.write_text("\n".join(json.dumps({"text": text, "document": name, "pairs": []}) for name, text in rows))
    _, table, says = told("bundled", claimed, "--texts", str(named))
    assert (table.n_texts[0], table.n_documents[0]) == (3, 2)
    assert "The texts are from 2 documents, which are the units" in says
    named.write_text("\n".join(json.dumps({"text": text, "document": "a", "pairs": []}) for _, text in rows))
    status, _, says = told("bundled", claimed, "--texts", str(named))
    assert (status, "texts of one document alone" in says) == (2, True)


def test_a_ruler_is_found_on_own_texts_of_one_period_by_others_at_its_distance(planted, told, tmp_path):
    """The last token of the first block looks at the first one from the distance of the copies, and copies nothing."""
    random, texts = np.random.default_rng(0), tmp_path / "texts.jsonl"
    blocks = [(60 + random.permutation(100)[:BLOCK]).tolist() for _ in range(12)]
    texts.write_text("\n".join(json.dumps({"ids": [0, *4 * block]}) for block in blocks))
    _, table, says = told(planted, "L1 H0, L1 H1 are induction heads", "--texts", str(texts))
    assert table.verdict.tolist() == ["holds", "only as a positional ruler"]
    assert (table["mean"] > 0.9).all(), "neither by its score"
    assert table.failed.tolist() == ["", "distance"]
    assert table.compared[1] < LEAST_TIMES * table.positional[1]
    assert table.compared[0] > LEAST_TIMES * table.positional[0]
    _, table, says = told(planted, "L1 H1 is a duplicate head", "--texts", str(texts))
    assert "others at the same distance" not in says or table.verdict[0] != "holds"


def judged(scores, fixed=None, document=None, claimed=None, role="induction", **criterion):
    """Judge a claim about all heads, from made shares above chance of texts and heads."""

    def of(values):
        n_texts, n_heads = values.shape
        uniform = np.zeros((n_texts, 1, 1))
        made = values.reshape(n_texts, 1, 1, n_heads)
        return RoleScores(roles=(role,), scores=made, uniform=uniform, greatest=1 + uniform, scale="share")

    claim = Claim(tuple((0, head) for head in range(scores.shape[1])), role, claimed)
    of_role = RoleSettings(ScoreSettings(scale="share", roles=(role,)), Criterion(tau=0.5, **criterion))
    probed = ProbedRole(
        settings=ClaimSettings(claim=claim, role_settings=of_role),
        scored=of(scores),
        n_equal=0,
        are_made=fixed is not None,
        document=document,
        permuted=of(0 * scores),
        fixed=None if fixed is None else of(fixed),
        matched=(),
    )
    return judge(claim, probed)


def test_a_ruler_scores_higher_at_a_fixed_period_by_a_paired_test_and_twice_as_high():
    random = np.random.default_rng(0)
    scores = np.array([0.48, 0.2, 0.38, 0.4]) + random.normal(0, 0.02, (30, 4))
    fixed = np.array([0.525, 0.525, 0.8, 0.45]) + random.normal(0, 0.02, (30, 4))
    found = judged(scores, fixed)
    ruler = "only as a positional ruler"
    assert found.verdicts == ("does not hold", ruler, ruler, "does not hold"), ".525 beside .48 is no ruler"
    assert (found.distance.p[0, :, 0] < 0.05).all(), "although each difference is significant"


def test_on_own_texts_without_others_at_a_distance_a_role_of_pairs_is_not_tested_against_a_ruler():
    found = judged(np.random.default_rng(0).normal(0.9, 0.05, (12, 1)))
    assert found.verdicts == ("holds (not tested against a ruler)",)


def test_sentences_of_few_documents_do_not_make_a_false_claim_hold():
    random, document = np.random.default_rng(0), np.repeat(np.arange(4), 5)
    of_document = random.normal(0, 0.1, (4, 2_000))
    scores = 0.5 + of_document[document] + random.normal(0, 0.1, (20, 2_000))
    held = [
        np.mean([verdict.startswith("holds") for verdict in judged(scores, document=each, correction="none").verdicts])
        for each in (document, None)
    ]
    assert held[0] < 0.06
    assert held[1] > 0.12


def test_the_interval_of_a_ranking_is_over_heads_and_needs_eight():
    random = np.random.default_rng(0)
    scores = np.array([1, 0, 3, 2, 4, 6, 5, 8, 7]) / 16 + random.normal(0, 0.01, (40, 9))
    found = judged(scores, claimed=tuple(np.linspace(0, 1, 9).tolist())).spearman
    assert found is not None
    value, low, high, _ = found
    half = 1.959964 * np.sqrt((1 + value**2 / 2) / 6)
    assert (low, high) == pytest.approx((np.tanh(np.arctanh(value) - half), np.tanh(np.arctanh(value) + half)))
    few = judged(scores[:, :7], claimed=tuple(np.linspace(0, 1, 7).tolist())).spearman
    assert few is not None
    assert np.isnan(few[1:3]).all()


def test_local_over_few_texts_says_that_its_scores_are_skewed():
    says = [notes(judged(np.random.default_rng(0).normal(0.6, 0.1, (n, 1)), role="local")) for n in (12, 30)]
    assert ["skewed to the left" in " ".join(each) for each in says] == [True, False]


def test_a_ranking_is_compared_with_the_measured_one(planted, told, tmp_path):
    scores = {"0-0": 0.1, "0-1": 0.2, "1-0": 0.9, "1-1": [0.3, 0.5]}
    (tmp_path / "scores.json").write_text(json.dumps(scores))
    status, table, says = told(planted, str(tmp_path / "scores.json"), "--role", "induction", "--number", "8")
    assert status == 0
    assert table.claimed.tolist() == [0.1, 0.2, 0.9, 0.4]
    value = spearmanr(table.claimed, table["mean"]).statistic
    assert float(table.attrs["spearman"]) == pytest.approx(value, abs=1e-5)
    assert table.attrs["spearman low"] == "nan", "four heads are too few for an interval"
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
    assert "others at the same distance" in says


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
