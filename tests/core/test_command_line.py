import csv
import io
from contextlib import redirect_stderr
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
from command_help import columns_in_help, own_columns
from passing import measure
from small_checkpoints import save

from attention_sieve.__main__ import main
from attention_sieve.core.comparison.differences import paired_tests
from attention_sieve.core.comparison.sizes import difference_sizes
from attention_sieve.core.roles.hypotheses import Criterion, resamples, role_tests, stability
from attention_sieve.core.roles.measures import SYNTACTIC, ScoreSettings, role_scores
from attention_sieve.core.roles.roles import COARSE_ROLES, FURTHER_ROLES, ROLES
from attention_sieve.core.roles.uncertainty.anytime import holds_by_evidence, role_evidence
from attention_sieve.core.texts.text import Text, read_typed

TYPED = "The black cat quickly chased two birds.\n\nWho sat there? ||| A red dog sat there.\nShe eats apples.\n"
ROLE_COLUMNS = [
    "role", "layer", "head", "texts", "mean", "std", "low", "high", "t", "p", "p_uniform", "p_role", "p_adjusted",
    "holds", "constant", "stability", "evidence", "holds_anytime",
]  # fmt: skip


@pytest.fixture
def texts_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TYPED, encoding="utf-8")
    return path


def score(texts, output, *more, checkpoint="bundled"):
    return main(["score", "--checkpoint", str(checkpoint), "--texts", str(texts), "--output", str(output), *more])


def scored(texts, folder, *more, checkpoint="bundled"):
    output = folder / "scores.parquet"
    assert score(texts, output, *more, checkpoint=checkpoint) == 0
    return pd.read_parquet(output)


def array(table):
    """Back to [text role layer head]."""
    sizes = [table[name].nunique() for name in ("text", "role", "layer", "head")]
    return table["score"].to_numpy().reshape(sizes)


def by_library(checkpoint, texts, settings=ScoreSettings(), too_long="error"):  # noqa: B008
    found = sorted(measure(checkpoint, texts, too_long=too_long), key=lambda text: text.position)
    measures = np.stack([text.measures for text in found if text.measures is not None])
    return measures, role_scores([text.of_text for text in found if text.of_text is not None], settings)


def test_scores_are_written_as_one_row_per_text_role_layer_and_head(texts_file, tmp_path, bundled, capsys):
    table = scored(texts_file, tmp_path)
    columns = ["text", "role", "layer", "head", "score", "uniform", "greatest", "tokens", "equal_to"]
    assert list(table.columns) == columns == columns_in_help("score", "Columns:")
    dtypes = {"text": "int64", "layer": "int64", "head": "int64", "score": "float64"}
    assert {name: str(table[name].dtype) for name in dtypes} == dtypes
    assert len(table) == 3 * len(ROLES) * 6 * 12
    assert tuple(table["role"].unique()) == ROLES
    _, expected = by_library(bundled, read_typed(TYPED))
    np.testing.assert_allclose(array(table), expected.scores, rtol=1e-6, atol=1e-6)
    for name in ("uniform", "greatest"):
        of_heads = np.broadcast_to(getattr(expected, name)[..., None], expected.scores.shape)
        np.testing.assert_allclose(table[name].to_numpy().reshape(of_heads.shape), of_heads, rtol=1e-6, atol=1e-6)
    n_tokens = [len(bundled.tokenizer(*text.segments)["input_ids"]) for text in read_typed(TYPED)]
    assert table.groupby("text")["tokens"].unique().str[0].tolist() == n_tokens
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(("columns", "segments"), [("b", ("A cat sat.",)), ("b,a", ("A cat sat.", "Who sat?"))])
def test_columns_can_be_picked(columns, segments, tmp_path, folders, loaded):
    file = tmp_path / "odd.csv"
    file.write_text("a,b\nWho sat?,A cat sat.\n")
    table = scored(file, tmp_path, "--text-columns", columns, checkpoint=folders("bert"))
    np.testing.assert_allclose(
        array(table), by_library(loaded("bert"), [Text(segments)])[1].scores, rtol=1e-6, atol=1e-6
    )


@pytest.mark.parametrize("direction", ["head-to-dependent", "both"])
def test_the_direction_can_be_chosen(direction, texts_file, tmp_path, folders, loaded):
    table = scored(texts_file, tmp_path, "--direction", direction, checkpoint=folders("bert"))
    _, expected = by_library(loaded("bert"), read_typed(TYPED), ScoreSettings(direction=direction))
    _, default = by_library(loaded("bert"), read_typed(TYPED))
    np.testing.assert_allclose(array(table), expected.scores, rtol=1e-6, atol=1e-6)
    assert not np.allclose(expected.scores, default.scores, equal_nan=True)


