"""Fetching from a hub: one on this machine, asked by huggingface_hub itself, in processes that know no other."""

import json
import os
import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from local_hub import COMMIT, local_hub
from peft import LoraConfig
from small_adapters import LORA, save_adapter
from transformers import AutoModel

from attention_sieve.core.checkpoints.find import find_checkpoint

ANSWER = """
import json, sys
from attention_sieve.core.checkpoints.find import base_on_hub, find_checkpoint
from attention_sieve.core.checkpoints.hub import bytes_to_fetch, fetch
from attention_sieve.core.errors import CheckpointError
for asked in sys.stdin:
    step, name = asked.split()
    try:
        if step == "size":
            answer = bytes_to_fetch(name)
        elif step == "base":
            answer = base_on_hub(name, fetch(name)[0])
        else:
            found = find_checkpoint(name, ask_hub=step == "find")
            answer = [found.revision, found.fingerprint]
    except CheckpointError as error:
        answer = str(error)
    print(json.dumps(answer), flush=True)
"""
SMALL, KEPT, BASE, ADAPTER, ABSENT = (f"organisation/{name}" for name in ("small", "kept", "base", "lora", "absent"))
NOBODY = "http://127.0.0.1:9"


@contextmanager
def asking(address, home, **environment):
    """ask(step, name) -> what a process answers that takes this address for the hub's."""
    known = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(home), "HF_HUB_DISABLE_XET": "1"}
    del known["HF_HUB_OFFLINE"]
    command, pipes = [sys.executable, "-c", ANSWER], {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env={**known, **environment}, **pipes) as process:

        def ask(step, name):
            print(step, name, file=process.stdin, flush=True)
            return json.loads(process.stdout.readline())

        yield ask


@pytest.fixture(scope="module")
def adapter(folders, tmp_path_factory):
    folder = tmp_path_factory.mktemp("adapter") / "lora"
    save_adapter(AutoModel.from_pretrained(folders("bert")), LoraConfig(**LORA), folder, BASE)
    return folder


@pytest.fixture(scope="module")
def asked_hub(folders, adapter, tmp_path_factory):
    """A hub, ask(step, name) of a process that knows it, and the folder of what it fetched."""
    home = tmp_path_factory.mktemp("home")
    others = {KEPT: folders("bert"), BASE: folders("bert"), ADAPTER: adapter}
    with local_hub(SMALL, folders("bert"), others) as hub, asking(hub.address, home) as ask:
        yield hub, ask, home


def test_a_hub_that_must_not_be_asked_is_not_and_its_copies_here_are_found(asked_hub, adapter):
    hub, ask, _ = asked_hub
    found = ask("find", KEPT)
    hub.asked.clear()
    assert ask("here", KEPT) == found
    assert "no copy is on this machine" in ask("here", ABSENT)
    assert f"The base of {adapter} cannot be used" in ask("here", str(adapter))
    assert hub.asked == []


def test_the_size_is_said_before_and_nothing_is_left_to_fetch_after(asked_hub, folders):
    hub, ask, _ = asked_hub
    files = {path.name: path.stat().st_size for path in folders("bert").iterdir()}
    hub.asked.clear()
    assert ask("size", SMALL) == sum(files.values())
    assert hub.fetched == []
    assert ask("find", SMALL) == [COMMIT, find_checkpoint(str(folders("bert"))).fingerprint]
    assert ask("size", SMALL) == 0
    assert sorted(hub.fetched) == sorted(files)


def test_an_adapter_of_the_hub_is_found_with_its_base_which_it_names_once_it_is_fetched(asked_hub, folders, adapter):
    hub, ask, _ = asked_hub
    names = sorted(path.name for path in adapter.glob("adapter_*"))
    hub.asked.clear()
    assert ask("size", ADAPTER) == sum((adapter / name).stat().st_size for name in names)
    assert ask("base", ADAPTER) == BASE
    assert sorted(hub.fetched) == names, "nothing of the base is fetched before it is asked for"
    found = ask("find", ADAPTER)
    assert "config.json" in hub.fetched
    shutil.copytree(folders("bert"), adapter.parent / "base")  # where an adapter in a folder finds it
    assert found == [COMMIT, find_checkpoint(str(adapter)).fingerprint]


def test_what_the_hub_does_not_have_gets_its_sentence(asked_hub):
    _, ask, _ = asked_hub
    assert ask("size", ABSENT) == 0
    said = f"The hub has no checkpoint {ABSENT}. Check the spelling, or log in if it is private."
    assert ask("find", ABSENT) == said


@pytest.mark.parametrize("environment", [{}, {"HF_HUB_OFFLINE": "1"}, {"HTTPS_PROXY": NOBODY, "https_proxy": NOBODY}])
def test_a_copy_is_read_where_the_hub_is_gone_and_a_name_without_one_gets_its_sentence(asked_hub, environment):
    _, ask, home = asked_hub
    ask("find", KEPT)
    address = "https://hub.invalid" if "HTTPS_PROXY" in environment else NOBODY
    with asking(address, home, **environment) as ask_alone:
        assert ask_alone("size", KEPT) == ask_alone("size", ABSENT) == 0
        assert ask_alone("find", KEPT)[0] == COMMIT
        said = f"The hub could not be reached for {ABSENT}, and no copy is on this machine."
        assert ask_alone("find", ABSENT).startswith(said)
