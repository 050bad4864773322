"""Texts that are parsed once, for the runs of any number of checkpoints."""

import json
from functools import partial

import pyarrow.parquet as pq
import pytest
from corpus_material import corpus, write_corpus
from full_disk import files_up_to
from parses import unparsed

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.corpus.manifest import read_manifest, score_path
from attention_sieve.core.corpus.plan import corpus_texts, parse_corpus
from attention_sieve.core.corpus.results import open_results
from attention_sieve.core.corpus.statistics import open_statistics
from attention_sieve.core.corpus.texts.parsed import PARSED_FOLDER, PARSING, parsed_path, unparsed_path
from attention_sieve.core.corpus.texts.text_shards import read_texts
from attention_sieve.core.engines.local import run_local
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.passes.texts import prepare, queries_text
from attention_sieve.core.running import Journal, read_progress
from attention_sieve.core.texts.relations import dependencies, parse, with_tree
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.core.texts.tokens import words_of

HERE = partial(run_local, n_workers=1)
N_TEXTS = 12
SHARD = 5
TREEBANK = "1\tBirds\t_\t_\tNNS\t_\t2\tnsubj\t_\t_\n2\tsing\t_\t_\tVBP\t_\t0\troot\t_\t_\n\n"
OTHER_KIND = "values of another kind|does not hold the texts of a shard"
"""The second where types are checked, as they are in tests: a Text cannot be made of such values."""
ODD = (
    "Don't  stop - she's   here!",
    "One. Two came, and he said so. ||| It wasn't (quite) red…",
    "  \u00a0spaces\u2003all over ",
    "a\u200bb 🐦🐦 birds' songs",
)


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Of four kinds: typed, with words, with trees, and such that words are not what stands between spaces."""
    folder = write_corpus(tmp_path_factory.mktemp("texts"), N_TEXTS)
    (folder / "news" / "bank.conllu").write_text(TREEBANK)
    (folder / "web" / "words.jsonl").write_text(json.dumps({"words": ["the", "cat", "eats", "red", "birds"]}))
    (folder / "web" / "odd.txt").write_text("\n".join(ODD))
    return folder


@pytest.fixture(scope="module")
def parsed(tmp_path_factory, texts):
    """A folder of parsed texts; a test must not change it."""
    folder = tmp_path_factory.mktemp("parsed") / "folder"
    parse_corpus(folder, str(texts), None, HERE, Journal(None), SHARD)
    return folder


def contents(folder):
    return {path.name: path.read_bytes() for path in (folder / PARSED_FOLDER).iterdir()}


def run(checkpoint, texts, output, questions="roles,relations"):
    options = ("--checkpoint", checkpoint, "--texts", texts, "--shard-size", 50, "--workers", 1)
    return corpus("run", *options, "--output", output, "--questions", questions)


def segments_of(folder):
    texts = [each.text for each in corpus_texts(str(folder), None)]
    return [side for text in texts for side in (*text.segments, *(text.words or ()))]


def test_a_run_on_parsed_texts_parses_nothing_and_finds_the_same_numbers(texts, parsed, folders, tmp_path):
    direct, beforehand = tmp_path / "direct", tmp_path / "beforehand"
    assert run(folders("bert"), texts, direct) == 0

    with unparsed(*segments_of(parsed)):
        assert run(folders("bert"), parsed, beforehand) == 0
    (one,), (other,) = (read_manifest(folder).shards for folder in (direct, beforehand))
    assert score_path(direct, one).read_bytes() == score_path(beforehand, other).read_bytes()
    tables = [open_statistics(folder / "statistics.safetensors").read() for folder in (direct, beforehand)]
    for name, sums in tables[0].sums.items():
        for own, same in zip(sums.parts, tables[1].sums[name].parts, strict=True):
            assert own.tobytes() == same.tobytes(), name
    assert open_results(beforehand).part().n_texts == N_TEXTS + 2 + len(ODD)


def test_a_run_whose_questions_read_no_tree_parses_nothing(texts, parsed, folders, tmp_path):
    with unparsed(*segments_of(parsed)):
        assert run(folders("bert"), texts, tmp_path / "surface", "surface") == 0


@pytest.mark.parametrize("text", read_typed("\n".join(ODD)))
def test_a_text_that_brings_the_parsers_tree_has_the_relations_that_the_parser_finds(text):
    (tree,) = dependencies([text])
    brought = with_tree(text, tree)
    assert list(parse([brought])) == list(parse([text]))
    (again,) = dependencies([brought])
    assert (again.heads.tolist(), again.relations) == (tree.heads.tolist(), tree.relations)
    assert words_of(brought).shown(text) == tree.words.shown(text)


def test_the_half_of_a_pair_keeps_its_own_tree(loaded):
    (text,) = read_typed("The cat sat. ||| Two red birds sang.")
    (tree,) = dependencies([text])
    checkpoint = loaded("bart")
    for kind in ("encoder", "decoder"):
        half = queries_text(with_tree(text, tree), kind)
        assert list(parse([half])) == list(parse([Text(half.segments)]))
        prepare(checkpoint, with_tree(text, tree), PassSettings(kind))


def test_trees_of_treebanks_stay_and_texts_keep_what_they_are_from(texts, parsed):
    before, after = list(corpus_texts(str(texts), None)), list(corpus_texts(str(parsed), None))
    assert [(each.dataset, each.language, each.text.segments) for each in after] == [
        (each.dataset, each.language, each.text.segments) for each in before
    ]
    (bank,) = [each.text for each in after if each.text.segments == ("Birds sing",)]
    assert bank == next(each.text for each in before if each.text.heads is not None)


def test_the_same_command_goes_on_and_parses_nothing_twice(texts, parsed, tmp_path):
    def stopped(begin, shards):
        outcomes = HERE(begin, shards)
        yield next(outcomes)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        parse_corpus(tmp_path, str(texts), None, stopped, Journal(None), SHARD)
    with pytest.raises(AnalysisError, match=r"3 of 4 shards in .* are not parsed yet"):
        list(corpus_texts(str(tmp_path), None))
    begun = []

    def counting(begin, shards):
        begun.extend(shards)
        return HERE(begin, shards)

    with Journal(tmp_path) as journal:
        parse_corpus(tmp_path, str(texts), None, counting, journal, SHARD)
    assert begun == ["000001", "000002", "000003"]
    progress = read_progress(tmp_path)
    assert (progress.state, progress.step, progress.steps) == ("finished", 4, 4)
    assert contents(tmp_path) == contents(parsed)
    assert list((tmp_path / "unparsed").iterdir()) == []


def test_a_process_that_was_killed_before_it_removed_the_unparsed_texts_loses_nothing(texts, parsed, tmp_path):
    parse_corpus(tmp_path, str(texts), None, lambda *_: [], Journal(None), SHARD)  # split only
    whole = {shard: unparsed_path(tmp_path, shard).read_bytes() for shard in ("000000", "000001")}
    parse_corpus(tmp_path, str(texts), None, HERE, Journal(None), SHARD)
    unparsed_path(tmp_path, "000000").write_bytes(whole["000000"])
    parsed_path(tmp_path, "000001").unlink()
    unparsed_path(tmp_path, "000001").write_bytes(whole["000001"])
    parse_corpus(tmp_path, str(texts), None, HERE, Journal(None), SHARD)
    assert contents(tmp_path) == contents(parsed)


def test_the_command_says_what_parsed_and_parses_no_parsed_texts_again(parsed, tmp_path, capsys):
    with unparsed(*segments_of(parsed)):
        assert corpus("parse", "--texts", parsed, "--output", tmp_path, "--workers", 1) == 0
    assert f"{N_TEXTS + 2 + len(ODD)} texts parsed by en_core_web_sm" in capsys.readouterr().out
    assert list(corpus_texts(str(tmp_path), None)) == list(corpus_texts(str(parsed), None))


def test_a_folder_of_other_texts_is_refused(parsed, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Other texts.\n")
    with pytest.raises(AnalysisError, match="contains different texts"):
        parse_corpus(parsed, str(other), None, HERE, Journal(None), SHARD)


def test_a_damaged_folder_and_one_of_a_newer_version_are_named(tmp_path):
    damaged = dict.fromkeys(["", "[]", "{}", '{"format": 1}', '{"format": "x"}'], r"parsing\.json is damaged")
    for written, said in {**damaged, '{"format": 2}': "newer version"}.items():
        (tmp_path / PARSING).write_text(written)
        with pytest.raises(AnalysisError, match=said):
            corpus_texts(str(tmp_path), None)


@pytest.mark.parametrize(
    ("tree", "match"),
    [
        (None, "has no tree"),
        ([None, [[0, 1]], [["root", "dobj"]], [[0, 3, 4, 900]]], "not in its text"),
        ([None, [[0, 1]], [["root", "dobj"]], [[4, 9, 0, 3]]], "not in its text"),
        ([None, [[2, 1]], [["nsubj", "dobj"]], [[0, 3, 4, 9]]], "leads back to it"),
        ([None, [[0]], [["root"]], [[0, 3, 4, 9]]], "number of words is 2"),
        ([None, [[0], [0]], [["root"], ["root"]], [[0, 3], [0, 3]]], "not have one tree for each segment"),
        ([None, [[0, 1]], [["root", "dobj"]], [[0, 3, 4]]], "does not hold the texts"),
        ([None, [["x", 1]], [["root", "dobj"]], [[0, 3, 4, 9]]], OTHER_KIND),
        ([None, [[0, 1]], [[1, 2]], [[0, 3, 4, 9]]], OTHER_KIND),
        ([None, [[0, 1]], [["root", "dobj"]], [[0.5, 3, 4, 9]]], OTHER_KIND),
        (["[" * 5_000], OTHER_KIND),
        ([[["the", "black"]], [[9, 1]], [["root", "dobj"]]], "the last word is 2"),
        ([[["the", "black"]], None, None], "has no tree"),
    ],
)
def test_trees_that_do_not_fit_their_texts_are_named(parsed, tmp_path, tree, match):
    (tmp_path / PARSED_FOLDER).mkdir()
    for shard, path in (("000000", parsed_path(parsed, "000000")), ("000001", parsed_path(parsed, "000001"))):
        table = pq.read_table(path)
        column = table.column_names.index("words")
        values = [None if tree is None else json.dumps(tree)] * len(table)
        pq.write_table(table.set_column(column, "words", [values]), parsed_path(tmp_path, shard))
    told = json.loads((parsed / PARSING).read_text()) | {"n_shards": 2, "n_texts": 2 * SHARD}
    (tmp_path / PARSING).write_text(json.dumps(told))
    with pytest.raises((TextError, AnalysisError), match=match):
        list(corpus_texts(str(tmp_path), None))


def test_a_full_disk_stops_with_a_sentence_and_goes_on_later(texts, parsed, tmp_path):
    parse_corpus(tmp_path, str(texts), None, lambda *_: [], Journal(None), SHARD)
    with files_up_to(100), pytest.raises(AnalysisError, match="Free some space and run the command again"):
        parse_corpus(tmp_path, str(texts), None, HERE, Journal(None), SHARD)
    parse_corpus(tmp_path, str(texts), None, HERE, Journal(None), SHARD)
    assert contents(tmp_path) == contents(parsed)
    assert read_texts(parsed_path(tmp_path, "000000"))
