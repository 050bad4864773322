"""GGUF files: a small one, written here by the format's own library, is the checkpoint that it was made from."""

import json
import time

import numpy as np
import pytest
from gguf_files import N_HEADS, write_gguf
from passing import SELF, measures_of, pass_texts
from small_checkpoints import save

from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.gguf import limits, write_checkpoint
from attention_sieve.core.errors import CheckpointError
from attention_sieve.core.texts.text import Text

TEXTS = [Text(("the black cat chased two birds",)), Text(("a dog ran",))]


@pytest.fixture(scope="module")
def llama(tmp_path_factory):
    return save("llama", tmp_path_factory.mktemp("llama"))


@pytest.fixture
def gguf(llama, tmp_path, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "cache"))
    return write_gguf(llama, tmp_path / "small.gguf")


def test_a_gguf_file_has_the_attention_of_the_checkpoint_it_was_made_from_whatever_adapter_is_beside_it(llama, gguf):
    shadow = {"peft_type": "SHADOW", "shadow_model": "evil/model", "base_model_name_or_path": "evil/base"}
    (gguf.parent / "adapter_config.json").write_text(json.dumps(shadow))
    files = find_checkpoint(str(gguf))
    assert (files.n_layers, files.n_heads, files.is_decoder, files.quantised) == (2, N_HEADS, True, "")
    read, original = (load_checkpoint(each, device="cpu") for each in (files, find_checkpoint(str(llama))))
    prepared = [pass_texts(checkpoint, TEXTS) for checkpoint in (read, original)]
    assert [text.source.ids.tolist()[-3:] for text in prepared[0]] == [
        text.source.ids.tolist()[-3:] for text in prepared[1]
    ]
    a, b = (measures_of(checkpoint, prepared[1], SELF) for checkpoint in (read, original))
    np.testing.assert_allclose(a, b, atol=5e-3)
    assert find_checkpoint(str(gguf)).folder == files.folder, "it is written once"


@pytest.mark.parametrize("part", [6, 200, 0.5, 0.99])
def test_a_damaged_gguf_file_is_refused_with_a_sentence(gguf, tmp_path, part):
    content = gguf.read_bytes()
    gguf.write_bytes(content[: part if part > 1 else int(part * len(content))])
    with pytest.raises(CheckpointError, match=r"cannot be read as a checkpoint .* It may be damaged"):
        write_checkpoint(gguf, tmp_path / "written")


def test_a_file_of_another_family_is_refused_in_the_process_that_unpacks_it(llama, gguf, tmp_path):
    other = write_gguf(llama, tmp_path / "other.gguf", architecture="xyz")
    with pytest.raises(CheckpointError, match=r"architecture xyz is not supported yet"):
        find_checkpoint(str(other))
    assert not list(gguf.parent.glob("cache/gguf/*"))


def test_files_that_are_no_gguf_are_refused(gguf, tmp_path):
    gguf.write_text("GGU")
    with pytest.raises(CheckpointError, match="does not begin as a GGUF file does"):
        find_checkpoint(str(gguf))
    with pytest.raises(CheckpointError, match="cannot be read"):
        find_checkpoint(str(tmp_path / "missing.gguf"))


def test_a_small_file_that_names_many_layers_is_refused_before_they_are_made(llama, tmp_path):
    path = write_gguf(llama, tmp_path / "deep.gguf", num_hidden_layers=100_000)
    began = time.process_time()
    with pytest.raises(CheckpointError, match=r"deep\.gguf names 100,000 layers and at most 1,000 are loaded"):
        write_checkpoint(path, tmp_path / "written")
    assert time.process_time() - began < 10
    assert not (tmp_path / "written").exists()


def test_a_large_file_may_take_longer_than_a_small_one():
    small, large = limits(54_000), limits(4 * 10**9)
    assert (small.processor_seconds, small.seconds) == (60, 300)
    assert small.n_bytes < 2.1e9
    assert (large.processor_seconds, large.seconds, large.n_bytes) == (2_460, 12_300, 122 * 10**9)
