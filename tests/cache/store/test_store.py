import json
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import SafetensorError

from attention_sieve.cache.memory import Memory
from attention_sieve.cache.serving.models import Models
from attention_sieve.cache.store import results_file
from attention_sieve.cache.store.results_file import FORMAT, WORD_ARRAYS, checksum_of, connect
from attention_sieve.cache.store.store import DEFAULT_MEGABYTES, Store, results_path
from attention_sieve.core.answering import array_to_text, text_to_array
from attention_sieve.core.errors import AnalysisError

ROOT = Path(__file__).parents[3]
MEGABYTE = 2**20
SCORES = {"scores": np.arange(6, dtype=np.float32).reshape(2, 3)}
ARRAYS = hnp.arrays(
    st.sampled_from(["bool", "uint8", "int64", "float16", "float32", "float64"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4),
)


@pytest.fixture
def open_store():
    """Opens stores and closes them when the test is over."""
    opened = []

    def open_one(*arguments, **named):
        opened.append(Store(*arguments, **named))
        return opened[-1]

    yield open_one
    for one in opened:
        one.close()


def start_process(script, *arguments):
    """A process of its own that runs a script; what it prints can be read."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def of_bytes(n, fill=0):
    return {"a": np.full(n, fill, np.uint8)}


def assert_equal(found, expected):
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert found[name].tobytes() == array.tobytes(), "NaN and the sign of zero included"


def edit(path, statement, *values):
    """Change the closed file behind the store's back."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(statement, values)
    connection.close()


def keys_of(store):
    """What is kept, without a read that would count as a use."""
    connection = sqlite3.connect(store.path)
    keys = {key for (key,) in connection.execute("SELECT key FROM results")}
    connection.close()
    return keys


def overwrite(path, position, content):
    with path.open("r+b") as file:
        file.seek(position)
        file.write(content)


# What goes in comes out.


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.dictionaries(st.text("abc", min_size=1, max_size=3), ARRAYS, max_size=3))
def test_arrays_come_back_equal_and_the_given_ones_unchanged(store, arrays):
    copies = {name: array.copy() for name, array in arrays.items()}
    store.put("key", arrays)
    assert_equal(store.get("key"), copies)
    assert_equal(arrays, copies)
    assert store.warning is None


@pytest.mark.parametrize(
    "view",
    [
        np.arange(12.0).reshape(3, 4)[:, ::2],
        np.arange(12.0).reshape(3, 4).T,
        np.asfortranarray(np.arange(12).reshape(3, 4)),
        np.broadcast_to(np.float16(0.5), (2, 3)),
        np.arange(5)[::-1],
    ],
)
def test_arrays_that_do_not_lie_in_order_come_back_equal(store, view):
    store.put("key", {"view": view})
    assert_equal(store.get("key"), {"view": view})


@given(st.text(st.characters(exclude_categories=())))
def test_text_comes_back_from_its_array_lone_surrogates_included(value):
    assert array_to_text(text_to_array(value)) == value


def test_many_keys_are_found_at_once_and_absent_ones_left_out(store):
    store.put_many({f"key {i}": {"a": np.array(i)} for i in range(1201)})
    found = store.get_many([f"key {i}" for i in range(0, 2000, 2)] + ["key 0"])
    assert {key: int(arrays["a"]) for key, arrays in found.items()} == {f"key {i}": i for i in range(0, 1201, 2)}
    assert store.get_many([]) == {}


def test_size_counts_results_and_their_bytes_of_which_a_later_put_replaces_the_earlier_one(store):
    assert store.size() == (0, 0)
    store.put("two", SCORES)
    store.put_many({"one": of_bytes(1000), "two": of_bytes(2000)})
    assert_equal(store.get("two"), of_bytes(2000))
    results, n_bytes = store.size()
    assert results == 2
    assert 3000 < n_bytes < 3300


def test_clearing_removes_every_result_and_gives_the_space_back(store):
    store.put_many({str(i): of_bytes(50_000) for i in range(40)})
    store.clear()
    assert store.size() == (0, 0)
    assert store.get("0") is None
    assert sum(path.stat().st_size for path in store.folder.iterdir()) < 100_000


