"""Fetching from a hub: one on this machine, asked by huggingface_hub itself, in a process that knows no other."""

import json
import os
import shutil
import subprocess
import sys

import pytest
from local_hub import COMMIT, local_hub
from peft import LoraConfig
from small_adapters import LORA, save_adapter
from transformers import AutoModel

from attention_sieve.core.checkpoints.find import find_checkpoint

ASK = """
import json, sys
from attention_sieve.core.checkpoints.find import base_on_hub, find_checkpoint
from attention_sieve.core.checkpoints.hub import bytes_to_fetch, fetch
from attention_sieve.core.errors import CheckpointError
answers = []
for step in sys.argv[2:]:
    try:
        if step == "size":
            answers.append(bytes_to_fetch(sys.argv[1]))
        elif step == "base":
            answers.append(base_on_hub(sys.argv[1], fetch(sys.argv[1])[0]))
        else:
            answer = find_checkpoint(sys.argv[1])
            answers.append([answer.revision, answer.fingerprint])
    except CheckpointError as error:
        answers.append(str(error))
print(json.dumps(answers))
"""


@pytest.fixture
def ask(tmp_path):
    def ask(address, name, *steps, **environment):
        known = {**os.environ, "HF_ENDPOINT": address, "HF_HOME": str(tmp_path / "hub"), "HF_HUB_DISABLE_XET": "1"}
        del known["HF_HUB_OFFLINE"]
        command = [sys.executable, "-c", ASK, name, *steps]
        said = subprocess.run(command, env={**known, **environment}, check=True, capture_output=True, text=True)
        return json.loads(said.stdout)

    return ask


def test_the_size_is_said_before_and_nothing_is_left_to_fetch_after(ask, folders):
    folder = folders("bert")
    files = {path.name: path.stat().st_size for path in folder.iterdir()}
    with local_hub("organisation/small", folder) as hub:
        assert ask(hub.address, hub.name, "size") == [sum(files.values())]
        assert hub.fetched == []
        size, found, then = ask(hub.address, hub.name, "size", "find", "size")
        assert sorted(hub.fetched) == sorted(files)
    assert (size, then) == (sum(files.values()), 0)
    assert found == [COMMIT, find_checkpoint(str(folder)).fingerprint]


def test_an_adapter_of_the_hub_is_found_with_its_base_which_it_names_once_it_is_fetched(ask, folders, tmp_path):
    base, folder = folders("bert"), tmp_path / "lora"
    save_adapter(AutoModel.from_pretrained(base), LoraConfig(**LORA), folder, "organisation/small")
    names = sorted(path.name for path in folder.glob("adapter_*"))
    with local_hub("organisation/lora", folder, {"organisation/small": base}) as hub:
        size, named = ask(hub.address, hub.name, "size", "base")
        assert (size, named) == (sum((folder / name).stat().st_size for name in names), "organisation/small")
        assert sorted(hub.fetched) == names, "nothing of the base is fetched before it is asked for"
        ((commit, fingerprint),) = ask(hub.address, hub.name, "find")
    assert "config.json" in hub.fetched
    shutil.copytree(base, tmp_path / "small")  # where an adapter in a folder finds it
    assert (commit, fingerprint) == (COMMIT, find_checkpoint(str(folder)).fingerprint)


def test_a_copy_is_read_where_the_hub_is_gone_and_a_name_without_one_gets_its_sentence(ask, folders):
    with local_hub("organisation/small", folders("bert")) as hub:
        ask(hub.address, hub.name, "find")
    for environment in ({}, {"HF_HUB_OFFLINE": "1"}):
        size, found = ask(hub.address, hub.name, "size", "find", **environment)
        assert (size, found[0]) == (0, COMMIT)
        size, found = ask(hub.address, "organisation/other", "size", "find", **environment)
        assert size == 0
        assert found.startswith("The hub could not be reached for organisation/other, and no copy is on this machine.")


def test_what_the_hub_does_not_have_gets_its_sentence(ask, folders):
    with local_hub("organisation/small", folders("bert")) as hub:
        said = ask(hub.address, "organisation/other", "size", "find")
    assert said == [0, "The hub has no checkpoint organisation/other. Check the spelling, or log in if it is private."]


def test_a_proxy_that_does_not_answer_gets_a_sentence(ask):
    proxy = "http://127.0.0.1:9"
    said = ask("https://hub.invalid", "organisation/small", "find", HTTPS_PROXY=proxy, https_proxy=proxy)
    assert said[0].startswith("The hub could not be reached for organisation/small")
