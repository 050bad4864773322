"""The command `python -m core word-links`: which heads look from one word of a pattern to the other."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from core.attention.settings import head_name
from core.commands import (
    TABLES,
    add_checkpoint_options,
    add_random_weights_option,
    add_texts_options,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write_table,
)
from core.errors import AnalysisError
from core.passes.prepare import queries_text
from core.statistics.documents import documents_fact, documents_note
from core.texts.relations import dependencies, relations_source
from core.texts.text import SUFFIXES, texts_sha256
from core.word_links.on_corpus import PatternLinks, pattern_links
from core.word_links.pattern import Pattern, PatternText
from core.word_links.question import WORD_LINKS


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "word-links", help="measure which heads link two words", description=word_links.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser, ", ".join(SUFFIXES))
    parser.add_argument("--output", required=True, type=Path, help="file to write: " + " or ".join(TABLES))
    parser.add_argument("--from", dest="query", metavar="WORD", help="the word that looks; any unless told")
    parser.add_argument("--to", dest="key", metavar="WORD", help="the word that is looked at; any unless told")
    parser.add_argument("--relation", help="joins the two, such as nsubj; any two words of a text unless told")
    parser.add_argument(
        "--from-head", action="store_true", help="of a relation, the head looks at its dependent, not the reverse"
    )
    parser.add_argument("--alpha", type=float, default=0.05, help="intervals cover 1 - alpha")
    parser.set_defaults(run=word_links)


def word_links(arguments: argparse.Namespace) -> None:
    """Write one row per layer and head: texts (with the pattern), pairs (of it, where the first word sees the second),
    share (attention from the first word to the second, mean over texts), low and high (its interval), even (what evenly
    spread attention gives), compared_texts (with other words at the distance of a pair), compared (share in these
    texts), others (attention between those other words), p (paired one-sided t-test that compared is above others,
    Benjamini-Hochberg over all heads) and beats (p below alpha, and share clearly above even). The head chosen on one
    half of the texts and judged on the other goes to standard error. Documents are the units of halves, intervals and
    tests where the file names them; else texts count as independent.
    """
    if not 0 < arguments.alpha < 1:
        raise AnalysisError(f"alpha is {arguments.alpha}. Choose a number between 0 and 1, for example 0.05.")
    pattern = Pattern(arguments.query, arguments.key, arguments.relation, from_dependent=not arguments.from_head)
    check_output(arguments.output, TABLES, [arguments.texts])
    texts = read_texts(arguments.texts, arguments.text_columns)
    checkpoint, settings = loaded(arguments)
    WORD_LINKS.check(settings.kind)
    query_texts = [queries_text(text, settings.kind) for text in texts]
    trees = list(progress_bar(([tree] for tree in dependencies(query_texts)), len(query_texts), "parsing"))
    items = [
        item for text, tree in zip(query_texts, trees) if (item := PatternText.of(text, tree, pattern)) is not None
    ]
    prepared = prepared_texts(checkpoint, [item.text for item in items], settings, arguments.too_long) if items else {}
    results = answers(checkpoint, WORD_LINKS, items, prepared, settings)
    documents = [items[index].text.document for index in results]
    links = pattern_links(list(results.values()), documents, alpha=arguments.alpha)
    facts = {
        **checkpoint_facts(checkpoint, settings),
        "from": pattern.query or "any word",
        "to": pattern.key or "any word",
        "relation": pattern.relation or "none",
        "relations": relations_source(sum(text.heads is not None for text in texts), len(texts)),
        "documents": documents_fact(links.n_documents),
        "texts sha256": texts_sha256(texts),
    }
    write_table(arguments.output, links_table(links, arguments.alpha), facts)
    print(_summary(links), documents_note(links.n_documents), file=sys.stderr)


def links_table(links: PatternLinks, alpha: float) -> pd.DataFrame:
    """One row per layer and head, with the columns that `word_links` describes."""
    _, n_heads = links.shares.shape
    layer, head = (index.ravel() for index in np.indices(links.shares.shape))
    return pd.DataFrame(
        {
            "layer": layer,
            "head": head,
            "texts": links.n_texts,
            "pairs": links.n_pairs,
            "share": links.shares.ravel(),
            "low": links.low.ravel(),
            "high": links.high.ravel(),
            "even": np.repeat(links.even, n_heads),
            "compared_texts": links.n_compared,
            "compared": links.compared.ravel(),
            "others": links.others.ravel(),
            "p": links.p.ravel(),
            "beats": links.beats(alpha).ravel(),
        }
    )


def _summary(links: PatternLinks) -> str:
    size = f"{links.n_pairs:,} pairs in {links.n_texts:,} texts."
    held_out = links.held_out
    if held_out is None:
        return f"{size} From one text or document there are no intervals, tests and held-out heads. Give more."
    names = " or ".join(dict.fromkeys(head_name(*head) for head in held_out.heads))
    return (
        f"{size} {names}, chosen on one half of the texts, gives {held_out.share:.1%} of its attention to the other "
        f"word in the other half ({held_out.low:.1%} to {held_out.high:.1%}); between other words at the same distance "
        f"{held_out.others:.1%}."
    )