def test_an_array_of_objects_is_refused(store):
    with pytest.raises(SafetensorError, match="object"):
        store.put("key", {"a": np.array([{}, []], dtype=object)})


def test_nothing_is_pickled(store):
    store.put("key", SCORES)
    store.close()
    source = "".join(path.read_text() for path in sorted((ROOT / "cache").rglob("*.py")))
    assert not re.search(r"^\s*(import|from) (pickle|shelve|marshal)|allow_pickle", source, re.MULTILINE)
    assert b"\x93NUMPY" not in store.path.read_bytes()


# Several readers and writers.


WRITER = """
import sys
from pathlib import Path
import numpy as np
from attention_sieve.cache.store.store import Store

folder, name, n, limit = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
store = Store(folder, limit_bytes=limit)
for i in range(n):
    store.put_many({f"{name} {i} {part}": {"a": np.full(20_000, i % 251, np.uint8)} for part in "ab"})
    print(i, flush=True)
print(store.warning)
store.close()
"""


def test_two_processes_that_write_at_once_lose_nothing(tmp_path, open_store):
    writers = [start_process(WRITER, tmp_path, name, 60, 2**31) for name in ("one", "two")]
    assert [writer.communicate()[0].split()[-1] for writer in writers] == ["None", "None"]
    store = open_store(tmp_path)
    for name in ("one", "two"):
        for i in range(60):
            assert_equal(store.get(f"{name} {i} b"), of_bytes(20_000, i))
    assert store.size()[0] == 2 * 60 * 2
    assert store.warning is None


def assert_every_row_is_sound(store):
    connection = sqlite3.connect(store.path)
    rows = connection.execute("SELECT key, checksum, value FROM results").fetchall()
    assert all(results_file.unpack(*row) is not None for row in rows)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    assert connection.execute("SELECT count(*) FROM uses").fetchone() == (len(rows),)
    connection.close()


def test_two_processes_that_write_at_once_stay_within_the_bound_and_damage_nothing(tmp_path, open_store):
    writers = [start_process(WRITER, tmp_path, name, 150, 2 * MEGABYTE) for name in ("one", "two")]
    assert [writer.communicate()[0].split()[-1] for writer in writers] == ["None", "None"]
    store = open_store(tmp_path, limit_bytes=2 * MEGABYTE)
    assert_every_row_is_sound(store)
    assert store.path.stat().st_size <= 2 * MEGABYTE
    found = store.get_many([f"{name} {i} {part}" for name in ("one", "two") for i in range(150) for part in "ab"])
    assert 40 < len(found) < 105
    assert any(f"{name} 149 a" in found for name in ("one", "two")), "the latest result was removed"
    for key, arrays in found.items():
        assert_equal(arrays, of_bytes(20_000, int(key.split()[1])))
    assert store.warning is None
    assert set_aside(tmp_path) == []


def test_a_file_whose_tables_are_laid_while_it_is_opened_is_not_taken_for_a_foreign_one(tmp_path):
    path = tmp_path / "results.sqlite"
    first, second = connect(path), connect(path)
    second.execute("PRAGMA busy_timeout = 0")

    def lay_between(statement):
        if "sqlite_master" in statement:
            first.set_trace_callback(None)
            with suppress(sqlite3.OperationalError):  # locked out, as it should be
                results_file.prepare(second)

    first.set_trace_callback(lay_between)
    results_file.prepare(first)
    results_file.prepare(second)
    assert results_file.is_ours(first)
    assert results_file.is_ours(second)
    first.close()
    second.close()


NURSERY = """
import itertools
import json
import os
import sys
from pathlib import Path
import numpy as np
from attention_sieve.cache.store.store import Store

for line in sys.stdin:
    folder, first, limit = line.split("|")
    pid = os.fork()
    if not pid:
        store = Store(Path(folder), limit_bytes=int(limit))
        for i in itertools.count(int(first)):
            store.put_many({f"{i} {part}": {"a": np.full(i * 7919 % 40_000, i % 251, np.uint8)} for part in "ab"})
            os.write(1, b"%d\\n" % i)
    os.write(1, b"pid %d\\n" % pid)
    os.waitpid(pid, 0)
    os.write(1, b"over\\n")
"""
"""Forks a writer for each line it reads, so that a hundred writers do not import NumPy a hundred times."""


