"""The command `python -m attention_sieve parse-heads`: how well each head finds the heads of words."""

import argparse
import math
import sys
from collections.abc import Sequence
from typing import Any, Final, get_args

import numpy as np
import pandas as pd

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
from attention_sieve.core.relations.accuracy import (
    AS_IN_CODE,
    AS_IN_PAPER,
    DIRECTIONS,
    NO_CASE,
    VOITA_MARGIN,
    Margin,
    ParsingSettings,
    Reading,
    RelationAccuracy,
    TextPredictions,
    beats_baseline,
    relation_accuracies,
)
from attention_sieve.core.relations.offsets import AUTHORS_OFFSETS, OFFSETS
from attention_sieve.core.relations.question import ParsedText, prediction_question
from attention_sieve.core.statistics.documents import documents_fact, documents_note, n_documents
from attention_sieve.core.texts.relations import dependencies, relations_source
from attention_sieve.core.texts.text import Text, texts_sha256
from attention_sieve.core.texts.words import FromWord

LEAST_CASES: Final = 100
"""Minimum number of cases of a relation that is written; as in the authors' table."""
FARTHEST: Final = 100
"""Largest offset of the baseline, in words."""


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "parse-heads", help="measure how well each head predicts syntactic relations", description=parse_heads.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser)
    parser.add_argument(
        "--least-cases",
        type=int,
        default=LEAST_CASES,
        help="leave out relations with fewer cases than this; default: %(default)s",
    )
    add_alpha_option(parser)
    parser.add_argument(
        "--by",
        type=float,
        default=VOITA_MARGIN,
        help="margin by which the accuracy must exceed the baseline for beats_baseline, as a share; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--margin",
        default="points",
        choices=get_args(Margin),
        help="whether that margin is added to the baseline (points) or is a share of the baseline (relative); default: "
        "%(default)s",
    )
    _add_parsing_options(parser)
    parser.set_defaults(run=parse_heads)


