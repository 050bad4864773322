"""The SQLite file of `attention_sieve.cache.store.store`: opened, locked and set aside; its tables, rows and size."""

import json
import sqlite3
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from hashlib import blake2b
from pathlib import Path
from threading import Lock
from typing import Final

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attention_sieve.core.checkpoints.folders import make_private
from attention_sieve.core.json_values import parse_json

WAIT_SECONDS: Final = 10


class Access:
    """One connection to the file, for one thread at a time; opened on first use.

    Attributes:
        path: the file.
        lock: must be held while the connection is used.
        inode: the file opened last; the path may since name another file.
        trouble: why the last use failed, or None.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.lock = Lock()
        self.inode = 0
        self.trouble: Exception | None = None
        self._connection: sqlite3.Connection | None = None

    def connected(self) -> sqlite3.Connection:
        """The connection; a new one if the file was set aside or removed by another process."""
        if self._connection is not None and not (self.path.exists() and self.path.stat().st_ino == self.inode):
            self.close()
        if self._connection is None:
            make_private(self.path.parent)
            connection = connect(self.path)
            try:
                self.inode = self.path.stat().st_ino
                prepare(connection)
            except BaseException:
                connection.close()
                raise
            self._connection = connection
        return self._connection

    def close(self) -> None:
        """Close the file; a later use opens it again."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None


def connect(path: Path) -> sqlite3.Connection:
    """A connection that any thread may use, but only one at a time.

    Raises: sqlite3.OperationalError if the file cannot be opened.
    """
    # Autocommit: transactions are begun explicitly.
    connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged row may hold any bytes
    return connection


def connect_to_read(path: Path) -> sqlite3.Connection:
    """A connection to a file that this process may only read, or whose folder it may only read.

    SQLite reads such a file if it has a journal, as that of a running program; or if told that nobody writes to it.

    Raises: sqlite3.OperationalError if the file cannot be opened; Newer, Unfit as `prepare`.
    """
    has_journal = Path(f"{path}-wal").exists()
    place = f"{path.absolute().as_uri()}?mode=ro{'' if has_journal else '&immutable=1'}"
    connection = sqlite3.connect(place, WAIT_SECONDS, uri=True)
    if not is_ours(connection):
        raise Unfit("their file is empty")
    return connection


@contextmanager
def without_waiting(connection: sqlite3.Connection) -> Iterator[None]:
    """Context in which statements fail immediately instead of waiting for another connection."""
    connection.execute("PRAGMA busy_timeout = 0")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA busy_timeout = {WAIT_SECONDS * 1000}")


def set_aside(path: Path, inode: int) -> Path | None:
    """Rename the file and its journal; None if another process has already replaced the file."""
    if not path.exists() or path.stat().st_ino != inode:
        return None
    stem = f"{path.stem}.set-aside-{datetime.now():%Y%m%d-%H%M%S}"
    n_before = len(list(path.parent.glob(f"{stem}*.sqlite")))
    target = path.with_name(f"{stem}-{n_before + 1}.sqlite" if n_before else f"{stem}.sqlite")
    for suffix in ("-wal", "-shm", ""):  # the file last: a new one must never meet the old journal
        with suppress(FileNotFoundError):
            Path(f"{path}{suffix}").rename(f"{target}{suffix}")
    return target


def files_set_aside(path: Path) -> list[Path]:
    """All files that were set aside next to this one, journals included."""
    return sorted(path.parent.glob(f"{path.stem}.set-aside-*"))


FORMAT: Final = 1
"""Layout of the file; a file with a lower number is set aside, and one with a higher number is left as it is."""
KEPT_SHARE: Final = 0.9
"""Share of the size limit that remains in use after the least recently used results are removed."""

SCHEMA: Final = (
    "CREATE TABLE results (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, checksum BLOB NOT NULL, "
    "value BLOB NOT NULL)",
    # Separate from the values, so that noting a use never rewrites an attention map of many megabytes. `used` is in
    # microseconds since 1970, slightly increased where several uses would be equal; older files counted from 1.
    "CREATE TABLE uses (id INTEGER PRIMARY KEY REFERENCES results ON DELETE CASCADE, bytes INTEGER NOT NULL, "
    "used INTEGER NOT NULL)",
    "CREATE INDEX oldest ON uses (used)",
)
JOURNAL_BYTES: Final = 16 * 2**20
"""Length to which the journal is truncated after a write."""
AT_ONCE: Final = 5000
"""Rows noted or removed in one transaction, so that other processes do not wait long."""
TURN_SECONDS: Final = 0.02
WORD_ARRAYS: Final = ("source tokens", "target tokens", "key_words")
"""Names of the arrays that hold words of a text: of its attention, and of what heads attend to on its surface."""
LONGEST_HEAD: Final = 4096
UNREADABLE: Final = "unreadable"
LARGEST_ROW: Final = 999_000_000  # SQLite takes 10**9 bytes a row, key and checksum included
# The statements are fixed, so a rejected one (SQLITE_ERROR) or a violated constraint means that the file is damaged.
MAY_NOT_WRITE: Final = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}
DAMAGE: Final = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_ERROR, sqlite3.SQLITE_CONSTRAINT}


