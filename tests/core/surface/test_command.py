import argparse
from functools import partial

import numpy as np
import pandas as pd
import pytest
from passing import SELF

from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.passes.batches import collect
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.surface.command import add_command
from attention_sieve.core.surface.frequencies import read_frequencies
from attention_sieve.core.surface.labels import OFFSETS, head_labels, offset_shares, positional, rare_shares
from attention_sieve.core.surface.observer import SurfaceObserver
from attention_sieve.core.surface.per_text import KEY_KINDS
from attention_sieve.core.surface.statistics import head_statistics, layer_statistics
from attention_sieve.core.texts.text import Text

TYPED = ("the black cat sat on the mat.", "who ran ||| a dog ran, where it sat", "it is")
TEXTS = (Text((TYPED[0],)), Text(("who ran", "a dog ran, where it sat")), Text((TYPED[2],)))
WORDS = "\n".join(["the", "it", "is", *(str(number) for number in range(600)), "dog", "cat"])
N_LAYERS, N_HEADS = 2, 3


@pytest.fixture
def run(tmp_path, folders):
    """run(output, *options) writes statistics of the small BERT over the texts."""
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers())
    texts, words = tmp_path / "texts.txt", tmp_path / "words.txt"
    texts.write_text("\n".join(TYPED), "utf-8")
    words.write_text(WORDS, "utf-8")

    def ran(output, *options, checkpoint=None):
        given = ["--checkpoint", str(checkpoint or folders("bert")), "--device", "cpu", "--texts", str(texts)]
        given += ["--frequencies", str(words), "--output", str(output)]
        chosen = parser.parse_args(["surface", *given, *options])
        chosen.run(chosen)
        return read(output)

    return ran


def read(output):
    return pd.read_parquet(output) if output.suffix == ".parquet" else pd.read_csv(output)


def by_library(checkpoint):
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    (batch,) = collect(checkpoint, prepared, SELF, partial(SurfaceObserver, checkpoint))
    return [found for _, found in sorted(batch, key=lambda one: one[0])]


def by_head(rows, column="mean"):
    assert len(rows) == N_LAYERS * N_HEADS
    values = np.full((N_LAYERS, N_HEADS), np.nan)
    values[rows["layer"].astype(int), rows["head"].astype(int)] = rows[column].astype(float)
    return values


def test_every_statistic_of_every_head_is_a_row(run, tmp_path, loaded):
    table = run(tmp_path / "surface.csv")
    texts = by_library(loaded("bert"))
    frequencies = read_frequencies("words.txt", WORDS.encode())
    ranks = [frequencies.ranks(text.key_words) for text in texts]
    expected = head_statistics(texts, ranks=ranks)
    named = dict(list(table.groupby("statistic")))
    for place, name in enumerate(expected.names):
        for column in ("mean", "low", "high"):
            np.testing.assert_allclose(by_head(named[name], column), getattr(expected, column)[place], atol=1e-5)
        assert set(named[name]["texts"]) == {expected.n_texts[place]}
    at = positional(texts)
    np.testing.assert_allclose(by_head(named["positional"]), at.share, atol=1e-5)
    np.testing.assert_array_equal(by_head(named["positional"], "offset"), at.offset)
    rare = rare_shares(texts, ranks)
    found = head_labels(at, rare)
    np.testing.assert_array_equal(by_head(named["positional"], "holds"), at.holds)
    np.testing.assert_array_equal(by_head(named["rare"], "holds"), found.rare)
    np.testing.assert_allclose(by_head(named["rare"]), rare.two_rarest, atol=1e-5)
    assert set(named["rare"]["texts"]) == {rare.n_texts}
    offsets = named["offset share"]
    for offset, shares in zip((*OFFSETS, None), offset_shares(texts)):
        rows = offsets[offsets["offset"].isna() if offset is None else offsets["offset"] == offset]
        np.testing.assert_allclose(by_head(rows), shares, atol=1e-5)
    of_layers = layer_statistics(texts)
    for name, means in zip(of_layers.names, of_layers.mean):
        np.testing.assert_allclose(named[name]["mean"].astype(float), means, atol=1e-5)
        assert named[name]["head"].isna().all()
    assert len(named["uniform entropy"]) == N_LAYERS


def test_the_file_says_what_it_comes_from(run, tmp_path):
    facts = run(tmp_path / "surface.parquet", "--off", "1-2").attrs
    assert facts["heads off"] == "L1 H2"
    assert facts["word frequencies"] == "words.txt (605 words)"
    assert (facts["punctuation"], facts["as in code"]) == (".,", "no")


def test_where_no_token_counts_there_is_no_offset(run, tmp_path):
    (tmp_path / "texts.txt").write_text("eat\nsat\nit", "utf-8")
    for suffix in ("csv", "parquet"):
        table = run(tmp_path / f"surface.{suffix}")
        rows = table[table["statistic"] == "positional"]
        assert len(rows) == N_LAYERS * N_HEADS
        assert rows["mean"].isna().all()
        assert rows["offset"].isna().all()
        assert not rows["holds"].any()


def test_gradients_go_to_a_file_of_their_own(run, tmp_path, guessing):
    run(tmp_path / "surface.csv", "--gradients", str(tmp_path / "gradients.parquet"), checkpoint=guessing)
    table = read(tmp_path / "gradients.parquet")
    assert set(zip(table["kind"], table["layer"])) == {(kind, layer) for kind in KEY_KINDS for layer in range(N_LAYERS)}
    assert (table["mean"] > 0).all()
    assert dict(zip(table["kind"], table["texts"])) == {"cls": 3, "sep": 3, "punctuation": 2, "other": 3}


def test_gradients_that_cannot_be_are_told_before_any_work(run, tmp_path):
    with pytest.raises(AnalysisError, match="has no masked-language-model head"):
        run(tmp_path / "surface.csv", "--gradients", str(tmp_path / "gradients.csv"))
    assert not (tmp_path / "surface.csv").exists()


def test_what_cannot_be_written_or_read_is_told_first(run, tmp_path):
    with pytest.raises(AnalysisError, match="There is no folder"):
        run(tmp_path / "surface.csv", "--gradients", str(tmp_path / "nowhere" / "gradients.csv"))
    (tmp_path / "bad.tsv").write_text("one\ttwo\n", "utf-8")
    with pytest.raises(TextError, match='names no column "rank"'):
        run(tmp_path / "surface.csv", "--frequencies", str(tmp_path / "bad.tsv"))
