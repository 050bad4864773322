import argparse
import json

import numpy as np
import pandas as pd
import pytest

from attention_sieve.core.analysis_command import add_command
from attention_sieve.core.answering import find
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL, beats_baseline
from attention_sieve.core.relations.settings import RelationSettings
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.text import read_file, read_typed

TYPED = "the black cat sat on the red mat\nwho ran ||| a dog quickly ran where it sat\nshe eats apples"
GOLD = [
    {"words": ["the", "cat", "sat"], "heads": [2, 3, 0], "relns": ["det", "nsubj", "root"]},
    {"words": ["a", "black", "dog", "ran"], "heads": [3, 3, 4, 0], "relns": ["det", "amod", "nsubj", "root"]},
]


@pytest.fixture
def run(tmp_path, folders):
    """run(output, *options) measures the heads of a small checkpoint on texts that are typed or brought."""
    parser = argparse.ArgumentParser()
    add_command(parser.add_subparsers(), RELATION_ANALYSIS)
    (tmp_path / "typed.txt").write_text(TYPED, "utf-8")
    (tmp_path / "gold.json").write_text(json.dumps(GOLD), "utf-8")

    def ran(output, *options, texts="typed.txt", family="bert"):
        given = ["--checkpoint", str(folders(family)), "--device", "cpu", "--texts", str(tmp_path / texts)]
        output = tmp_path / output
        chosen = parser.parse_args(["relations", *given, "--output", str(output), "--least-cases", "1", *options])
        chosen.run(chosen)
        return pd.read_parquet(output) if output.suffix == ".parquet" else pd.read_csv(output)

    return ran


def assert_has(table, accuracies):
    assert table["relation"].drop_duplicates().tolist() == [one.relation for one in accuracies]
    for one in accuracies:
        rows = table[table["relation"] == one.relation]
        assert len(rows) == one.accuracy.size
        assert {*rows["cases"]} == {one.n_cases}
        np.testing.assert_allclose(rows["accuracy"], one.accuracy.ravel())
        np.testing.assert_allclose(rows[["low", "high"]], np.stack([one.low.ravel(), one.high.ravel()], 1))
        np.testing.assert_allclose(rows["p"], one.p_values.ravel())
        np.testing.assert_array_equal(rows["beats_baseline"], beats_baseline(one).ravel())
        np.testing.assert_allclose(rows["held_out"], one.best_accuracy)
        np.testing.assert_allclose(rows["design_effect"], one.design_effect.ravel())
        np.testing.assert_allclose(rows["held_out_design_effect"], one.best_design_effect)
        assert rows["documents"].isna().all() if one.n_documents is None else {*rows["documents"]} == {one.n_documents}
        (best,) = rows[rows["best"]].itertuples()
        assert (best.direction, best.layer, best.head) == one.best


def test_as_in_the_authors_code_is_four_settings_at_once(run, loaded):
    theirs = {"from_word": "first", "at_clitic": True, "every_word": True, "offsets": (-3, 2)}
    table = run("a.parquet", "--as-in-code", "--offsets", "1", "1")
    settings = RelationSettings(**theirs | {"offsets": (1, 1)}, least_cases=1)
    assert_has(table, find(RELATION_ANALYSIS, loaded("bert"), read_typed(TYPED), settings).accuracies)
    assert set(table["offset"]) == {1}
    told = {"from word": "first", "read at clitic": "yes", "all counts": "every word", "offsets": "1 to 1"}
    assert table.attrs.items() >= told.items()


def test_relations_are_those_of_the_file_and_only_texts_without_any_are_parsed(run, tmp_path):
    table = run("gold.parquet", texts="gold.json")
    assert table.groupby("relation", sort=False)["cases"].first().to_dict() == {ALL: 5, "det": 2, "nsubj": 2, "amod": 1}
    assert table.attrs["relations"] == "from the file"
    unmarked = {"text": "she eats apples"}
    (tmp_path / "mixed.json").write_text(json.dumps([*GOLD, unmarked]), "utf-8")
    assert run("a.parquet", texts="mixed.json").attrs["relations"] == f"{parser_name()}; from the file for 2 texts"
    (tmp_path / "mixed.jsonl").write_text(written(as_pairs(GOLD[0], None), unmarked), "utf-8")
    table = run("a.parquet", texts="mixed.jsonl")
    assert table.attrs["relations"] == f"{parser_name()}; pairs of the file for 1 texts"
    assert table.groupby("relation")["cases"].first()[["det", "nsubj", "dobj"]].tolist() == [1, 2, 1]


DOCUMENTS = "".join(
    ("# newdoc id = " + name + "\n" if name else "")
    + "".join(
        f"{number}\t{word}\t_\t_\t_\t_\t{head}\t{relation}\t_\t_\n"
        for number, (word, head, relation) in enumerate(zip(*sentence.values(), strict=True), start=1)
    )
    + "\n"
    for name, sentence in zip(("a", "", "b", "c", ""), [GOLD[1], GOLD[0], GOLD[1], GOLD[0], GOLD[1]])
)