def test_further_roles_are_scored_where_they_are_named_and_go_through_every_command(texts_file, tmp_path, bundled):
    usual = scored(texts_file, tmp_path)
    assert list(usual["role"].unique()) == list(ROLES)
    table = scored(texts_file, tmp_path, "--roles", "all")
    assert list(table["role"].unique()) == [*ROLES, *FURTHER_ROLES]
    same = table[table["role"].isin(ROLES)].reset_index(drop=True)
    pd.testing.assert_frame_equal(same, usual, rtol=1e-5, atol=1e-6)
    named = scored(texts_file, tmp_path, "--roles", "duplicate,previous")
    assert list(named["role"].unique()) == ["previous", "duplicate"]
    further = table[table["role"].isin(["previous", "duplicate"])].reset_index(drop=True)
    pd.testing.assert_frame_equal(named, further, rtol=1e-5, atol=1e-6)
    parquet, roles_file, compared = (str(tmp_path / name) for name in ("scores.parquet", "roles.csv", "compared.csv"))
    assert main(["roles", parquet, "--output", roles_file]) == 0
    assert list(pd.read_csv(roles_file)["role"].unique()) == ["previous", "duplicate"]
    assert main(["compare", parquet, parquet, "--output", compared]) == 0
    assert list(pd.read_csv(compared)["role"].unique()) == ["previous", "duplicate"]
    controlled = str(tmp_path / "controls.csv")
    command = ["controls", "--checkpoint", "bundled", "--texts", str(texts_file), "--output", controlled]
    assert main([*command, "--roles", "previous", "--method", "mean"]) == 0
    counts = pd.read_csv(controlled).set_index(["control", "seed"])["heads"]
    assert counts["none", 0] >= 1, "a head of the bundled checkpoint looks at the previous token"
    assert counts["permuted keys", 0] == 0


def test_a_role_that_is_not_there_and_what_names_no_heads_get_a_sentence(texts_file, tmp_path, capsys):
    for option, value, said in (
        ("--roles", "local,last", "There is no role 'last'. The roles are local, syntactic, "),
        ("--off", "1", "does not name heads; write layer-head, such as 3-7,2-5"),
    ):
        with pytest.raises(SystemExit):
            score(texts_file, tmp_path / "s.parquet", option, value)
        assert said in capsys.readouterr().err
    command = ["controls", "--checkpoint", "bundled", "--texts", str(texts_file), "--output", str(tmp_path / "c.csv")]
    assert main([*command, "--roles", "local", "--pairs", str(tmp_path / "p.csv")]) == 2
    assert capsys.readouterr().err.startswith("--pairs compares the syntactic roles. Add syntactic, syntactic:nsubj")


LONG = "She eats.\n" + "cat " * 60 + "\nTwo black dogs ran.\n"


@pytest.fixture
def long_file(tmp_path):
    path = tmp_path / "long.txt"
    path.write_text(LONG)
    return path


def test_a_long_text_is_an_error_by_default(long_file, tmp_path, folders, capsys):
    assert score(long_file, tmp_path / "s.parquet", checkpoint=folders("bert")) == 2
    assert one_sentence(capsys).startswith("Text 2 has 62 tokens and this checkpoint takes 40.")
    assert not (tmp_path / "s.parquet").exists()


def test_a_long_text_can_be_left_out_and_is_counted(long_file, tmp_path, folders, capsys):
    table = scored(long_file, tmp_path, "--too-long", "skip", checkpoint=folders("bert"))
    assert table["text"].unique().tolist() == [0, 2]
    assert one_sentence(capsys) == "1 of 3 texts have more than 40 tokens and were left out."


def test_leaving_out_every_text_is_an_error(tmp_path, folders, capsys):
    file = tmp_path / "long.txt"
    file.write_text("cat " * 60)
    assert score(file, tmp_path / "s.parquet", "--too-long", "skip", checkpoint=folders("bert")) == 2
    assert one_sentence(capsys).startswith("1 of 1 texts have more than 40 tokens. Give shorter texts")


def test_roles_are_written_as_one_row_per_role_layer_and_head(texts_file, tmp_path, bundled):
    scored(texts_file, tmp_path)
    output = tmp_path / "roles.csv"
    assert main(["roles", str(tmp_path / "scores.parquet"), "--output", str(output)]) == 0
    with output.open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0])[: len(ROLE_COLUMNS)] == ROLE_COLUMNS
    assert [(row["role"], int(row["layer"]), int(row["head"])) for row in rows] == [
        (role, layer, head) for role in ROLES for layer in range(6) for head in range(12)
    ]
    _, of_library = by_library(bundled, read_typed(TYPED))
    tests = role_tests(of_library.scores, ROLES, Criterion(), of_library.uniform)
    table = pd.read_csv(output)
    assert list(table["tau"].unique()) == [3]
    for name in set(ROLE_COLUMNS[3:15]) - {"low", "high"}:
        np.testing.assert_allclose(table[name], getattr(tests, name).ravel().astype(float), rtol=1e-5, atol=1e-8)
    assert table["holds"].dtype == bool
    stays = stability(tests, resamples(of_library.scores, of_library.uniform))
    np.testing.assert_allclose(table["stability"], stays.ravel(), atol=0.02)
    evidence = role_evidence(of_library.scores, Criterion(), of_library.uniform)
    np.testing.assert_allclose(table["evidence"], np.exp(evidence).ravel(), rtol=1e-4, atol=1e-6)
    np.testing.assert_array_equal(table["holds_anytime"], holds_by_evidence(evidence, Criterion()).ravel())