def kill_a_writer(nursery, folder, first, limit, chance):
    """Let a writer write from a number on, kill it at a random moment; the last number it reported, or the one before.

    Every second writer is killed at any moment from its start on, the others once they have committed something.
    """
    nursery.stdin.write(f"{folder}|{first}|{limit}\n")
    nursery.stdin.flush()
    pid, last, waits = None, first - 1, chance.random() < 0.5
    while pid is None or (waits and last < first):
        line = nursery.stdout.readline().split()
        pid, last = (int(line[1]), last) if line[0] == "pid" else (pid, int(line[0]))
    time.sleep(chance.uniform(0, 0.03))  # the random moment
    os.kill(pid, signal.SIGKILL)
    while (line := nursery.stdout.readline().strip()) != "over":
        last = int(line)
    return last


def test_a_hundred_killed_writers_damage_nothing_and_lose_nothing(tmp_path):
    chance = random.Random(0)
    nursery = start_process(NURSERY)
    n_committed = 0
    for kill in range(100):
        folder, limit = tmp_path / str(kill // 10), MEGABYTE if kill // 10 % 2 else 2**31
        if kill % 10 == 0:
            first = 0
        last = kill_a_writer(nursery, folder, first, limit, chance)
        n_committed += last - first + 1
        store = Store(folder, limit_bytes=limit)
        numbers = range(first if limit > MEGABYTE else last, last + 1) if last >= first else ()
        found = store.get_many([f"{i} {part}" for i in range(last + 2) for part in "ab"])
        assert {f"{i} {part}" for i in numbers for part in "ab"} <= found.keys(), "something committed was lost"
        for key, arrays in found.items():
            i = int(key.split()[0])
            assert_equal(arrays, of_bytes(i * 7919 % 40_000, i % 251))
            assert limit == MEGABYTE or {f"{i} a", f"{i} b"} <= found.keys(), "half of a put_many was kept"
        assert store.warning is None
        assert set_aside(folder) == []
        if kill % 10 == 9:
            assert_every_row_is_sound(store)
        first = last + 2  # the one after the last may have been committed and not reported
        store.close()
    nursery.communicate()
    assert n_committed > 100, "the writers were killed before they wrote anything"


def test_eight_threads_read_and_write_at_once(store):
    def work(thread):
        for i in range(25):
            store.put(f"{thread} {i}", {"a": np.array([thread, i])})
            assert store.get(f"{thread} {i}")["a"].tolist() == [thread, i]
            store.get_many([f"{other} {i}" for other in range(8)])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(work, range(8)))
    assert store.size()[0] == 8 * 25
    assert store.warning is None


