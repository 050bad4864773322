"""The command `python -m attention_sieve word-links`: which heads look from one word of a pattern to the other."""

import argparse
import sys
from dataclasses import replace
from typing import Any

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.commands import read_texts, write_finding
from attention_sieve.core.options import add_analysis_command, add_parser_options, add_texts_options, settings_of
from attention_sieve.core.statistics.means import documents_note
from attention_sieve.core.word_links.analysis import WORD_LINK_ANALYSIS, PatternLinks, WordLinkSettings
from attention_sieve.core.word_links.pattern import Pattern


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = add_analysis_command(commands, "word-links", word_links, WORD_LINK_ANALYSIS)
    add_texts_options(parser)
    add_parser_options(parser)
    parser.add_argument("--from", dest="query", metavar="WORD", help="the word that attends (query); default: any word")
    parser.add_argument(
        "--to", dest="key", metavar="WORD", help="the word that is attended to (key); default: any word"
    )
    parser.add_argument(
        "--relation", help="syntactic relation between the two, such as nsubj; default: any two words of a text"
    )
    parser.add_argument(
        "--from-head",
        action="store_true",
        help="attention from the head of the --relation to its dependent, instead of from the dependent to its head",
    )


def word_links(arguments: argparse.Namespace) -> None:
    """Measure which heads attend from one word to another, over all texts in which both occur; write a row per head.

    If the file names documents, these are the units of intervals and tests; otherwise texts count as independent. The
    best head of one half of the texts, evaluated on the other half, is printed to standard error.
    """
    settings = word_link_settings(arguments)
    texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    links = write_finding(arguments, WORD_LINK_ANALYSIS, texts, settings).links
    print(_summary(links), documents_note(links.n_documents), file=sys.stderr)


def word_link_settings(arguments: argparse.Namespace) -> WordLinkSettings:
    """The pattern and the tests that the options ask for.

    Raises: AnalysisError for neither two words nor a relation.
    """
    pattern = Pattern(arguments.query, arguments.key, arguments.relation, from_dependent=not arguments.from_head)
    return replace(settings_of(arguments, WORD_LINK_ANALYSIS.settings), pattern=pattern)


def _summary(links: PatternLinks) -> str:
    size = f"{links.n_pairs:,} pairs in {links.n_texts:,} texts."
    held_out = links.held_out
    if held_out is None:
        return f"{size} A single text or document gives no intervals, tests or held-out evaluation. Give more texts."
    names = " or ".join(dict.fromkeys(head_name(*head) for head in held_out.heads))
    return (
        f"{size} {names}, chosen on one half of the texts, gives {held_out.share:.1%} of its attention to the other "
        f"word in the other half ({held_out.low:.1%} to {held_out.high:.1%}); between other words at the same distance "
        f"{held_out.others:.1%}."
    )
