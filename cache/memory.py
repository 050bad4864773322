"""The memory of findings: what is computed from answers or read from uploads, for all analyses and readers; and limits
that environment variables set."""

import os
import sys
import time
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from itertools import count
from threading import Lock
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeVar
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from attention_sieve.core.errors import AnalysisError

DEFAULT_MEGABYTES: Final = 256
LAST: Final = 4
"""Values of each name that stay for a session whatever their size: a page about a large corpus needs several."""
SHARED: Final = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, type(None), bool)
"""Types of objects that no value owns."""
WITHOUT_PARTS: Final = (str, bytes, int, float)

Value = TypeVar("Value")
_numbers: Final = count()


def new_number() -> int:
    """A unique number, used as the key of something derived from a large object.

    With the large object itself in the key, a small value would hold it, and count with its size.
    """
    return next(_numbers)


@dataclass(eq=False)
class _Entry:
    key: tuple[str, Hashable]
    value: Any
    n_bytes: int
    """Of the value and the key, which it holds too."""
    since: float
    """In seconds since 1970."""


class Memory:
    """Values by name and key, within a number of bytes; those used least recently go first. Thread-safe.

    The last values of each name that a session used stay whatever their size, so that the next run of its page finds
    them. Values without a session count as those of one more.

    Attributes:
        session: returns the session of the calling thread, or None.
    """

    def __init__(self, limit_bytes: int | None = None, session: Callable[[], object | None] = lambda: None) -> None:
        """Begin empty.

        Args:
            limit_bytes: None for the megabytes in ATTENTION_SIEVE_MEMORY_MB, or else 256 MiB.
            session: returns the session of the calling thread, or None. Sessions are held weakly: what stays for one
                does so no longer than the object lives.

        Raises: AnalysisError: ATTENTION_SIEVE_MEMORY_MB is not a whole number.
        """
        if limit_bytes is None:
            advice = f"{DEFAULT_MEGABYTES}, to 0 to keep only what is on screen, or remove it"
            limit_bytes = limit_from("ATTENTION_SIEVE_MEMORY_MB", advice)
        self._limit = DEFAULT_MEGABYTES * 2**20 if limit_bytes is None else limit_bytes
        self.session = session
        self._entries: OrderedDict[tuple[str, Hashable], _Entry] = OrderedDict()
        """The least recently used first."""
        self._last: WeakKeyDictionary[object, defaultdict[str, OrderedDict[_Entry, None]]] = WeakKeyDictionary()
        """The last entries of each session, by name; the least recently used first."""
        self._size = 0
        self._lock = Lock()
        with _memories_lock:
            _memories.add(self)

    @property
    def size(self) -> int:
        """Total size of the values and their keys, in bytes."""
        return self._size

    def get(self, name: str, key: Hashable) -> Any:
        """The value, or None."""
        with self._lock:
            entry = self._entries.get((name, key))
        return None if entry is None else self._used(entry)

    def put(self, name: str, key: Hashable, value: Value) -> Value:
        """Keep a value, unless another thread has kept one since; return the one that is kept. Values of one name have
        one type; a value is measured now, and what it computes and holds later is not counted.

        All threads thus share one object, and what is derived from it is computed once."""
        entry = _Entry((name, key), value, size_of((name, key, value)), time.time())
        with self._lock:
            kept = self._entries.setdefault(entry.key, entry)
            self._size += entry.n_bytes if kept is entry else 0
        return self._used(kept)

    def get_or_put(self, name: str, key: Hashable, make: Callable[[], Value]) -> Value:
        """The value, made and kept if there is none; None from `make` is not kept."""
        value = self.get(name, key)
        if value is None and (value := make()) is not None:
            value = self.put(name, key, value)
        return value

    def forget(self, before: float) -> None:
        """Drop all values that were put before a time, in seconds since 1970."""
        with self._lock:
            for entry in [entry for entry in self._entries.values() if entry.since < before]:
                self._drop(entry)

    def _used(self, entry: _Entry) -> Any:
        """Make an entry the last one used, drop what has no room, and return the value."""
        session = self.session() or self  # outside of the lock: Streamlit may end the run of a page here
        name, _ = entry.key
        with self._lock:
            if self._entries.get(entry.key) is entry:
                self._entries.move_to_end(entry.key)
                last = self._last.setdefault(session, defaultdict(OrderedDict))[name]
                last[entry] = None
                last.move_to_end(entry)
                if len(last) > LAST:
                    last.popitem(last=False)
                self._make_room()
        return entry.value

    def _make_room(self) -> None:
        if self._size <= self._limit:
            return
        stay = {entry for by_name in self._last.values() for last in by_name.values() for entry in last}
        for entry in list(self._entries.values()):
            if self._size <= self._limit:
                return
            if entry not in stay:
                self._drop(entry)

    def _drop(self, entry: _Entry) -> None:
        name, _ = entry.key
        del self._entries[entry.key]
        self._size -= entry.n_bytes
        for by_name in self._last.values():
            by_name[name].pop(entry, None)


_memories: Final[WeakSet[Memory]] = WeakSet()
_memories_lock: Final = Lock()


def forget_everywhere(before: float) -> None:
    """Drop from all memories of this process what was put before a time, in seconds since 1970."""
    with _memories_lock:
        memories = list(_memories)
    for memory in memories:
        memory.forget(before)


def size_of(value: object) -> int:
    """Bytes that a value holds: arrays with what they are views of, and everything in containers and fields.

    Each object counts once; functions, classes and modules, which no value owns, count nothing.
    """
    size, seen = 0, set[int]()
    rest: list[Any] = [value]
    while rest:
        held = rest.pop()
        if id(held) in seen or isinstance(held, SHARED):
            continue
        seen.add(id(held))
        size += sys.getsizeof(held)
        if isinstance(held, WITHOUT_PARTS):
            continue
        if isinstance(held, list | tuple | set | frozenset):
            rest += held
        elif isinstance(held, dict):
            rest += held.keys()
            rest += held.values()
        elif isinstance(held, np.ndarray):
            size_of_view, parts = _behind(held)
            size += size_of_view
            rest += parts
        elif names := getattr(held, "__dataclass_fields__", ()):  # vars() would give each object a new dictionary
            rest += [getattr(held, name) for name in names]
        elif hasattr(held, "__dict__"):
            rest.append(vars(held))
    return size


def _behind(array: np.ndarray) -> tuple[int, list[Any]]:
    """Bytes of an array that sys.getsizeof leaves out, and objects that it holds."""
    if isinstance(array.base, np.ndarray | bytes):
        return 0, [array.base]
    if array.base is not None:  # such as a tensor, which does not tell sys.getsizeof what it holds
        return array.nbytes, []
    return 0, array.ravel().tolist() if array.dtype == object else []


def limit_from(variable: str, advice: str) -> int | None:
    """A limit in bytes, from a variable that holds megabytes; None where it is not set. The advice says what to set it
    to, after "such as".

    Raises: AnalysisError if it is not a whole number.
    """
    megabytes = os.environ.get(variable)
    if not megabytes:
        return None
    if not (megabytes.isascii() and megabytes.isdigit()):
        raise AnalysisError(
            f"{variable} is {megabytes!r}, which is not a whole number of megabytes. Set it to a number such as "
            f"{advice}."
        )
    return int(megabytes) * 2**20