def test_neither_a_read_nor_opening_waits_while_another_process_writes(store, open_store):
    store.put("key", SCORES)
    writer = sqlite3.connect(store.path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    start = time.monotonic()
    assert_equal(store.get("key"), SCORES)
    later = open_store(store.folder)
    assert_equal(later.get("key"), SCORES)
    later.close()
    assert time.monotonic() - start < 5
    writer.execute("ROLLBACK")
    writer.close()
    assert store.warning is None
    assert later.warning is None


def test_a_read_does_not_wait_for_a_write_of_another_thread(store):
    store.put("key", SCORES)
    other = sqlite3.connect(store.path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    putting = threading.Thread(target=store.put, args=("new", SCORES))
    putting.start()
    while not store._writer.lock.locked():
        pass
    start = time.monotonic()
    assert_equal(store.get("key"), SCORES)
    assert time.monotonic() - start < 5
    assert putting.is_alive()
    other.execute("ROLLBACK")
    other.close()
    putting.join()
    assert_equal(store.get("new"), SCORES)
    assert store.warning is None


def test_a_read_writes_nothing(store):
    store.put("key", SCORES)
    journal = Path(f"{store.path}-wal")
    before = journal.read_bytes()
    assert store.get("key") is not None
    assert journal.read_bytes() == before


def test_a_closed_store_opens_again_when_it_is_used(store):
    store.put("key", SCORES)
    store.close()
    store.close()
    assert_equal(store.get("key"), SCORES)


# The bound.


def test_the_least_recently_used_result_goes_first(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    for name in ("oldest", "read", "written", "young"):
        store.put(name, of_bytes(200_000))
    store.get("read")
    store.put("written", of_bytes(200_000))
    store.put("new", of_bytes(300_000))  # 5 results of 1.1 MB where 1.05 MB fit; nine tenths leave 0.94 MB
    assert keys_of(store) == {"read", "written", "young", "new"}
    store.put("newer", of_bytes(200_000))
    assert keys_of(store) == {"read", "written", "new", "newer"}


def test_a_full_store_is_cleared_to_nine_tenths_at_once(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    n_put = 0
    while store.size()[0] == n_put:
        n_put += 1
        store.put(str(n_put), of_bytes(10_000))
    n_kept, n_bytes = store.size()
    assert 0.8 * MEGABYTE < n_bytes < 0.9 * MEGABYTE
    assert keys_of(store) == {str(i) for i in range(n_put - n_kept + 1, n_put + 1)}


def test_uses_are_noted_in_their_order_which_outlives_the_process(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    store.put_many({name: of_bytes(200_000) for name in "abcd"})
    for name in "dbcab":
        store.get(name)
    store.close()
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    store.put("new", of_bytes(300_000))
    assert keys_of(store) == {"a", "b", "c", "new"}  # d was read longest ago
    store.put("newer", of_bytes(200_000))
    assert keys_of(store) == {"a", "b", "new", "newer"}


def test_uses_are_noted_when_the_program_ends_without_closing_its_store(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    for name in ("first", "second"):
        store.put(name, of_bytes(400_000))
    script = "import sys; from pathlib import Path; from attention_sieve.cache.store.store import Store\n"
    reader = start_process(script + "s = Store(Path(sys.argv[1])); print(s.get('first') is not None)", tmp_path)
    assert reader.communicate()[0].strip() == "True"
    store.put("third", of_bytes(400_000))
    assert keys_of(store) == {"first", "third"}


def test_a_clock_that_was_set_back_does_not_change_the_order(open_store, tmp_path, monkeypatch):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    store.put("old", of_bytes(400_000))
    monkeypatch.setattr("time.time_ns", lambda: 10**9)
    store.put("new", of_bytes(400_000))
    store.put("newer", of_bytes(400_000))
    assert keys_of(store) == {"new", "newer"}


def test_the_journal_of_a_huge_write_that_failed_is_cut_back_too(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=100 * MEGABYTE)
    store.put("key", SCORES)
    store._writer.connected().execute("PRAGMA max_page_count = 6000")
    store.put_many({str(i): of_bytes(4 * MEGABYTE) for i in range(10)})
    assert "database or disk is full" in store.warning
    assert Path(f"{store.path}-wal").stat().st_size == 0
    assert_equal(store.get("key"), SCORES)


def test_the_journal_of_a_huge_write_is_cut_back_at_once_which_waits_for_no_reader(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=100 * MEGABYTE)
    store.put_many({str(i): of_bytes(4 * MEGABYTE) for i in range(6)})
    assert store.size()[0] == 6
    assert Path(f"{store.path}-wal").stat().st_size <= 16 * MEGABYTE
    reader = sqlite3.connect(store.path, isolation_level=None)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM results").fetchone()
    start = time.monotonic()
    store.put_many({f"more {i}": of_bytes(4 * MEGABYTE) for i in range(6)})
    assert time.monotonic() - start < 8
    reader.close()
    assert store.warning is None
    store.put("key", SCORES)
    assert Path(f"{store.path}-wal").stat().st_size <= 16 * MEGABYTE


@pytest.mark.parametrize(("n_bytes", "n_results"), [(100, 12_000), (3_000, 2_000), (90_000, 60), (700_000, 8)])
def test_the_file_never_outgrows_its_bound(open_store, tmp_path, n_bytes, n_results):
    store = open_store(tmp_path, limit_bytes=2 * MEGABYTE)
    batch = max(1, n_results // 20)
    for start in range(0, n_results, batch):
        store.put_many({str(i): of_bytes(n_bytes) for i in range(start, start + batch)})
        assert store.path.stat().st_size <= store.limit_bytes
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= store.limit_bytes + 16 * MEGABYTE
    assert store.get(str(start + batch - 1)) is not None
    assert 0.5 * store.limit_bytes < store.size()[1] + 100 * store.size()[0]
    assert store.warning is None


def test_a_lowered_bound_shrinks_the_file(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=8 * MEGABYTE)
    store.put_many({str(i): of_bytes(100_000) for i in range(60)})
    store.close()
    assert store.path.stat().st_size > 6_000_000
    smaller = open_store(tmp_path, limit_bytes=MEGABYTE)
    smaller.put("new", of_bytes(1000))
    smaller.close()
    assert store.path.stat().st_size <= MEGABYTE
    assert smaller.get("new") is not None


def test_a_result_larger_than_half_the_bound_is_not_kept_and_pushes_nothing_out(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=MEGABYTE)
    store.put_many({"large": of_bytes(MEGABYTE // 2), "small": of_bytes(1000)})
    assert store.get("large") is None
    assert store.get("small") is not None
    assert store.warning is None


def test_a_bound_of_zero_keeps_nothing(open_store, tmp_path):
    store = open_store(tmp_path, limit_bytes=0)
    store.put("key", SCORES)
    assert store.get("key") is None
    assert store.warning is None


# Damage.


def set_aside(folder):
    return sorted(path.name for path in folder.glob("results.set-aside-*"))


def assert_set_aside_and_rebuilt(store, reason):
    (name,) = [name for name in set_aside(store.folder) if name.endswith(".sqlite")]
    assert re.fullmatch(r"results\.set-aside-\d{8}-\d{6}\.sqlite", name)
    assert str(store.folder / name) in store.warning
    assert reason in store.warning
    store.put("new", SCORES)
    assert_equal(store.get("new"), SCORES)


def test_a_flipped_byte_in_a_result_is_a_miss_with_a_warning(store):
    store.put_many({"good": of_bytes(5000, fill=1), "bad": of_bytes(5000, fill=77)})
    store.close()
    position = store.path.read_bytes().index(b"\x4d" * 1000)
    overwrite(store.path, position + 500, b"\x4e")
    assert set(store.get_many(["good", "bad"])) == {"good"}
    assert store.warning == "1 stored result was damaged and removed; missing results are computed again."
    assert store.size()[0] == 1
    store.put("bad", of_bytes(5000, fill=77))
    assert_equal(store.get("bad"), of_bytes(5000, fill=77))


def numbers_as(number_format):
    header = json.dumps({"x": {"dtype": number_format, "shape": [2], "data_offsets": [0, 4]}}).encode()
    return len(header).to_bytes(8, "little") + header + b"\0" * 4


NO_SAFETENSORS = (b"foreign", *map(numbers_as, ("BF16", "F8_E4M3", "F8_E5M2", "F4", "C64", "NONE")))
"""The last six of numbers that NumPy lacks."""


@pytest.mark.parametrize(
    ("change", "values"),
    [
        *((f"value = {value}", ()) for value in ("x''", "x'00ff'", "'text'", "5", "CAST(x'ff' AS TEXT)")),
        *(("value = ?, checksum = ?", (foreign, checksum_of("bad", foreign))) for foreign in NO_SAFETENSORS),
        ("key = 'bad'", ()),
    ],
)
def test_a_row_that_is_no_result_of_its_key_is_a_miss(store, change, values):
    store.put_many({"good": SCORES, "another" if change.startswith("key") else "bad": SCORES})
    store.close()
    edit(store.path, f"UPDATE results SET {change} WHERE key != 'good'", *values)
    assert set(store.get_many(["good", "bad"])) == {"good"}
    assert "1 stored result was damaged" in store.warning
    assert store.get("bad") is None
    assert store.size()[0] == 1


def test_an_empty_file_becomes_a_store(tmp_path, open_store):
    (tmp_path / "results.sqlite").touch()
    store = open_store(tmp_path)
    store.put("key", SCORES)
    assert_equal(store.get("key"), SCORES)
    assert store.warning is None


def test_a_file_of_a_newer_version_is_left_as_it_is_and_the_analysis_goes_on_without_it(store, open_store):
    store.put("key", SCORES)
    store.close()
    edit(store.path, f"PRAGMA user_version = {FORMAT + 1}")
    before = store.path.read_bytes()
    later = open_store(store.folder)
    later.put("new", SCORES)
    assert later.get("key") is None
    assert later.size() == (0, 0)
    assert later.warning == (
        f"Stored results are of a newer version of this program: their file has format {FORMAT + 1}, and this version "
        f"of the program writes format {FORMAT}. They are left as they are, and the analysis goes on without them. "
        "Update the program, or name another folder in ATTENTION_SIEVE_CACHE."
    )
    later.close()
    assert store.path.read_bytes() == before
    assert set_aside(store.folder) == []
    edit(store.path, f"PRAGMA user_version = {FORMAT}")
    assert_equal(later.get("key"), SCORES)
    later.put("new", SCORES)
    assert later.warning is None


OLDER = f"their file has format {FORMAT - 1}, and this version of the program writes format {FORMAT}"


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda path: path.write_bytes(b"garbage" * 1000), "file is not a database"),
        (lambda path: os.truncate(path, path.stat().st_size // 2), "malformed"),
        (lambda path: edit(path, f"PRAGMA user_version = {FORMAT - 1}"), OLDER),
        (lambda path: edit(path, "ALTER TABLE results ADD COLUMN note TEXT"), "other tables"),
    ],
    ids=["no database", "cut in half", "an older format", "other tables"],
)
def test_a_file_that_cannot_be_used_is_set_aside_as_it_is(store, open_store, damage, reason):
    store.put_many({f"key {i}": of_bytes(5000) for i in range(100)})
    store.close()
    damage(store.path)
    before = store.path.read_bytes()
    later = open_store(store.folder)
    assert later.get("key 1") is None
    assert_set_aside_and_rebuilt(later, reason)
    (kept,) = store.folder.glob("results.set-aside-*.sqlite")
    assert kept.read_bytes() == before


def test_files_set_aside_within_one_second_have_different_names(tmp_path, open_store):
    for _ in range(3):
        (tmp_path / "results.sqlite").write_bytes(b"garbage")
        open_store(tmp_path).close()
        (tmp_path / "results.sqlite").unlink()
    assert len(set_aside(tmp_path)) == 3


@pytest.mark.parametrize("puts", [False, True])
def test_spoiled_pages_are_set_aside_where_they_are_met_and_a_put_is_kept_in_the_new_file(store, puts):
    store.put_many({f"key {i}": SCORES for i in range(100)})
    store.close()
    n_bytes = store.path.stat().st_size
    overwrite(store.path, 4096, b"\xff" * (n_bytes - 4096))  # all but the first page, which has format and tables
    if puts:
        store.put("key", SCORES)
    assert (store.get("key") is not None) == puts
    assert_set_aside_and_rebuilt(store, "malformed")


def test_tables_lost_while_the_store_is_open_are_laid_again(store):
    store.put("key", SCORES)
    edit(store.path, "DROP TABLE results")
    assert store.get("key") is None
    assert_set_aside_and_rebuilt(store, "no such table")


def test_the_journal_is_set_aside_with_its_file(store, open_store):
    store.put("key", SCORES)
    edit(store.path, f"PRAGMA user_version = {FORMAT - 1}")
    later = open_store(store.folder)  # while the first one still holds the file, so that there is a journal
    assert later.get("key") is None
    assert any(name.endswith(".sqlite-wal") for name in set_aside(store.folder))
    assert_set_aside_and_rebuilt(later, "format 0")


def test_a_new_file_that_another_process_has_begun_is_left_alone(store, open_store):
    store.put("key", SCORES)
    other = open_store(store.folder)
    for open_one in (store, other):
        assert open_one.get("key") is not None
    edit(store.path, "DROP TABLE results")
    assert other.get("key") is None
    other.put("new", SCORES)
    assert_equal(store.get("new"), SCORES)
    assert len([name for name in set_aside(store.folder) if name.endswith(".sqlite")]) == 1


def test_what_is_put_after_another_process_set_the_file_aside_goes_into_the_new_one(store, open_store):
    store.put("key", SCORES)
    edit(store.path, f"PRAGMA user_version = {FORMAT - 1}")
    other = open_store(store.folder)
    store.put("new", SCORES)
    assert_equal(store.get("new"), SCORES)
    store.close()
    assert_equal(other.get("new"), SCORES)
    assert store.warning is None


def test_a_store_that_closes_leaves_the_journal_of_the_new_file_alone(store, open_store):
    store.put("key", SCORES)
    edit(store.path, f"PRAGMA user_version = {FORMAT - 1}")
    later = open_store(store.folder)
    later.put("new", SCORES)
    store.close()
    assert_equal(open_store(store.folder).get("new"), SCORES)


def test_a_folder_that_is_removed_while_the_store_is_open_is_made_again(store):
    store.put("key", SCORES)
    shutil.rmtree(store.folder)
    assert store.get("key") is None
    store.put("new", SCORES)
    assert_equal(store.get("new"), SCORES)
    assert store.warning is None


# No room, no folder.


@pytest.mark.parametrize("folder", ["cache", "cache/below"])
def test_a_file_where_the_folder_should_be_leaves_the_analysis_without_a_store(tmp_path, open_store, folder):
    (tmp_path / "cache").touch()
    store = open_store(tmp_path / folder)
    store.put("key", SCORES)
    assert store.get("key") is None
    assert store.size() == (0, 0)
    store.clear()
    assert store.warning.startswith(f"Results can be neither stored nor found in {tmp_path / folder}: ")
    assert "The analysis goes on without them." in store.warning


def test_a_folder_that_comes_back_is_used_again(tmp_path, open_store):
    (tmp_path / "cache").touch()
    store = open_store(tmp_path / "cache")
    (tmp_path / "cache").unlink()
    store.put("key", SCORES)
    assert_equal(store.get("key"), SCORES)
    assert store.warning is None


def test_a_full_disk_keeps_nothing_new_and_loses_nothing_old(store):
    store.put("old", SCORES)
    writer = store._writer.connected()
    pages = writer.execute("PRAGMA page_count").fetchone()[0]
    writer.execute(f"PRAGMA max_page_count = {pages}")  # SQLite then answers as on a full disk
    store.put("new", of_bytes(100_000))
    assert store.get("new") is None
    assert_equal(store.get("old"), SCORES)
    assert store.warning == (
        f"New results cannot be stored in {store.folder}: database or disk is full. The analysis goes on, and "
        "results stored earlier are still found. Make room there, or name another folder in ATTENTION_SIEVE_CACHE."
    )


NO_ROOM = """
import resource
import signal
import sys
from pathlib import Path
import numpy as np
from attention_sieve.cache.store.store import Store

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)  # a write past the limit then fails as it does on a full disk
FREE = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
content = {f"new {i}": {"a": np.full(100_000, 7, np.uint8)} for i in range(30)}

def room(n_bytes):
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))

def found(store):
    return len(store.get_many(["old", *content])), "stored" in (store.warning or "")

for n_bytes in (0, 10_000, 50_000, 500_000, 2_000_000):
    folder = Path(sys.argv[1]) / str(n_bytes)
    room(n_bytes)
    from_start = Store(folder / "from start")
    from_start.put_many(content)
    without = found(from_start)
    room(FREE)
    store = Store(folder)
    store.put("old", {"a": np.arange(5)})
    room(n_bytes)
    store.put_many(content)
    full = found(store)
    room(FREE)
    for open_one in (from_start, store):
        open_one.put_many(content)
    print(without, full, found(from_start), found(store))
    for open_one in (from_start, store):
        open_one.close()
"""


def test_writes_that_fail_are_told_and_reads_go_on_until_there_is_room_again(tmp_path, open_store):
    out, _ = (process := start_process(NO_ROOM, tmp_path)).communicate()
    assert process.returncode == 0
    assert out.splitlines() == ["(0, True) (1, True) (30, False) (31, False)"] * 5
    for n_bytes in (0, 10_000, 50_000, 500_000, 2_000_000):
        store = open_store(tmp_path / str(n_bytes))
        assert_every_row_is_sound(store)
        assert set_aside(store.folder) == []


def test_a_file_that_cannot_be_set_aside_is_told(tmp_path, open_store, monkeypatch):
    def refuse(self, target):
        raise PermissionError(13, "Permission denied")

    (tmp_path / "results.sqlite").write_bytes(b"garbage")
    monkeypatch.setattr(Path, "rename", refuse)
    store = open_store(tmp_path)
    store.put("key", SCORES)
    assert "Permission denied" in store.warning


def test_a_bug_is_not_hidden(store):
    with pytest.raises(sqlite3.ProgrammingError):
        store._use(store._reader, lambda connection: connection.execute("SELECT ?", ()), None)


# The environment.


def test_the_environment_names_folder_and_bound(tmp_path, monkeypatch, open_store):
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", str(tmp_path / "named"))
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE_MB", "3")
    store = open_store()
    assert store.folder == tmp_path / "named"
    assert store.path.parent == store.folder
    assert store.path.exists()
    assert store.limit_bytes == 3 * MEGABYTE


@pytest.mark.parametrize("value", [None, ""])
def test_without_them_the_users_cache_folder_and_two_gibibytes_serve(tmp_path, monkeypatch, open_store, value):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for name in ("ATTENTION_SIEVE_CACHE", "ATTENTION_SIEVE_CACHE_MB"):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    store = open_store()
    assert store.folder == tmp_path / "attention-sieve"
    assert store.limit_bytes == DEFAULT_MEGABYTES * MEGABYTE == 2 * 2**30


@pytest.mark.parametrize("value", ["many", "-1", "2.5", "²", "1e3"])
@pytest.mark.parametrize(("name", "opens"), [("CACHE", Store), ("MEMORY", Memory), ("MODELS", Models)])
def test_a_bound_that_is_no_number_is_told(monkeypatch, name, opens, value):
    monkeypatch.setenv(f"ATTENTION_SIEVE_{name}_MB", value)
    message = f"ATTENTION_SIEVE_{name}_MB is {value!r}, which is not a whole number of megabytes. Set it to"
    with pytest.raises(AnalysisError, match=re.escape(message)):
        opens()


@pytest.mark.parametrize("name", WORD_ARRAYS)
def test_results_that_hold_words_are_removed_once_they_are_old_and_no_byte_of_them_stays(store, name):
    words = {name: text_to_array("porcelain violin"), "scores": np.ones(3)}
    store.put_many({"words": words, "numbers": {"scores": np.ones(3)}})
    put = time.time()
    store.forget_words(before=put - 60)
    assert set(store.get_many(["words", "numbers"])) == {"words", "numbers"}
    store.forget_words(before=put + 3600)
    assert set(store.get_many(["words", "numbers"])) == {"numbers"}
    assert b"porcelain" not in b"".join(path.read_bytes() for path in store.folder.glob("results.sqlite*"))


def test_results_that_hold_words_and_are_used_later_are_removed_later(store, monkeypatch):
    store.put("words", {"key_words": text_to_array("porcelain violin")})
    later = time.time() + 3600
    monkeypatch.setattr("time.time_ns", lambda: int(later * 1e9))
    assert store.get("words") is not None
    store.forget_words(before=later - 60)
    assert store.get("words") is not None
    store.forget_words(before=later + 60)
    assert store.get("words") is None


def test_the_folder_of_a_new_store_is_its_owners_alone_and_another_keeps_its_permissions(tmp_path):
    shared = tmp_path / "shared"
    shared.mkdir(mode=0o755)
    for folder, mode in ((tmp_path / "new", 0o700), (shared, 0o755)):
        Store(folder).close()
        assert folder.stat().st_mode & 0o777 == mode


def test_the_home_folder_may_be_named_in_short(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ATTENTION_SIEVE_CACHE", "~/kept")
    assert results_path() == tmp_path / "kept" / "results.sqlite"
