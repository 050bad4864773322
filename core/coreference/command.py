"""The command `python -m attention_sieve coreference`: accuracy of every head at antecedent selection."""

import argparse
import hashlib
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

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
    read_bytes,
    write_table,
)
from attention_sieve.core.coreference.accuracy import (
    BASELINES,
    GROUPS,
    Candidates,
    CoreferenceScores,
    coreference_scores,
)
from attention_sieve.core.coreference.files import KINDS, read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, windows
from attention_sieve.core.coreference.question import choice_question
from attention_sieve.core.options import add_checkpoint_options, add_output_option, add_random_weights_option
from attention_sieve.core.statistics.documents import documents_note

Part = TypeVar("Part")


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "coreference", help="measure how well each head finds antecedents", description=coreference.__doc__
    )
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    parser.add_argument("--texts", required=True, type=Path, help=f"file of texts with annotated coreference: {KINDS}")
    add_output_option(parser)
    parser.add_argument(
        "--candidates",
        default="mentions",
        choices=get_args(Candidates),
        help="words among which an antecedent is chosen: the head words of earlier mentions, or all words; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--window",
        type=int,
        default=WINDOW,
        help="longer documents are split at sentence ends into windows of at most this many tokens; default: "
        "%(default)s",
    )
    parser.add_argument(
        "--from-word",
        default="mean",
        choices=("mean", "first"),
        help="attention from a word of several tokens: mean over its tokens, or that of the first; default: "
        "%(default)s",
    )
    parser.set_defaults(run=coreference)


def coreference(arguments: argparse.Namespace) -> None:
    """Measure how well each head finds the antecedents of mentions; write a row per group of mentions, layer and head.

    Documents are the units of intervals and tests, because cases of one text are not independent; with a single
    document there are no intervals or tests. A summary is printed to standard error.

    Columns:
        group: type of mention: all, pronoun, proper or nominal
        layer, head: index of the layer and of the head, from 0
        cases: number of mentions that refer back to an earlier mention
        documents: number of documents with cases; texts of the same name are one document
        accuracy: share of the cases whose head word attends most to the head word of an antecedent
        low, high: 95% confidence interval of the accuracy
        design_effect: variance of the accuracy with documents as units, divided by that with independent cases
        nearest mention, same head word, random mention: accuracy of these baselines; same head word falls back on the
            nearest mention
        p_nearest, p_same_head: one-sided p-values of the accuracy being above the first two, multiplied by the number
            of heads

    Columns of a control, which compares the attention to the antecedents with the attention that they get from later
    words that do not mention the same entity:
        compared: number of cases that can be compared
        attention_to_right, attention_of_others, times_others: the two means, and their ratio
        p_others: one-sided p-value of the first being larger, multiplied by the number of heads
        beats_others: whether it is significant at .05, and at least twice as large
        from_everywhere: whether it is less than twice as large, so that the head attends to these words from everywhere
    """
    check_output(arguments.output, TABLES, [arguments.texts])
    content = read_bytes(arguments.texts)
    texts = read_mentions(content, partial(_watched, "parsing"))
    checkpoint, settings = loaded(arguments)
    question = choice_question(arguments.from_word)
    question.check(settings.kind)
    text_windows = windows(checkpoint, texts, arguments.window, partial(_watched, "cutting"))
    prepared = prepared_texts(checkpoint, [text.text for text in text_windows.texts], settings, "truncate")
    choices = answers(checkpoint, question, text_windows.texts, prepared, settings)
    scores = coreference_scores(text_windows.texts, list(choices.values()), arguments.candidates)
    facts = {
        **checkpoint_facts(checkpoint, settings),
        "texts": str(len(text_windows.texts)),
        "all documents": str(scores.n_documents[0]),
        "texts sha256": hashlib.sha256(content).hexdigest(),
        "candidates": arguments.candidates,
        "window": str(arguments.window),
        "from word": arguments.from_word,
    }
    write_table(arguments.output, coreference_table(scores), facts)
    print(_summary(scores, text_windows.n_apart), documents_note(int(scores.n_documents[0])), file=sys.stderr)


def coreference_table(scores: CoreferenceScores) -> pd.DataFrame:
    """One row per group of mentions, layer and head.

    Columns: group (all, or a type of mention), layer, head, cases, documents (with cases), accuracy, low, high,
    design_effect, then of the baselines `nearest mention`, `same head word` and `random mention` the accuracy, and
    p_nearest, p_same_head (see attention_sieve.core.statistics.cases.Judgement), and those of
    attention_sieve.core.statistics.key_matched.KeyMatched.columns.
    """
    judged = scores.judgement
    group, layer, head = (axis.ravel() for axis in np.indices(judged.accuracy.shape))
    nearest, same_head = BASELINES
    of_groups = [control.columns() for control in judged.key_matched]
    by_group = {name: [columns[name] for columns in of_groups] for name in of_groups[0]}
    return pd.DataFrame(
        {
            "group": np.array(GROUPS)[group],
            "layer": layer,
            "head": head,
            "cases": judged.n_cases[group],
            "documents": scores.n_documents[group],
            "accuracy": judged.accuracy.ravel(),
            "low": judged.low.ravel(),
            "high": judged.high.ravel(),
            "design_effect": judged.design_effect.ravel(),
            nearest: judged.baselines[0][group],
            same_head: judged.baselines[1][group],
            "random mention": scores.chance[group],
            "p_nearest": judged.p_values[0].ravel(),
            "p_same_head": judged.p_values[1].ravel(),
            **{name: np.concatenate(columns) for name, columns in by_group.items()},
        }
    )


def _watched(doing: str, items: Iterable[Part], n_texts: int) -> Iterable[Part]:
    """Iterate over texts with a progress bar that counts them."""
    return progress_bar(([item] for item in items), n_texts, doing)


def _summary(scores: CoreferenceScores, n_apart: int) -> str:
    """The best head compared with the baselines, and what was left out."""
    judged, (layer, head) = scores.judgement, scores.best
    clauses = [
        f"{head_name(layer, head)} is right in {judged.accuracy[0, layer, head]:.1%} of {judged.n_cases[0]:,} cases",
        *(f"{name} in {judged.baselines[baseline, 0]:.1%}" for baseline, name in enumerate(BASELINES)),
    ]
    if judged.held_out is not None:
        held_out = judged.held_out
        clauses.append(
            f"heads chosen on one half of the documents in {held_out.accuracy[0]:.1%} of the other's cases "
            f"({held_out.low[0]:.1%} to {held_out.high[0]:.1%})"
        )
    if n_apart:
        clauses.append(f"{n_apart:,} mentions have their antecedents in earlier windows and do not count as cases")
    if scores.n_unread:
        clauses.append(f"{scores.n_unread:,} mentions without a token of their own were left out")
    return "; ".join(clauses) + "."
