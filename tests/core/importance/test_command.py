import re

import pandas as pd
import pytest
from command_help import columns_in_help, own_columns
from scipy.stats import spearmanr

from attention_sieve.__main__ import main
from attention_sieve.core.analysis import results
from attention_sieve.core.importance.agreement import NO_ORDER
from attention_sieve.core.importance.analysis import KINDS
from attention_sieve.core.importance.effects import effects
from attention_sieve.core.importance.labels import read_labels
from attention_sieve.core.importance.metrics import label_score, mean_score
from attention_sieve.core.importance.question import ablation_question
from attention_sieve.core.texts.text import read_typed

TYPED = "The black cat ran.\nWho sat on the mat?\nShe eats red apples.\n"
ROWS = ("the cat ran,yes,11", "it sat,no,12", "a dog,so,12", "two dogs,yes,15", "she sat,so,15", "who ran,no,11")
LABELLED = "\n".join(["words,said,number", *ROWS])
COLUMNS = ["layer", "head", "full", "without", "delta", "low", "high", "p", "p_adjusted"]


@pytest.fixture
def files(tmp_path):
    (tmp_path / "texts.txt").write_text(TYPED)
    (tmp_path / "labelled.csv").write_text(LABELLED)
    return tmp_path


def run(files, checkpoint, *more, command="ablate", texts="texts.txt"):
    """The table that a command writes for a checkpoint in float64."""
    output = files / "out.parquet"
    of_files = [f"--checkpoint={checkpoint.files.folder}", f"--texts={files / texts}", f"--output={output}"]
    return pd.read_parquet(output) if main([command, *of_files, "--dtype=float64", *more]) == 0 else None


def check(table, found):
    assert list(table.columns) == COLUMNS == columns_in_help("ablate", "Columns:")
    assert list(zip(table["layer"], table["head"])) == [(layer, head) for layer in range(2) for head in range(3)]
    assert (table["full"] == found.full).all()
    for name in COLUMNS[3:]:
        assert table[name].to_numpy() == pytest.approx(getattr(found, name).ravel(), abs=1e-12, nan_ok=True)


def test_ablate_writes_the_change_of_the_output_by_each_head(files, loaded):
    checkpoint, texts = loaded("bert", "float64"), read_typed(TYPED * 34)
    (files / "texts.txt").write_text(TYPED * 34)
    table = run(files, checkpoint, "--resamples", "999")
    outcomes = results(checkpoint, ablation_question("output"), texts)
    check(table, effects(outcomes, mean_score("change"), [None] * 102, resamples=999))
    assert table["p"].min() == 2 / 1_000
    assert table.attrs["test"] == "larger p of sign flips and bootstrap-t, 999 resamples, at least 0.002"
    assert table.attrs["without a verdict"] == "none"
    assert (table["full"] == 0).all()
    assert (table["delta"] > 0).all()
    assert table.attrs["replaced by"] == "zero"


