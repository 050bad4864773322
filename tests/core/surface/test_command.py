"""The tables of surface statistics and of gradients, and what the command refuses."""

import argparse

import numpy as np
import pandas as pd
import pytest

from attention_sieve.core.analysis_command import add_command
from attention_sieve.core.answering import find
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.surface.analysis import GRADIENT_ANALYSIS, SURFACE_ANALYSIS, SurfaceSettings
from attention_sieve.core.surface.frequencies import read_frequencies
from attention_sieve.core.surface.per_text import KEY_KINDS
from attention_sieve.core.surface.statistics import (
    OFFSETS,
    head_labels,
    head_statistics,
    layer_statistics,
    offset_shares,
    positional,
    rare_shares,
)
from attention_sieve.core.texts.text import Text

TEXTS = (Text(("the black cat sat on the mat.",)), Text(("who ran", "a dog ran, where it sat")), Text(("it is",)))
WORDS = "\n".join(["the", "it", "is", *(str(number) for number in range(600)), "dog", "cat"])
N_LAYERS, N_HEADS = 2, 3


@pytest.fixture
def run(tmp_path, folders):
    """run(*options) writes statistics of the small BERT over a text to a file, and returns its table."""
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers(), SURFACE_ANALYSIS)
    texts, words, output = (tmp_path / name for name in ("texts.txt", "words.txt", "surface.parquet"))
    texts.write_text("a dog ran", "utf-8")
    words.write_text(WORDS, "utf-8")

    def ran(*options):
        given = ["--checkpoint", str(folders("bert")), "--device", "cpu", "--texts", str(texts)]
        given += ["--frequencies", str(words), "--output", str(output)]
        chosen = parser.parse_args(["surface", *given, *options])
        chosen.run(chosen)
        return pd.read_parquet(output)

    return ran


def by_head(rows, column="mean"):
    assert len(rows) == N_LAYERS * N_HEADS
    values = np.full((N_LAYERS, N_HEADS), np.nan)
    values[rows["layer"].astype(int), rows["head"].astype(int)] = rows[column].astype(float)
    return values


def test_every_statistic_of_every_head_is_a_row(loaded):
    frequencies = read_frequencies("words.txt", WORDS.encode())
    finding = find(SURFACE_ANALYSIS, loaded("bert"), TEXTS, SurfaceSettings(frequencies=frequencies))
    table, texts = SURFACE_ANALYSIS.table(finding), finding.texts
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    expected = head_statistics(texts, ranks=ranks)
    named = dict(list(table.groupby("statistic")))
    for place, name in enumerate(expected.names):
        for column in ("mean", "low", "high"):
            np.testing.assert_allclose(
                by_head(named[name], column), getattr(expected, column)[place], rtol=1e-5, atol=1e-6
            )
        assert set(named[name]["texts"]) == {expected.n_texts[place]}
    at = positional(texts)
    np.testing.assert_allclose(by_head(named["positional"]), at.share, rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(by_head(named["positional"], "offset"), at.offset)
    rare = rare_shares(texts, ranks)
    found = head_labels(at, rare)
    np.testing.assert_array_equal(by_head(named["positional"], "holds"), at.holds)
    np.testing.assert_array_equal(by_head(named["rare"], "holds"), found.rare)
    np.testing.assert_allclose(by_head(named["rare"]), rare.two_rarest, rtol=1e-5, atol=1e-6)
    assert set(named["rare"]["texts"]) == {rare.n_texts}
    offsets = named["offset share"]
    for offset, shares in zip((*OFFSETS, None), offset_shares(texts)):
        rows = offsets[offsets["offset"].isna() if offset is None else offsets["offset"] == offset]
        np.testing.assert_allclose(by_head(rows), shares, rtol=1e-5, atol=1e-6)
    of_layers = layer_statistics(texts)
    for name, means in zip(of_layers.names, of_layers.mean):
        np.testing.assert_allclose(named[name]["mean"].astype(float), means, rtol=1e-5, atol=1e-6)
        assert named[name]["head"].isna().all()
    assert len(named["uniform entropy"]) == N_LAYERS


def test_where_no_token_counts_there_is_no_offset(loaded):
    finding = find(SURFACE_ANALYSIS, loaded("bert"), [Text((word,)) for word in ("eat", "sat", "it")])
    table = SURFACE_ANALYSIS.table(finding)
    rows = table[table["statistic"] == "positional"]
    assert len(rows) == N_LAYERS * N_HEADS
    assert rows["mean"].isna().all()
    assert rows["offset"].isna().all()
    assert not rows["holds"].any()


def test_gradients_are_a_row_for_each_layer_and_kind_of_key(guessing):
    checkpoint = load_checkpoint(find_checkpoint(str(guessing)), device="cpu")
    table = GRADIENT_ANALYSIS.table(find(GRADIENT_ANALYSIS, checkpoint, TEXTS))
    assert set(zip(table["kind"], table["layer"])) == {(kind, layer) for kind in KEY_KINDS for layer in range(N_LAYERS)}
    assert (table["mean"] > 0).all()
    assert dict(zip(table["kind"], table["texts"])) == {"cls": 3, "sep": 3, "punctuation": 2, "other": 3}


def test_the_file_says_what_it_comes_from(run):
    facts = run("--off", "1-2").attrs
    assert facts["heads off"] == "L1 H2"
    assert facts["word frequencies"] == "words.txt (605 words)"
    assert (facts["punctuation"], facts["as in code"]) == (".,", "no")


def test_gradients_that_cannot_be_are_told_before_any_work(run, tmp_path):
    with pytest.raises(AnalysisError, match="has no masked-language-model head"):
        run("--gradients", str(tmp_path / "gradients.csv"))
    assert not (tmp_path / "surface.parquet").exists()


def test_what_cannot_be_written_or_read_is_told_first(run, tmp_path):
    with pytest.raises(AnalysisError, match="There is no folder"):
        run("--gradients", str(tmp_path / "nowhere" / "gradients.csv"))
    (tmp_path / "bad.tsv").write_text("one\ttwo\n", "utf-8")
    with pytest.raises(TextError, match='names no column "rank"'):
        run("--frequencies", str(tmp_path / "bad.tsv"))
