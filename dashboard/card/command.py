"""The command `python -m attention_sieve card`: the card of a head as a picture."""

import argparse
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.commands import check_output, loaded, read_texts, write
from attention_sieve.core.errors import AnalysisError, quoted
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_parser_options,
    add_resume_option,
    add_settings_options,
    add_texts_options,
    heads,
)
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.command import add_roles_options, role_settings
from attention_sieve.core.texts.parsers import parsed_by
from attention_sieve.core.texts.text import read_typed
from attention_sieve.core.usage import TEXTS_HELP

SUFFIXES: Final = (".svg", ".png")


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("card", help="draw the card of a head as a picture", description=card.__doc__)
    add_checkpoint_options(parser)
    parser.add_argument(
        "--head",
        dest="heads",
        type=_one_head,
        required=True,
        metavar="HEAD",
        help="head of the card, as layer-head, such as 3-7",
    )
    parser.add_argument(
        "--text",
        required=True,
        help="text on which the head is drawn, with ||| between its two segments if it is a pair",
    )
    add_resume_option(parser)
    add_texts_options(
        parser,
        f"texts over which the head is named and scored: {TEXTS_HELP}; without it: the sample texts, with varied ones "
        "to judge the name on",
        required=False,
    )
    add_parser_options(parser)
    add_roles_options(parser)
    add_output_option(parser, f"file to write: {', '.join(SUFFIXES)}")
    add_settings_options(parser, ROLE_ANALYSIS.settings)
    parser.set_defaults(run=card)


def card(arguments: argparse.Namespace) -> None:
    """Draw the card of a head, 1200 x 630 pixels: its name in at most five words, its pattern and strongest links in a
    text, and its scores over texts beside chance and tau.

    The name is what the head mostly does, where the tests carry that, and otherwise "No clear habit". The file says
    what it was computed from: SVG in its description, PNG in its metadata.
    """
    check_output(arguments.output, SUFFIXES, [arguments.texts])
    (text, *further) = parsed_by(read_typed(arguments.text), arguments.parser)
    if further:
        raise AnalysisError(f"--text has {1 + len(further):,} lines, which are as many texts. Give one.")
    texts = None
    if arguments.texts is not None:
        texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    settings = role_settings(arguments, find_checkpoint(arguments.checkpoint))
    checkpoint, pass_settings = loaded(arguments)
    from attention_sieve.dashboard.card.content import CardRequest, compute  # these import pandas and Altair, which
    from attention_sieve.dashboard.figures.card import card_file  # the other commands do without

    ((head,),) = (arguments.heads,)
    request = CardRequest(
        pass_settings=pass_settings,
        settings=settings,
        head=head,
        text=text,
        texts=texts,
        too_long=arguments.too_long,
    )
    content = card_file(compute(checkpoint, request, arguments.answer), arguments.output.suffix)
    write(arguments.output, partial(Path.write_bytes, data=content))


def _one_head(written: str) -> tuple[Head, ...]:
    given = heads(written)
    if len(given) != 1:
        raise argparse.ArgumentTypeError(f"{quoted(written)} names {len(given)} heads; write one, such as 3-7")
    return given
