"""The command `python -m attention_sieve store`: show, check or remove what is stored."""

import argparse
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from attention_sieve.cache.store import results_file
from attention_sieve.cache.store.results_file import connect, files_set_aside, set_aside
from attention_sieve.cache.store.store import limit_from_environment, results_path
from attention_sieve.core.errors import PROGRAM, AnalysisError
from attention_sieve.core.progress import ProgressBar

FIRST_DATED: Final = 10**15
"""Uses below this were counted from 1, before they were dated in microseconds since 1970."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("store", help="show, check or remove what is stored", description=run.__doc__)
    parser.add_argument(
        "--folder",
        type=Path,
        help="folder of the store; default: the one in ATTENTION_SIEVE_CACHE, or else the user's cache folder",
    )
    actions = parser.add_subparsers(required=True)
    for action, summary in (
        (stats, "print what is stored, and where"),
        (verify, "check every result and remove damaged ones"),
        (clear, "remove every result"),
    ):
        command = actions.add_parser(action.__name__, help=summary, description=action.__doc__)
        command.set_defaults(run=run, action=action)
    command.add_argument("--yes", action="store_true", help="do not ask for confirmation")
    command.add_argument("--set-aside", action="store_true", help="remove the files that were set aside as well")


def run(options: argparse.Namespace) -> int:
    """Show, check or remove what is stored, also while a dashboard uses the store.

    Exit code 1 when there was damage.
    """
    path = results_path(options.folder)
    try:
        return options.action(options, path)
    except (sqlite3.DatabaseError, OSError) as error:
        if isinstance(error, sqlite3.ProgrammingError):
            raise
        raise AnalysisError(_sentence(path, error)) from None


def stats(_: argparse.Namespace, path: Path) -> int:
    """Print what is stored and where, the size limit, when results were used, and which files were set aside."""
    limit = limit_from_environment()
    print(f"{'Folder':<12}{path.parent}")
    if path.exists():
        with _opened_to_read(path) as connection:
            _print_results(connection)
        journal = Path(f"{path}-wal")
        journal_bytes = journal.stat().st_size if journal.exists() else 0
        print(f"{'File':<12}{path.name}, {_mib(path.stat().st_size)}, and a journal of {_mib(journal_bytes)}")
    else:
        print(f"{'Results':<12}none yet")
    print(f"{'Limit':<12}{_mib(limit)}; set ATTENTION_SIEVE_CACHE_MB to change it")
    aside = files_set_aside(path)
    print(f"{'Set aside':<12}{_set_aside_files(aside)}")
    for file in aside:
        print(f"{'':<12}{file.name}")
    return 0


def _print_results(connection: sqlite3.Connection) -> None:
    n_results, n_bytes, oldest, newest = connection.execute(
        "SELECT count(*), coalesce(sum(bytes), 0), min(used), max(used) FROM uses"
    ).fetchone()
    print(f"{'Results':<12}{n_results:,}, {_mib(n_bytes)}")
    for name, n in results_file.largest_arrays(connection).most_common():
        print(f"{'':<12}{n:,} of them mostly {name}")
    if n_results:
        print(f"{'Used':<12}{_date(oldest)} (least recently) to {_date(newest)}")


def verify(_: argparse.Namespace, path: Path) -> int:
    """Read every result, check it against its checksum, and remove damaged ones; a damaged file is set aside.

    Exit code 1 when there was damage.
    """
    if not path.exists():
        print(f"Nothing is stored in {path.parent} yet.")
        return 0
    inode = path.stat().st_ino
    try:
        with _opened(path) as connection:
            report = connection.execute("PRAGMA integrity_check(1)").fetchone()[0]
            if report == "ok":
                return _verify_rows(connection)
    except sqlite3.DatabaseError as error:
        if isinstance(error, results_file.Unfit) or not results_file.is_damage(error):
            raise
        report = str(error)
    kept_as = set_aside(path, inode) or "another file by a running program"
    print(
        f"The file itself is damaged: {' '.join(report.split())}. It was set aside as {kept_as}; results are computed "
        f"again. Remove it with: {PROGRAM} store clear --set-aside"
    )
    return 1


def _verify_rows(connection: sqlite3.Connection) -> int:
    (total,) = connection.execute("SELECT count(*) FROM results").fetchone()
    rows = ProgressBar(results_file.every_row(connection), total=total, unit="result")
    n_sound, damaged = 0, []
    for row_id, key, checksum, value in rows:
        if results_file.unpack(key, checksum, value) is None:
            damaged.append((row_id, checksum))
        else:
            n_sound += 1
    results_file.remove_damaged(connection, damaged)
    print(f"{n_sound:,} of {n_sound + len(damaged):,} results are sound.")
    if damaged:
        were = "1 was damaged and is" if len(damaged) == 1 else f"{len(damaged):,} were damaged and are"
        print(f"{were} removed; missing results are computed again when they are needed.")
    return bool(damaged)


def clear(options: argparse.Namespace, path: Path) -> int:
    """Remove every result, and with --set-aside also the files that were set aside; asks first."""
    aside = files_set_aside(path) if options.set_aside else []
    if not path.exists() and not aside:
        print(f"There is nothing to remove in {path.parent}.")
        return 0
    _confirm(options.yes, f"all results in {path}" + (f", and {_set_aside_files(aside)} set aside" if aside else ""))
    for file in aside:
        file.unlink(missing_ok=True)
    if path.exists():
        with _opened(path) as connection:
            (n_results,) = connection.execute("SELECT count(*) FROM results").fetchone()
            results_file.clear(connection)
        print(f"{n_results:,} {'result' if n_results == 1 else 'results'} removed from {path}.")
    if aside:
        print(f"{_set_aside_files(aside)} that had been set aside removed.")
    return 0


def _confirm(is_confirmed: bool, target: str) -> None:
    """Return when the owner agrees; raises AnalysisError otherwise."""
    if is_confirmed:
        return
    if not sys.stdin.isatty():
        raise AnalysisError(f"This would remove {target}. Confirm it with --yes.")
    print(f"Remove {target}? [y/N] ", end="", flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise AnalysisError("Nothing was removed.")


@contextmanager
def _opened(path: Path) -> Iterator[sqlite3.Connection]:
    """The file, if this version of the program wrote it; nothing is set aside."""
    with closing(connect(path)) as connection:
        results_file.prepare(connection)
        yield connection


@contextmanager
def _opened_to_read(path: Path) -> Iterator[sqlite3.Connection]:
    """The same, also where this process may only read it."""
    connection = connect(path)
    try:
        try:
            results_file.prepare(connection)
        except sqlite3.OperationalError as error:
            if not results_file.may_not_write(error):
                raise
            connection.close()
            connection = results_file.connect_to_read(path)
        yield connection
    finally:
        connection.close()


def _sentence(path: Path, error: Exception) -> str:
    if isinstance(error, results_file.Newer):
        return (
            f"The results in {path} are of a newer version: {error}. Update the program, or name another folder in "
            "ATTENTION_SIEVE_CACHE."
        )
    if isinstance(error, results_file.Unfit):
        return (
            f"The results in {path} are not for this version: {error}. Use the version that wrote them; a dashboard of "
            "this version sets them aside and begins a new file."
        )
    if results_file.is_damage(error):
        return f"{path} is damaged: {error}. Set it aside with: {PROGRAM} store verify"
    return f"{path} cannot be used: {error}. Check its permissions, the disk, and whether a program is busy with it."


def _set_aside_files(files: Sequence[Path]) -> str:
    if not files:
        return "nothing"
    size = _mib(sum(file.stat().st_size for file in files if file.exists()))
    return f"{len(files)} {'file' if len(files) == 1 else 'files'}, {size}"


def _mib(n_bytes: int) -> str:
    return f"{n_bytes / 2**20:,.1f} MiB"


def _date(used: int) -> str:
    if used < FIRST_DATED:
        return "before uses were dated"
    try:
        return f"{datetime.fromtimestamp(used / 1e6):%Y-%m-%d %H:%M}"
    except (ValueError, OverflowError, OSError):
        return "on an impossible date"
