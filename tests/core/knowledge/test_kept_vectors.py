import os

import numpy as np
import pytest
from planted_concepts import stacked
from safetensors.numpy import load_file

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.kept_vectors import read_vectors, vectors_key, write_vectors
from attention_sieve.core.knowledge.vectors import TextVectors
from attention_sieve.core.texts.text import Text

SHAPES = (2, 3, 4), (2, 5)
BYTES = 7 * (2 * 3 * 4 + 2 * 5) * 4


def made(n_texts=7, seed=0):
    rng = np.random.default_rng(seed)
    return {
        index: TextVectors(heads=rng.normal(size=SHAPES[0]).astype("f"), layers=rng.normal(size=SHAPES[1]).astype("f"))
        for index in range(n_texts)
    }


def in_batches(vectors):
    """Not in order, as a pass gives them."""
    pairs = list(vectors.items())[::-1]
    return [pairs[:3], pairs[3:]]


def test_what_is_written_is_mapped_and_what_safetensors_reads(tmp_path):
    vectors = made()
    vectors[3].heads[1, 2] = np.nan
    mapped, wanted = write_vectors(tmp_path / "new", "key", 7, in_batches(vectors)), stacked(in_batches(vectors))
    assert isinstance(mapped.heads, np.memmap)
    assert not mapped.heads.flags.writeable
    theirs = load_file(tmp_path / "new" / "key.safetensors")
    for name in ("heads", "layers"):
        np.testing.assert_array_equal(getattr(mapped, name), getattr(wanted, name))
        np.testing.assert_array_equal(theirs[name], getattr(wanted, name))
    again = read_vectors(tmp_path / "new", "key")
    np.testing.assert_array_equal(again.layers, wanted.layers)
    assert [path.name for path in (tmp_path / "new").iterdir()] == ["key.safetensors"]


def test_a_file_that_is_damaged_or_was_cut_is_as_none(tmp_path):
    write_vectors(tmp_path, "key", 7, in_batches(made()))
    path = tmp_path / "key.safetensors"
    cut = path.read_bytes()[:-1]
    for damage in (cut, b"", b"\xff" * 100, b"\x02\0\0\0\0\0\0\0{}", b"\x03\0\0\0\0\0\0\0\xff{}"):
        path.write_bytes(damage)
        assert read_vectors(tmp_path, "key") is None
    assert read_vectors(tmp_path, "other") is None


def test_the_files_not_read_for_longest_make_room(tmp_path):
    for age, key in enumerate("abc"):
        write_vectors(tmp_path, key, 7, in_batches(made()))
        os.utime(tmp_path / f"{key}.safetensors", (1_000 + age, 1_000 + age))
    read_vectors(tmp_path, "a")
    write_vectors(tmp_path, "d", 7, in_batches(made()), most_bytes=3 * (BYTES + 400))
    assert sorted(path.stem for path in tmp_path.iterdir()) == ["a", "c", "d"]


def test_vectors_beyond_the_bound_are_refused_before_they_are_written(tmp_path):
    with pytest.raises(AnalysisError, match=r"at most 0\.0 GB can be cached\. Give fewer texts"):
        write_vectors(tmp_path, "key", 7, in_batches(made()), most_bytes=BYTES - 1)
    assert not list(tmp_path.iterdir())


def test_a_folder_that_cannot_be_made_is_said(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(AnalysisError, match=r"cannot be written to .*choose another folder"):
        write_vectors(tmp_path / "file" / "folder", "key", 7, in_batches(made()))


def test_a_key_tells_everything_apart_that_vectors_depend_on(loaded):
    texts, bert = [Text(("The cat sat.",)), Text(("A dog.",))], loaded("bert")
    keys = [
        vectors_key(bert, texts, PassSettings(), "cls"),
        vectors_key(loaded("electra"), texts, PassSettings(), "cls"),
        vectors_key(loaded("bert", "float64"), texts, PassSettings(), "cls"),
        vectors_key(bert, texts[::-1], PassSettings(), "cls"),
        vectors_key(bert, texts, PassSettings(off=((0, 1),)), "cls"),
        vectors_key(bert, texts, PassSettings(), "mean"),
    ]
    assert len(set(keys)) == len(keys)
    assert vectors_key(bert, list(texts), PassSettings(), "cls") == keys[0]