class Unfit(sqlite3.DatabaseError):
    """The file is intact, but not one that this version writes."""


class Newer(sqlite3.OperationalError):
    """The file was written by a newer version of the program, which may still use it."""


def is_damage(error: Exception) -> bool:
    """Whether an error means that the file itself is damaged."""
    return isinstance(error, Unfit) or getattr(error, "sqlite_errorcode", 0) & 0xFF in DAMAGE


def may_not_write(error: Exception) -> bool:
    """Whether an error means that this process may only read the file, if that."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in MAY_NOT_WRITE


def prepare(connection: sqlite3.Connection) -> None:
    """Set the pragmas, and create the tables in an empty file.

    Raises: Newer for a later format; Unfit for an earlier format or other tables.
    """
    with connection:
        connection.execute("BEGIN")  # a consistent view, even if another process is creating the tables
        is_laid = is_ours(connection)
    if not is_laid:
        # Only for a new file: it always writes, and opening must not wait for a writer or fail on a full disk.
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
    for setting in ("journal_mode = WAL", "synchronous = NORMAL", "foreign_keys = ON"):
        connection.execute(f"PRAGMA {setting}")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_BYTES}")
    if not is_laid:
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            for statement in () if is_ours(connection) else (*SCHEMA, f"PRAGMA user_version = {FORMAT}"):
                connection.execute(statement)


def is_ours(connection: sqlite3.Connection) -> bool:
    """Whether the tables exist.

    Raises: Newer for a later format; Unfit for an earlier format or other tables.
    """
    version = _pragma(connection, "user_version")
    if version > FORMAT:
        raise Newer(f"their file has format {version}, and this version of the program writes format {FORMAT}")
    statements = {sql for (sql,) in connection.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if version != FORMAT and (version or statements):
        raise Unfit(f"their file has format {version}, and this version of the program writes format {FORMAT}")
    if version and statements != set(SCHEMA):
        raise Unfit("their file holds other tables than this version of the program writes")
    return bool(version)


def _pragma(connection: sqlite3.Connection, name: str) -> int:
    return connection.execute(f"PRAGMA {name}").fetchone()[0]


def checksum_of(key: str, value: bytes) -> bytes:
    """Digest of a row including its key: a value under the wrong key is damage too."""
    digest = blake2b(key.encode(), digest_size=16)
    digest.update(value)
    return digest.digest()


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Arrays as safetensors bytes."""
    # safetensors writes the memory as it is, so every array must be in C order.
    return save({name: np.asarray(array, order="C") for name, array in arrays.items()})


def unpack(key: object, checksum: object, value: object) -> dict[str, np.ndarray] | None:
    """Arrays of a row, or None if the row is damaged."""
    if not (isinstance(key, str) and isinstance(value, bytes)) or checksum != checksum_of(key, value):
        return None
    try:
        return load(value)
    except (SafetensorError, KeyError, TypeError, ValueError):  # the last three: number formats that numpy lacks
        return None


def rows(connection: sqlite3.Connection, keys: Sequence[str]) -> list[tuple]:
    """Id, key, checksum and value of the keys that are stored."""
    query = "SELECT id, key, checksum, value FROM results WHERE key IN (SELECT value FROM json_each(?))"
    return connection.execute(query, (json.dumps(list(keys)),)).fetchall()


