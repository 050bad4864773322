"""Key -> named arrays on disk: one SQLite file, bounded and safe against crashes, shared by threads and processes.

A store never stands in the way of a result: where its file is damaged or cannot be written, the analysis goes on
without it and `Store.warning` says so. Arrays are kept as safetensors bytes; nothing that is read back can run code.
"""

import os
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar

import numpy as np
from jaxtyping import UInt8
from platformdirs import user_cache_path

from cache import results_file
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
        rows: list[tuple] = self._use(lambda connection: results_file.rows(connection, keys), [])
        unpacked = [(row_id, key, results_file.unpack(key, checksum, value)) for row_id, key, checksum, value in rows]
        damaged = [row_id for row_id, _, arrays in unpacked if arrays is None]
        read = [row_id for row_id, _, arrays in unpacked if arrays is not None]
        if rows:
            self._use(lambda connection: results_file.note_read(connection, read, damaged), None)
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
        largest = min(LARGEST_SHARE * self.limit_bytes, results_file.LARGEST_ROW)
        packed = {key: value for key, arrays in results.items() if len(value := results_file.pack(arrays)) <= largest}
        if packed:
            is_kept: bool = self._use(
                lambda connection: results_file.insert(connection, packed, self.limit_bytes), False
            )
            self._unusable_notice = "" if is_kept else self._unusable_notice

    def size(self) -> tuple[int, int]:
        """How many results are kept, and their bytes."""
        count = "SELECT count(*), coalesce(sum(bytes), 0) FROM uses"
        return self._use(lambda connection: connection.execute(count).fetchone(), (0, 0))

    def clear(self) -> None:
        """Remove every result and give the space back."""
        self._use(results_file.clear, None)

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
                    if not results_file.is_damage(error):
                        raise
                    self._set_aside(str(error))
                return work(self._connected())
            except (sqlite3.DatabaseError, OSError) as error:
                if not (isinstance(error, sqlite3.OperationalError | OSError) or results_file.is_damage(error)):
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
            connection = sqlite3.connect(
                self.path, results_file.WAIT_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._inode = self.path.stat().st_ino
                results_file.prepare(connection)
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
