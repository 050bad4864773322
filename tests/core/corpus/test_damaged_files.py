"""Whatever the files of a results folder hold, they are read or named with what is wrong in them."""

import json

import numpy as np
import pytest
from corpus_files import manifest, statistics
from safetensors.numpy import load, save

from attention_sieve.core.corpus.manifest import MANIFEST, STATISTICS, CorpusSettings, read_manifest
from attention_sieve.core.corpus.results import open_results
from attention_sieve.core.corpus.texts.parsed import PARSING, read_parsing
from attention_sieve.core.errors import AnalysisError


def test_a_sound_manifest_is_read(tmp_path):
    (tmp_path / MANIFEST).write_bytes(manifest())
    read = read_manifest(tmp_path)
    assert (read.n_texts, read.settings) == (2, CorpusSettings(off=((0, 1),)))


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"format": 1', '"format": Infinity', "format: Input should be a valid integer"),
        ('"n_texts": 2', '"n_texts": "3"', "shards.0.n_texts: Input should be a valid integer"),
        ('"n_texts": 2', '"n_texts": 0', "a shard named '000000' with 0 texts"),
        ('"name": "000000"', '"name": "../x"', "a shard named '../x' with 2 texts"),
        ('"shard_size": 10', '"shard_size": 1e999', "shard_size: Input should be a valid integer"),
        ('"fingerprint": "a1"', '"fingerprint": "\\ud800"', "Invalid JSON"),
        ('"fingerprint": "a1"', '"fingerprint": ' + "[" * 3_000, "recursion limit exceeded"),
        ('"kind": "self"', '"kind": "other"', "settings.kind: Input should be 'self'"),
        ('"kind": "self"', '"colour": "red"', "settings.colour: Unexpected keyword argument"),
        ('"texts": "a.txt", ', "", "texts: Field required"),
    ],
)
def test_a_damaged_manifest_is_named_with_the_place(tmp_path, old, new, said):
    assert old in manifest().decode()
    (tmp_path / MANIFEST).write_text(manifest().decode().replace(old, new))
    with pytest.raises(AnalysisError) as error:
        read_manifest(tmp_path)
    assert str(error.value).startswith(f"{tmp_path / MANIFEST} is damaged (")
    assert said in str(error.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"n_texts": "3"}, "n_texts: Input should be a valid integer"),
        ({"n_texts": float("inf")}, "n_texts: Input should be a valid integer"),
        ({"n_shards": 10**30}, "3 texts in 1,000,000,000,000"),
        ({"shard_size": 0}, "3 texts in 1 shards of 0"),
        ({"texts": "\ud800"}, "Invalid JSON"),
    ],
)
def test_a_damaged_description_of_parsed_texts_is_named_with_the_place(tmp_path, change, said):
    sound = {"format": 1, "texts": "a", "text_columns": None, "inputs": [], "shard_size": 5, "parser": "p"}
    sound |= {"n_texts": 3, "n_shards": 1}
    (tmp_path / PARSING).write_text(json.dumps(sound))
    assert read_parsing(tmp_path).n_texts == 3
    (tmp_path / PARSING).write_text(json.dumps(sound | change))
    with pytest.raises(AnalysisError) as error:
        read_parsing(tmp_path)
    assert said in str(error.value)


def spoilt(change):
    """The statistics after a change of their arrays."""
    content = statistics()
    arrays = load(content)
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    change(arrays)
    return save(arrays, header["__metadata__"])


def infinite(name):
    def change(arrays):
        arrays[name] = np.full_like(arrays[name], np.inf)

    return change


def narrowed(arrays, start):
    """Leave one head to a series."""
    for name in [name for name in arrays if name.startswith(start)]:
        arrays[name] = arrays[name][..., :1]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (infinite("roles.total"), "a sum of 'roles' is not finite"),
        (infinite("roles.least"), "a sum of 'roles' is not finite"),
        (infinite("roles.squares"), "a sum of 'roles' is not finite"),
        (lambda arrays: arrays.pop("roles.total"), "roles.total"),
        (lambda arrays: arrays.update({"roles.n": arrays["roles.n"][:, :1]}), "an array of 'roles' has the shape"),
        (lambda arrays: arrays.update({"roles.n": -arrays["roles.n"]}), "a count of 'roles' is no whole number from 0"),
        (lambda arrays: arrays.update({"roles.n": arrays["roles.n"].astype(float)}), "no whole number from 0"),
        (lambda arrays: arrays.update({"roles.other": arrays["roles.n"]} | {"other.n": arrays["roles.n"]}), "other"),
        (lambda arrays: narrowed(arrays, "surface."), "has the shape"),
        (lambda arrays: [arrays.pop(name) for name in list(arrays) if name.startswith("tokens.")], "without texts"),
        (lambda arrays: arrays.clear(), "it has no numbers of heads"),
    ],
)  # fmt: skip
def test_damaged_statistics_are_named(tmp_path, change, said):
    (tmp_path / STATISTICS).write_bytes(statistics())
    sound = open_results(tmp_path)
    assert (sound.part().n_texts, sound.part().role_counts.sum(axis=-1).max()) == (2, 2)
    assert sound.file.read().wealth
    (tmp_path / STATISTICS).write_bytes(spoilt(change))
    with pytest.raises(AnalysisError) as error:
        open_results(tmp_path).part()
    assert f"{tmp_path / STATISTICS} is damaged (" in str(error.value)
    assert said in str(error.value)
