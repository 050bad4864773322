"""Checkpoints are measured before they are built: what no files or no memory could hold is refused."""

import json
import time

import psutil
import pytest
from small_checkpoints import edit_json

from attention_sieve.core.checkpoints.checks.bounds import MAX_ADDED, MAX_ENTRIES
from attention_sieve.core.checkpoints.checks.files import n_saved
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError


def load(folder):
    return load_checkpoint(find_checkpoint(str(folder)), device="cpu")


def edit_tokenizer(folder, change):
    path = folder / "tokenizer.json"
    content = json.loads(path.read_text())
    change(content)
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("family", ["bert", "gpt2", "t5", "albert", "llama", "xlnet"])
def test_the_headers_say_how_many_numbers_were_saved(folders, loaded, family):
    from safetensors.numpy import load_file

    folder = folders(family)
    assert n_saved(folder) == sum(values.size for values in load_file(folder / "model.safetensors").values())


@pytest.mark.parametrize(
    ("setting", "weight"),
    [
        ("vocab_size", r"embeddings\.word_embeddings\.weight has 100,000,000 x 12"),
        ("max_position_embeddings", r"embeddings\.position_embeddings\.weight has 100,000,000 x 12"),
        ("intermediate_size", r"encoder\.layer\.0\.intermediate\.dense\.weight has 100,000,000 x 12"),
        ("type_vocab_size", r"embeddings\.token_type_embeddings\.weight has 100,000,000 x 12"),
    ],
)
def test_a_configuration_of_a_model_far_larger_than_its_files_takes_no_memory(folder, setting, weight):
    edit_json(folder / "config.json", **{setting: 10**8})
    load_small = psutil.Process().memory_info().rss
    with pytest.raises(
        CheckpointError, match=rf"describes a model of [\d,]{{13}} numbers \({weight}\), and its files "
    ):
        load(folder)
    assert psutil.Process().memory_info().rss - load_small < 10**9  # the smallest of the four takes 4.8 GB


@pytest.mark.parametrize("n_classes", [10**8, 10**9, 1e12])
def test_a_flood_of_classes_is_refused_before_each_gets_a_name(folder, n_classes):
    edit_json(folder / "config.json", num_labels=n_classes)
    with pytest.raises(
        CheckpointError, match=r"names 1[0,.]+ classes and at most 100,000 are loaded\. Correct the numb"
    ):
        find_checkpoint(str(folder))


def test_a_model_that_memory_has_no_room_for_is_refused_with_both_sizes(folder, monkeypatch):
    memory = psutil.virtual_memory()._replace(available=10_000)
    monkeypatch.setattr("attention_sieve.core.checkpoints.checks.bounds.psutil.virtual_memory", lambda: memory)
    with pytest.raises(
        CheckpointError, match=r"needs 0\.0 GB for its weights, and 0\.0 GB of memory are free\. Choose"
    ):
        load(folder)


def flood(n):
    token = {"special": True, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{"id": 1000 + number, "content": f"[s{number}]", **token} for number in range(n)]


TWICE = {"type": "Replace", "pattern": {"String": "a"}, "content": "aa"}
REFUSED = {
    "special tokens": (
        lambda content: content["added_tokens"].extend(flood(100_000)),
        r"tokenizer\.json of .* has 100,005 added tokens, and at most 20,000 are read",
    ),
    "steps": (
        lambda content: content.update(normalizer={"type": "Sequence", "normalizers": [TWICE] * 1_001}),
        r"takes a text through 1,00\d steps, and at most 1,000 are read",
    ),
    "long replacement": (
        lambda content: content.update(normalizer={**TWICE, "content": "a" * 10_001}),
        r"has a content of 10,001 characters, and at most 10,000 are read",
    ),
    "dropout": (
        lambda content: content["model"].update(dropout=0.1),
        r"drops merges at random \(dropout 0\.1\), so results would not be reproducible\. Set dropout to null",
    ),
}


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED)
def test_a_tokenizer_beyond_all_bounds_is_refused(folder, change, message):
    edit_tokenizer(folder, change)
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_a_tokenizer_of_too_many_words_is_refused(folder, monkeypatch):
    monkeypatch.setattr("attention_sieve.core.checkpoints.checks.bounds.MAX_ENTRIES", 1_000)
    edit_tokenizer(folder, lambda content: content["model"]["vocab"].update((f"w{n}", n) for n in range(1_000)))
    with pytest.raises(CheckpointError, match=r"tokenizer\.json of .* has 1,1\d\d tokens, and at most 1,000 are read"):
        load(folder)


def test_tokenizer_files_of_more_bytes_or_lines_than_any_real_one_are_refused(folder):
    (folder / "vocab.txt").write_text("w\n" * (MAX_ENTRIES + 1))
    with pytest.raises(CheckpointError, match=r"vocab\.txt of .* has 1,500,001 lines, and at most 1,500,000 are read"):
        load(folder)
    (folder / "vocab.txt").write_bytes(b"w" * 60_000_001)
    with pytest.raises(CheckpointError, match=r"vocab\.txt of .* has 60 MB, and at most 60 MB are read"):
        load(folder)


def test_added_tokens_are_counted_in_every_file_that_names_them(folder):
    named = {str(number): {"content": f"[{number}]"} for number in range(MAX_ADDED + 1)}
    edit_json(folder / "tokenizer_config.json", added_tokens_decoder=named)
    with pytest.raises(CheckpointError, match=r"tokenizer_config\.json of .* has 20,001 added tokens"):
        load(folder)


def marks(ids=(2,), type_id=1):
    first, second = ({"Sequence": {"id": name, "type_id": of}} for name, of in (("A", 0), ("B", type_id)))
    mark = {"SpecialToken": {"id": "[CLS]", "type_id": 0}}
    named = {"[CLS]": {"id": "[CLS]", "ids": list(ids), "tokens": ["[CLS]"] * len(ids)}}
    return {
        "type": "TemplateProcessing",
        "single": [mark, first],
        "pair": [mark, first, second],
        "special_tokens": named,
    }


@pytest.mark.parametrize(
    ("processor", "message"),
    [
        (marks(ids=[99_999]), r"puts in the id 99,999, and its model has 139 embeddings\. Save the tokenizer"),
        (marks(type_id=7), r"marks a token as of type 7, and its model has 2 types of tokens\. Save the tokenizer"),
    ],
)
def test_ids_outside_of_the_models_tables_are_refused(folder, processor, message):
    edit_tokenizer(folder, lambda content: content.update(post_processor=processor))
    with pytest.raises(CheckpointError, match=message):
        load(folder)


def test_the_size_of_chunks_changes_nothing(folder):
    before = load(folder)
    edit_json(folder / "config.json", chunk_size_feed_forward=3)
    after = load(folder)
    inputs = before.tokenizer("the cat sat on the mat", return_tensors="pt")
    assert (before.model(**inputs).last_hidden_state == after.model(**inputs).last_hidden_state).all()


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("model.safetensors", r"^The weights of .* cannot be loaded \(model\.safetensors: .+\)\. Save the checkpoint"),
        ("vocab.txt", r"^vocab\.txt of .* has 60,000 MB, and at most 60 MB are read"),
    ],
)
def test_a_sparse_file_is_refused_before_its_bytes_are_read(folder, name, says):
    with (folder / name).open("ab") as file:
        file.truncate(60 * 10**9)
    began = time.process_time()
    with pytest.raises(CheckpointError, match=says):
        find_checkpoint(str(folder))
    assert time.process_time() - began < 5
