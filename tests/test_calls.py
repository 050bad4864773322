"""The calls of the package: each is its command, on a checkpoint by name, by folder, loaded, or in memory."""

import doctest
import inspect
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
import transformers
from command_help import columns_in_help
from small_checkpoints import TOKENIZERS, config

import attention_sieve as sieve
from attention_sieve import calls
from attention_sieve.__main__ import main
from attention_sieve.calls.given import SHARED
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.roles.roles import BY_NAME
from attention_sieve.core.texts.given import GivenTokens
from attention_sieve.core.texts.text import Text, read_file, read_typed, text_of_ids

TEXTS = ["The black cat quickly chased two birds on the mat.", "She ran.", "A dog sat where it ran."]
MENTIONS = [
    {"text": "She ran. The dog sat on it and she ate it.", "clusters": [[[0, 3], [31, 34]], [[9, 16], [24, 26]]]},
    {"text": "The cat sat. It ran.", "clusters": [[[0, 7], [13, 15]]]},
]
REPEATS = ["the cat ran and the cat ran and the dog sat", "the dog sat and the dog sat and the cat ran"]
OF_DECODERS = {"copying", "sinks"}
COMMANDS = {
    "scores": (["score"], {}),
    "roles": (["roles", "--tau", "1.2"], {"tau": 1.2}),
    "surface": (["surface", "--alpha", "0.1", "--punctuation", ".,"], {"alpha": 0.1, "punctuation": ".,"}),
    "relations": (["relations", "--least-cases", "1", "--as-in-code"], {"least_cases": 1, "as_in_code": True}),
    "coreference": (["coreference", "--candidates", "words"], {"candidates": "words"}),
    "word_links": (["word-links", "--relation", "det", "--from-head"], {"relation": "det", "from_head": True}),
    "similarity": (["similarity", "--rows", "7"], {"rows": 7}),
    "ablation": (["ablate", "--metric", "lm"], {"metric": "lm"}),
    "importance": (["importance", "--no-ablation"], {"no_ablation": True}),
    "sinks": (["sinks", "--tokens", "6"], {"tokens": 6}),
    "copying": (["copying", "--rise", "0.01"], {"rise": 0.01}),
    "gradients": (["surface"], {}),
    "single_heads": (["ablate"], {}),
    "backups": (["ablate", "--metric", "lm"], {}),
}
"""The command of each analysis, and the same settings as keywords."""
SECOND_FILES = {"gradients": "--gradients", "single_heads": "--keep-one", "backups": "--backups"}
"""The option of an analysis that is written to a second file of its command."""


@pytest.fixture(scope="module")
def checkpoint(guessing):
    return sieve.load(guessing, device="cpu")


@pytest.fixture(scope="module")
def decoder_in_memory(writing):
    model = transformers.AutoModelForCausalLM.from_pretrained(writing)
    return model, transformers.AutoTokenizer.from_pretrained(writing)


def given_to(name):
    """Texts that each analysis can be asked about."""
    return MENTIONS if name == "coreference" else REPEATS if name in OF_DECODERS else TEXTS


def test_there_is_a_call_for_each_analysis_and_for_scores_and_their_names_are_those_of_the_package():
    names = [*(analysis.name for analysis in ANALYSES), "scores"]
    assert sorted(calls.CALLS) == sorted(names) == sorted(COMMANDS)
    assert set(names) < set(dir(sieve)) & set(sieve.__all__)
    with pytest.raises(AttributeError, match="no attribute 'rolls'"):
        _ = sieve.rolls


