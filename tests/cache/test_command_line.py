import os
import re
import shutil
import sqlite3
import sys
import threading
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from attention_sieve.__main__ import main
from attention_sieve.cache.store.results_file import FORMAT
from attention_sieve.cache.store.store import Store

MEASURES = {"measures": np.zeros((16, 6, 12), np.float32), "n_tokens": np.array(7)}
ATTENTION = {"attention": np.zeros((6, 12, 7, 7), np.float16), "n_cut": np.array(0)}


NOBODY = 65534
"""User who may write nowhere."""


@pytest.fixture
def store(tmp_path):
    """Three results, in a store that stays open as a running dashboard's does."""
    opened = Store(tmp_path)
    opened.put_many({"one": MEASURES, "two": MEASURES, "map": ATTENTION})
    yield opened
    opened.close()


def run(store_or_folder, *arguments):
    folder = store_or_folder.folder if isinstance(store_or_folder, Store) else store_or_folder
    return main(["store", "--folder", str(folder), *arguments])


def edit(path, statement, *values):
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def spoil(store):
    """Write over every page but the first."""
    store.close()
    content = store.path.read_bytes()
    store.path.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))


def set_one_aside(folder):
    (folder / "results.set-aside-20260101-120000.sqlite").write_bytes(b"old" * 1000)


# stats


def test_stats_say_what_is_kept_where_and_within_which_bound(store, capsys, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE_MB", "300")
    set_one_aside(store.folder)
    assert run(store, "stats") == 0
    said = capsys.readouterr().out
    assert f"Folder      {store.folder}\n" in said
    n_bytes = store.size()[1]
    assert f"Results     3, {n_bytes / 2**20:.1f} MiB\n" in said
    assert "2 of them mostly measures\n" in said
    assert "1 of them mostly attention\n" in said
    assert re.search(r"File        results\.sqlite, \d\.\d MiB, and a journal of \d\.\d MiB\n", said)
    assert "Limit       300.0 MiB" in said
    assert "Set aside   1 file, 0.0 MiB\n" in said
    assert "results.set-aside-20260101-120000.sqlite\n" in said


def test_stats_date_the_oldest_and_the_newest_use(store, capsys):
    assert run(store, "stats") == 0
    assert re.search(r"Used        20\d\d-\d\d-\d\d \d\d:\d\d \(least recently\) to 20\d\d-", capsys.readouterr().out)
    edit(store.path, "UPDATE uses SET used = 5 WHERE id = 1")
    edit(store.path, "UPDATE uses SET used = 1767268800000000 WHERE id > 1")  # noon on 1 January 2026 in UTC
    assert run(store, "stats") == 0
    assert re.search(r"Used        before uses were dated .* to 202(5-12-31|6-01-0)", capsys.readouterr().out)


def test_a_use_at_no_date_is_told(store, capsys):
    edit(store.path, "UPDATE uses SET used = 9000000000000000000")
    assert run(store, "stats") == 0
    assert "Used        on an impossible date" in capsys.readouterr().out


def test_stats_change_nothing(store, capsys):
    store.close()
    before = store.path.read_bytes()
    assert run(store, "stats") == 0
    assert store.path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="permissions of Unix")
@pytest.mark.parametrize("is_open", [True, False])
def test_stats_of_a_store_that_may_only_be_read_are_printed(store, is_open, capsys):
    if not is_open:
        store.close()
    assert run(store, "stats") == 0
    said = capsys.readouterr().out
    with TemporaryDirectory() as place:  # those of pytest are closed to others
        folder = Path(shutil.copytree(store.folder, Path(place) / "store"))
        Path(place).chmod(0o755)
        for path in (*folder.iterdir(), folder):
            path.chmod(0o555)
        before, user = sorted(folder.iterdir()), os.geteuid()
        try:
            if user == 0:  # who may write everywhere
                os.seteuid(NOBODY)
            assert run(folder, "stats") == 0
        finally:
            os.seteuid(user)
        assert sorted(folder.iterdir()) == before
        folder.chmod(0o755)
    assert capsys.readouterr().out.replace(str(folder), str(store.folder)).splitlines()[:4] == said.splitlines()[:4]


def test_stats_of_an_unreadable_value_do_not_fail(store, capsys):
    edit(store.path, "UPDATE results SET value = x'00ff' WHERE key = 'one'")
    edit(store.path, "UPDATE results SET value = 'text' WHERE key = 'two'")
    assert run(store, "stats") == 0
    assert "2 of them mostly unreadable" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "said"),
    [("stats", "Results     none yet"), ("verify", "Nothing is stored in"), ("clear", "There is nothing to remove in")],
)
def test_where_nothing_is_kept_nothing_is_made(tmp_path, capsys, command, said):
    assert run(tmp_path / "none", command) == 0
    assert said in capsys.readouterr().out
    assert not (tmp_path / "none").exists()


def test_the_environment_names_the_folder(store, capsys, monkeypatch):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(store.folder))
    assert main(["store", "stats"]) == 0
    assert f"Folder      {store.folder}\n" in capsys.readouterr().out


# verify


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE results SET value = x'00ff' WHERE key = 'two'",
        "UPDATE results SET key = x'ff' WHERE key = 'two'",
        "UPDATE results SET checksum = x'00' WHERE key = 'two'",
    ],
)
def test_damaged_results_are_removed_and_told(store, capsys, damage):
    edit(store.path, damage)
    assert run(store, "verify") == 1
    assert capsys.readouterr().out == (
        "2 of 3 results are sound.\n1 was damaged and is removed; missing results are computed again when they are "
        "needed.\n"
    )
    assert set(store.get_many(["one", "two", "map"])) == {"one", "map"}
    assert store.warning is None
    assert store.size()[0] == 2
    assert run(store, "verify") == 0
    assert capsys.readouterr().out == "2 of 2 results are sound.\n"


