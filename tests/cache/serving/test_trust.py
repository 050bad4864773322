"""A checkpoint that nobody vouches for is loaded on trial first, once, in a process of its own."""

import json
import re
import shutil

import pytest
from small_checkpoints import edit_json

from attention_sieve.cache.answers import Engine
from attention_sieve.cache.serving import models
from attention_sieve.cache.serving.models import Models
from attention_sieve.core.checkpoints import trial_load
from attention_sieve.core.checkpoints.find import find_checkpoint, randomly_initialised
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.errors import CheckpointError


@pytest.fixture
def folder(folders, tmp_path, monkeypatch):
    """A small BERT that nobody vouches for."""
    monkeypatch.delenv("ATTENTION_SIEVE_TRUSTED")
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "home"))
    return shutil.copytree(folders("bert"), tmp_path / "bert")


@pytest.fixture
def tried(monkeypatch):
    """Names of the checkpoints that are tried."""
    names = []
    monkeypatch.setattr(models, "try_to_load", lambda files: names.append(files.name))
    return names


def noted(folder):
    """Files that each say of a checkpoint that it passed its trial."""
    return list((folder.parent / "home" / models.TRIED).glob("*"))


def load(folder):
    with Models().use(Engine(find_checkpoint(str(folder)), "cpu")) as checkpoint:
        return checkpoint


def test_a_sound_checkpoint_is_tried_once_from_any_folder_and_again_when_it_changes(
    folder, tmp_path, monkeypatch, request
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "attention_sieve").mkdir()  # is not taken for this project's
    checkpoint = load(folder)
    assert [layers.n_heads for layers in checkpoint.attentions.values()] == [3]
    (passed,) = noted(folder)
    assert passed.name == checkpoint.files.fingerprint
    again = request.getfixturevalue("tried")
    load(folder)
    models.check_by_trial(randomly_initialised(checkpoint.files))
    assert noted(folder) == [passed]
    assert again == []
    edit_json(folder / "config.json", vocab_size=10**8)
    models.check_by_trial(find_checkpoint(str(folder)))
    assert again == [str(folder)]


def test_where_nothing_can_be_noted_a_checkpoint_is_tried_each_time(folder, tried, tmp_path):
    (tmp_path / "home").write_text("a file where the program's folder should be")
    for _ in range(2):
        models.check_by_trial(find_checkpoint(str(folder)))
    assert tried == [str(folder)] * 2


def test_what_is_vouched_for_is_not_tried(folder, tried, monkeypatch):
    models.check_by_trial(find_checkpoint("bundled"))
    made = shutil.copytree(folder, checkpoints_folder() / "made-here")
    models.check_by_trial(find_checkpoint(made.name))
    monkeypatch.setenv("ATTENTION_SIEVE_TRUSTED", f"/no/such/folder:{folder.parent}")
    models.check_by_trial(find_checkpoint(str(folder)))
    assert tried == []
    monkeypatch.setenv("ATTENTION_SIEVE_TRUSTED", f"{folder}-other:{folder / 'below'}")
    models.check_by_trial(find_checkpoint(str(folder)))
    assert tried == [str(folder)]


def test_large_weights_are_not_loaded_on_trial(folder, monkeypatch):
    """What can be wrong with them is found as well by the load itself, in its number format and on its device."""
    with (folder / "model.safetensors").open("r+b") as file:
        file.seek(-8, 2)
        file.write(b"\xff" * 8)  # not a number
    files = find_checkpoint(str(folder))
    with pytest.raises(CheckpointError, match="are not finite"):
        trial_load._tokenizer(files)
    monkeypatch.setattr(trial_load, "MOST_TRIED", 100)
    assert len(trial_load._tokenizer(files)("the cat")["input_ids"]) == 4
    edit_json(folder / "config.json", vocab_size=10**8)
    with pytest.raises(CheckpointError, match="describes a model of 1,200,002,932 numbers"):
        trial_load._tokenizer(find_checkpoint(str(folder)))


def test_a_trial_finds_a_tokenizer_that_panics_on_some_texts(folder):
    path = folder / "tokenizer.json"
    split = {"type": "Split", "pattern": {"Regex": "(.*a){25}b"}, "behavior": "Isolated", "invert": False}
    path.write_text(json.dumps({**json.loads(path.read_text()), "pre_tokenizer": split}))
    with pytest.raises(CheckpointError, match="The checkpoint's tokenizer crashed"):
        trial_load._load(str(folder))


def test_a_trial_finds_a_chat_template_without_an_end_and_is_repeated_when_the_template_changes(folder, tried):
    endless = f"{{% for a in range(9999) %}}{5 * '{% for a in range(9999) %}'}{6 * '{% endfor %}'}"
    (folder / "chat_template.jinja").write_text(endless)
    models.check_by_trial(find_checkpoint(str(folder)))
    why = f"The chat template of {folder} took more than 2 seconds of a processor, so it is not used"
    with pytest.raises(CheckpointError, match=re.escape(why)):
        trial_load._load(str(folder))
    (folder / "chat_template.jinja").write_text("{{ raise_exception('No system turns.') }}")
    models.check_by_trial(find_checkpoint(str(folder)))
    trial_load._load(str(folder))
    assert tried == [str(folder)] * 2


@pytest.mark.parametrize(
    ("does", "bounds", "message"),
    [
        (
            "while True: pass",
            {"MOST_SECONDS": 0.3},
            "took more than 0.3 seconds of a processor when it was loaded on trial",
        ),
        (
            "import time; time.sleep(60)",
            {"LONGEST_WAIT": 1},
            "took more than 1 seconds when it was loaded on trial",
        ),
        (
            "held = bytearray(3 * 10**8); import time; time.sleep(60)",
            {"MOST_BYTES": 10**8},
            "took more than 0.1 GB of memory when",
        ),
        ("import os; os.abort()", {}, r"crashed its process \(exit status -6\) when it was loaded on trial"),
        ("print(chr(123))", {}, r"crashed its process \(exit status 0\) when it was loaded on trial"),
        ("import json; print(json.dumps(dict(error=chr(33))))", {}, "^!$"),
    ],
)
def test_a_trial_is_bounded_and_one_that_fails_is_not_noted(folder, does, bounds, message, monkeypatch, tmp_path):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\nexec {trial_load.sys.executable} -c '{does}'\n")
    program.chmod(0o755)
    monkeypatch.setattr(trial_load.sys, "executable", str(program))
    for name, bound in bounds.items():
        monkeypatch.setattr(trial_load, name, bound)
    with pytest.raises(CheckpointError, match=message):
        load(folder)
    assert noted(folder) == []
