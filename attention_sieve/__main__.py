"""Opens the dashboard, or runs a command: its analyses, the work that it has no page for, the care of its store.

`%(prog)s` alone opens the dashboard. `%(prog)s COMMAND --help` lists the options of a command and the columns of the
files that it writes.
"""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from typing import Final

import attention_sieve
from attention_sieve.core.errors import PROGRAM, AnalysisError, ColumnsNeeded, GrowsLarger, TextTooLong, quoted

GARBAGE_AFTER: Final = 20_000
"""Threshold of the garbage collector. Imports create hundreds of thousands of objects that stay: with Python's default
of 700, collection takes a fifth of the time to import torch and transformers."""
OPENING: Final = ("--port", "--results", "--version")
"""Options that stand without a command."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Open the dashboard, or run one command.

    Returns: 0, 1 for damage in the store, or 2 with a message on standard error for bad input.
    """
    given = sys.argv[1:] if arguments is None else arguments
    options = _parser(has_commands=_names_a_command(given)).parse_args(given)
    try:
        if _names_a_command(given):
            from attention_sieve.core.commands import check_named_heads

            check_named_heads(options)
            _remember(options, given)
        return _run_keeping(options) if hasattr(options, "resume_answers") else options.run(options) or 0
    except AnalysisError as error:
        print(f"{error}{_option_for(error)}", file=sys.stderr)
        return 2


def _remember(options: argparse.Namespace, given: Sequence[str]) -> None:
    """Put a command whose work is a run on the list of runs: `folder_of_run` names the option with its folder."""
    from attention_sieve.core.begun_runs import remember_run

    folder = getattr(options, getattr(options, "folder_of_run", ""), None)
    if folder is not None:
        remember_run(folder, tuple(given))


def _names_a_command(given: Sequence[str]) -> bool:
    """Whether all commands are needed, which import torch: the dashboard opens without them."""
    return bool(given) and not given[0].startswith(OPENING)


def _run_keeping(options: argparse.Namespace) -> int:
    """Run a command that keeps what it computes; raises KeyboardInterrupt with what to do after one."""
    from attention_sieve.cache.answers import KeepingAnswers
    from attention_sieve.cache.store.store import Store

    with closing(Store()) as results:
        options.answer = KeepingAnswers(results, options.resume_answers)
        try:
            code: int = options.run(options) or 0
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(
                str(interrupt) or "Stopped. With --resume the command takes what is kept so far."
            ) from None
        if results.warning:
            print(results.warning, file=sys.stderr)
    return code


class _Terminated(BaseException):
    """SIGTERM was received; raised so that unfinished files are removed on the way out."""


def _entry() -> int:
    """Run the command of the command line; Ctrl+C and SIGTERM leave no half-written files behind.

    A command may interrupt itself again with a sentence on what is done.
    """
    signal.signal(signal.SIGTERM, _terminate)
    if _names_a_command(sys.argv[1:]):
        gc.set_threshold(GARBAGE_AFTER, *gc.get_threshold()[1:])
    try:
        code = main()
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done, and Python ends without a word if it is interrupted
        return code
    except KeyboardInterrupt as interrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        print(str(interrupt) or "Stopped.", file=sys.stderr)
        return 130
    except _Terminated:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGTERM)  # so that the exit status shows the signal
        return 143
    finally:
        gc.freeze()  # else Python ends by looking for garbage in all that was imported: seconds, with torch


def _terminate(*_: object) -> None:
    raise _Terminated


def _option_for(error: AnalysisError) -> str:
    """Hint about the option for a problem that a page solves with a control."""
    if isinstance(error, TextTooLong):
        return " Options: --too-long skip, --too-long truncate."
    if isinstance(error, GrowsLarger):
        return " Options: --export zeroed, --may-grow."
    return " Option: --text-columns first,second." if isinstance(error, ColumnsNeeded) else ""


@cache  # whoever runs many commands in one process, as the tests do, would build thousands of options each time
def _parser(*, has_commands: bool = True) -> argparse.ArgumentParser:
    kind: Callable[..., argparse.ArgumentParser] = argparse.ArgumentParser
    if has_commands:
        from attention_sieve.core.options import Parser

        kind = Parser
    parser = kind(prog=PROGRAM, description=__doc__)
    parser.add_argument("--version", action="version", version=f"Attention Sieve {attention_sieve.__version__}")
    parser.add_argument("--port", type=_port, help="port of the dashboard; default: 8501")
    parser.add_argument("--results", metavar="FOLDER", help="results folder of a corpus that the dashboard opens")
    parser.set_defaults(run=_open_dashboard)
    if has_commands:
        from attention_sieve.commands import add_commands

        add_commands(parser.add_subparsers(metavar="COMMAND", title="commands"))
    return parser


def _port(written: str) -> int:
    if not written.isdecimal() or not 0 < int(written) < 1 << 16:
        raise argparse.ArgumentTypeError(f"{quoted(written)} is not a port; write a number from 1 to 65535")
    return int(written)


def _open_dashboard(options: argparse.Namespace) -> None:
    from attention_sieve.dashboard.start import start

    start(options.port)


if __name__ == "__main__":
    sys.exit(_entry())