@pytest.mark.parametrize("name", COMMANDS)
def test_a_call_is_its_command_whose_help_says_what_each_column_holds(name, guessing, writing, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    texts, output = tmp_path / "texts.txt", tmp_path / "table.parquet"
    folder = writing if name in OF_DECODERS else guessing
    given = given_to(name)
    texts.write_text(json.dumps(given) if name == "coreference" else "\n".join(given), "utf-8")
    command, settings = COMMANDS[name]
    options = ["--checkpoint", str(folder), "--device", "cpu", "--texts", str(texts), "--output", str(output)]
    if name in SECOND_FILES:
        options[-1:] = [str(tmp_path / "first.csv"), SECOND_FILES[name], str(output)]
    assert main([*command, *options]) == 0
    written, found = pd.read_parquet(output), getattr(sieve, name)(sieve.load(folder, device="cpu"), given, **settings)
    pd.testing.assert_frame_equal(found.table, written, check_dtype=False, rtol=1e-6, atol=1e-6)
    heading = f"Columns of {SECOND_FILES[name]}" if name in SECOND_FILES else "Columns:"
    assert columns_in_help(command[0], heading) == list(found.columns) == list(written)
    of_texts = {"texts sha256", "window", "labels"}  # of the file
    facts = {fact: value for fact, value in written.attrs.items() if fact not in of_texts}
    assert {fact: value for fact, value in found.facts.items() if fact not in of_texts} == facts
    assert found.table.attrs == found.facts


def test_the_call_of_a_comparison_is_its_command_over_the_scores_of_both(guessing, folders, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    both, files = (guessing, folders("bert")), [str(tmp_path / f"{side}.parquet") for side in "ab"]
    texts, output = tmp_path / "texts.txt", tmp_path / "compared.parquet"
    texts.write_text("\n".join(TEXTS), "utf-8")
    for folder, file in zip(both, files, strict=True):
        options = ["--checkpoint", str(folder), "--device", "cpu", "--texts", str(texts), "--output", file]
        assert main(["score", *options]) == 0
    assert main(["compare", *files, "--output", str(output), "--tau", "1.2", "--correction", "holm"]) == 0
    found = sieve.compare(*both, TEXTS, tau=1.2, correction="holm", device="cpu")
    written = pd.read_parquet(output)
    pd.testing.assert_frame_equal(found.table, written, check_dtype=False, rtol=1e-5, atol=1e-5)
    facts = [
        {name: fact for name, fact in each.items() if name != "texts sha256"} for each in (found.facts, written.attrs)
    ]
    assert facts[0] == facts[1]
    assert (found.table["difference"] != 0).any()
    assert found.title == f"compare of {guessing} and {both[1]}: {len(written)} rows"
    roles = sieve.roles(both[1], TEXTS, tau=1.2, correction="holm", device="cpu").table
    assert found.table["holds_b"].tolist() == roles["holds"].tolist()
    with pytest.raises(AnalysisError, match="there are no pairs of heads to compare"):
        sieve.compare("bundled", guessing, TEXTS)


@pytest.mark.parametrize("name", calls.CALLS)
def test_a_model_in_memory_gives_what_its_folder_gives_and_nothing_is_written(
    name, in_memory, decoder_in_memory, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    model, tokenizer = decoder_in_memory if name in OF_DECODERS else in_memory
    given, (_, settings), call = given_to(name), COMMANDS[name], getattr(sieve, name)
    was_training = model.train().training
    found, expected = (
        call(model, given, tokenizer=tokenizer, **settings),
        call(Path(model.name_or_path), given, device="cpu", **settings),
    )
    pd.testing.assert_frame_equal(found.table, expected.table, rtol=1e-5, atol=1e-6)
    assert list(found.table.columns) == list(found.columns)
    assert model.training is was_training is True
    assert found.facts["checkpoint"] == f"{type(model).__name__} in memory"
    assert list(tmp_path.iterdir()) == []


def test_a_decoder_has_its_own_roles_without_being_asked(writing):
    assert "induction" in set(sieve.roles(writing, REPEATS).table["role"])


def test_attention_is_that_of_the_model_as_other_programs_take_it(in_memory, checkpoint):
    model, tokenizer = in_memory
    eager = transformers.AutoModel.from_pretrained(checkpoint.files.folder, attn_implementation="eager").eval()
    with torch.no_grad():
        read = tokenizer(TEXTS[0], return_tensors="pt")
        expected = eager(**read, output_attentions=True).attentions
    found = sieve.attention(model, TEXTS[0], tokenizer=tokenizer)
    bertviz = found.bertviz()
    assert bertviz["tokens"] == tokenizer.convert_ids_to_tokens(read["input_ids"][0])
    assert isinstance(bertviz["attention"], tuple)
    for layer, maps in enumerate(expected):
        torch.testing.assert_close(bertviz["attention"][layer], maps, rtol=1e-5, atol=1e-6)
        circuitsvis = found.circuitsvis(layer=layer)
        np.testing.assert_allclose(circuitsvis["attention"], maps[0], rtol=1e-5, atol=1e-6)
        assert circuitsvis["tokens"] == bertviz["tokens"]
    assert bertviz["sentence_b_start"] is None
    pair = sieve.attention(checkpoint, ("Who sat on it?", "A red dog sat.")).bertviz()
    assert pair["sentence_b_start"] == tokenizer("Who sat on it?", "A red dog sat.").sequence_ids(0).index(1)
    with pytest.raises(AnalysisError, match=rf"There is no layer 9. The layers are 0 to {len(expected) - 1}"):
        found.circuitsvis(layer=9)
    with pytest.raises(AnalysisError, match="has no head L9 H9"):
        sieve.attention(checkpoint, "She ran.", off=[(9, 9)])


def test_attention_of_an_encoder_decoder_has_the_names_of_bertviz(folders):
    loaded, pair = sieve.load(folders("t5"), device="cpu"), ("the cat sat", "a dog")
    kinds = {kind: sieve.attention(loaded, pair, attention=kind) for kind in ("encoder", "decoder", "cross")}
    names = {kind: set(found.bertviz()) for kind, found in kinds.items()}
    assert names == {
        "encoder": {"encoder_attention", "encoder_tokens"},
        "decoder": {"decoder_attention", "decoder_tokens"},
        "cross": {"cross_attention", "encoder_tokens", "decoder_tokens"},
    }
    cross = kinds["cross"].bertviz()
    sides = len(cross["decoder_tokens"]), len(cross["encoder_tokens"])
    assert {maps.shape[2:] for maps in cross["cross_attention"]} == {torch.Size(sides)}
    with pytest.raises(AnalysisError, match="Choose the encoder or the decoder"):
        kinds["cross"].circuitsvis(layer=0)


@pytest.mark.parametrize(
    "call",
    [
        lambda tmp_path, checkpoint: sieve.show(checkpoint, TEXTS, parser="Klingon"),
        lambda tmp_path, checkpoint: sieve.save_page(tmp_path / "a.html", checkpoint, TEXTS, parser="Klingon"),
        lambda tmp_path, checkpoint: sieve.relations(checkpoint, TEXTS, parser="Klingon"),
    ],
    ids=["show", "save_page", "relations"],
)
def test_no_call_takes_a_parser_and_parses_with_another(call, tmp_path, checkpoint):
    with pytest.raises(AnalysisError, match="Klingon"):
        call(tmp_path, checkpoint)


def test_a_saved_page_says_which_parser_its_texts_have(tmp_path, checkpoint):
    saved = {
        parser: sieve.save_page(tmp_path / "a.html", checkpoint, TEXTS, parser=parser).read_text("utf-8")
        for parser in (None, False)
    }
    assert '"parser":"none"' in saved[False].replace(" ", "")
    assert "--no-parser" in saved[False]
    assert "--no-parser" not in saved[None]


@pytest.mark.parametrize("name", sorted({*sieve.__all__} - {"Attention", "Finding", "ROOT", "__version__"}))
def test_the_example_of_each_docstring_runs(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner()
    (example,) = doctest.DocTestFinder(recurse=False).find(getattr(sieve, name), name, module=False, globs={})
    assert len(example.examples) >= 2
    said = []
    runner.run(example, out=said.append)
    assert said == []


@pytest.mark.parametrize("name", calls.CALLS)
def test_a_call_has_the_options_of_its_settings_in_its_signature_and_its_docstring(name):
    call = getattr(sieve, name)
    keywords = inspect.signature(call).parameters
    assert list(keywords)[:3] == ["model", "texts", "tokenizer"]
    described = call.__doc__
    assert all(f"    {each}:" in described or each in ("device", "dtype") for each in keywords if each not in SHARED)
    assert call is getattr(sieve, name)


def test_pairs_and_single_texts_and_texts_of_readers_are_read(checkpoint):
    pair = sieve.scores(checkpoint, [("Who sat on it?", "A red dog sat.")])
    (typed,) = read_typed("Who sat on it? ||| A red dog sat.")
    pd.testing.assert_frame_equal(sieve.scores(checkpoint, typed).table, pair.table, rtol=1e-5, atol=1e-6)
    assert set(sieve.scores(checkpoint, "She ran.").table["text"]) == {0}
    assert set(sieve.scores(checkpoint, ["She ran.", "A cat sat."], roles="local").table["role"]) == {"local"}


def test_objects_are_read_as_files_have_them(checkpoint):
    item = {"text": "a red dog", "pairs": [{"relation": "first", "from": (6, 9), "to": [0, 1]}]}
    found = sieve.relations(checkpoint, item, least_cases=1)
    assert {*found.table["relation"]} == {"first"}
    assert found.result.items[0].text == read_file("a.json", json.dumps(item).encode())[0]


def test_heads_that_are_off_and_the_facts_on_them(checkpoint):
    on, off = sieve.scores(checkpoint, TEXTS), sieve.scores(checkpoint, TEXTS, off=[(0, 1)])
    assert off.facts["heads off"] == "L0 H1"
    as_array = sieve.scores(checkpoint, TEXTS, off=np.array([[0, 1]]))
    pd.testing.assert_frame_equal(as_array.table, off.table, rtol=1e-5, atol=1e-6)
    changed = ~np.isclose(on.table["score"], off.table["score"], equal_nan=True)
    assert set(on.table["layer"][changed]) == {1}


def test_all_roles_are_asked_for_as_in_the_command(checkpoint):
    every = sieve.scores(checkpoint, TEXTS[:1], roles="all").table["role"]
    assert tuple(every.unique()) == tuple(BY_NAME)
    assert tuple(sieve.scores(checkpoint, TEXTS[:1], roles=["all"]).table["role"].unique()) == tuple(BY_NAME)


def test_a_finding_shows_its_table_and_its_names_are_never_html(checkpoint):
    found = sieve.roles(checkpoint, TEXTS)
    assert repr(found).startswith(f"roles of {checkpoint.files.name}: {len(found.table)} rows\n")
    assert len(repr(found).splitlines()) < 30
    table = pd.DataFrame({"word": ["<script>alert(1)</script>"]})
    hostile = calls.Finding(
        analysis="<b>", table=table, columns={}, facts={"checkpoint": "<img src=x>"}, result=None
    )._repr_html_()
    assert "<script>" not in hostile
    assert "<img" not in hostile
    assert "<b>" not in hostile
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in hostile


@pytest.mark.parametrize(
    ("error", "said", "texts", "settings"),
    [
        (TextError, "There is no text. Give a string, or a list of strings", [], {}),
        (TextError, "Text 2 is 7. Give a string, or a pair of strings", ["She ran.", 7], {}),
        (TextError, "Text 1 is .* Give a string, or a pair", [("a", "b", "c")], {}),
        (TextError, "Text 1: the text is empty", ["  "], {}),
        (TextError, "Text 1 is no object of JSON", {"text": "a b", "pairs": {1, 2}}, {}),
        (AnalysisError, "scale is 'loud'. Input should be 'score' or 'share'", TEXTS, {"scale": "loud"}),
        (AnalysisError, "tau is 'much'. Input should be a valid number", TEXTS, {"tau": "much"}),
        (AnalysisError, "alpha", TEXTS, {"alpha": 2}),
        (AnalysisError, "has no head L9 H9", TEXTS, {"off": [(9, 9)]}),
        (AnalysisError, r"off is \[3\]. Give pairs of layer and head, such as", TEXTS, {"off": [3]}),
        (AnalysisError, "off is 7. Give pairs of layer and head, such as", TEXTS, {"off": 7}),
        (AnalysisError, r"off is \[\(1, \[2\]\)\]. Give pairs", TEXTS, {"off": [(1, [2])]}),
        (AnalysisError, "roles is 5. Give names of roles, such as", TEXTS, {"roles": 5}),
        (AnalysisError, "roles is None. Give names of roles, such as", TEXTS, {"roles": ["local", None]}),
        (AnalysisError, "role is 5. Give files of TOML", TEXTS, {"role": 5}),
        (TextError, "The texts hold the id 99,999, and the vocabulary", {"ids": [1, 99_999]}, {}),
        (TextError, "The texts hold the id -2, and the vocabulary", [text_of_ids(GivenTokens((-2, 1)))], {}),
        (AnalysisError, "The model is in memory, and is observed where it is", TEXTS, {"dtype": "float16"}),
        (AnalysisError, "A checkpoint brings its own tokenizer", TEXTS, {"tokenizer": object()}),
        (TypeError, r"roles\(\) got an unexpected keyword argument 'taus'", TEXTS, {"taus": 3}),
    ],
)
def test_bad_input_gets_a_sentence(error, said, texts, settings, checkpoint):
    with pytest.raises(error, match=said):
        sieve.roles(checkpoint, texts, **settings)


def test_no_call_takes_a_keyword_that_it_would_ignore_or_a_value_of_another_kind(checkpoint):
    with pytest.raises(TypeError, match=r"scores\(\) got an unexpected keyword argument 'tau'"):
        sieve.scores(checkpoint, TEXTS, tau=9)
    for keyword in ("too_long", "parser"):
        with pytest.raises(TypeError, match="coreference"):
            sieve.coreference(checkpoint, MENTIONS, **{keyword: "truncate"})
    for call, given, keywords in (
        (sieve.coreference, MENTIONS, {"window": "many"}),
        (sieve.relations, TEXTS, {"as_in_code": "perhaps"}),
        (sieve.word_links, TEXTS, {"query": 3}),
        (sieve.surface, TEXTS, {"frequencies": 5}),
    ):
        (name,) = keywords
        with pytest.raises(AnalysisError, match=f"^{name} is "):
            call(checkpoint, given, **keywords)


def test_labels_are_those_of_the_commands_table(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "store"))
    texts, labels = [*TEXTS, "She ate it."], ["no", "yes", "no", "yes"]
    tokenizer = TOKENIZERS["bert"]()
    named = {"id2label": {0: "yes", 1: "no"}, "label2id": {"yes": 0, "no": 1}}
    torch.manual_seed(3)
    of_bert = config("bert", len(tokenizer), **named)
    model = transformers.AutoModelForSequenceClassification.from_config(of_bert)
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    table, output = tmp_path / "texts.csv", tmp_path / "ablated.parquet"
    pd.DataFrame({"text": texts, "answer": labels}).to_csv(table, index=False)
    options = ["--checkpoint", str(tmp_path / "model"), "--device", "cpu", "--texts", str(table)]
    options += ["--text-columns", "text", "--metric", "labels", "--label-column", "answer", "--output", str(output)]
    assert main(["ablate", *options]) == 0
    found = sieve.ablation(model, texts, tokenizer=tokenizer, metric="labels", labels=labels)
    pd.testing.assert_frame_equal(found.table, pd.read_parquet(output), check_dtype=False, rtol=1e-5, atol=1e-6)
    in_documents = [Text((text,), document=str(place)) for place, text in enumerate(texts)]
    kept = sieve.ablation(model, in_documents, tokenizer=tokenizer, metric="labels", labels=labels)
    assert [item.text.document for item in kept.result.items] == ["0", "1", "2", "3"], "labels leave texts as they are"
    for given, said in (
        (None, "a label for each of 4 texts, and there are none"),
        (["no"], "a label for each of 4 texts, and there are 1"),
    ):
        with pytest.raises(AnalysisError, match=said):
            sieve.ablation(model, texts, tokenizer=tokenizer, metric="labels", labels=given)
    with pytest.raises(AnalysisError, match="The metric output uses no labels"):
        sieve.ablation(model, texts, tokenizer=tokenizer, labels=labels)


def test_mentions_and_metrics_that_do_not_fit_get_a_sentence(checkpoint):
    with pytest.raises(TextError, match="Item 1 is a string"):
        sieve.coreference(checkpoint, ["She ran."])
    with pytest.raises(AnalysisError, match="was saved without a classifier"):
        sieve.ablation(checkpoint, TEXTS, metric="labels")
