import io
import json

import numpy as np
import pytest
from full_disk import files_up_to
from naive import eager_attention
from safetensors import safe_open

import attention_sieve.core.maps.command as attention_command
from attention_sieve.__main__ import main

TYPED = "the black cat sat on the mat\nwho ran ||| a dog ran where it sat\n"


@pytest.fixture
def texts_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text(TYPED, encoding="utf-8")
    return path


def write_maps(folder, texts, output, *more):
    return main(["maps", "--checkpoint", str(folder), "--texts", str(texts), "--output", str(output), *more])


def test_a_file_per_text_holds_the_maps_of_the_eager_path(folders, texts_file, tmp_path):
    from transformers import BertModel

    output = tmp_path / "maps"
    assert write_maps(folders("bert"), texts_file, output) == 0
    assert sorted(path.name for path in output.iterdir()) == ["00000.safetensors", "00001.safetensors"]
    with safe_open(output / "00001.safetensors", "np") as file:
        maps, ids, metadata = file.get_tensor("attention"), file.get_tensor("query ids"), file.metadata()
    assert maps.dtype == np.float16
    assert json.loads(metadata["segments"]) == ["who ran", "a dog ran where it sat"]
    assert json.loads(metadata["query tokens"])[:4] == ["[CLS]", "who", "ran", "[SEP]"]
    type_ids = [0] * 4 + [1] * (len(ids) - 4)
    expected = eager_attention(BertModel, folders("bert"), ids.tolist(), type_ids)
    np.testing.assert_allclose(maps, expected, atol=5e-4)


def test_an_npz_holds_the_same_and_needs_no_pickle(folders, texts_file, tmp_path):
    assert write_maps(folders("bert"), texts_file, tmp_path / "maps.npz") == 0
    assert write_maps(folders("bert"), texts_file, tmp_path / "folder") == 0
    with np.load(tmp_path / "maps.npz", allow_pickle=False) as found:
        assert json.loads(found["facts"][0])["dtype"] == "float32"
        assert found["00000 key tokens"][0] == "[CLS]"
        assert found["00001 segments"].tolist() == ["who ran", "a dog ran where it sat"]
        for place in (0, 1):
            with safe_open(tmp_path / "folder" / f"{place:05}.safetensors", "np") as file:
                np.testing.assert_array_equal(found[f"{place:05} attention"], file.get_tensor("attention"))


def test_cross_attention_has_targets_as_queries(folders, texts_file, tmp_path):
    texts_file.write_text("a dog ran ||| who sat\n", "utf-8")
    assert write_maps(folders("t5"), texts_file, tmp_path / "maps", "--attention", "cross") == 0
    with safe_open(tmp_path / "maps" / "00000.safetensors", "np") as file:
        maps, n_queries = file.get_tensor("attention"), len(file.get_tensor("query ids"))
        assert maps.shape[2:] == (n_queries, len(file.get_tensor("key ids")))
    np.testing.assert_allclose(maps.sum(-1, dtype=np.float64), 1, atol=3e-3)


@pytest.fixture
def small_limit(monkeypatch):
    monkeypatch.setattr(attention_command, "CONFIRMED_ABOVE", 1000)


@pytest.mark.usefixtures("small_limit")
def test_large_maps_are_not_written_unasked(folders, texts_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("yes\n"))  # no terminal, so nobody who answers
    assert write_maps(folders("bert"), texts_file, tmp_path / "maps") == 2
    assert "The maps of 2 texts take 0.0 GB. Give fewer or shorter texts, or add --yes." in capsys.readouterr().err
    assert not (tmp_path / "maps").exists()
    assert write_maps(folders("bert"), texts_file, tmp_path / "maps", "--yes") == 0


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 2), ("no", 2)])
def test_large_maps_are_asked_about(folders, texts_file, tmp_path, monkeypatch, answer, code):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr("sys.stdin", Terminal(f"{answer}\n"))
    assert write_maps(folders("bert"), texts_file, tmp_path / "maps") == code
    assert (tmp_path / "maps").exists() == (code == 0)


def test_a_text_too_large_for_memory_is_refused(folders, texts_file, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(attention_command, "LARGEST_TEXT", 100)
    assert write_maps(folders("bert"), texts_file, tmp_path / "maps") == 2
    assert (
        "A text of 11 tokens has maps of 0.0 GB, and at most 0 GB can be computed at once." in capsys.readouterr().err
    )


def test_what_is_there_is_not_overwritten(folders, texts_file, tmp_path, capsys):
    assert write_maps(folders("bert"), texts_file, tmp_path) == 2
    assert "is not empty. Choose a new folder" in capsys.readouterr().err
    assert write_maps(folders("bert"), texts_file, texts_file) == 2
    assert "is a file. Choose a new folder" in capsys.readouterr().err
    assert write_maps(folders("bert"), texts_file, tmp_path / "no" / "maps") == 2
    assert "There is no folder" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["maps.npy", "maps.txt", "maps.safetensors"])
def test_no_folder_is_named_like_a_file(folders, texts_file, tmp_path, capsys, name):
    assert write_maps(folders("bert"), texts_file, tmp_path / name) == 2
    assert f"{name} would be a folder, because only .npz is written as a single file." in capsys.readouterr().err
    assert not (tmp_path / name).exists()


def test_an_empty_folder_is_filled_whatever_its_name(folders, texts_file, tmp_path):
    (tmp_path / "run.2").mkdir()
    assert write_maps(folders("bert"), texts_file, tmp_path / "run.2") == 0
    assert len(list((tmp_path / "run.2").iterdir())) == 2


def test_a_full_disk_is_a_sentence_and_leaves_no_file_that_looks_whole(folders, texts_file, tmp_path, capsys):
    with files_up_to(500):
        assert write_maps(folders("bert"), texts_file, tmp_path / "maps.npz") == 2
        assert write_maps(folders("bert"), texts_file, tmp_path / "maps") == 2
    assert capsys.readouterr().err.count("cannot be written (File too large). Choose another place.") == 2
    assert not list(tmp_path.glob("maps.npz*"))
