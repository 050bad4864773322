"""The memory of findings: its bound, what stays for each session, what is forgotten, threads, and sizes."""

import gc
import sys
import time
import tracemalloc
import weakref
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Barrier

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from attention_sieve.cache.memory import LAST, Memory, forget_everywhere, size_of

KB = 1000


class Session:
    """A session, which ends as the last reference to it goes."""


class Readers:
    """Sessions that share a memory; `now` is the one whose thread this is."""

    def __init__(self, limit_bytes):
        self.now = None
        self.memory = Memory(limit_bytes, lambda: self.now)

    def put(self, session, name, key, n_bytes):
        self.now = session
        self.memory.put(name, key, bytes(n_bytes))

    def has(self, session, name, key):
        self.now = session
        return self.memory.get(name, key) is not None


def test_the_least_recently_used_goes_when_the_bytes_are_passed():
    readers = Readers(LAST * 40 * KB + 70 * KB)
    for key in "ab":
        readers.put(None, "x", key, 40 * KB)
    for key in range(LAST - 1):
        readers.put(None, "x", key, 40 * KB)
    assert readers.has(None, "x", "a")
    readers.put(None, "x", "c", 40 * KB)
    assert [readers.has(None, "x", key) for key in "abc"] == [True, False, True]


READERS, NAMES, KEYS = range(2), "xy", range(12)
STEP = st.tuples(st.sampled_from(READERS), st.sampled_from(NAMES), st.sampled_from(KEYS), st.integers(0, 50))


@settings(max_examples=60, deadline=None)
@given(limit=st.integers(0, 200), steps=st.lists(STEP, min_size=20, max_size=60))
def test_no_more_than_the_limit_is_held_beside_the_last_values_of_each_session(limit, steps):
    """Against the rule written another way: the last uses of each reader and name are looked up in a list of all."""
    readers, sessions = Readers(limit * KB), [Session() for _ in READERS]
    uses, sizes = [], {}
    for who, name, key, n_kilobytes in steps:
        if not readers.has(sessions[who], name, key):
            readers.put(sessions[who], name, key, n_kilobytes * KB)
            sizes[name, key] = size_of((name, key, bytes(n_kilobytes * KB)))
        uses.append((who, name, key))
        stay = set()
        for reader in READERS:
            for kind in NAMES:
                own = [use[1:] for use in reversed(uses) if use[:2] == (reader, kind)]
                stay |= set(list(dict.fromkeys(own))[:LAST])
        assert readers.memory.size <= max(limit * KB, sum(sizes[entry] for entry in stay))
    held = {(name, key) for name in NAMES for key in KEYS if readers.has(Session(), name, key)}
    assert stay <= held
    assert readers.memory.size == sum(sizes[entry] for entry in held)


def test_the_last_values_of_each_session_stay_whatever_their_size_until_it_ends():
    readers, ends, stays = Readers(0), Session(), Session()
    for session in (ends, stays):
        for key in range(LAST + 1):
            readers.put(session, "x", (id(session), key), 100 * KB)
    assert [readers.has(ends, "x", (id(ends), key)) for key in range(LAST + 1)] == [False] + LAST * [True]
    before, gone = readers.memory.size, weakref.ref(ends)
    readers.now = session = None
    of_ended = id(ends)
    del ends
    gc.collect()
    assert gone() is None, "the memory does not hold a session"
    readers.put(stays, "y", 0, 0)
    assert [readers.has(stays, "x", (of_ended, key)) for key in range(LAST + 1)] == (LAST + 1) * [False]
    assert all(readers.has(stays, "x", (id(stays), key)) for key in range(1, LAST + 1))
    assert readers.memory.size < 0.51 * before


def test_many_values_of_one_name_do_not_push_out_those_of_another_that_the_session_uses():
    readers, session = Readers(0), Session()
    readers.put(session, "answers", "corpus", 100 * KB)
    for key in range(100):
        readers.put(session, "trial", key, KB)
    assert readers.has(session, "answers", "corpus")


