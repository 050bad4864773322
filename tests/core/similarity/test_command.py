import argparse

import numpy as np
import pandas as pd
import pytest
from passing import SELF, prepare
from scipy.spatial.distance import squareform

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.similarity.command import add_command
from attention_sieve.core.similarity.distances import DistanceSettings, head_distances
from attention_sieve.core.similarity.observer import text_distances
from attention_sieve.core.texts.text import Text

TYPED = ("the black cat sat on the mat", "who ran ||| a dog ran where it sat", "it is")
TEXTS = (Text((TYPED[0],)), Text(("who ran", "a dog ran where it sat")), Text((TYPED[2],)))
N_LAYERS, N_HEADS = 2, 3


@pytest.fixture
def run(tmp_path, folders):
    """run(output, *options) writes distances of the small BERT over the texts."""
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers())
    texts = tmp_path / "texts.txt"
    texts.write_text("\n".join(TYPED), "utf-8")

    def ran(output, *options):
        given = ["--checkpoint", str(folders("bert")), "--device", "cpu", "--texts", str(texts)]
        chosen = parser.parse_args(["similarity", *given, "--output", str(output), *options])
        chosen.run(chosen)
        return pd.read_parquet(output) if output.suffix == ".parquet" else pd.read_csv(output)

    return ran


def by_library(checkpoint, how):
    prepared = [prepare(checkpoint, text, SELF) for text in TEXTS]
    return head_distances([found for batch in text_distances(checkpoint, prepared, SELF, how) for _, found in batch])


def test_every_pair_of_heads_is_a_row(run, tmp_path, loaded):
    table = run(tmp_path / "distances.csv")
    assert len(table) == 6 * 5 // 2
    expected = by_library(loaded("bert"), DistanceSettings())
    for row in table.itertuples():
        a, b = (row.layer_a, row.head_a), (row.layer_b, row.head_b)
        assert a < b
        assert row.divergence == pytest.approx(expected.mean[*a, *b], abs=1e-6)
        assert row.sum == pytest.approx(expected.sum[*a, *b], rel=1e-4)
        if a[0] == b[0]:
            assert row.relative_a_b == pytest.approx(expected.relative[*a, b[1]], rel=1e-4)
            assert row.relative_b_a == pytest.approx(expected.relative[*b, a[1]], rel=1e-4)
        else:
            assert np.isnan([row.relative_a_b, row.relative_b_a]).all()


def test_the_authors_smoothing_and_fewer_rows_are_options_and_said(run, tmp_path, loaded):
    table = run(tmp_path / "distances.parquet", "--smoothed", "--rows", "3")
    expected = by_library(loaded("bert"), DistanceSettings(smoothed=True, rows=3))
    square = expected.mean.reshape(N_LAYERS * N_HEADS, -1)
    np.testing.assert_allclose(table["divergence"], squareform(square, checks=False), atol=1e-6)
    facts = table.attrs
    assert (facts["texts"], facts["rows smoothed"], facts["most rows of a text"]) == ("3", "yes", "3")
    assert facts["checkpoint"].endswith("bert")


def test_less_than_one_row_is_refused(run, tmp_path):
    with pytest.raises(AnalysisError, match="The number of rows is 0"):
        run(tmp_path / "distances.csv", "--rows", "0")