def remove_damaged(connection: sqlite3.Connection, damaged: Sequence[tuple[int, object]]) -> None:
    """Remove damaged rows by id and checksum: an intact row may have reused the id since."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        connection.executemany("DELETE FROM results WHERE id = ? AND checksum IS ?", damaged)


def note_uses(connection: sqlite3.Connection, ids: Sequence[int]) -> None:
    """Mark rows as used now; the last one counts as the latest."""
    noting = "UPDATE uses SET used = ? + noted.key FROM json_each(?) AS noted WHERE uses.id = noted.value"
    for start in range(0, len(ids), AT_ONCE):
        with connection:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(noting, (_next_use(connection), json.dumps(ids[start : start + AT_ONCE])))


def _next_use(connection: sqlite3.Connection) -> int:
    """The current time, or just after the latest use if the clock was set back."""
    latest = "SELECT max(coalesce((SELECT max(used) FROM uses), 0) + 1, ?)"
    return connection.execute(latest, (time.time_ns() // 1000,)).fetchone()[0]


def insert(connection: sqlite3.Connection, packed: Mapping[str, bytes], limit: int) -> None:
    """Write all rows in one transaction, and remove old ones until they fit."""
    with connection:
        connection.execute("BEGIN IMMEDIATE")
        now = _next_use(connection)
        for key, value in packed.items():
            connection.execute("DELETE FROM results WHERE key = ?", (key,))
            row = (key, checksum_of(key, value), value)
            row_id = connection.execute("INSERT INTO results (key, checksum, value) VALUES (?, ?, ?)", row).lastrowid
            connection.execute("INSERT INTO uses VALUES (?, ?, ?)", (row_id, len(value), now))
        _make_room(connection, limit)


def _make_room(connection: sqlite3.Connection, limit: int) -> None:
    """Remove the least recently used results if the size limit is exceeded, and shrink the file to it."""
    page = _pragma(connection, "page_size")

    def taken() -> int:
        return (_pragma(connection, "page_count") - _pragma(connection, "freelist_count")) * page

    excess_ids = (
        "SELECT id FROM (SELECT id, sum(bytes) OVER (ORDER BY used, id) - bytes AS before FROM uses) WHERE before < ?"
    )
    goal = KEPT_SHARE * limit if taken() > limit else limit
    while (excess := taken() - goal) > 0:
        if connection.execute(f"DELETE FROM results WHERE id IN ({excess_ids})", (excess,)).rowcount == 0:
            break
    over = _pragma(connection, "page_count") - limit // page
    for _ in range(min(over, _pragma(connection, "freelist_count"))):
        connection.execute("PRAGMA incremental_vacuum(1)")  # sqlite3 stops after one page, whatever number is passed


def clear(connection: sqlite3.Connection) -> None:
    """Remove all current rows and release the space; in parts, so that other writers can proceed in between."""
    last = _last_id(connection)
    some = f"SELECT id FROM results WHERE id <= ? LIMIT {AT_ONCE}"
    while connection.execute(f"DELETE FROM results WHERE id IN ({some})", (last,)).rowcount:
        time.sleep(TURN_SECONDS)
    connection.execute("VACUUM")  # hardly anything is left to copy; releasing free pages one by one takes minutes
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def is_journal_long(path: Path) -> bool:
    """Whether the journal exceeds its limit between writes."""
    return Path(f"{path}-wal").stat().st_size > JOURNAL_BYTES


def cut_journal(connection: sqlite3.Connection) -> None:
    """Checkpoint and truncate the journal; if readers or a full disk prevent it, a later write does it."""
    with suppress(sqlite3.OperationalError), without_waiting(connection):
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def every_row(connection: sqlite3.Connection) -> Iterator[tuple]:
    """Id, key, checksum and value of all current rows, each read by a query of its own so that no writer is blocked."""
    last = _last_id(connection)
    query = "SELECT id, key, checksum, value FROM results WHERE id > ? AND id <= ? ORDER BY id LIMIT 1"
    row_id = 0
    while row := connection.execute(query, (row_id, last)).fetchone():
        row_id = row[0]
        yield row


def remove_words(connection: sqlite3.Connection, used: tuple[float, float]) -> None:
    """Remove the rows that hold words of a text, overwrite their content, and cut the journal, which may hold it too.
    Those last used from the first time on and before the second one, in seconds since 1970."""
    has_words = " OR ".join(["instr(substr(value, 1, ?), ?)"] * len(WORD_ARRAYS))
    query = f"SELECT id FROM results JOIN uses USING (id) WHERE used >= ? AND used < ? AND ({has_words})"
    names = [part for name in WORD_ARRAYS for part in (LONGEST_HEAD, f'"{name}":'.encode())]
    ids = [row for (row,) in connection.execute(query, (*(int(1e6 * seconds) for seconds in used), *names))]
    connection.execute("PRAGMA secure_delete = ON")
    for start in range(0, len(ids), AT_ONCE):
        some = json.dumps(ids[start : start + AT_ONCE])
        connection.execute("DELETE FROM results WHERE id IN (SELECT value FROM json_each(?))", (some,))
    connection.execute("PRAGMA secure_delete = OFF")
    if ids:
        cut_journal(connection)


def _last_id(connection: sqlite3.Connection) -> int:
    return connection.execute("SELECT coalesce(max(id), 0) FROM results").fetchone()[0]


def largest_arrays(connection: sqlite3.Connection) -> Counter[str]:
    """Number of results by the name of their largest array."""
    heads = connection.execute("SELECT substr(value, 1, ?) FROM results", (LONGEST_HEAD,))
    return Counter(_largest_array(head) for (head,) in heads)


def _largest_array(head: object) -> str:
    """Name of the largest array, from the header of a safetensors value: a length in 8 bytes, then JSON."""
    if not isinstance(head, bytes):
        return UNREADABLE
    try:
        arrays = parse_json(head[8 : 8 + int.from_bytes(head[:8], "little")])
        spans = {name: array["data_offsets"] for name, array in arrays.items()}
        return max(spans, key=lambda name: spans[name][1] - spans[name][0], default="nothing")
    except (ValueError, TypeError, AttributeError, KeyError):
        return UNREADABLE
