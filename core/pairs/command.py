"""The command `python -m attention_sieve pairs`: files of pairs, made of texts and code."""

import argparse
from itertools import chain
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.commands import check_output, write
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import add_output_option
from attention_sieve.core.pairs.make import ALIGNMENTS, ANTECEDENTS, KINDS, Passage, alignments, antecedents, passages
from attention_sieve.core.texts.given import pairs_line
from attention_sieve.core.texts.text import decoded, read_bytes

N_ALIGNED: Final = 3
"""Files of sentences, of their translations, and of their alignments."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    making = commands.add_parser(
        "pairs",
        help="mark pairs in texts or code for the command relations: brackets, definitions, alignments, antecedents",
        description=make.__doc__,
    )
    making.add_argument("kind", choices=KINDS, help="what is paired")
    making.add_argument(
        "files",
        nargs="+",
        type=Path,
        help="files of Python code (.py) or plain text; for alignments, three; for antecedents, files with mentions",
    )
    add_output_option(making, "JSON Lines file to write")
    making.set_defaults(run=make)


def make(arguments: argparse.Namespace) -> None:
    """Mark pairs in texts or Python code, and write a text with its pairs on each line, for the command relations and
    for Grammar.

    Brackets lead from a closing bracket to the opening one, in paragraphs, or in functions of Python code, where
    strings and comments are passed over. Def-use pairs lead from a use of a name in a function of Python code to the
    place that binds it, where there is only one. Alignments take three files, whose lines are sentences, their
    translations, and links such as 0-0 2-1, and lead from a word of the translation to the only one that it is aligned
    to. Antecedents are made of files with mentions, as of the command coreference, and lead from the head word of a
    mention to that of the nearest earlier one of the same entity; a role that you write may look at them. Parts without
    pairs are left out. Where several files of code or text are given, each is a document.
    """
    check_output(arguments.output, (".jsonl",), arguments.files)
    files = [read_bytes(path) for path in arguments.files]
    marked: list[tuple[Passage, str | None]] = []
    if arguments.kind == ANTECEDENTS:
        texts = chain.from_iterable(map(read_mentions, files))
        marked = [(passage, text.document) for text in texts for passage in antecedents(text)]
    elif arguments.kind == ALIGNMENTS:
        if len(files) != N_ALIGNED:
            raise AnalysisError(
                f"Alignments are made of {N_ALIGNED} files, and {len(files)} are given. Give the sentences, their "
                "translations, and their links."
            )
        marked = [(passage, None) for passage in alignments(*map(decoded, files))]
    else:
        for path, content in zip(arguments.files, files, strict=True):
            document = str(path) if len(files) > 1 else None
            marked += [(passage, document) for passage in passages(arguments.kind, str(path), decoded(content))]
    if not marked:
        raise AnalysisError(f"There are no {arguments.kind} in these files. Give others.")
    lines = [pairs_line(passage.segments, passage.pairs, document) for passage, document in marked]
    write(arguments.output, lambda path: path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8"))