def test_documents_of_a_treebank_are_the_units(run, tmp_path, loaded, capsys):
    (tmp_path / "docs.conllu").write_text(DOCUMENTS, "utf-8")
    table = run("docs.parquet", texts="docs.conllu")
    assert (
        "The texts are from 3 documents, which are the units of halves, intervals and tests" in capsys.readouterr().err
    )
    texts = read_file("docs.conllu", DOCUMENTS.encode())
    assert_has(table, find(RELATION_ANALYSIS, loaded("bert"), texts, RelationSettings(least_cases=1)).accuracies)
    assert table[["design_effect", "held_out_design_effect"]].notna().any().all()
    assert table.attrs["documents known"] == "3"
    (tmp_path / "none.conllu").write_text(DOCUMENTS.replace("# newdoc", "# newpar"), "utf-8")
    without = run("none.parquet", texts="none.conllu")
    assert "Documents are unknown, so texts are the units of halves" in capsys.readouterr().err
    assert without["documents"].isna().all()
    assert without.attrs["documents known"] == "none"
    np.testing.assert_allclose(without["accuracy"], table["accuracy"], rtol=1e-5, atol=1e-6)
    assert not np.allclose(without["high"], table["high"])
    assert without.attrs["texts sha256"] == table.attrs["texts sha256"]


def as_pairs(sentence, document):
    """The tree of a sentence as pairs of the spans of its words."""
    starts = [len(" ".join([*sentence["words"][:place], ""])) for place in range(len(sentence["words"]))]
    spans = [[start, start + len(word)] for start, word in zip(starts, sentence["words"])]
    pairs = [
        {"relation": relation, "from": span, "to": spans[head - 1]}
        for span, head, relation in zip(spans, sentence["heads"], sentence["relns"])
        if head
    ]
    return {"text": " ".join(sentence["words"]), "pairs": pairs, "document": document}


def written(*items):
    return "\n".join(map(json.dumps, items))


def test_pairs_are_judged_as_the_same_trees_are_and_need_no_parser(run, tmp_path, capsys):
    marked = [as_pairs(GOLD[place], name) for place, name in ((1, "a"), (0, "a"), (1, "b"), (0, "c"), (1, "c"))]
    (tmp_path / "pairs.jsonl").write_text(written(*marked), "utf-8")
    (tmp_path / "trees.conllu").write_text(DOCUMENTS, "utf-8")
    table, trees = run("pairs.parquet", texts="pairs.jsonl"), run("trees.parquet", texts="trees.conllu")
    pd.testing.assert_frame_equal(table, trees)
    assert table.attrs["relations"] == "from the file"
    assert table.attrs["texts sha256"] != trees.attrs["texts sha256"]
    assert "parsing" not in capsys.readouterr().err
    assert (table.attrs["offsets"], trees.attrs["offsets"]) == ("-100 to 100", "-5 to 5")
    assert run("near.parquet", "--offsets", "-4", "1", texts="pairs.jsonl").attrs["offsets"] == "-4 to 1"
    # det: the nearest noun after the article, of one noun that has an article in every text.
    baselines = table.groupby("relation")[["nearest", "random_choice"]].first()
    assert baselines.loc["det"].tolist() == [1, 1]


def test_pairs_without_tokens_and_relations_with_few_cases_are_named(run, tmp_path, capsys):
    inside = {"text": "a cat sat", "pairs": [{"relation": "half", "from": [3, 5], "to": [0, 1]}]}
    (tmp_path / "pairs.jsonl").write_text(written(*map(as_pairs, GOLD, "ab"), inside), "utf-8")
    table = run("a.parquet", "--least-cases", "2", texts="pairs.jsonl")
    assert [*table["relation"].drop_duplicates()] == [ALL, "det", "nsubj"]
    assert {*table[table["relation"] == ALL]["left_out"]} == {1}
    told = capsys.readouterr().err
    assert "Relations left out, with fewer than 2 cases: amod (1)." in told
    assert "begins inside a token): 1." in told
    few = r"^No relation has 9 cases in these texts \(det: 2, nsubj: 2, amod: 1\)\. Give more texts"
    with pytest.raises(AnalysisError, match=few):
        run("c.csv", "--least-cases", "9", texts="pairs.jsonl")
    (tmp_path / "inside.jsonl").write_text(written(inside), "utf-8")
    with pytest.raises(AnalysisError, match=r"^No pair of these texts joins two spans that both have a token"):
        run("b.csv", texts="inside.jsonl")


def test_pairs_across_segments_are_read_where_both_are_and_refused_where_one_is(run, tmp_path):
    pair = {"relation": "same", "from_b": [2, 5], "to_a": [2, 5]}
    (tmp_path / "pairs.jsonl").write_text(written({"text_a": "a dog ran", "text_b": "a dog", "pairs": [pair]}), "utf-8")
    table = run("a.parquet", "--offsets", "1", "2", texts="pairs.jsonl")
    assert {*zip(table["offset"], table["baseline"])} == {(0, 1.0)}
    with pytest.raises(
        AnalysisError, match=r"^A pair of text 1 joins its two segments, and decoder attention reads one"
    ):
        run("a.csv", "--attention", "decoder", texts="pairs.jsonl", family="bart")


def test_texts_without_a_relation_are_named_as_such(run, tmp_path):
    (tmp_path / "alone.json").write_text(json.dumps([{"words": ["run"], "heads": [0], "relns": ["root"]}]), "utf-8")
    with pytest.raises(AnalysisError, match=r"^No word of these texts has a relation to another word"):
        run("a.csv", texts="alone.json")
    with pytest.raises(AnalysisError, match=r"^No relation has 2 cases in these texts\. Give more texts"):
        run("a.csv", "--least-cases", "2", texts="alone.json")
