"""Key -> named arrays on disk: one SQLite file, bounded and safe against crashes, shared by threads and processes.

A store never stands in the way of a result: where its file is damaged or cannot be written, the analysis goes on
without it and `Store.warning` says so. Arrays are kept as safetensors bytes; nothing that is read back can run code.
"""

import json
import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np
from jaxtyping import UInt8
from platformdirs import user_cache_path
from safetensors import SafetensorError
from safetensors.numpy import load, save

from core.errors import AnalysisError

FORMAT: Final = 1
"""Layout of the file; a file with another number is set aside."""
DEFAULT_MEGABYTES: Final = 2048
LARGEST_SHARE: Final = 0.5
"""A result larger than this share of the bound is not kept: it would push out most of the others."""
KEPT_SHARE: Final = 0.9
"""How much of the bound stays taken after the least recently used results have gone."""

_SCHEMA: Final = (
    "CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, checksum BLOB NOT NULL, "
    "value BLOB NOT NULL)",
    # Apart from the values, so that noting a use never rewrites an attention map of many megabytes.
    "CREATE TABLE uses (id INTEGER PRIMARY KEY REFERENCES results ON DELETE CASCADE, bytes INTEGER NOT NULL, "
    "used INTEGER NOT NULL)",
    "CREATE INDEX oldest ON uses (used)",
)
_NEXT_USE: Final = "(SELECT coalesce(max(used), 0) + 1 FROM uses)"
_WAIT_SECONDS: Final = 10
_JOURNAL_BYTES: Final = 16 * 2**20
_LARGEST_ROW: Final = 999_000_000  # SQLite takes 10**9 bytes a row, key and checksum included
# The statements are fixed, so a refused one (SQLITE_ERROR) or a broken constraint means a file that is not in order.
_DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}

Answer = TypeVar("Answer")


class _Unfit(sqlite3.DatabaseError):
    """The file is sound, but not one that this version writes."""