@pytest.mark.parametrize(("name", "score"), [("classes", "accuracy"), ("value", "pearson")])
def test_ablate_scores_a_classifier_by_the_names_of_its_classes_and_a_regression_by_its_values(
    name, score, files, headed, capsys
):
    checkpoint, column = headed(name), "said" if name == "classes" else "number"
    table = run(
        files, checkpoint, "--metric", "labels", "--label-column", column, "--text-columns", "words",
        "--keep-one", str(files / "kept.csv"), texts="labelled.csv",
    )  # fmt: skip
    read = read_labels(checkpoint, "labelled.csv", LABELLED.encode(), ("words",), column)
    assert read.values.tolist() == ([2, 0, 1, 2, 1, 0] if name == "classes" else [11, 12, 12, 15, 15, 11])
    outcomes = results(checkpoint, ablation_question("labels"), read.texts)
    check(table, effects(outcomes, label_score(score, read.values, read.n_classes), [None] * 6))
    kept = pd.read_csv(files / "kept.csv")
    assert list(kept.columns[:4]) == ["layer", "even_head", "odd_head", "full"]
    assert own_columns(kept) == columns_in_help("ablate", "Columns of --keep-one")
    assert kept["full"].tolist() == [table["full"][0]] * 2
    few = "There are 6 texts, and intervals and p-values need at least 100, or 20 for the accuracy of single texts: "
    assert few in capsys.readouterr().err
    assert few in table.attrs["without a verdict"]
    assert kept["without a verdict"].str.startswith(few).all()
    for columns in (table, kept):
        assert columns[["low", "high", "p", "p_adjusted"]].isna().all(axis=None)
        assert columns["delta"].notna().all()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--metric", "labels"], "needs to know which column holds the labels"),
        (["--label-column", "said"], "The metric output uses no labels"),
        (
            ["--metric", "labels", "--label-column", "number", "--text-columns", "words"],
            r'label "11", but .* knows 3 classes: "no", "so", "yes"\. Pick',
        ),
        (["--metric", "labels", "--label-column", "said"], "names no column known to hold texts"),
        (["--resamples", "7"], "7 is not a number of resamples. Choose one from 100 to 100,000"),
        (
            ["--metric", "labels", "--label-column", "said", "--text-columns", "words", "--score", "pearson"],
            "The labels are classes, which have no score pearson",
        ),
    ],
)
def test_what_does_not_fit_together_is_said_in_a_sentence(more, said, files, headed, capsys):
    assert run(files, headed("classes"), *more, texts="labelled.csv") is None
    complaint = capsys.readouterr().err
    assert re.search(said, complaint), complaint


def test_importance_writes_every_measure_that_the_checkpoint_allows_and_how_well_it_agrees(files, headed, capsys):
    checkpoint = headed("classes")
    labels = ["--metric", "labels", "--label-column", "said", "--text-columns", "words", "--score", "loss"]
    more = [*labels, "--agreement", str(files / "agreement.csv"), "--resamples", "100"]
    table = run(files, checkpoint, *more, command="importance", texts="labelled.csv")
    assert (
        list(table.columns)
        == ["measure", "layer", "head", "value", "unreliable", "exact"]
        == columns_in_help("importance", "Columns:")
    )
    assert table["measure"].value_counts().to_dict() == dict.fromkeys(
        (
            *("ablation", "gradient per token", "gradient per text", "gradient per batch"),
            *("attribution against zero", "attribution against mean", "wanda-sp", "flap", "confidence", "relevance"),
        ),
        6,
    )
    values = {name: rows["value"].to_numpy() for name, rows in table.groupby("measure")}
    assert set(KINDS) == set(values) - {"ablation"}, "among which pages offer the orders"
    delta = run(files, checkpoint, *labels, texts="labelled.csv")["delta"]
    assert values["ablation"] == pytest.approx(delta.to_numpy(), abs=1e-12)
    agreement = pd.read_csv(files / "agreement.csv")
    assert own_columns(agreement) == columns_in_help("importance", "Columns of --agreement")
    agreement = agreement.set_index("measure")
    assert len(agreement) == 9 * 3
    first = agreement[agreement["layer"] == 1].loc["flap"]
    assert first["spearman"] == pytest.approx(spearmanr(values["flap"][3:], delta[3:])[0])
    said = capsys.readouterr().out
    assert "attribution against zero" in said
    assert re.search(r"-?[0-9.]+% of the relevance arrives at the tokens", said)


def test_a_metric_that_no_head_changes_gets_a_sentence_in_place_of_correlations(files, headed, capsys):
    (files / "labelled.csv").write_text("words,said\n" + "the cat ran,yes\nthe cat ran,no\nthe cat ran,so\n" * 2)
    labels = ["--metric", "labels", "--label-column", "said", "--text-columns", "words", "--score", "accuracy"]
    table = run(files, headed("classes"), *labels, command="importance", texts="labelled.csv")
    assert (table[table["measure"] == "ablation"]["value"] == 0).all()
    said = capsys.readouterr().out
    assert NO_ORDER in said
    assert "nan" not in said


def test_what_a_checkpoint_does_not_allow_is_left_out_and_named(files, loaded, capsys):
    table = run(files, loaded("deberta-v2", "float64"), "--no-ablation", command="importance")
    assert table["measure"].unique().tolist() == ["confidence"]
    complaints = capsys.readouterr().err
    assert all(f"Without {name}: " in complaints for name in ("gradients", "wanda-sp and flap", "relevance"))
