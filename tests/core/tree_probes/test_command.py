import json

import numpy as np
import pandas as pd
import pytest
from command_help import columns_in_help, own_columns
from small_checkpoints import N_HEADS, N_LAYERS

from attention_sieve.__main__ import main
from attention_sieve.core.running import STOP, read_progress
from attention_sieve.core.tree_probes.kept import KeptProbes

TREES = [
    {"words": ["the", "cat", "sat", "."], "heads": [2, 3, 0, 3], "relns": ["det", "nsubj", "root", "punct"]},
    {"words": ["she", "eats", "apples"], "heads": [2, 0, 2], "relns": ["nsubj", "root", "dobj"]},
    {"words": ["a", "black", "dog", "ran"], "heads": [3, 3, 4, 0], "relns": ["det", "amod", "nsubj", "root"]},
]


@pytest.fixture
def trees(tmp_path):
    path = tmp_path / "trees.jsonl"
    path.write_text("".join(json.dumps(TREES[i % 3]) + "\n" for i in range(16)), "utf-8")
    return path


def probe(folder, trees, output, *more):
    return main(["tree-probes", "--checkpoint", str(folder), "--texts", str(trees), "--output", str(output), *more])


def test_weights_of_every_head_and_a_summary_are_written(folders, trees, tmp_path, capsys):
    output = tmp_path / "probe.csv"
    assert probe(folders("bert"), trees, output, "--epochs", "2", "--random-control", "--seed", "4") == 0
    table = pd.read_csv(output)
    assert own_columns(table) == columns_in_help("tree-probes", "Columns:")
    assert table[["layer", "head"]].to_numpy().tolist() == [[i, j] for i in range(N_LAYERS) for j in range(N_HEADS)]
    for column in ("w", "u", "control_w", "control_u"):
        assert np.isfinite(table[column]).all()
    assert (table["words"] == "none").all()
    summary = json.loads((tmp_path / "probe.summary.json").read_text("utf-8"))
    assert list(summary["UAS"]) == ["probe", "random control", "right-branching"]
    assert summary["UAS"]["probe"]["n_texts"] == 4
    assert summary["training"]["probe"]["texts"] == 10
    assert summary["training"]["probe"]["texts held out"] == 2
    assert [epoch["number"] for epoch in summary["training"]["probe"]["epochs"]] == [0, 1, 2]
    assert (summary["settings"]["seed"], summary["settings"]["words"]) == (4, False)
    said = capsys.readouterr()
    assert "random control" in said.out
    assert f"{summary['UAS']['right-branching']['share']:.1%}" in said.out
    assert "attention of 16 texts takes 0 MB" in said.err
    assert "words in 12 texts for training" in said.err
    assert "only 4 texts to test on" in said.err
    assert summary["words left out"] == 0
    assert "neither training nor testing" not in said.err


def test_vectors_come_from_the_checkpoint_or_from_a_file(folders, trees, tmp_path, capsys):
    vectors = tmp_path / "glove.txt"
    vectors.write_text("the 1 2\ncat 3 4\nsat 0 1\nshe 1 1\n", "utf-8")
    for words in ("embeddings", str(vectors)):
        output = tmp_path / "probe.parquet"
        assert probe(folders("bert"), trees, output, "--words", words, "--test-texts", str(trees), "--epochs", "1") == 0
        table = pd.read_parquet(output)
        assert (table[["w", "u"]] >= 0).to_numpy().all()  # norms
        assert table.attrs["words"] == words
        assert json.loads(output.with_suffix(".summary.json").read_text("utf-8"))["UAS"]["probe"]["n_texts"] == 16
    assert f"72 of 118 words have no vector in {vectors}" in capsys.readouterr().err


def test_a_text_without_a_tree_is_parsed(folders, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_text("The cat sat.\nShe eats red apples.\n" * 6, "utf-8")
    assert probe(folders("bert"), texts, tmp_path / "probe.csv", "--epochs", "1") == 0


def test_a_memory_that_is_too_small_is_said(folders, trees, tmp_path, capsys):
    assert probe(folders("bert"), trees, tmp_path / "probe.csv", "--memory-mb", "0") == 2
    assert "at most 0 MB may be used" in capsys.readouterr().err
    assert not (tmp_path / "probe.csv").exists()


@pytest.mark.parametrize(("option", "read"), [("--test-texts", "dev.summary.json"), ("--words", "dev.csv")])
def test_what_is_read_is_not_written_over(folders, trees, tmp_path, capsys, option, read):
    own = tmp_path / read
    own.write_bytes(trees.read_bytes())
    assert probe(folders("bert"), trees, tmp_path / "dev.csv", option, str(own)) == 2
    assert f"{own} is also another file of this command, and would be overwritten" in capsys.readouterr().err
    assert own.read_bytes() == trees.read_bytes()


def test_a_summary_that_cannot_be_written_is_refused_before_the_work(folders, trees, tmp_path, capsys):
    (tmp_path / "probe.summary.json").mkdir()
    assert probe(folders("bert"), trees, tmp_path / "probe.csv") == 2
    assert "probe.summary.json is a folder. Name a file in it." in capsys.readouterr().err
    assert not (tmp_path / "probe.csv").exists()


def test_a_command_that_is_stopped_goes_on_with_the_probe_that_is_missing(
    folders, trees, tmp_path, capsys, monkeypatch
):
    journal, outputs = tmp_path / "run", [tmp_path / "whole.csv", tmp_path / "in parts.csv"]
    options = ("--epochs", "2", "--random-control")
    assert probe(folders("bert"), trees, outputs[0], *options) == 0
    write, trained = KeptProbes.write, []

    def write_and_stop(self, kind, results):
        write(self, kind, results)
        trained.append(kind.control)
        if not kind.control:
            (journal / STOP).touch()

    monkeypatch.setattr(KeptProbes, "write", write_and_stop)
    capsys.readouterr()
    assert probe(folders("bert"), trees, outputs[1], *options, "--journal", str(journal)) == 0
    assert "Stopped after 1 of 2. Run the same command again to continue." in capsys.readouterr().err
    assert not outputs[1].exists()
    assert read_progress(journal).state == "stopped"
    assert probe(folders("bert"), trees, outputs[1], *options, "--journal", str(journal)) == 0
    assert trained == [False, True]
    assert (read_progress(journal).state, read_progress(journal).step) == ("finished", 2)
    pd.testing.assert_frame_equal(*map(pd.read_csv, outputs))
    # Another question has probes of its own.
    assert probe(folders("bert"), trees, outputs[1], "--epochs", "1", "--journal", str(journal)) == 0
    assert trained == [False, True, False]
