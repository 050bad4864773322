"""The command word-links, against the library."""

import pandas as pd
import pytest
from planted import save_planted

from attention_sieve.__main__ import main

TEXTS = "a dog ran where she chased the cat .\ntwo birds eat red apples where she chased a black cat .\nwho ran?\n"


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    folder = tmp_path_factory.mktemp("given")
    (folder / "texts.txt").write_text(TEXTS, "utf-8")
    return [
        *("--checkpoint", save_planted(folder / "planted", "she", "cat", (1, 2)), "--device", "cpu"),
        *("--texts", str(folder / "texts.txt")),
    ]


def test_the_table_names_the_planted_head(given, tmp_path, capsys):
    output = tmp_path / "links.csv"
    assert main(["word-links", *given, "--from", "She", "--to", "cat", "--output", str(output)]) == 0
    table = pd.read_csv(output, comment="#")
    table = table.set_index(["layer", "head"])
    assert len(table) == 6
    first = table.loc[1, 2]
    assert (first["texts"], first["pairs"], first["compared_texts"]) == (2, 2, 2)
    assert first["share"] == pytest.approx(1, abs=1e-3)
    assert first["even"] == pytest.approx((1 / 11 + 1 / 14) / 2)
    assert table["share"].drop((1, 2)).max() == pytest.approx(first["even"], abs=1e-4)
    said = capsys.readouterr().err
    assert "2 pairs in 2 texts. L1 H2, chosen on one half of the texts, gives 100.0% of its attention" in said


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--from", "she"], "A pattern needs two words or a relation."),
        (["--from", "she", "--to", "apple"], "In no text with this pattern can the first word attend to the second."),
    ],
)
def test_what_cannot_be_asked_is_said(given, tmp_path, capsys, options, sentence):
    assert main(["word-links", *given, *options, "--output", str(tmp_path / "links.csv")]) == 2
    assert sentence in capsys.readouterr().err
