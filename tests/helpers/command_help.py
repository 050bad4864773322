"""What the help of a command says of the columns of its files."""

import argparse
import inspect
import re

from attention_sieve.__main__ import _parser

COLUMNS = re.compile(r" {4}([\w, ]+): ")


def commands(parser, *names):
    """Name and parser of every command, those of `corpus` included."""
    subparsers = [action for action in parser._actions if isinstance(action, argparse._SubParsersAction)]
    if not subparsers:
        yield " ".join(names), parser
    for action in subparsers:
        for name, subparser in action.choices.items():
            yield from commands(subparser, *names, name)


def columns_in_help(command, *headings):
    """Columns in the order of the help, below each of the headings: the paragraphs that begin so."""
    described = inspect.cleandoc(dict(commands(_parser()))[command].description)
    paragraphs = described.split("\n\n")
    lists = [paragraph for heading in headings for paragraph in paragraphs if paragraph.startswith(heading)]
    assert len(lists) == len(headings), described
    return [name for one in lists for names in COLUMNS.findall(one) for name in names.split(", ")]


def own_columns(table):
    """Columns of a table without those that a CSV file has for its provenance, the checkpoint first."""
    names = list(table)
    return names[: names.index("checkpoint")] if "checkpoint" in names else names
