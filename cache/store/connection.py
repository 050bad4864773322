"""Opens, locks and sets aside the file of results; `attention_sieve.cache.store.results_file` defines its contents."""

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Final

WAIT_SECONDS: Final = 10


class Access:
    """One connection to the file, for one thread at a time; opened on first use.

    Attributes:
        path: the file.
        lock: must be held while the connection is used.
        inode: the file opened last; the path may since name another file.
        trouble: why the last use failed, or None.
    """

    def __init__(self, path: Path, prepare: Callable[[sqlite3.Connection], None]) -> None:
        self.path = path
        self._prepare = prepare
        self.lock = Lock()
        self.inode = 0
        self.trouble: Exception | None = None
        self._connection: sqlite3.Connection | None = None

    def connected(self) -> sqlite3.Connection:
        """The connection; a new one if the file was set aside or removed by another process."""
        if self._connection is not None and not (self.path.exists() and self.path.stat().st_ino == self.inode):
            self.close()
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            connection = connect(self.path)
            try:
                self.inode = self.path.stat().st_ino
                self._prepare(connection)
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

    Raises:
        sqlite3.OperationalError: the file cannot be opened.
    """
    # Autocommit: transactions are begun explicitly.
    connection = sqlite3.connect(path, WAIT_SECONDS, isolation_level=None, check_same_thread=False)
    connection.text_factory = partial(str, encoding="utf-8", errors="replace")  # a damaged row may hold any bytes
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