def test_roles_are_the_same_over_texts_and_over_a_file_of_their_scores_but_not_over_both(texts_file, tmp_path, capsys):
    scored(texts_file, tmp_path, "--scale", "share")
    given, of_texts = str(tmp_path / "scores.parquet"), ["--checkpoint", "bundled", "--texts", str(texts_file)]
    outputs = [str(tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert main(["roles", given, "--output", outputs[0], "--alpha", "0.1"]) == 0
    assert main(["roles", *of_texts, "--output", outputs[1], "--scale", "share", "--alpha", "0.1"]) == 0
    a, b = map(pd.read_parquet, outputs)
    pd.testing.assert_frame_equal(a, b, rtol=1e-5, atol=1e-6)
    assert a.attrs == b.attrs
    assert a.attrs.items() >= {"tau": "0.5", "alpha": "0.1", "scale": "share", "checkpoint": "bundled"}.items()
    capsys.readouterr()
    assert main(["roles", given, *of_texts, "--output", outputs[0]]) == 2
    assert "holds scores, and the option on checkpoint is for texts" in one_sentence(capsys)
    assert main(["roles", given, "--output", outputs[0], "--scale", "share"]) == 2
    assert "the option on scale is for texts" in one_sentence(capsys)
    assert main(["roles", "--checkpoint", "bundled", "--output", outputs[0]]) == 2
    assert one_sentence(capsys) == "There are no scores to test. Give a file of scores, or add --texts."


@pytest.mark.parametrize(
    ("chosen", "criterion"),
    [
        (["--tau", "1.5", "--alpha", "0.2"], Criterion(tau=1.5, alpha=0.2)),
        (["--correction", "none", "--ddof", "0"], Criterion(correction="none", ddof=0)),
        (["--correction", "holm", "--tau", "1"], Criterion(correction="holm", tau=1.0)),
        (["--method", "mean", "--tau", "2"], Criterion(method="mean", tau=2.0)),
        (["--family", "all", "--rule", "paper", "--tau", "1.5"], Criterion(family="all", rule="paper", tau=1.5)),
    ],
)
def test_the_criterion_can_be_chosen(chosen, criterion, tmp_path):
    of_heads = np.linspace(0.5, 6, 6).reshape(2, 3)
    scores = np.random.default_rng(0).gamma(8, of_heads / 8, (5, len(ROLES), 2, 3))
    write_scores(tmp_path / "s.parquet", scores)
    assert main(["roles", str(tmp_path / "s.parquet"), "--output", str(tmp_path / "r.csv"), *chosen]) == 0
    table = pd.read_csv(tmp_path / "r.csv")
    tests = role_tests(scores, ROLES, criterion, 1.0)
    np.testing.assert_array_equal(table["holds"], tests.holds.ravel())
    np.testing.assert_allclose(table["p_adjusted"], tests.p_adjusted.ravel(), rtol=1e-9, atol=1e-15)
    assert 0 < tests.holds.sum() < tests.holds.size


def test_the_rule_reads_what_uniform_attention_scores_from_the_file(tmp_path):
    scores = np.random.default_rng(0).normal(3.5, 0.1, (6, len(ROLES), 2, 3))
    table = write_scores(tmp_path / "s.parquet", scores)
    table["uniform"] = np.where(table["role"] == "block", 4.0, 1.0)
    table.to_parquet(tmp_path / "s.parquet", index=False)
    holds = {}
    for rule in ("role", "paper"):
        output = tmp_path / f"{rule}.csv"
        assert main(["roles", str(tmp_path / "s.parquet"), "--output", str(output), "--rule", rule]) == 0
        holds[rule] = pd.read_csv(output).groupby("role")["holds"].all()
    assert holds["paper"].all()
    assert holds["role"].to_dict() == {role: role != "block" for role in ROLES}


def test_roles_are_counted_beside_what_chance_gives(texts_file, tmp_path, bundled, capsys):
    output, pairs_file = tmp_path / "controls.csv", tmp_path / "pairs.csv"
    files = ["--texts", str(texts_file), "--output", str(output), "--pairs", str(pairs_file)]
    assert main(["controls", "--checkpoint", "bundled", *files, "--tau", "2"]) == 0
    table, pairs = pd.read_csv(output), pd.read_csv(pairs_file)
    assert own_columns(table) == ["control", "seed", "role", "heads", "of", "positional"]
    assert own_columns(table) == columns_in_help("controls", "Columns:")
    assert own_columns(pairs) == columns_in_help("controls", "Columns of --pairs")
    assert set(table["tau"]) == {2}
    assert set(pairs["checkpoint"]) == {"bundled"}
    counted = table[table["positional"].notna()]
    assert (set(counted["control"]), tuple(sorted(counted["role"]))) == ({"none"}, tuple(sorted(SYNTACTIC)))
    by_role = pairs.groupby("role")[["holds", "positional"]].sum()
    assert by_role["positional"].to_dict() == counted.set_index("role")["positional"].to_dict()
    assert by_role["holds"].to_dict() == counted.set_index("role")["heads"].to_dict()
    assert {"texts", "related", "control", "p_control", "p_control_adjusted"} < set(pairs.columns)
    runs = table[["control", "seed"]].drop_duplicates().to_numpy().tolist()
    assert runs == [
        ["none", 0],
        ["permuted keys", 0],
        ["shuffled words", 0],
        *(["random weights", n] for n in range(3)),
    ]
    _, of_library = by_library(bundled, read_typed(TYPED))
    tests = role_tests(of_library.scores, ROLES, Criterion(tau=2.0), of_library.uniform)
    counts = table[table["control"] == "none"].set_index("role")["heads"].to_dict()
    assert counts == dict(zip(ROLES, tests.holds.sum(axis=(1, 2)).tolist()))
    said = capsys.readouterr().err
    assert said.startswith("Heads that hold a role at tau 2:")
    assert "random weights" in said.splitlines()[1]
    assert [line.split()[0] for line in said.splitlines()[2:]] == list(COARSE_ROLES)


def write_scores(path, scores, names=ROLES):
    n_texts, _, n_layers, n_heads = scores.shape
    places = pd.MultiIndex.from_product(
        [range(n_texts), names, range(n_layers), range(n_heads)], names=["text", "role", "layer", "head"]
    )
    columns = {"score": scores.ravel(), "uniform": 1.0, "greatest": 40.0}
    table = pd.DataFrame(columns, index=places).reset_index()
    table.to_parquet(path, index=False)
    return table


def test_scores_as_csv_are_those_as_parquet_and_give_the_same_roles_and_comparison(texts_file, folders, tmp_path):
    found = {}
    for suffix in ("parquet", "csv"):
        scores, roles, compared = (tmp_path / f"{name}.{suffix}" for name in ("scores", "roles", "compared"))
        assert score(texts_file, scores, "--off", "0-1", checkpoint=folders("bert")) == 0
        assert main(["roles", str(scores), "--output", str(roles)]) == 0
        assert main(["compare", str(scores), str(scores), "--output", str(compared)]) == 0
        found[suffix] = [scores, roles, compared]
    for parquet, of_csv in zip(*found.values()):
        table, facts = pd.read_parquet(parquet), pd.read_csv(of_csv, dtype=str, keep_default_na=False)
        written = pd.read_csv(of_csv)[list(table)]
        pd.testing.assert_frame_equal(written, table, check_exact=True, check_dtype=False)
        assert {name: set(facts[name]) for name in list(facts)[len(table.columns) :]} == {
            name: {fact} for name, fact in table.attrs.items()
        }
        assert table.attrs["heads off"] == "L0 H1"


def test_rows_of_scores_may_stand_in_any_order(tmp_path):
    scores = np.random.default_rng(1).random((4, 2, 2, 3))
    table = write_scores(tmp_path / "s.parquet", scores, names=("syntactic", "local"))
    first = table["role"] == "syntactic"
    shuffled = pd.concat([table[first].sample(frac=1, random_state=0), table[~first].sample(frac=1, random_state=1)])
    shuffled.to_parquet(tmp_path / "t.parquet")
    found = []
    for name in ("s", "t"):
        assert main(["roles", str(tmp_path / f"{name}.parquet"), "--output", str(tmp_path / f"{name}.csv")]) == 0
        found.append(pd.read_csv(tmp_path / f"{name}.csv"))
    pd.testing.assert_frame_equal(*found, rtol=1e-5, atol=1e-6)
    means = found[0]["mean"].to_numpy().reshape(2, 2, 3)
    np.testing.assert_allclose(means, scores.mean(0), rtol=1e-5, atol=1e-6)
    assert found[0]["role"].unique().tolist() == ["syntactic", "local"]


def test_roles_that_most_texts_are_too_short_for_are_named_with_what_to_do(tmp_path, capsys):
    """In 13 tokens a band of five gets at most (2/3 + 2/4 + 9/5) times uniform attention, 2.97; in 14 tokens 3.17."""
    eleven = ["One two three four five six seven eight nine ten eleven", "A cat and a dog and a bird and fish ran"]
    twelve = ["A cat and a dog and a bird and a fish ran", "A cow and a hen and a duck and a horse ran"]
    assert [len(text.split()) for text in (*eleven, *twelve)] == [11, 11, 12, 12]
    for name, texts in {"short": [*eleven, twelve[0]], "long": [eleven[0], *twelve]}.items():
        (tmp_path / f"{name}.txt").write_text("\n".join(texts) + "\n", encoding="utf-8")
        for scale in ("score", "share"):
            scores = tmp_path / f"{name}-{scale}.parquet"
            assert score(tmp_path / f"{name}.txt", scores, "--scale", scale, "--roles", "local") == 0
            assert main(["roles", str(scores), "--output", str(tmp_path / "r.csv")]) == 0
            note = (
                "No head can reach tau 3 for local in 2 of 3 texts, because they are short. Use `score --scale share`."
            )
            assert (note in capsys.readouterr().err.splitlines()) == ((name, scale) == ("short", "score"))


def one_sentence(capsys):
    printed, error = capsys.readouterr()
    assert printed == ""
    assert error.endswith("\n")
    assert error.count("\n") == 1, error
    assert "Traceback" not in error
    return error.strip()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing.txt", "cannot be read (No such file or directory). Check the path."),
        ("", "cannot be read (Is a directory)"),
        ("latin.txt", "Line 1 is not UTF-8"),
        ("large.txt", "large.txt is larger than "),
    ],
)
def test_texts_that_cannot_be_read_get_one_sentence(name, message, tmp_path, capsys):
    (tmp_path / "latin.txt").write_bytes(b"caf\xe9")
    with (tmp_path / "large.txt").open("wb") as file:
        file.truncate(10**12)  # takes no room on the disk
    assert score(tmp_path / name, tmp_path / "s.parquet") == 2
    assert message in one_sentence(capsys)


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--text-columns", "a,b,c"], "Leave the columns out"),
        (["--device", "tpu"], "Device 'tpu' is not available here"),
        (["--checkpoint", "/no/folder"], "There is no folder /no/folder"),
        (["--checkpoint", "organisation/absent"], "The hub could not be reached for organisation/absent"),
        (["--checkpoint", ""], "No checkpoint is named"),
        (["--output", "/no/folder/s.parquet"], "There is no folder /no/folder to write s.parquet to"),
        (["--output", "."], ". is a folder. Name a file in it"),
        (["--output", "/dev/full"], "/dev/full cannot be written ("),
        (
            ["--output", "s.xlsx"],
            "s.xlsx cannot be written in this format. Choose a name that ends in .parquet, .csv, .tex.",
        ),
    ],
)
def test_a_bad_choice_for_scores_gets_one_sentence(more, message, texts_file, tmp_path, capsys):
    assert score(texts_file, tmp_path / "s.parquet", *more) == 2
    assert message in one_sentence(capsys)


