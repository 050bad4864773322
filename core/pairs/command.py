"""The command `python -m attention_sieve pairs`: files of pairs, made of texts and code."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attention_sieve.core.commands import check_output, read_bytes, write
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import add_output_option
from attention_sieve.core.pairs.make import KINDS, Passage, passages
from attention_sieve.core.texts.pairs import FORMAT
from attention_sieve.core.texts.text import decoded


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    making = commands.add_parser(
        "pairs",
        help="mark pairs in texts or Python code for the command relations: brackets, uses of names and definitions",
        description=make.__doc__,
    )
    making.add_argument("kind", choices=KINDS, help="what is paired")
    making.add_argument("files", nargs="+", type=Path, help="files of Python code (.py) or of plain text")
    add_output_option(making, "JSON Lines file to write")
    making.set_defaults(run=make)


def make(arguments: argparse.Namespace) -> None:
    """Mark pairs in texts or Python code, and write a text with its pairs on each line, for the command relations and
    for Grammar.

    Brackets lead from a closing bracket to the opening one, in paragraphs, or in functions of Python code, where
    strings and comments are passed over. Def-use pairs lead from a use of a name in a function to the place that binds
    it, where there is only one. A file is a document. Parts without pairs are left out.
    """
    check_output(arguments.output, (".jsonl",), arguments.files)
    lines = [line for path in arguments.files for line in _lines(arguments.kind, path)]
    if not lines:
        raise AnalysisError(f"There are no {arguments.kind} in these files. Give others.")
    write(arguments.output, lambda path: path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8"))


def _lines(kind: str, path: Path) -> Iterator[str]:
    for passage in passages(kind, str(path), decoded(read_bytes(path))):
        yield as_line(passage, str(path))


def as_line(passage: Passage, document: str) -> str:
    """A passage as a line of a file of pairs."""
    pairs = [{"relation": pair.relation, "from": pair.start[1:], "to": pair.end[1:]} for pair in passage.pairs]
    return json.dumps({"format": FORMAT, "text": passage.text, "document": document, "pairs": pairs})
