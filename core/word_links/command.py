"""The command `python -m attention_sieve word-links`: which heads look from one word of a pattern to the other."""

import argparse
import sys
from typing import Any

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.commands import (
    TABLES,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write_table,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import (
    add_alpha_option,
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.passes.prepare import queries_text
from attention_sieve.core.statistics.documents import documents_fact, documents_note
from attention_sieve.core.texts.relations import dependencies, relations_source
from attention_sieve.core.texts.text import texts_sha256
from attention_sieve.core.word_links.on_corpus import PatternLinks, pattern_links
from attention_sieve.core.word_links.pattern import Pattern, PatternText
from attention_sieve.core.word_links.question import WORD_LINKS


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "word-links", help="measure which heads attend from one word to another", description=word_links.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser)
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
    add_alpha_option(parser)
    parser.set_defaults(run=word_links)


def word_links(arguments: argparse.Namespace) -> None:
    """Measure which heads attend from one word to another, over all texts in which both occur; write a row per head.

    If the file names documents, these are the units of intervals and tests; otherwise texts count as independent. The
    best head of one half of the texts, evaluated on the other half, is printed to standard error.

    Columns:
        layer, head: index of the layer and of the head, from 0
        texts: number of texts with the pattern
        pairs: number of its pairs of words in which the first can attend to the second
        share: attention from the first word to the second, mean over texts
        low, high: confidence interval of the share
        even: share that uniform attention would give
        compared_texts: number of texts that have other words at the distance of a pair
        compared, others: in these texts, the share, and the attention between those other words
        p: one-sided p-value of compared being above others (paired t-test), Benjamini-Hochberg over all heads
        beats: whether p is below alpha and the share is clearly above even
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
        return f"{size} A single text or document gives no intervals, tests or held-out evaluation. Give more texts."
    names = " or ".join(dict.fromkeys(head_name(*head) for head in held_out.heads))
    return (
        f"{size} {names}, chosen on one half of the texts, gives {held_out.share:.1%} of its attention to the other "
        f"word in the other half ({held_out.low:.1%} to {held_out.high:.1%}); between other words at the same distance "
        f"{held_out.others:.1%}."
    )