@pytest.mark.parametrize("command", ["roles", "compare"])
@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--tau", "nan"], "tau is nan. Choose a number above 0"),
        (["--alpha", "1"], "alpha is 1.0."),
        (["--output", "/no/folder/d.csv"], "There is no folder /no/folder"),
    ],
)
def test_a_bad_choice_for_roles_and_comparisons_gets_one_sentence(command, more, message, tmp_path, capsys):
    write_scores(tmp_path / "s.parquet", np.ones((2, 1, 2, 3)), names=("local",))
    given = [str(tmp_path / "s.parquet")] * (2 if command == "compare" else 1)
    assert main([command, *given, "--output", str(tmp_path / "r.csv"), *more]) == 2
    assert message in one_sentence(capsys)


INCOMPLETE = "does not hold one score for every text, role, layer and head."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.drop(columns="layer"), "lacks the column layer."),
        (lambda table: table.iloc[:0], "has no rows."),
        (lambda table: table.iloc[1:], INCOMPLETE),
        (lambda table: pd.concat([table, table.iloc[:1]]), INCOMPLETE),
        (lambda table: pd.concat([table.iloc[1:], table.iloc[-1:]]), INCOMPLETE),
        (lambda table: table.assign(score="much"), "not numbers. Score the texts again."),
        (lambda table: table.assign(score=np.inf), "Some scores are infinite."),
    ],
)
def test_a_table_that_is_no_table_of_scores_gets_one_sentence(change, message, tmp_path, capsys):
    path = tmp_path / "s.parquet"
    change(write_scores(path, np.random.default_rng(2).random((3, 1, 2, 3)), names=("local",))).to_parquet(path)
    assert main(["roles", str(path), "--output", str(tmp_path / "r.csv")]) == 2
    assert message in one_sentence(capsys)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "There is no file"),
        (b"", "is not a {} file"),
        (b"\xff\xfe\x00", "is not a {} file"),
        (b"text,role,layer,head,score,uniform,greatest\n0,local,0,0,much,1,2\n", "could not convert string to float"),
    ],
)
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_a_file_that_holds_no_scores_gets_one_sentence(suffix, content, message, tmp_path, capsys):
    path, kind = tmp_path / f"s.{suffix}", {"parquet": "Parquet", "csv": "CSV"}[suffix]
    message = "is not a Parquet file" if content and kind == "Parquet" else message.format(kind)
    if content is not None:
        path.write_bytes(content)
    assert main(["roles", str(path), "--output", str(tmp_path / "r.csv")]) == 2
    assert message in one_sentence(capsys)


