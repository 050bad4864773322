"""The analyses of the dashboard, the work that it has no page for, and the care of its store, on the command line.

`python -m attention_sieve COMMAND --help` lists the options of a command and the columns of the files that it writes.
"""

import argparse
import gc
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import closing
from typing import Final

from attention_sieve.cache.kept_answers import keeping
from attention_sieve.cache.store import command as store
from attention_sieve.cache.store.store import Store
from attention_sieve.core.checkpoints import sample_decoder
from attention_sieve.core.comparison import command as comparison
from attention_sieve.core.copying import command as copying
from attention_sieve.core.coreference import command as coreference
from attention_sieve.core.corpus import command as corpus
from attention_sieve.core.errors import AnalysisError, ColumnsNeeded, GrowsLarger, TextTooLong
from attention_sieve.core.finetuning import command as finetuning
from attention_sieve.core.importance import command as importance
from attention_sieve.core.importance.gates import command as gates
from attention_sieve.core.importance.pruning import command as pruning
from attention_sieve.core.importance.removal import command as removal
from attention_sieve.core.knowledge import command as knowledge
from attention_sieve.core.knowledge import tasks_command as making_tasks
from attention_sieve.core.knowledge.erasure import command as erasure
from attention_sieve.core.knowledge.trials import command as trials
from attention_sieve.core.laboratory import command as laboratory
from attention_sieve.core.maps import command as maps
from attention_sieve.core.options import Parser
from attention_sieve.core.probe_texts import command as probe_texts
from attention_sieve.core.relations import command as relations
from attention_sieve.core.roles import command as roles
from attention_sieve.core.similarity import command as similarity
from attention_sieve.core.surface import command as surface
from attention_sieve.core.tree_probes import command as tree_probes
from attention_sieve.core.word_links import command as word_links

GARBAGE_AFTER: Final = 20_000
"""Threshold of the garbage collector. Imports create hundreds of thousands of objects that stay: with Python's default
of 700, collection takes a fifth of the time to import torch and transformers."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns 0, 1 for damage in the store, or 2 with a message on standard error for bad input."""
    options = _parser().parse_args(arguments)
    try:
        return _run_keeping(options) if hasattr(options, "resume_answers") else options.run(options) or 0
    except AnalysisError as error:
        print(f"{error}{_option_for(error)}", file=sys.stderr)
        return 2


def _run_keeping(options: argparse.Namespace) -> int:
    """Run a command that keeps what it computes; raises KeyboardInterrupt with what to do after one."""
    with closing(Store()) as results:
        options.answer = keeping(results, resumes=options.resume_answers)
        try:
            code: int = options.run(options) or 0
        except KeyboardInterrupt as interrupt:
            raise KeyboardInterrupt(str(interrupt) or "Stopped. To go on from here, add --resume.") from None
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


def _terminate(*_: object) -> None:
    raise _Terminated


def _option_for(error: AnalysisError) -> str:
    """Hint about the option for a problem that a page solves with a control."""
    if isinstance(error, TextTooLong):
        return " Options: --too-long skip, --too-long truncate."
    if isinstance(error, GrowsLarger):
        return " Options: --export zeroed, --may-grow."
    return " Option: --text-columns first,second." if isinstance(error, ColumnsNeeded) else ""


def _parser() -> argparse.ArgumentParser:
    parser = Parser(prog="python -m attention_sieve", description=__doc__)
    commands = parser.add_subparsers(required=True)
    roles.add_commands(commands)
    for module in (
        comparison,
        surface,
        relations,
        coreference,
        word_links,
        tree_probes,
        similarity,
        maps,
        removal,
        gates,
        probe_texts,
        copying,
        sample_decoder,
        laboratory,
    ):
        module.add_command(commands)
    importance.add_commands(commands)
    pruning.add_command(commands)
    making_tasks.add_commands(commands)
    knowledge.add_commands(commands)
    trials.add_commands(commands)
    erasure.add_command(commands)
    corpus.add_commands(commands)
    finetuning.add_commands(commands)
    store.add_command(commands)
    return parser


if __name__ == "__main__":
    sys.exit(_entry())