def test_a_spoiled_file_is_set_aside_whole(store, capsys):
    spoil(store)
    before = store.path.read_bytes()
    assert run(store, "verify") == 1
    said = capsys.readouterr().out
    assert said.startswith("The file itself is damaged: ")
    (kept,) = store.folder.glob("results.set-aside-*.sqlite")
    assert str(kept) in said
    assert kept.read_bytes() == before
    assert not store.path.exists()
    store.put("new", MEASURES)
    assert store.warning is None
    assert run(store, "verify") == 0


def test_an_index_that_misses_a_row_is_damage_of_the_file(store, capsys):
    store.close()
    connection = sqlite3.connect(store.path)
    (page,) = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = 'oldest'").fetchone()
    connection.close()
    with store.path.open("r+b") as file:
        file.seek((page - 1) * 4096 + 3)
        file.write(b"\x00\x02")  # two cells where there are three
    assert run(store, "verify") == 1
    assert "The file itself is damaged: " in capsys.readouterr().out
    assert len(list(store.folder.glob("results.set-aside-*.sqlite"))) == 1


def test_verify_does_not_hold_up_a_dashboard_that_writes(store, capsys):
    store.put_many({str(i): MEASURES for i in range(2000)})
    putting = threading.Event()
    verifying = threading.Thread(target=lambda: (run(store, "verify"), putting.set()))
    verifying.start()
    n_put = 0
    while not putting.is_set():
        store.put(f"new {n_put}", MEASURES)
        n_put += 1
    verifying.join()
    assert re.match(r"([\d,]+) of \1 results are sound\.\n$", capsys.readouterr().out)
    assert store.size()[0] == 2003 + n_put
    assert store.warning is None


# clear


def test_clear_asks_for_a_confirmation_it_cannot_get_from_a_pipe(store, capsys, monkeypatch):
    with open(os.devnull) as nothing:
        monkeypatch.setattr(sys, "stdin", nothing)
        assert run(store, "clear") == 2
    assert capsys.readouterr().err == f"This would remove all results in {store.path}. Confirm it with --yes.\n"
    assert store.size()[0] == 3


@pytest.mark.parametrize(("typed", "code", "n_left"), [("y", 0, 0), ("YES", 0, 0), ("n", 2, 3), ("", 2, 3)])
def test_clear_asks_on_a_terminal(store, capsys, monkeypatch, typed, code, n_left):
    ours, terminal = os.openpty()
    os.write(ours, f"{typed}\n".encode())
    with open(terminal) as typing:
        monkeypatch.setattr(sys, "stdin", typing)
        assert run(store, "clear") == code
    os.close(ours)
    said = capsys.readouterr()
    assert f"Remove all results in {store.path}? [y/N]" in said.out
    assert (said.err == "Nothing was removed.\n") == (code == 2)
    assert store.size()[0] == n_left


def test_a_dashboard_goes_on_after_its_store_was_cleared(store, capsys):
    assert run(store, "clear", "--yes") == 0
    assert capsys.readouterr().out == f"3 results removed from {store.path}.\n"
    assert store.get("one") is None
    store.put("one", MEASURES)
    assert store.get("one") is not None
    assert store.warning is None


def test_clear_lets_a_writer_have_its_turn(store, monkeypatch):
    turns = []

    def take_turn(_):
        store.put(f"new {len(turns)}", MEASURES)
        turns.append(store.warning)

    monkeypatch.setattr("attention_sieve.cache.store.results_file.AT_ONCE", 20)
    store.put_many({f"old {i}": MEASURES for i in range(400)})
    monkeypatch.setattr("attention_sieve.cache.store.results_file.time.sleep", take_turn)
    assert run(store, "clear", "--yes") == 0
    assert turns == [None] * 21  # 403 results, 20 at a time
    assert store.size()[0] == 21


def test_files_that_were_set_aside_stay_unless_they_are_named(store, capsys):
    set_one_aside(store.folder)
    assert run(store, "clear", "--yes") == 0
    assert len(list(store.folder.glob("results.set-aside-*"))) == 1
    assert run(store, "clear", "--yes", "--set-aside") == 0
    assert "1 file, 0.0 MiB that had been set aside removed.\n" in capsys.readouterr().out
    assert list(store.folder.glob("results.set-aside-*")) == []


# What cannot be done.


@pytest.mark.parametrize("command", [["stats"], ["verify"], ["clear", "--yes"]])
def test_a_file_of_a_newer_version_is_left_as_it_is(store, capsys, command):
    store.close()
    edit(store.path, f"PRAGMA user_version = {FORMAT + 1}")
    before = store.path.read_bytes()
    assert run(store, *command) == 2
    assert f"has format {FORMAT + 1}, and this version of the program writes format {FORMAT}" in capsys.readouterr().err
    assert store.path.read_bytes() == before
    assert list(store.folder.glob("results.set-aside-*")) == []


@pytest.mark.parametrize("command", [["stats"], ["clear", "--yes"]])
def test_a_spoiled_file_is_told_and_left_to_verify(store, capsys, command):
    spoil(store)
    assert run(store, *command) == 2
    assert re.match(
        r".* is damaged: .*\. Set it aside with: python -m attention_sieve store verify\n$", capsys.readouterr().err
    )
    assert store.path.exists()


@pytest.mark.parametrize("command", [["stats"], ["verify"], ["clear", "--yes"]])
def test_a_folder_in_the_place_of_the_file_is_told(tmp_path, capsys, command):
    (tmp_path / "results.sqlite").mkdir()
    assert run(tmp_path, *command) == 2
    assert "cannot be used: unable to open database file. Check its permissions" in capsys.readouterr().err