def test_every_memory_forgets_what_was_put_before_a_time_even_if_it_was_used_since():
    session = Session()
    first, second = Memory(100 * KB, lambda: session), Memory(100 * KB)
    value = Session()
    first.put("x", "a", value)
    second.put("x", "b", (1, 2))
    put, left = time.time(), weakref.ref(value)
    del value
    assert first.get("x", "a") is left()
    forget_everywhere(before=put - 60)
    assert second.get("x", "b") == (1, 2)
    forget_everywhere(before=put + 1)
    gc.collect()
    assert (left(), first.get("x", "a"), second.get("x", "b"), first.size, second.size) == (None, None, None, 0, 0)


def test_a_value_is_made_once_until_it_is_forgotten_and_none_is_not_kept():
    memory, made = Memory(10 * KB), []

    def make():
        made.append(len(made))
        return tuple(made)

    assert memory.get_or_put("x", "a", make) is memory.get_or_put("x", "a", make)
    assert memory.get_or_put("y", "a", make) == (0, 1), "another name is another value"
    memory.forget(before=time.time() + 1)
    assert memory.get_or_put("x", "a", make) == (0, 1, 2)
    assert memory.get_or_put("z", "a", lambda: None) is None
    assert memory.get_or_put("z", "a", make) == (0, 1, 2, 3)


def test_threads_that_make_one_value_at_once_share_the_first():
    memory, all_make = Memory(10 * KB), Barrier(8, timeout=30)

    def make():
        all_make.wait()
        return object()

    with ThreadPoolExecutor(8) as threads:
        values = list(threads.map(lambda _: memory.get_or_put("x", "a", make), range(8)))
    assert len({id(value) for value in values}) == 1
    assert memory.size == size_of(("x", "a", values[0]))


def test_threads_that_put_get_and_forget_leave_the_size_right():
    memory = Memory(40 * KB, lambda: None)

    def use(seed):
        chance = np.random.default_rng(seed)
        for _ in range(300):
            name, key = str(chance.integers(3)), int(chance.integers(20))
            value = memory.get_or_put(name, key, lambda: bytes(int(chance.integers(1, 5 * KB))))
            assert isinstance(value, bytes)
            if chance.random() < 0.02:
                memory.forget(time.time() - 0.001)

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, range(8)))
    held = [(name, key, memory.get(name, key)) for name in "012" for key in range(20)]
    assert memory.size == sum(size_of(entry) for entry in held if entry[2] is not None)
    memory.forget(time.time() + 1)
    assert memory.size == 0


@dataclass(frozen=True, eq=False)
class Finding:
    scores: np.ndarray
    parts: dict[str, tuple[np.ndarray, ...]] = field(default_factory=dict)


def test_the_size_of_a_finding_is_that_of_its_arrays_each_counted_once():
    scores, other = np.zeros((100, 50)), np.ones((7, 1000), np.float32)
    finding = Finding(scores, {"both": (other, scores)})
    arrays = scores.nbytes + other.nbytes
    assert arrays < size_of(finding) < arrays + 2000


def test_a_size_is_what_python_allocates():
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        findings = [Finding(np.ones((n, 7)), {f"part {n}": (np.zeros(n, np.float32),)}) for n in range(1, 300)]
        after, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert size_of(findings) == pytest.approx(after - before, rel=0.05)


def test_a_view_counts_with_all_that_it_holds():
    whole = np.zeros(100_000)
    assert size_of(whole[:5]) > whole.nbytes
    packed = bytes(100_000)
    assert size_of(np.frombuffer(packed, np.uint8)[:5]) > len(packed)
    assert 400 < size_of(np.frombuffer(bytearray(400), np.uint8)) < 1000


def test_texts_and_objects_in_arrays_count_and_functions_do_not():
    words = ["".join(chr(97 + i) for i in range(20)) * 10 for _ in range(30)]
    assert size_of(np.array(words, object)) > 30 * 200
    assert size_of((size_of, Session, np, None)) == sys.getsizeof((1, 2, 3, 4))


def test_nothing_counts_as_a_byte():
    memory = Memory(KB)
    memory.put("x", 1, 2)
    assert memory.size > 100


@pytest.mark.parametrize(("megabytes", "limit"), [("7", 7), ("", 256)])
def test_the_limit_is_that_of_the_environment(monkeypatch, megabytes, limit):
    monkeypatch.setenv("ATTENTION_SIEVE_MEMORY_MB", megabytes)
    memory = Memory()
    for key in range(limit + 3):
        memory.put("x", key, bytes(2**20))
    assert (limit - 2) * 2**20 < memory.size <= limit * 2**20
