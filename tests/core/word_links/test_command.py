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
    first = pd.read_csv(output, comment="#").set_index(["layer", "head"]).loc[1, 2]
    assert (first["texts"], first["pairs"], first["compared_texts"]) == (2, 2, 2)
    assert first["share"] == pytest.approx(1, abs=1e-3)
    said = capsys.readouterr().err
    assert "2 pairs in 2 texts. L1 H2, chosen on one half of the texts, gives 100.0% of its attention" in said


def test_a_pattern_of_one_word_is_refused(given, tmp_path, capsys):
    assert main(["word-links", *given, "--from", "she", "--output", str(tmp_path / "links.csv")]) == 2
    assert "A pattern needs two words or a relation." in capsys.readouterr().err