class Store:
    """Results on disk by key; every method may be called from any thread.

    Attributes:
        folder: where the file lies.
        path: the file.
        limit_bytes: bound of the file; its journal takes up to 16 MiB more, or a few times a larger `put_many`.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        """Open the file, or go on without one and say so in `warning`.

        Args:
            folder: None for the folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder.
            limit_bytes: None for the megabytes in ATTENTION_SIEVE_CACHE_MB, or else 2 GiB.
        Raises:
            AnalysisError: ATTENTION_SIEVE_CACHE_MB is not a whole number.
        """
        self.folder = folder or Path(os.environ.get("ATTENTION_SIEVE_CACHE") or user_cache_path("attention-sieve"))
        self.path = self.folder / "results.sqlite"
        self.limit_bytes = _limit_from_environment() if limit_bytes is None else limit_bytes
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        self._inode = 0
        self._set_aside_notice = self._unusable_notice = ""
        self._n_damaged = 0
        self._use(lambda connection: None, None)

    @property
    def warning(self) -> str | None:
        """What the reader should know, in sentences; None while all is well."""
        n, were = self._n_damaged, "result was" if self._n_damaged == 1 else "results were"
        damaged = f"{n:,} stored {were} damaged and removed; what is missing is computed again." if n else ""
        return " ".join(filter(None, (self._set_aside_notice, self._unusable_notice, damaged))) or None

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """Arrays kept under a key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
        """Arrays of those keys that are kept; the others are absent.

        A read never waits to note that it took place: while another process writes, the note is dropped, and at worst a
        result later goes before its turn.
        """
        rows: list[tuple] = self._use(lambda connection: _rows(connection, keys), [])
        unpacked = [(row_id, key, _unpack(key, checksum, value)) for row_id, key, checksum, value in rows]
        damaged = [row_id for row_id, _, arrays in unpacked if arrays is None]
        read = [row_id for row_id, _, arrays in unpacked if arrays is not None]
        if rows:
            self._use(lambda connection: _note_read(connection, read, damaged), None)
        with self._lock:
            self._n_damaged += len(damaged)
        return {key: arrays for _, key, arrays in unpacked if arrays is not None}

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays under a key, in place of what was there."""
        self.put_many({key: arrays})

    def put_many(self, results: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Keep all these results or, if the process dies, none; any larger than half the bound is left out.

        Raises:
            SafetensorError: an array's type cannot be kept, such as text or objects.
        """
        largest = min(LARGEST_SHARE * self.limit_bytes, _LARGEST_ROW)
        packed = {key: value for key, arrays in results.items() if len(value := _pack(arrays)) <= largest}
        if packed:
            is_kept: bool = self._use(lambda connection: _insert(connection, packed, self.limit_bytes), False)
            self._unusable_notice = "" if is_kept else self._unusable_notice

    def size(self) -> tuple[int, int]:
        """How many results are kept, and their bytes."""
        count = "SELECT count(*), coalesce(sum(bytes), 0) FROM uses"
        return self._use(lambda connection: connection.execute(count).fetchone(), (0, 0))

    def clear(self) -> None:
        """Remove every result and give the space back."""
        self._use(_clear, None)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        with self._lock:
            self._disconnect()

    def _use(self, work: Callable[[sqlite3.Connection], Answer], otherwise: Answer) -> Answer:
        """What `work` gives, or `otherwise` and a notice; a damaged file is set aside and `work` done on a new one."""
        with self._lock:
            try:
                try:
                    return work(self._connected())
                except sqlite3.DatabaseError as error:
                    if not _is_damage(error):
                        raise
                    self._set_aside(str(error))
                return work(self._connected())
            except (sqlite3.DatabaseError, OSError) as error:
                if not (isinstance(error, sqlite3.OperationalError | OSError) or _is_damage(error)):
                    raise
                self._unusable_notice = (
                    f"Results cannot be kept in {self.folder} or found there: {error}. The analysis goes on without "
                    "them. Make room there, or name another folder in ATTENTION_SIEVE_CACHE."
                )
        return otherwise

    def _connected(self) -> sqlite3.Connection:
        """The one connection, opened and its file prepared unless that has happened."""
        if self._connection is None:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Autocommit: every transaction is begun by name.
            connection = sqlite3.connect(self.path, _WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            try:
                self._inode = self.path.stat().st_ino
                _prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def _disconnect(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _set_aside(self, reason: str) -> None:
        """Rename the file and its journal, unless another process has already put a new file in its place."""
        self._disconnect()
        if not self.path.exists() or self.path.stat().st_ino != self._inode:
            return
        stem = f"{self.path.stem}.set-aside-{datetime.now():%Y%m%d-%H%M%S}"
        n_before = len(list(self.folder.glob(f"{stem}*.sqlite")))
        target = self.folder / (f"{stem}-{n_before + 1}.sqlite" if n_before else f"{stem}.sqlite")
        for suffix in ("-wal", "-shm", ""):  # the file last: a new one must never meet the old journal
            with suppress(FileNotFoundError):
                Path(f"{self.path}{suffix}").rename(f"{target}{suffix}")
        self._set_aside_notice = (
            f"Stored results could not be read: {reason}. They were set aside as {target} and a new file was begun; "
            "results are computed again. Delete the old file if you do not need it."
        )


def text_to_array(value: str) -> UInt8[np.ndarray, " byte"]:
    """Text as an array that can be kept beside others; any Python text, lone surrogates included."""
    return np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)


def array_to_text(array: UInt8[np.ndarray, " byte"]) -> str:
    """Text that `text_to_array` was given."""
    return array.tobytes().decode("utf-8", "surrogatepass")


def _limit_from_environment() -> int:
    named = os.environ.get("ATTENTION_SIEVE_CACHE_MB") or str(DEFAULT_MEGABYTES)
    if not (named.isascii() and named.isdigit()):
        raise AnalysisError(
            f"ATTENTION_SIEVE_CACHE_MB is {named!r}, which is not a whole number of megabytes. "
            f"Set it to a number such as {DEFAULT_MEGABYTES}, to 0 to keep nothing, or remove it."
        )
    return int(named) * 2**20


def _is_damage(error: Exception) -> bool:
    return isinstance(error, _Unfit) or getattr(error, "sqlite_errorcode", 0) & 0xFF in _DAMAGE


def _prepare(connection: sqlite3.Connection) -> None:
    """Settle how the file is written, and lay the tables in an empty one.

    Raises:
        _Unfit: the file has another format or other tables.
    """
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged row may hold any bytes
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    is_laid = _is_laid(connection)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA journal_size_limit = {_JOURNAL_BYTES}")
    if not is_laid:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in () if _is_laid(connection) else (*_SCHEMA, f"PRAGMA user_version = {FORMAT}"):
                connection.execute(statement)


def _is_laid(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there; raises _Unfit where others are."""
    version = _pragma(connection, "user_version")
    statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if version != FORMAT and (version or statements):
        raise _Unfit(f"their file has format {version}, and this version of the program writes format {FORMAT}")
    if version and statements != set(_SCHEMA):
        raise _Unfit("their file holds other tables than this version of the program writes")
    return bool(version)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def _checksum(key: str, value: bytes) -> bytes:
    """Digest of a row, its key included: a value under another key is damage too."""
    digest = blake2b(key.encode(), digest_size=16)
    digest.update(value)
    return digest.digest()


def _pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    # safetensors writes memory as it lies, so every array has to lie in C order.
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def _unpack(key: str, checksum: object, value: object) -> dict[str, np.ndarray] | None:
    """Arrays of a row, or None where the row is damaged."""
    if not isinstance(value, bytes) or checksum != _checksum(key, value):
        return None
    try:
        return load(value)
    except SafetensorError:
        return None


def _rows(connection: sqlite3.Connection, keys: Sequence[str]) -> list[tuple]:
    query = "SELECT id, key, checksum, value FROM results WHERE key IN (SELECT value FROM json_each(?))"
    return connection.execute(query, (json.dumps(list(keys)),)).fetchall()


def _note_read(connection: sqlite3.Connection, read: list[int], damaged: list[int]) -> None:
    """Mark rows as just used and remove damaged ones, or do neither where that would have to wait."""
    listed = "id IN (SELECT value FROM json_each(?))"
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with suppress(sqlite3.OperationalError), connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"UPDATE uses SET used = {_NEXT_USE} WHERE {listed}", (json.dumps(read),))
            connection.execute(f"DELETE FROM results WHERE {listed}", (json.dumps(damaged),))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {_WAIT_SECONDS * 1000}")


def _insert(connection: sqlite3.Connection, packed: Mapping[str, bytes], limit: int) -> bool:
    """Write all rows in one transaction, and remove old ones until they fit."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        now = connection.execute(f"SELECT {_NEXT_USE}").fetchone()[0]
        for key, value in packed.items():
            connection.execute("DELETE FROM results WHERE key = ?", (key,))
            row = (key, _checksum(key, value), value)
            row_id = connection.execute("INSERT INTO results (key, checksum, value) VALUES (?, ?, ?)", row).lastrowid
            connection.execute("INSERT INTO uses VALUES (?, ?, ?)", (row_id, len(value), now))
        _make_room(connection, limit)
    return True


def _make_room(connection: sqlite3.Connection, limit: int) -> None:
    """Remove the least recently used results where the bound is passed, and cut the file back to it."""
    page = _pragma(connection, "page_size")

    def taken() -> int:
        return (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * page

    passed = (
        "SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY used, id) - bytes AS before FROM uses) WHERE before < ?"
    )
    goal = KEPT_SHARE * limit if taken() > limit else limit
    while (excess := taken() - goal) > 0:
        if connection.execute(f"DELETE FROM results WHERE id IN ({passed})", (excess,)).rowcount == 0:
            break
    over = _pragma(connection, "page_count") - limit // page
    for _ in range(min(over, _pragma(connection, "freelist_count"))):
        connection.execute("PRAGMA incremental_vacuum(1)")  # sqlite3 stops after one page, however many are named


def _clear(connection: sqlite3.Connection) -> None:
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM results")
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
