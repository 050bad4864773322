"""The SQLite file that `cache.store` keeps results in: its tables, its rows, and how it stays within its bound."""

import json
import sqlite3
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

FORMAT: Final = 1
"""Layout of the file; a file with another number is set aside."""
KEPT_SHARE: Final = 0.9
"""How much of the bound stays taken after the least recently used results have gone."""

SCHEMA: Final = (
    "CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, checksum BLOB NOT NULL, "
    "value BLOB NOT NULL)",
    # Apart from the values, so that noting a use never rewrites an attention map of many megabytes.
    "CREATE TABLE uses (id INTEGER PRIMARY KEY REFERENCES results ON DELETE CASCADE, bytes INTEGER NOT NULL, "
    "used INTEGER NOT NULL)",
    "CREATE INDEX oldest ON uses (used)",
)
NEXT_USE: Final = "(SELECT coalesce(max(used), 0) + 1 FROM uses)"
WAIT_SECONDS: Final = 10
JOURNAL_BYTES: Final = 16 * 2**20
LARGEST_ROW: Final = 999_000_000  # SQLite takes 10**9 bytes a row, key and checksum included
# The statements are fixed, so a refused one (SQLITE_ERROR) or a broken constraint means a file that is not in order.
DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}


class Unfit(sqlite3.DatabaseError):
    """The file is sound, but not one that this version writes."""


def is_damage(error: Exception) -> bool:
    """Whether an error says that the file itself is not in order."""
    return isinstance(error, Unfit) or getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE


def prepare(connection: sqlite3.Connection) -> None:
    """Settle how the file is written, and lay the tables in an empty one.

    Raises:
        Unfit: the file has another format or other tables.
    """
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged row may hold any bytes
    connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    is_laid = _is_laid(connection)
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
    if not is_laid:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in () if _is_laid(connection) else (*SCHEMA, f"PRAGMA user_version = {FORMAT}"):
                connection.execute(statement)


def _is_laid(connection: sqlite3.Connection) -> bool:
    """Whether the tables are there; raises Unfit where others are."""
    version = _pragma(connection, "user_version")
    statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if version != FORMAT and (version or statements):
        raise Unfit(f"their file has format {version}, and this version of the program writes format {FORMAT}")
    if version and statements != set(SCHEMA):
        raise Unfit("their file holds other tables than this version of the program writes")
    return bool(version)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def checksum_of(key: str, value: bytes) -> bytes:
    """Digest of a row, its key included: a value under another key is damage too."""
    digest = blake2b(key.encode(), digest_size=16)
    digest.update(value)
    return digest.digest()


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as safetensors bytes."""
    # safetensors writes memory as it lies, so every array has to lie in C order.
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def unpack(key: str, checksum: object, value: object) -> dict[str, np.ndarray] | None:
    """Arrays of a row, or None where the row is damaged."""
    if not isinstance(value, bytes) or checksum != checksum_of(key, value):
        return None
    try:
        return load(value)
    except SafetensorError:
        return None


def rows(connection: sqlite3.Connection, keys: Sequence[str]) -> list[tuple]:
    """Id, key, checksum and value of those keys that are kept."""
    query = "SELECT id, key, checksum, value FROM results WHERE key IN (SELECT value FROM json_each(?))"
    return connection.execute(query, (json.dumps(list(keys)),)).fetchall()


def note_read(connection: sqlite3.Connection, read: list[int], damaged: list[int]) -> None:
    """Mark rows as just used and remove damaged ones, or do neither where that would have to wait."""
    listed = "id IN (SELECT value FROM json_each(?))"
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        with suppress(sqlite3.OperationalError), connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(f"UPDATE uses SET used = {NEXT_USE} WHERE {listed}", (json.dumps(read),))
            connection.execute(f"DELETE FROM results WHERE {listed}", (json.dumps(damaged),))
    finally:
        connection.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")


def insert(connection: sqlite3.Connection, packed: Mapping[str, bytes], limit: int) -> bool:
    """Write all rows in one transaction, and remove old ones until they fit."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        now = connection.execute(f"SELECT {NEXT_USE}").fetchone()[0]
        for key, value in packed.items():
            connection.execute("DELETE FROM results WHERE key = ?", (key,))
            row = (key, checksum_of(key, value), value)
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


def clear(connection: sqlite3.Connection) -> None:
    """Remove every row and give the space back."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("DELETE FROM results")
    connection.executescript("PRAGMA incremental_vacuum; PRAGMA wal_checkpoint(TRUNCATE)")
