"""The command `python -m attention_sieve probe-texts`: made texts that show what heads of decoders do."""

import argparse
from typing import Any

from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.commands import check_output, write
from attention_sieve.core.options import add_checkpoint_option, add_output_option, add_settings_options, settings_of
from attention_sieve.core.probe_texts.make import ProbeTextSettings, probe_texts
from attention_sieve.core.texts.text import write_typed


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    making = commands.add_parser(
        "probe-texts",
        help="make texts that show what heads of a decoder do: repeats, needles in filler, names and ordinals",
        description=make.__doc__,
    )
    add_checkpoint_option(making)
    add_output_option(making, "JSON Lines file to write")
    add_settings_options(making, ProbeTextSettings())
    making.set_defaults(run=make)


def make(arguments: argparse.Namespace) -> None:
    """Make texts that show what heads of a decoder do, and write the ids of their tokens, a text on each line.

    The kinds are repeats (random tokens, four times the same block, with gaps of random length between), fixed-repeats
    (the same without gaps, the control: a head that always looks at one distance looks like one that finds copies),
    needles (a sentence in filler, at five depths and three lengths, which the end of the text copies) and names
    (sentences that end in a name, and sequences such as days and numbers). Every command that reads texts takes the
    file.

    Keys of each line:
        ids: of the tokens, the first of which begins a text
        needle: position of the first token that the answer copies, and the one after the last; only needles and names
        answer: the same of the tokens that copy them
    """
    from attention_sieve.core.checkpoints.load import load_tokenizer

    check_output(arguments.output, (".jsonl",))
    settings = settings_of(arguments, ProbeTextSettings())
    texts = probe_texts(load_tokenizer(find_checkpoint(arguments.checkpoint)), settings)
    write(arguments.output, lambda path: path.write_text(f"{write_typed(texts)}\n", encoding="utf-8"))
