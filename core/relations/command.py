"""The command `python -m attention_sieve relations`: how well each head finds the heads of words."""

import argparse
import sys
from typing import Any

from attention_sieve.core.commands import read_texts, write_finding
from attention_sieve.core.options import add_analysis_command, add_parser_options, add_texts_options, settings_of
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.settings import AS_IN_CODE, AS_IN_PAPER, RelationSettings
from attention_sieve.core.statistics.means import documents_note


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_analysis_command(commands, "relations", relations, RELATION_ANALYSIS)
    add_texts_options(parser)
    add_parser_options(parser)
    parser.add_argument(
        "--as-in-code",
        action="store_true",
        help="evaluate as the code of Clark et al. does; the same as --from-word first --at-clitic --every-word "
        "--offsets {} {}".format(*AS_IN_CODE.offsets),
    )


def relations(arguments: argparse.Namespace) -> None:
    """Measure how well each head predicts syntactic relations, or pairs that a file marks; write a row per relation,
    direction, layer and head.

    Relations are taken from the file if it has trees or pairs; otherwise spaCy parses the texts. The relation `all`
    includes every relation except punct and root. If a file names documents (CoNLL-U by # newdoc, JSON with pairs by
    "document"), these are the units of halves, intervals and tests; otherwise texts are. The number of documents, and
    what is left out, are printed to standard error.

    Pairs are marked in JSON, such as {"text": "f(x)", "document": "a.py", "pairs": [{"relation": "bracket", "from":
    [3, 4], "to": [1, 2]}]}: spans of the first character, counted from 0, and the one after the last. From each span at
    most one pair begins. Of two segments, "text_a" and "text_b", the keys are "from_a" or "from_b", and "to_a" or
    "to_b". Marked spans are words, and line breaks are read as spaces.
    """
    settings = relation_settings(arguments)
    texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    finding = write_finding(arguments, RELATION_ANALYSIS, texts, settings)
    print(documents_note(finding.n_documents), *filter(None, [finding.left_out_note]), file=sys.stderr)


def relation_settings(arguments: argparse.Namespace) -> RelationSettings:
    """The settings that the options ask for."""
    return settings_of(arguments, AS_IN_CODE if arguments.as_in_code else AS_IN_PAPER)
