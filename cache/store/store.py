"""Key -> named arrays on disk: one SQLite file, bounded and safe against crashes, shared by threads and processes.

A store never stands in the way of a result: where its file is damaged or cannot be written, the analysis goes on
without it and `Store.warning` says so. Arrays are kept as safetensors bytes; nothing that is read back can run code.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar
from weakref import finalize

import numpy as np

from cache.store import results_file
from cache.store.connection import Access, set_aside, without_waiting
from core.checkpoints.folders import program_folder
from core.errors import AnalysisError

DEFAULT_MEGABYTES: Final = 2048
LARGEST_SHARE: Final = 0.5
"""A result larger than this share of the bound is not kept: it would push out most of the others."""
Answer = TypeVar("Answer")


class Store:
    """Results on disk by key; every method may be called from any thread.

    Attributes:
        folder: where the file lies.
        path: the file.
        limit_bytes: bound of the file; between writes its journal takes up to 16 MiB more.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        """Open the file, or go on without one and say so in `warning`.

        Args:
            folder: None for the folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder.
            limit_bytes: None for the megabytes in ATTENTION_SIEVE_CACHE_MB, or else 2 GiB.
        Raises:
            AnalysisError: ATTENTION_SIEVE_CACHE_MB is not a whole number.
        """
        self.path = results_path(folder)
        self.folder = self.path.parent
        self.limit_bytes = limit_from_environment() if limit_bytes is None else limit_bytes
        # Two, so that no read waits for a write of another thread, or for what that write waits for.
        self._reader, self._writer = Access(self.path, results_file.prepare), Access(self.path, results_file.prepare)
        self._lock = Lock()
        self._used: dict[int, None] = {}  # ids of rows that were read and not yet noted, the latest last
        self._set_aside_notice = ""
        self._n_damaged = 0
        finalize(self, _finish, self._reader, self._writer, self._used)
        self._use(self._reader, lambda connection: None, None)

    @property
    def warning(self) -> str | None:
        """What the reader should know, in sentences; None while all is well."""
        n, were = self._n_damaged, "result was" if self._n_damaged == 1 else "results were"
        damaged = f"{n:,} stored {were} damaged and removed; what is missing is computed again." if n else ""
        return " ".join(filter(None, (self._set_aside_notice, self._trouble(), damaged))) or None

    def _trouble(self) -> str:
        what_to_do = "Make room there, or name another folder in ATTENTION_SIEVE_CACHE."
        if self._reader.trouble:
            return (
                f"Results cannot be kept in {self.folder} or found there: {self._reader.trouble}. The analysis goes on "
                f"without them. {what_to_do}"
            )
        if self._writer.trouble:
            return (
                f"New results cannot be kept in {self.folder}: {self._writer.trouble}. The analysis goes on, and what "
                f"is kept already is still found. {what_to_do}"
            )
        return ""

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """Arrays kept under a key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
        """Arrays of those keys that are kept; the others are absent.

        A read writes nothing: that it took place is noted with the next write, when the store is closed, or when the
        program ends. Where that cannot be, the note is dropped, and at worst a result later goes before its turn.
        """
        rows: list[tuple] = self._use(self._reader, lambda connection: results_file.rows(connection, keys), [])
        unpacked = [(*row, results_file.unpack(*row[1:])) for row in rows]
        if damaged := [(row_id, checksum) for row_id, _, checksum, _, arrays in unpacked if arrays is None]:
            self._use(self._writer, lambda connection: _remove(connection, damaged), None)
        with self._lock:
            self._n_damaged += len(damaged)
            for row_id, *_, arrays in unpacked:
                if arrays is not None:
                    self._used.pop(row_id, None)
                    self._used[row_id] = None
        return {key: arrays for _, key, *_, arrays in unpacked if arrays is not None}

    def put(self, key: str, arrays: Mapping[str, np.ndarray]) -> None:
        """Keep arrays under a key, in place of what was there."""
        self.put_many({key: arrays})

    def put_many(self, results: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Keep all these results or, if the process dies, none; any larger than half the bound is left out.

        Raises:
            SafetensorError: an array's type cannot be kept, such as text or objects.
        """
        largest = min(LARGEST_SHARE * self.limit_bytes, results_file.LARGEST_ROW)
        packed = {key: value for key, arrays in results.items() if len(value := results_file.pack(arrays)) <= largest}

        def write(connection: sqlite3.Connection) -> None:
            try:
                results_file.note_uses(connection, self._take_used())
                results_file.insert(connection, packed, self.limit_bytes)
            except sqlite3.OperationalError:
                results_file.cut_journal(connection)  # what did not fit must not go on filling the disk
                raise
            if results_file.is_journal_long(self.path):
                results_file.cut_journal(connection)

        if packed:
            self._use(self._writer, write, None)

    def size(self) -> tuple[int, int]:
        """How many results are kept, and their bytes."""
        count = "SELECT count(*), coalesce(sum(bytes), 0) FROM uses"
        return self._use(self._reader, lambda connection: connection.execute(count).fetchone(), (0, 0))

    def clear(self) -> None:
        """Remove every result and give the space back."""
        self._use(self._writer, results_file.clear, None)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        _finish(self._reader, self._writer, self._used)

    def _take_used(self) -> list[int]:
        with self._lock:
            used = list(self._used)
            self._used.clear()
        return used

    def _use(self, access: Access, work: Callable[[sqlite3.Connection], Answer], otherwise: Answer) -> Answer:
        """What `work` gives, or `otherwise` and a notice."""
        try:
            answer = self._done(access, work)
        except (sqlite3.DatabaseError, OSError) as error:
            if not (isinstance(error, sqlite3.OperationalError | OSError) or results_file.is_damage(error)):
                raise
            access.trouble = str(error)
            return otherwise
        access.trouble = ""
        return answer

    def _done(self, access: Access, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """What `work` gives; a damaged file is set aside and the work done on a new one."""
        with access.lock:
            try:
                return work(access.connected())
            except sqlite3.DatabaseError as error:
                if not results_file.is_damage(error):
                    raise
                reason, inode = str(error), access.inode
        self._renew(reason, inode)
        with access.lock:
            return work(access.connected())

    def _renew(self, reason: str, inode: int) -> None:
        """Close the file, and set it aside unless another one already lies in its place."""
        with self._reader.lock, self._writer.lock:
            self._reader.close()
            self._writer.close()
            if target := set_aside(self.path, inode):
                self._set_aside_notice = (
                    f"Stored results could not be read: {reason}. They were set aside as {target} and a new file was "
                    "begun; results are computed again. Delete the old file if you do not need it."
                )


def _finish(reader: Access, writer: Access, used: dict[int, None]) -> None:
    """Note the uses that wait for a write, and close; a note is not worth a wait or an error."""
    with reader.lock, writer.lock:
        reader.close()
        if used and writer.path.exists():
            with suppress(sqlite3.DatabaseError, OSError), without_waiting(writer.connected()):
                results_file.note_uses(writer.connected(), list(used))
        used.clear()
        writer.close()


def _remove(connection: sqlite3.Connection, damaged: list[tuple[int, object]]) -> None:
    """Remove damaged rows, or leave that to the next read that meets them where it would have to wait."""
    with suppress(sqlite3.OperationalError), without_waiting(connection):
        results_file.remove_damaged(connection, damaged)


def results_path(folder: Path | None = None) -> Path:
    """The file in a folder: the one given, the one in ATTENTION_SIEVE_CACHE, or else the user's cache folder."""
    return (folder or program_folder()) / "results.sqlite"


def limit_from_environment() -> int:
    """Bound of the file in bytes.

    Raises:
        AnalysisError: ATTENTION_SIEVE_CACHE_MB is not a whole number.
    """
    named = os.environ.get("ATTENTION_SIEVE_CACHE_MB") or str(DEFAULT_MEGABYTES)
    if not (named.isascii() and named.isdigit()):
        raise AnalysisError(
            f"ATTENTION_SIEVE_CACHE_MB is {named!r}, which is not a whole number of megabytes. "
            f"Set it to a number such as {DEFAULT_MEGABYTES}, to 0 to keep nothing, or remove it."
        )
    return int(named) * 2**20
