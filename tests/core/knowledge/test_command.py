import numpy as np
import pandas as pd
import pytest
from command_help import columns_in_help, own_columns
from probing_files import NOUNS, write_task
from small_checkpoints import N_HEADS, N_LAYERS

from attention_sieve.__main__ import main
from attention_sieve.core.knowledge import observer
from attention_sieve.core.knowledge.report import LAYER


@pytest.fixture(autouse=True)
def own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))


@pytest.fixture
def tasks(tmp_path):
    folder = tmp_path / "tasks"
    folder.mkdir()
    write_task(folder, "length", lambda words: "long" if len(words) > 5 else "short")
    write_task(folder, "noun", lambda words: words[0])
    return folder


def run(name, folder, data, output, *more):
    return main([name, "--checkpoint", str(folder), "--data", str(data), "--output", str(output), *more])


def test_a_row_for_each_head_and_layer_of_each_task(folders, tasks, tmp_path, capsys):
    output = tmp_path / "found.parquet"
    assert run("knowledge", folders("bert"), tasks, output, "--pooling", "mean") == 0
    table = pd.read_parquet(output)
    assert list(table.columns) == columns_in_help("knowledge", "Columns:")
    wanted = [
        (task, layer, head)
        for task in ("length", "noun")
        for layer in range(N_LAYERS)
        for head in range(LAYER, N_HEADS)
    ]
    assert list(table[["task", "layer", "head"]].itertuples(index=False, name=None)) == wanted
    assert ((table["low"] <= table["accuracy"]) & (table["accuracy"] <= table["high"])).all()
    assert (table[["n_train", "n_validation", "n_test"]].to_numpy() == [60, 20, 30]).all()
    assert table.attrs["pooling"] == "mean"
    assert table[table["task"] == "length"]["accuracy"].max() > table["majority"][0]
    said = capsys.readouterr()
    assert "length: L" in said.out
    assert "30 test examples" in said.out
    assert "30 examples: intervals are wide" in said.err


def test_vectors_are_kept_and_read_again(folders, tasks, tmp_path, monkeypatch):
    first, second = tmp_path / "first.csv", tmp_path / "second.csv"
    assert run("knowledge", folders("bert"), tasks / "length.txt", first) == 0
    assert len(list((tmp_path / "store" / "vectors").iterdir())) == 1

    def no_pass(*_):
        raise AssertionError("The vectors were computed again.")

    monkeypatch.setattr(observer, "text_vectors", no_pass)
    assert run("knowledge", folders("bert"), tasks / "length.txt", second) == 0
    assert first.read_text() == second.read_text()


def test_pairs_of_a_labelled_table(folders, tmp_path):
    rng = np.random.default_rng(0)
    rows = [(f"{rng.choice(NOUNS)} {i}", f"{rng.choice(NOUNS)} {i + 500}", i % 2) for i in range(90)]
    data, output = tmp_path / "pairs.csv", tmp_path / "found.csv"
    pd.DataFrame(rows, columns=["text_a", "text_b", "label"]).to_csv(data, index=False)
    assert run("knowledge", folders("bert"), data, output) == 0
    assert len(pd.read_csv(output)) == N_LAYERS * (N_HEADS + 1)


def test_heads_together_step_by_step(folders, tasks, tmp_path, capsys):
    output = tmp_path / "found.csv"
    assert run("reconstruct", folders("bert"), tasks, output, "--pooling", "mean", "--every") == 0
    table = pd.read_csv(output)
    assert own_columns(table) == columns_in_help("reconstruct", "Columns:")
    assert table["n_heads"].tolist() == [*range(1, N_LAYERS * N_HEADS + 1)] * 2
    assert [len(heads.split(",")) for heads in table["heads"]] == table["n_heads"].tolist()
    np.testing.assert_allclose(table["gain"], 100 * (table["accuracy"] / table["best_layer"] - 1))
    assert ((table["gain_low"] <= table["gain"]) & (table["gain"] <= table["gain_high"])).all()
    row = table[(table["task"] == "length") & (table["n_heads"] == N_HEADS)].iloc[0]
    printed = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("length: last layer"))
    assert f"best {N_HEADS} heads {row['accuracy']:.3f} (gain {row['gain']:+.1f}%" in printed
    assert printed.endswith(f"; {row['enough']} {'is' if row['enough'] == 1 else 'are'} enough")


def test_texts_that_are_too_long_are_left_out_with_their_labels(folders, tasks, tmp_path, capsys):
    data, output = tasks / "noun.txt", tmp_path / "found.csv"
    data.write_text(data.read_text() + f"te\tcat\t{'cat ' * 60}\n")
    assert run("knowledge", folders("bert"), data, output) == 2
    assert "--too-long skip" in capsys.readouterr().err
    assert run("knowledge", folders("bert"), data, output, "--too-long", "skip") == 0
    assert (pd.read_csv(output)["n_test"] == 30).all()
