"""Key -> named arrays on disk: one SQLite file, bounded and safe against crashes, shared by threads and processes.

A store never prevents a result: if its file is damaged, of a newer version or cannot be written, the analysis continues
without it and `Store.warning` says so. Arrays are stored as safetensors bytes, which cannot execute code when read.
Keys are computed from everything that a result depends on. A key covers the original text, not its token ids. The
fingerprint of the checkpoint includes the tokenizer, so the two are equivalent, and stored results are found without
loading a tokenizer or importing torch.
"""

import hashlib
import json
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock
from typing import Final, TypeVar
from weakref import finalize

import numpy as np

from attention_sieve.cache.memory import limit_from
from attention_sieve.cache.store import results_file
from attention_sieve.cache.store.results_file import Access, set_aside, without_waiting
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.folders import program_folder
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.text import Text, text_fields

ATTENTION_VERSION: Final = 5
"""Version of stored attention; increase it when its values or their layout change."""
TREES_VERSION: Final = 1
"""The same of stored trees."""
DIVERGENCE_VERSION: Final = 5
"""The same of stored divergences. Answers to questions have the versions of
`attention_sieve.core.answering.Question`."""


def answer_key(
    question: tuple[str, int], checkpoint: str, dtype: str, settings: PassSettings, **depends_on: object
) -> str:
    """Key of the answer to a question for one item.

    Args:
        question: its name and its version.
        checkpoint: fingerprint of weights, configuration and tokenizer, in hex.
        settings: the kind of attention and the heads that are off, in any order.
        depends_on: everything in the item that the answer depends on, as JSON values.
    Returns: 64 hex digits.
    """
    off = sorted(set(settings.off))
    return _key(question, checkpoint=checkpoint, dtype=dtype, attention=settings.kind, off=off, **depends_on)


def attention_key(
    checkpoint: str, dtype: str, settings: PassSettings, start: tuple[int, int], **depends_on: object
) -> str:
    """Key of one text's attention, tokens and relations: as `answer_key`, plus the start of the window."""
    return answer_key(("attention", ATTENTION_VERSION), checkpoint, dtype, settings, start=start, **depends_on)


def tree_key(text: Text) -> str:
    """Key of the dependency tree of a text whose file does not bring it.

    Raises: AnalysisError if no parser is installed.
    """
    return _key(("trees", TREES_VERSION), text=text_fields(text), parser=parser_name(text.parser))


def divergence_key(checkpoints: Sequence[str], dtype: str, settings: Sequence[PassSettings], text: Text) -> str:
    """Key of the divergence between two checkpoints' attention on one text, independent of their order."""
    sides = sorted(
        [checkpoint, pass_settings.kind, sorted(set(pass_settings.off))]
        for checkpoint, pass_settings in zip(checkpoints, settings)
    )
    return _key(("divergence", DIVERGENCE_VERSION), sides=sides, dtype=dtype, text=text_fields(text))


def _key(question: tuple[str, int], **ingredients: object) -> str:
    """Digest of canonical JSON: sorted names, no spaces, tuples as lists."""
    name, version = question
    canonical = json.dumps(
        {"format": version, "kind": name, **ingredients},
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=False,
    )
    # Escaping to ASCII would encode an emoji and its two lone surrogates identically; surrogatepass distinguishes them.
    return hashlib.sha256(canonical.encode("utf-8", "surrogatepass")).hexdigest()


DEFAULT_MEGABYTES: Final = 2048
LARGEST_SHARE: Final = 0.5
"""A result larger than this share of the size limit is not stored: it would evict most of the others."""
Answer = TypeVar("Answer")


