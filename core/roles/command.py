"""The commands `python -m core score` and `python -m core roles`: sieve bias scores of texts, and tests for roles."""

import argparse
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.commands import (
    add_checkpoint_options,
    add_random_weights_option,
    add_texts_options,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    read_texts,
    write,
)
from core.roles.hypotheses import Criterion, Family, Rule, role_tests
from core.roles.measures import USUAL_TAU, Scale, ScoreSettings, role_scores
from core.roles.question import SCORES
from core.roles.tables import ScoreTable, head_table, read_score_table, score_table
from core.texts.text import SUFFIXES, Text, texts_sha256

ROLE_FIELDS: Final = ("texts", "mean", "std", "t", "p", "p_uniform", "p_role", "p_adjusted", "holds")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    scoring = commands.add_parser("score", help="score texts under a checkpoint", description=score.__doc__)
    add_checkpoint_options(scoring)
    add_random_weights_option(scoring)
    add_texts_options(scoring, ", ".join(SUFFIXES))
    scoring.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    scoring.add_argument("--no-block-entropy", dest="block_entropy", action="store_false")
    scoring.add_argument(
        "--direction", default="dependent-to-head", choices=("dependent-to-head", "head-to-dependent", "both")
    )
    scoring.add_argument(
        "--scale", default="score", choices=get_args(Scale), help="times uniform attention, or the share above chance"
    )
    scoring.set_defaults(run=score)
    testing = commands.add_parser("roles", help="test scores for roles", description=roles.__doc__)
    testing.add_argument("scores", type=Path, help="Parquet file from the score command")
    testing.add_argument("--output", required=True, type=Path, help="CSV file to write")
    add_criterion_options(testing)
    testing.set_defaults(run=roles)


def score(arguments: argparse.Namespace) -> None:
    """Score the texts of a file and write one row per text, role, layer and head."""
    settings = ScoreSettings(
        direction=arguments.direction, block_entropy=arguments.block_entropy, scale=arguments.scale
    )
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, others=[arguments.texts])
    checkpoint, of_pass = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, of_pass, arguments.too_long)
    measures = answers(checkpoint, SCORES, texts, prepared, of_pass)
    n_tokens = [prepared[index].n_tokens for index in measures]
    scored = role_scores(list(measures.values()), settings)
    table = score_table(list(measures), n_tokens, scored, _facts(checkpoint, of_pass, settings, texts))
    write(arguments.output, partial(table.to_parquet, index=False))


def _facts(
    checkpoint: Checkpoint, of_pass: PassSettings, settings: ScoreSettings, texts: Sequence[Text]
) -> dict[str, str]:
    """Where the scores of a file come from."""
    return {
        **checkpoint_facts(checkpoint, of_pass),
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
        "scale": settings.scale,
        "texts sha256": texts_sha256(texts),
    }


def roles(arguments: argparse.Namespace) -> None:
    """Test a file of scores and write one row per role, layer and head."""
    table = read_score_table(arguments.scores)
    check_output(arguments.output, others=[arguments.scores])
    criterion = criterion_of(arguments, table)
    tests = head_table(role_tests(table.scores, table.roles, criterion, table.uniform), ROLE_FIELDS)
    write(arguments.output, partial(tests.to_csv, index=False))


def add_criterion_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say when a head holds a role."""
    defaults = ", ".join(f"{tau:g} for a {scale}" for scale, tau in USUAL_TAU.items())
    parser.add_argument("--tau", type=float, help=f"threshold on the mean; by default {defaults}")
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--correction", default="bh", choices=("bh", "holm", "none"))
    parser.add_argument(
        "--family",
        default="role",
        choices=get_args(Family),
        help="correct over the heads of one role, or of all",
    )
    parser.add_argument(
        "--rule",
        default="role",
        choices=get_args(Rule),
        help="above tau and uniform attention, or tau alone",
    )
    parser.add_argument("--ddof", type=int, default=1, choices=(0, 1))
    parser.add_argument("--method", default="test", choices=("test", "mean"))


def criterion_of(arguments: argparse.Namespace, table: ScoreTable) -> Criterion:
    """The criterion of `add_criterion_options` for a table of scores."""
    return Criterion(
        tau=USUAL_TAU[table.scale] if arguments.tau is None else arguments.tau,
        alpha=arguments.alpha,
        correction=arguments.correction,
        family=arguments.family,
        rule=arguments.rule,
        ddof=arguments.ddof,
        method=arguments.method,
    )