@pytest.mark.parametrize(
    "arguments",
    [
        ["--port", "none"],
        ["paint"],
        ["score"],
        ["score", "--checkpoint", "bundled", "--texts", "t.txt", "--output", "s", "--direction", "sideways"],
        ["roles", "s.parquet", "--output", "r.csv", "--tau", "much"],
        ["roles", "s.parquet", "--output", "r.csv", "--ddof", "2"],
    ],
)
def test_a_wrong_call_exits_with_two_and_shows_the_usage(arguments, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert capsys.readouterr().err.startswith("usage: python -m attention_sieve")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_shown_on_a_terminal_only(texts_file, tmp_path, capsys):
    scored(texts_file, tmp_path)
    assert capsys.readouterr().err == ""
    with redirect_stderr(Terminal()) as terminal:
        scored(texts_file, tmp_path)
    assert "3/3" in terminal.getvalue()


@pytest.mark.parametrize(
    "command",
    [
        ["score", "--texts", "absent.txt", "--off", "0-0,9-1"],
        ["maps", "--texts", "absent.txt", "--off", "9-1"],
        ["tree-probes", "--texts", "absent.txt", "--off", "9-1"],
        ["prune", "--texts", "absent.txt", "--off", "9-1"],
        ["erase", "--data", "absent.tsv", "--heads", "9-1"],
        ["remove", "--heads", "9-1"],
        ["corpus", "run", "--texts", "absent.txt", "--off", "9-1"],
    ],
    ids=" ".join,
)
def test_heads_that_are_not_there_are_named_before_anything_is_read(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([*command, "--checkpoint", "bundled", "--output", "o.csv"]) == 2
    assert one_sentence(capsys).startswith("bundled has no head L9 H1: it has 6 layers x 12 heads, L0 H0 to L5 H11.")
    assert list(tmp_path.iterdir()) == []


def test_heads_are_those_of_the_named_attention(folders, capsys):
    command = ["score", "--checkpoint", str(folders("t5")), "--texts", "absent.txt", "--output", "o.csv"]
    capsys.readouterr()  # what transformers said while the checkpoint was made
    assert main([*command, "--off", "2-0", "--attention", "cross"]) == 2
    assert "absent.txt cannot be read" in one_sentence(capsys), "the decoder has a third layer"
    assert main([*command, "--off", "2-0"]) == 2
    assert "has no head L2 H0: it has 2 layers x" in one_sentence(capsys), "and the encoder has not"
    assert main([*command, "--off", "0-0", "--attention", "self"]) == 2
    assert "has no self attention. Choose: encoder, decoder, cross." in one_sentence(capsys)


@pytest.mark.parametrize("written", ["9" * 23, str(2**63), "-1", "one", "9" * 5000])
def test_a_seed_that_torch_does_not_take_is_refused(written, texts_file, tmp_path, capsys):
    arguments = ["similarity", "--checkpoint", "bundled", "--texts", str(texts_file), "--output", "d.csv"]
    with pytest.raises(SystemExit):
        main([*arguments, f"--random-weights={written}"])
    assert capsys.readouterr().err.endswith("is not a seed; write a whole number from 0 to 9223372036854775807\n")


def test_the_largest_seed_is_one(texts_file, tmp_path, folders):
    arguments = ["similarity", "--checkpoint", str(folders("bert")), "--texts", str(texts_file)]
    assert main([*arguments, "--output", str(tmp_path / "d.csv"), "--random-weights", str(2**63 - 1)]) == 0
    assert pd.read_csv(tmp_path / "d.csv")["checkpoint"][0].endswith(f"(random weights, seed {2**63 - 1})")


@pytest.mark.skipif(not Path("/proc/self").is_dir(), reason="no folder in which nobody may make a file")
def test_where_nothing_can_be_written_is_found_before_the_work(texts_file, capsys):
    output = "/proc/o.csv"
    assert main(["similarity", "--checkpoint", "/no/such/folder", "--texts", str(texts_file), "--output", output]) == 2
    assert capsys.readouterr().err == f"{output} cannot be written (No such file or directory). Choose another place.\n"


def test_no_command_writes_over_what_it_reads_or_writes(texts_file, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    table = tmp_path / "t.csv"
    table.write_text("text\nthe cat sat\n", "utf-8")
    scores = tmp_path / "s.parquet"
    write_scores(scores, np.ones((3, len(ROLES), 2, 2)))
    given = ["--checkpoint", "bundled", "--texts"]
    for command in (
        ["score", *given, "t.csv", "--output", str(table)],
        ["roles", "s.parquet", "--output", str(scores)],
        ["compare", "s.parquet", "s.parquet", "--output", str(scores)],
        ["surface", *given, "t.csv", "--output", str(table)],
        ["surface", *given, str(texts_file), "--output", "a.csv", "--gradients", str(tmp_path / "a.csv")],
        ["relations", *given, "t.csv", "--output", str(table)],
        ["coreference", *given, "t.csv", "--output", str(table)],
        ["word-links", *given, "t.csv", "--relation", "nsubj", "--output", str(table)],
        ["similarity", *given, "t.csv", "--output", str(table)],
    ):
        before = table.read_bytes(), scores.read_bytes()
        assert main(command) == 2
        assert (
            "is also another file of this command, and would be overwritten. Choose another name."
            in capsys.readouterr().err
        )
        assert (table.read_bytes(), scores.read_bytes()) == before
    assert not (tmp_path / "a.csv").exists()


# Two checkpoints


COMPARED_COLUMNS = [
    "role", "layer", "head", "texts", "mean_a", "mean_b", "difference", "t", "p", "p_adjusted", "wilcoxon_p", "effect",
    "large", "holds_a", "holds_b",
]  # fmt: skip


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory, folders):
    """Two small checkpoints of one shape."""
    return folders("bert"), save("bert", tmp_path_factory.mktemp("other"), seed=2)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    path = tmp_path_factory.mktemp("sentences") / "sentences.txt"
    animals = [("cat", "birds"), ("dog", "apples"), ("bird", "cats"), ("house", "dogs")]
    typed = [f"the {first} quickly {verb} {second}." for first, second in animals for verb in ("chased", "sat on")]
    path.write_text("\n".join(typed), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def two_files(checkpoints, sentences, tmp_path_factory):
    """Files of scores of the two checkpoints, from the command itself."""
    folder = tmp_path_factory.mktemp("scores")
    for name, checkpoint in zip("ab", checkpoints):
        assert score(sentences, folder / f"{name}.parquet", checkpoint=checkpoint) == 0
    return folder / "a.parquet", folder / "b.parquet"


def compare(a, b, output, *more):
    return main(["compare", str(a), str(b), "--output", str(output), *more])


def test_a_file_of_scores_says_where_it_comes_from(checkpoints, sentences, two_files, tmp_path):
    facts = pd.read_parquet(two_files[0]).attrs
    assert facts["checkpoint"] == str(checkpoints[0])
    assert len(facts["fingerprint"]) == len(facts["texts sha256"]) == 64
    chosen = ("dtype", "attention", "heads off", "direction", "block entropy")
    assert [facts[name] for name in chosen] == ["float32", "self", "", "dependent-to-head", "yes"]
    off = ["--off", "1-2,0-1", "--off", "0-1", "--off", "0-0"]
    more = ["--dtype", "float64", *off, "--direction", "both", "--no-block-entropy"]
    other = scored(sentences, tmp_path, *more, checkpoint=checkpoints[1]).attrs
    assert [other[name] for name in chosen] == ["float64", "self", "L0 H0, L0 H1, L1 H2", "both", "no"]
    assert (other["texts sha256"], other["fingerprint"]) == (facts["texts sha256"], other["fingerprint"])
    assert other["fingerprint"] != facts["fingerprint"]


def test_a_comparison_is_written_as_one_row_per_role_layer_and_head(checkpoints, two_files, tmp_path, capsys):
    assert compare(*two_files, tmp_path / "d.csv", "--tau", "1.1", "--alpha", "0.2", "--correction", "none") == 0
    table = pd.read_csv(tmp_path / "d.csv")
    assert list(table.columns)[: len(COMPARED_COLUMNS)] == COMPARED_COLUMNS == columns_in_help("compare", "Columns:")
    of_both = [set(table[name]) for name in ("checkpoint a", "checkpoint b", "direction", "tau")]
    assert of_both == [*({str(checkpoint)} for checkpoint in checkpoints), {"dependent-to-head"}, {1.1}]
    cells = [(role, layer, head) for role in ROLES for layer in range(2) for head in range(3)]
    assert list(table[["role", "layer", "head"]].itertuples(index=False, name=None)) == cells
    a, b = (array(pd.read_parquet(path)) for path in two_files)
    tests = paired_tests(a, b, ROLES, Criterion(alpha=0.2, correction="none"))
    for name in COMPARED_COLUMNS[3:12]:
        np.testing.assert_allclose(table[name], getattr(tests, name).ravel(), rtol=1e-12)
    criterion = Criterion(tau=1.1, alpha=0.2, correction="none")
    holds = [role_tests(side, ROLES, criterion, 1.0).holds for side in (a, b)]
    np.testing.assert_array_equal(table[["holds_a", "holds_b"]].T, [of_side.ravel() for of_side in holds])
    n_changed = (holds[0] != holds[1])[:4].any(axis=0).sum()
    assert n_changed > 0
    said = one_sentence(capsys)
    assert said.startswith(f"{n_changed} of 6 heads changed a coarse role at tau 1.1; layer")
    sizes = difference_sizes(tests, 0.1)
    assert said.endswith(f". {sizes.sentence} (paired t-test, alpha 0.2, correction none).")
    np.testing.assert_array_equal(table["large"], (np.abs(tests.difference) >= 0.1).ravel())


def planted(path, scores, facts=None, texts=None):
    table = write_scores(path, scores, names=ROLES[: scores.shape[1]])
    if texts is not None:
        table["text"] = np.array(texts)[table["text"]]
    table.attrs = facts or {}
    table.to_parquet(path, index=False)
    return path


def noise(n_texts=6, n_layers=6, seed=0):
    return np.random.default_rng(seed).normal(1, 0.01, (n_texts, 4, n_layers, 5))


@pytest.mark.parametrize(
    ("heads", "said"),
    [
        ((), "0 of 30 heads changed a coarse role at tau 3. All 120 mean scores are the same (paired t-test"),
        (
            ((4, 1),),
            "1 of 30 heads changed a coarse role at tau 3; layer 4 holds 1 of them. Of 120 mean scores, 1 ",
        ),
        (
            ((0, 0), (4, 1), (4, 2), (5, 0)),
            "4 of 30 heads changed a coarse role at tau 3; layers 4-5 hold 3 of them. Of 120 mean scores, 4 (3.3%)",
        ),
    ],
)
def test_the_sentence_counts_heads_and_names_the_layers_that_hold_most(heads, said, tmp_path, capsys):
    a = noise()
    b = a.copy()
    for layer, head in heads:
        b[:, 1, layer, head] += np.linspace(4, 5, 6)
    assert compare(planted(tmp_path / "a", a), planted(tmp_path / "b", b), tmp_path / "d.csv") == 0
    assert one_sentence(capsys).startswith(said)


@pytest.mark.parametrize(
    ("dtypes", "n_different"),
    [(("float32", "float32"), 120), (("float32", "bfloat16"), 0), (("float16", "float32"), 0), ((), 120)],
)
def test_the_coarser_number_format_decides_what_is_rounding(dtypes, n_different, tmp_path):
    a = noise()
    b = a + np.linspace(1e-3, 2e-3, 6)[:, None, None, None]
    facts = [{"dtype": dtype} for dtype in dtypes] or [{}, {"dtype": "decimal"}]
    assert compare(planted(tmp_path / "a", a, facts[0]), planted(tmp_path / "b", b, facts[1]), tmp_path / "d.csv") == 0
    assert (pd.read_csv(tmp_path / "d.csv")["difference"] != 0).sum() == n_different


def test_a_role_of_the_first_token_counts_where_there_is_no_delimiter(tmp_path, folders, sentences, capsys):
    """A decoder has no [CLS] or [SEP]: its heads change a role when they change the sink."""
    score(sentences, tmp_path / "a.parquet", checkpoint=folders("gpt2"))
    table = pd.read_parquet(tmp_path / "a.parquet")
    sink = (table["role"] == "sink") & (table["layer"] == 1) & (table["head"] == 2)
    table.loc[sink, "score"] += np.where(table.loc[sink, "score"].mean() < 3, 4, -4)
    table.to_parquet(tmp_path / "b")
    assert compare(tmp_path / "a.parquet", tmp_path / "b", tmp_path / "d.csv", "--method", "mean") == 0
    assert one_sentence(capsys).startswith("1 of 6 heads changed a coarse role at tau 3; layer 1 holds 1 of them. ")


def test_texts_of_one_file_only_are_left_out_and_counted(tmp_path, capsys):
    a, b = noise(5), noise(4, seed=1)
    files = planted(tmp_path / "a", a, texts=[0, 1, 4, 7, 9]), planted(tmp_path / "b", b, texts=[1, 2, 7, 9])
    assert compare(*files, tmp_path / "d.csv") == 0
    left_out, said = capsys.readouterr().err.splitlines()
    assert left_out == "3 of 6 texts are in one file only and were left out."
    assert said.startswith("0 of 30 heads")
    table, expected = pd.read_csv(tmp_path / "d.csv"), paired_tests(a[[1, 3, 4]], b[[0, 2, 3]], ROLES[:4])
    assert set(table["texts"]) == {3}
    for name in ("mean_a", "mean_b", "t", "wilcoxon_p"):
        np.testing.assert_allclose(table[name], getattr(expected, name).ravel(), rtol=1e-10)


def test_pairs_of_controls_under_the_name_of_another_format_are_refused_and_an_older_output_stays(
    texts_file, tmp_path, capsys
):
    command = ["controls", "--checkpoint", "bundled", "--texts", str(texts_file), "--output", str(tmp_path / "c.csv")]
    (tmp_path / "c.csv").write_text("kept", "utf-8")
    assert main([*command, "--pairs", str(tmp_path / "c.json")]) == 2
    assert "Choose a name that ends in .parquet, .csv, .tex." in one_sentence(capsys)
    assert (tmp_path / "c.csv").read_text("utf-8") == "kept"


SCORE_ALIKE = "Score the same file of texts with the same settings under both checkpoints."


@pytest.mark.parametrize(
    ("b", "more", "message"),
    [
        (noise(), {"texts": range(6, 12)}, f"The two files have no text in common. {SCORE_ALIKE}"),
        (noise(n_layers=3), {}, "The reference has 6 layers x 5 heads and the compared checkpoint 3 x 5, so there are"),
        (noise()[:, :3], {}, f"Only one of the two files holds scores for block. {SCORE_ALIKE}"),
        (
            noise(),
            {"facts": {"texts sha256": "5678", "dtype": "float32"}},
            f"The two files hold scores of other texts (1234 and 5678). {SCORE_ALIKE}",
        ),
        (
            noise(),
            {"facts": {"direction": "both"}},
            "The two files hold scores in two directions (head-to-dependent and both). Score",
        ),
    ],
)
def test_files_that_cannot_be_compared_get_one_sentence(b, more, message, tmp_path, capsys):
    a = planted(tmp_path / "a", noise(), {"texts sha256": "1234", "direction": "head-to-dependent"})
    assert compare(a, planted(tmp_path / "b", b, **more), tmp_path / "d.csv") == 2
    assert one_sentence(capsys).startswith(message)
    assert not (tmp_path / "d.csv").exists()


@pytest.mark.parametrize("attrs", [b"[1]", b"null", b"{", b'{"dtype": ["float32"], "texts sha256": 3}'])
def test_facts_that_are_none_are_left_alone_or_get_one_sentence(attrs, two_files, tmp_path, capsys):
    odd = pq.read_table(two_files[1])
    pq.write_table(odd.replace_schema_metadata({**odd.schema.metadata, b"PANDAS_ATTRS": attrs}), tmp_path / "b")
    done = compare(two_files[0], tmp_path / "b", tmp_path / "d.csv")
    assert (done, "is not a Parquet file (" in one_sentence(capsys)) in ((0, False), (2, True))
    assert (done == 0) == (b"dtype" in attrs)