class Store:
    """Results on disk by key; every method may be called from any thread.

    Attributes:
        folder: folder of the file.
        path: the file.
        limit_bytes: size limit of the file; between writes its journal takes up to 16 MiB more.
    """

    def __init__(self, folder: Path | None = None, limit_bytes: int | None = None) -> None:
        """Open the file, or go on without one and say so in `warning`.

        Args:
            folder: None for the folder in ATTENTION_SIEVE_CACHE, or else the user's cache folder.
            limit_bytes: None for the megabytes in ATTENTION_SIEVE_CACHE_MB, or else 2 GiB.
        Raises: AnalysisError if ATTENTION_SIEVE_CACHE_MB is not a whole number.
        """
        self.path = results_path(folder)
        self.folder = self.path.parent
        self.limit_bytes = limit_from_environment() if limit_bytes is None else limit_bytes
        # Two connections, so that no read waits for another thread's write, or for what that write waits for.
        self._reader, self._writer = Access(self.path), Access(self.path)
        self._lock = Lock()
        self._used: dict[int, None] = {}  # ids of rows that were read but not yet marked as used, the latest last
        self._without_words = 0.0
        """No result that was last used before this time holds words; in seconds since 1970."""
        self._set_aside_notice = ""
        self._n_damaged = 0
        finalize(self, _finish, self._reader, self._writer, self._used)
        self._use(self._reader, lambda connection: None, None)

    @property
    def warning(self) -> str | None:
        """A warning for the reader, in sentences, or None."""
        n, were = self._n_damaged, "result was" if self._n_damaged == 1 else "results were"
        damaged = f"{n:,} stored {were} damaged and removed; missing results are computed again." if n else ""
        return " ".join(filter(None, (self._set_aside_notice, self._trouble(), damaged))) or None

    def _trouble(self) -> str:
        for access in (self._reader, self._writer):
            if isinstance(access.trouble, results_file.Newer):
                return (
                    f"Stored results are of a newer version of this program: {access.trouble}. They are left as they "
                    "are, and the analysis goes on without them. Update the program, or name another folder in "
                    "ATTENTION_SIEVE_CACHE."
                )
        what_to_do = "Make room there, or name another folder in ATTENTION_SIEVE_CACHE."
        if self._reader.trouble:
            return (
                f"Results can be neither stored nor found in {self.folder}: {self._reader.trouble}. The analysis "
                f"goes on without them. {what_to_do}"
            )
        if self._writer.trouble:
            return (
                f"New results cannot be stored in {self.folder}: {self._writer.trouble}. The analysis goes on, and "
                f"results stored earlier are still found. {what_to_do}"
            )
        return ""

    def get(self, key: str) -> dict[str, np.ndarray] | None:
        """Arrays stored under a key, or None."""
        return self.get_many([key]).get(key)

    def get_many(self, keys: Sequence[str]) -> dict[str, dict[str, np.ndarray]]:
        """Arrays by key; keys that are not stored are absent.

        A read writes nothing: the use is noted with the next write, when the store is closed, or at program exit. If
        that is not possible, the note is lost, and at worst a result is removed too early.
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
        """Store arrays under a key, replacing existing ones."""
        self.put_many({key: arrays})

    def put_many(self, results: Mapping[str, Mapping[str, np.ndarray]]) -> None:
        """Store all these results or, if the process dies, none; any larger than half the size limit is left out.

        Raises: SafetensorError for an array whose type cannot be stored, such as text or objects.
        """
        largest = min(LARGEST_SHARE * self.limit_bytes, results_file.LARGEST_ROW)
        packed = {key: value for key, arrays in results.items() if len(value := results_file.pack(arrays)) <= largest}

        def write(connection: sqlite3.Connection) -> None:
            try:
                results_file.note_uses(connection, self._take_used())
                results_file.insert(connection, packed, self.limit_bytes)
            except sqlite3.OperationalError:
                results_file.cut_journal(connection)  # the failed write must not keep filling the disk
                raise
            if results_file.is_journal_long(self.path):
                results_file.cut_journal(connection)

        if packed:
            self._use(self._writer, write, None)

    def size(self) -> tuple[int, int]:
        """Number of stored results, and their total bytes."""
        count = "SELECT count(*), coalesce(sum(bytes), 0) FROM uses"
        return self._use(self._reader, lambda connection: connection.execute(count).fetchone(), (0, 0))

    def clear(self) -> None:
        """Remove all results and release the space."""
        self._use(self._writer, results_file.clear, None)

    def forget_words(self, before: float) -> None:
        """Remove the results that hold words of a text and were last used before a time, in seconds since 1970."""

        def remove(connection: sqlite3.Connection) -> None:
            results_file.note_uses(connection, self._take_used())
            results_file.remove_words(connection, (self._without_words, before))
            self._without_words = before

        self._use(self._writer, remove, None)

    def close(self) -> None:
        """Close the file; a later call opens it again."""
        _finish(self._reader, self._writer, self._used)

    def _take_used(self) -> list[int]:
        with self._lock:
            used = list(self._used)
            self._used.clear()
        return used

    def _use(self, access: Access, work: Callable[[sqlite3.Connection], Answer], otherwise: Answer) -> Answer:
        """The result of `work`, or `otherwise` with a warning if the file cannot be used."""
        try:
            answer = self._run_or_renew(access, work)
        except (sqlite3.DatabaseError, OSError) as error:
            if not (isinstance(error, sqlite3.OperationalError | OSError) or results_file.is_damage(error)):
                raise
            access.trouble = error
            return otherwise
        access.trouble = None
        return answer

    def _run_or_renew(self, access: Access, work: Callable[[sqlite3.Connection], Answer]) -> Answer:
        """The result of `work`; a damaged file is set aside and the work repeated on a new one."""
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
        """Close the file, and set it aside unless another one has already replaced it."""
        with self._reader.lock, self._writer.lock:
            self._reader.close()
            self._writer.close()
            if target := set_aside(self.path, inode):
                self._set_aside_notice = (
                    f"Stored results could not be read: {reason}. They were set aside as {target} and a new file was "
                    "begun; results are computed again. Delete the old file if you do not need it."
                )


def _finish(reader: Access, writer: Access, used: dict[int, None]) -> None:
    """Note pending uses and close; does not wait or raise if they cannot be noted."""
    with reader.lock, writer.lock:
        reader.close()
        if used and writer.path.exists():
            with suppress(sqlite3.DatabaseError, OSError), without_waiting(writer.connected()):
                results_file.note_uses(writer.connected(), list(used))
        used.clear()
        writer.close()


def _remove(connection: sqlite3.Connection, damaged: list[tuple[int, object]]) -> None:
    """Remove damaged rows; if that would have to wait, leave it to the next read of them."""
    with suppress(sqlite3.OperationalError), without_waiting(connection):
        results_file.remove_damaged(connection, damaged)


def results_path(folder: Path | None = None) -> Path:
    """The file in this folder, in the one named by ATTENTION_SIEVE_CACHE, or in the user's cache folder."""
    return (folder or program_folder()) / "results.sqlite"


def limit_from_environment() -> int:
    """Size limit of the file in bytes.

    Raises: AnalysisError if ATTENTION_SIEVE_CACHE_MB is not a whole number.
    """
    limit = limit_from("ATTENTION_SIEVE_CACHE_MB", f"{DEFAULT_MEGABYTES}, to 0 to keep nothing, or remove it")
    return DEFAULT_MEGABYTES * 2**20 if limit is None else limit