def _add_parsing_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for how predictions are evaluated; by default as in the papers."""
    parser.add_argument(
        "--reading",
        default="column",
        choices=get_args(Reading),
        help="how head-to-dependent is read: the word that attends most to the dependent is predicted as its head "
        "(column, as in Clark et al.), or the word that the head attends to most is predicted as its dependent (row, "
        "as in Voita et al.); default: %(default)s",
    )
    parser.add_argument(
        "--from-word",
        choices=get_args(FromWord),
        help="attention from a word of several tokens: mean over its tokens, or that of the first; default: mean",
    )
    parser.add_argument(
        "--at-clitic",
        action="store_true",
        help="read the prediction for a possessor at the 's that follows it, as the authors' code does",
    )
    parser.add_argument("--every-word", action="store_true", help="include punctuation and roots in the relation all")
    parser.add_argument(
        "--offsets",
        type=int,
        nargs=2,
        metavar=("FROM", "TO"),
        help=f"range of offsets, in words, among which the baseline is chosen; default: {OFFSETS[0]} {OFFSETS[-1]}",
    )
    parser.add_argument(
        "--as-in-code",
        action="store_true",
        help="evaluate as the code of Clark et al. does; the same as --from-word first --at-clitic --every-word "
        f"--offsets {AUTHORS_OFFSETS[0]} {AUTHORS_OFFSETS[-1]}",
    )


def parse_heads(arguments: argparse.Namespace) -> None:
    """Measure how well each head predicts syntactic relations; write a row per relation, direction, layer and head.

    Relations are taken from the file if it has trees; otherwise spaCy parses the texts. The relation `all` includes
    every relation except punct and root. If a CoNLL-U file names documents (# newdoc), these are the units of intervals
    and tests; otherwise cases count as independent, with Wilson's intervals and McNemar's tests. The number of
    documents is printed to standard error.

    Columns:
        relation: name of the relation
        direction: dependent-to-head or head-to-dependent
        layer, head: index of the layer and of the head, from 0
        cases: number of words with this relation
        left_out: words that are not cases, because they or their heads have no tokens
        documents: number of documents with cases; empty if documents are unknown
        accuracy: share of the cases in which the head predicts the right word
        low, high: confidence interval of the accuracy
        design_effect: variance of the accuracy with documents as units, divided by that with independent cases; empty
            if documents are unknown
        baseline, offset: accuracy of the best fixed offset, and that offset in words
        p: one-sided p-value of the accuracy being above the baseline, corrected for all heads and directions
        beats_baseline: whether the accuracy exceeds the baseline by the margin of --by and --margin; for Voita et al.'s
            rule, head-to-dependent needs --reading row
        best: whether this is the best head of the relation, among those with beats_others if there are any
        held_out, held_out_low, held_out_high, held_out_design_effect: accuracy of the head that is best on one half of
            the documents (or texts), evaluated on the other half; the same in all rows of a relation

    Columns of a control, which compares the attention to the right word with the attention that the same word gets from
    words that no relation joins to it:
        compared: number of cases in which both can attend to it
        attention_to_right, attention_of_others, times_others: the two means, and their ratio
        p_others: one-sided p-value of the first being larger, paired by document (or text) and corrected like p
        beats_others: whether it is significant, and at least twice as large
        from_everywhere: whether it is less than twice as large, so that the head attends to the word from
            everywhere
        held_out_times_others, held_out_from_everywhere: the same for the heads of held_out
    """
    if not 0 < arguments.alpha < 1:
        raise AnalysisError(f"alpha is {arguments.alpha}. Choose a number between 0 and 1, for example 0.05.")
    if not 0 <= arguments.by < math.inf:
        raise AnalysisError(f"by is {arguments.by}. Choose a share of 0 or more, for example 0.1.")
    parsing = _parsing_settings(arguments)
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, TABLES, [arguments.texts])
    predictions, facts = _predictions(arguments, texts, parsing)
    accuracies = relation_accuracies(predictions, parsing, least_cases=arguments.least_cases, alpha=arguments.alpha)
    if not accuracies:
        raise AnalysisError(
            f"No relation has {arguments.least_cases:,} cases. Give more texts, or ask for fewer with --least-cases."
            if arguments.least_cases > 1
            else NO_CASE
        )
    write_table(arguments.output, accuracy_table(accuracies, by=arguments.by, margin=arguments.margin), facts)
    print(documents_note(n_documents([text.document for text in predictions])), file=sys.stderr)


def _parsing_settings(arguments: argparse.Namespace) -> ParsingSettings:
    """Settings from the arguments; the rest is as in the papers or, with --as-in-code, the authors' code."""
    defaults = AS_IN_CODE if arguments.as_in_code else AS_IN_PAPER
    return ParsingSettings(
        reading=arguments.reading,
        at_clitic=arguments.at_clitic or defaults.at_clitic,
        every_word=arguments.every_word or defaults.every_word,
        offsets=_offsets(*arguments.offsets) if arguments.offsets else defaults.offsets,
    )


def _offsets(first: int, last: int) -> tuple[int, ...]:
    if not -FARTHEST <= first <= last <= FARTHEST or first == last == 0:
        raise AnalysisError(
            f"The offsets {first} to {last} are not a range. Choose two numbers between -{FARTHEST} and {FARTHEST}, "
            f"the smaller first, such as {OFFSETS[0]} {OFFSETS[-1]}; 0 is left out, since no word is its own head."
        )
    return tuple(offset for offset in range(first, last + 1) if offset)


def _from_word(arguments: argparse.Namespace) -> FromWord:
    default: FromWord = "first" if arguments.as_in_code else "mean"
    return arguments.from_word or default


def _predictions(
    arguments: argparse.Namespace, texts: Sequence[Text], parsing: ParsingSettings
) -> tuple[list[TextPredictions], dict[str, str]]:
    """Predictions for each text that the model has read, in order, and metadata on how they were computed."""
    from_word = _from_word(arguments)
    question = prediction_question(from_word)
    checkpoint, settings = loaded(arguments)
    question.check(settings.kind)
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    query_texts = [queries_text(texts[index], settings.kind) for index in prepared]
    trees = list(progress_bar(([tree] for tree in dependencies(query_texts)), len(query_texts), "parsing"))
    items = [ParsedText.of(texts[index], tree) for index, tree in zip(prepared, trees, strict=True)]
    results = answers(checkpoint, question, items, dict(enumerate(prepared.values())), settings)
    n_with_trees = sum(text.heads is not None for text in query_texts)
    n_known = n_documents([text.document for text in query_texts])
    facts = {
        **checkpoint_facts(checkpoint, settings),
        "texts": str(len(query_texts)),
        "texts sha256": texts_sha256(texts),
        "documents known": documents_fact(n_known),
        "relations": relations_source(n_with_trees, len(query_texts)),
        "from word": from_word,
        "reading": parsing.reading,
        **parsing.facts,
        "alpha": str(arguments.alpha),
        "beats baseline by": f"{arguments.by} ({arguments.margin})",
    }
    return [TextPredictions.of(tree, results[row], query_texts[row].document) for row, tree in enumerate(trees)], facts


def accuracy_table(
    accuracies: Sequence[RelationAccuracy], *, by: float = VOITA_MARGIN, margin: Margin = "points"
) -> pd.DataFrame:
    """Table with the command's columns, one row per relation, direction, layer and head; by and margin as in
    `beats_baseline`."""
    return pd.concat([_rows(accuracy, by, margin) for accuracy in accuracies], ignore_index=True)


def _rows(accuracy: RelationAccuracy, by: float, margin: Margin) -> pd.DataFrame:
    control = accuracy.best_key_matched
    direction, layer, head = (indices.ravel() for indices in np.indices(accuracy.accuracy.shape))
    directions = np.array(DIRECTIONS)[direction]
    return pd.DataFrame(
        {
            "relation": accuracy.relation,
            "direction": directions,
            "layer": layer,
            "head": head,
            "cases": accuracy.n_cases,
            "left_out": accuracy.n_left_out,
            "documents": pd.array([accuracy.n_documents] * accuracy.accuracy.size, dtype="Int64"),
            "accuracy": accuracy.accuracy.ravel(),
            "low": accuracy.low.ravel(),
            "high": accuracy.high.ravel(),
            "design_effect": accuracy.design_effect.ravel(),
            "baseline": accuracy.baseline.share,
            "offset": accuracy.baseline.offset,
            "p": accuracy.p_values.ravel(),
            "beats_baseline": beats_baseline(accuracy, by=by, margin=margin).ravel(),
            "best": [
                head_of_row == accuracy.best for head_of_row in zip(directions.tolist(), layer.tolist(), head.tolist())
            ],
            "held_out": accuracy.best_accuracy,
            "held_out_low": accuracy.best_low,
            "held_out_high": accuracy.best_high,
            "held_out_design_effect": accuracy.best_design_effect,
            **accuracy.key_matched.columns(),
            "held_out_times_others": float(control.times) if accuracy.best_of_halves else math.nan,
            "held_out_from_everywhere": bool(accuracy.best_of_halves and control.from_everywhere),
        }
    )
