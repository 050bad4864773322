import os
import shutil

import pytest
import torch

from attention_sieve.core.checkpoints.checkpoint import file_sha256, file_states, fingerprint, held_still
from attention_sieve.core.checkpoints.checks.files import WHOLE_FILES
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.errors import CheckpointError

CHANGED = (
    r"of .* changed while the checkpoint was being loaded.* Wait until nothing writes to its folder, and try again"
)


def states_of(folder):
    return file_states("small", folder, WHOLE_FILES)


def rewrite(path, content=None):
    """In place, with the times set back, as a program that preserves them does."""
    before = path.stat()
    path.write_bytes(path.read_bytes() if content is None else content)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def flipped(content):
    return content[:-1] + bytes([content[-1] ^ 1])


def test_a_fingerprint_is_of_names_and_bytes_only(folder, tmp_path):
    copy = shutil.copytree(folder, tmp_path / "copy")
    (copy / "config.json").touch()
    assert fingerprint(states_of(copy)) == fingerprint(states_of(folder))
    assert [state.name for state in states_of(folder)] == sorted(
        ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"]
    )


def test_a_digest_is_taken_again_though_size_and_time_stayed(folder):
    path = folder / "model.safetensors"
    before = file_sha256(path)
    rewrite(path, flipped(path.read_bytes()))
    assert file_sha256(path) != before


def test_a_digest_is_taken_again_when_a_file_of_equal_size_and_time_takes_the_place(folder):
    path, other = folder / "model.safetensors", folder / "other"
    before, times = file_sha256(path), path.stat()
    other.write_bytes(flipped(path.read_bytes()))
    os.utime(other, ns=(times.st_atime_ns, times.st_mtime_ns))
    os.replace(other, path)
    assert file_sha256(path) != before


def hold_while(folder, work):
    with held_still("small", folder, WHOLE_FILES, states_of(folder)):
        work()


def test_files_that_stay_as_they_were_are_loaded(folder):
    hold_while(folder, (folder / "model.safetensors").read_bytes)
    hold_while(folder, lambda: (folder / "notes.txt").write_text("No part of the checkpoint."))


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
def test_a_file_that_changes_meanwhile_is_named(folder, name):
    with pytest.raises(CheckpointError, match=rf"^{name} {CHANGED}"):
        hold_while(folder, lambda: rewrite(folder / name, flipped((folder / name).read_bytes())))


def test_a_file_that_changes_there_and_back_is_named(folder):
    """What was read in between cannot be known."""
    path = folder / "model.safetensors"
    content = path.read_bytes()

    def there_and_back():
        rewrite(path, flipped(content))
        rewrite(path, content)

    with pytest.raises(CheckpointError, match=rf"^model\.safetensors {CHANGED}"):
        hold_while(folder, there_and_back)


def test_files_that_appear_or_vanish_are_counted_and_the_first_is_named(folder):
    def replace_tokenizer():
        (folder / "tokenizer.json").unlink()
        (folder / "tokenizer_config.json").unlink()
        (folder / "vocab.txt").write_text("[PAD]")

    with pytest.raises(CheckpointError, match=rf"^tokenizer\.json \(and 2 more\) {CHANGED}"):
        hold_while(folder, replace_tokenizer)


def fail():
    raise CheckpointError("The weights cannot be loaded.")


def test_a_change_is_told_instead_of_what_it_broke(folder):
    def break_and_fail():
        (folder / "config.json").write_text("{")
        fail()

    with pytest.raises(CheckpointError, match=rf"^config\.json {CHANGED}") as error:
        hold_while(folder, break_and_fail)
    assert "weights cannot be loaded" in str(error.value.__context__)


def test_what_goes_wrong_without_a_change_is_told_as_it_is(folder):
    with pytest.raises(CheckpointError, match=r"^The weights cannot be loaded\.$"):
        hold_while(folder, fail)


def test_a_folder_that_changed_after_it_was_found_is_not_loaded(folder):
    files = find_checkpoint(str(folder))
    path = folder / "model.safetensors"
    path.write_bytes(flipped(path.read_bytes()))
    with pytest.raises(CheckpointError, match=rf"^model\.safetensors {CHANGED}"):
        load_checkpoint(files, device="cpu")
    assert load_checkpoint(find_checkpoint(str(folder)), device="cpu").files.fingerprint != files.fingerprint


def test_a_folder_that_was_only_touched_after_it_was_found_is_loaded(folder):
    files = find_checkpoint(str(folder))
    for path in folder.iterdir():
        path.touch()
    assert load_checkpoint(files, device="cpu").files == files
    assert find_checkpoint(str(folder)) == files


def test_a_folder_that_changes_while_its_model_is_loaded_is_refused(folder, monkeypatch):
    import attention_sieve.core.checkpoints.load

    load = attention_sieve.core.checkpoints.load.load

    def load_and_write(*arguments):
        loaded = load(*arguments)
        rewrite(folder / "tokenizer.json")
        return loaded

    monkeypatch.setattr(attention_sieve.core.checkpoints.load, "load", load_and_write)
    with pytest.raises(CheckpointError, match=rf"^tokenizer\.json {CHANGED}"):
        load_checkpoint(find_checkpoint(str(folder)), device="cpu")


def test_a_loaded_model_does_not_change_with_its_file(folder):
    loaded = load_checkpoint(find_checkpoint(str(folder)), device="cpu")
    before = {name: values.clone() for name, values in loaded.model.state_dict().items()}
    path = folder / "model.safetensors"
    with path.open("r+b") as file:
        file.seek(path.stat().st_size - 8_000)
        file.write(b"\xff" * 8_000)
    assert all(torch.equal(values, before[name]) for name, values in loaded.model.state_dict().items())


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.txt"])
def test_what_is_no_plain_file_gets_a_sentence(folder, name):
    path = folder / name
    path.unlink(missing_ok=True)
    path.mkdir()
    with pytest.raises(CheckpointError, match=rf"^{name} of small is not a regular file\. Replace it"):
        states_of(folder)
    path.rmdir()
    os.mkfifo(path)
    with pytest.raises(CheckpointError, match=rf"^{name} of small is not a regular file"):
        states_of(folder)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("nowhere", r"cannot be read \(No such file or directory.*\)\. Check the file"),
        ("model.safetensors", r"cannot be read \(Too many levels of symbolic.*\)\. Check the file"),
        ("/dev/zero", "is not a regular file"),
    ],
)
def test_a_link_that_leads_to_no_file_gets_a_sentence(folder, target, reason):
    path = folder / "model.safetensors"
    path.unlink()
    path.symlink_to(target)
    with pytest.raises(CheckpointError, match=rf"^model\.safetensors of .* {reason}"):
        find_checkpoint(str(folder))


def test_linked_files_have_the_fingerprint_of_the_files_themselves(folder, tmp_path):
    linked = tmp_path / "linked"
    linked.mkdir()
    for path in folder.iterdir():
        (linked / path.name).symlink_to(path)
    assert fingerprint(states_of(linked)) == fingerprint(states_of(folder))
