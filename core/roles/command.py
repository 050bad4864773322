"""The commands `python -m core score` and `python -m core roles`: sieve bias scores of texts, and tests for roles."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.checkpoints.find import load_checkpoint
from core.commands import (
    CSV,
    PARQUET,
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
from core.passes.prepare import prepare_all
from core.roles.controls import RoleCounts, control_passes, role_counts
from core.roles.hypotheses import Criterion, Family, HeadTests, Rule, role_tests
from core.roles.matched_pairs import MatchedTests, matched_tests
from core.roles.measures import USUAL_TAU, Direction, Scale, ScoreSettings, role_scores
from core.roles.question import MATCHED_PAIRS, SCORES
from core.roles.roles import ROLES
from core.roles.tables import (
    counts_by_control,
    counts_table,
    head_table,
    matched_table,
    read_score_table,
    score_table,
)
from core.roles.uncertainty.anytime import as_odds, holds_by_evidence, role_evidence
from core.roles.uncertainty.intervals import with_syntactic_intervals
from core.roles.uncertainty.stability import few_texts, resamples, stability
from core.texts.text import SUFFIXES, Text, texts_sha256

ROLE_FIELDS: Final = ("texts", "mean", "std", "t", "p", "p_uniform", "p_role", "p_adjusted", "holds")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    scoring = commands.add_parser("score", help="score texts under a checkpoint", description=score.__doc__)
    add_checkpoint_options(scoring)
    add_random_weights_option(scoring)
    add_texts_options(scoring, ", ".join(SUFFIXES))
    scoring.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    _add_score_options(scoring)
    scoring.set_defaults(run=score)
    counting = commands.add_parser("controls", help="count roles beside chance", description=controls.__doc__)
    add_checkpoint_options(counting)
    add_texts_options(counting, ", ".join(SUFFIXES))
    counting.add_argument("--output", required=True, type=Path, help="CSV file to write")
    counting.add_argument(
        "--pairs", type=Path, help="CSV file for every head's syntactic scores beside those of pairs at equal distances"
    )
    _add_score_options(counting)
    add_criterion_options(counting)
    counting.set_defaults(run=controls)
    testing = commands.add_parser("roles", help="test scores for roles", description=roles.__doc__)
    testing.add_argument("scores", type=Path, help="Parquet file from the score command")
    testing.add_argument("--output", required=True, type=Path, help="CSV file to write")
    add_criterion_options(testing)
    testing.set_defaults(run=roles)


def _add_score_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the scores."""
    parser.add_argument("--no-block-entropy", dest="block_entropy", action="store_false")
    parser.add_argument("--direction", default="dependent-to-head", choices=get_args(Direction))
    parser.add_argument(
        "--scale", default="score", choices=get_args(Scale), help="times uniform attention, or the share above chance"
    )


def _score_settings(arguments: argparse.Namespace) -> ScoreSettings:
    return ScoreSettings(direction=arguments.direction, block_entropy=arguments.block_entropy, scale=arguments.scale)


def score(arguments: argparse.Namespace) -> None:
    """Score the texts of a file and write one row per text, role, layer and head."""
    settings = _score_settings(arguments)
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, (PARQUET,), [arguments.texts])
    checkpoint, pass_settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, pass_settings, arguments.too_long)
    measures = answers(checkpoint, SCORES, texts, prepared, pass_settings)
    n_tokens = [prepared[index].n_tokens for index in measures]
    scored = role_scores(list(measures.values()), settings)
    table = score_table(list(measures), n_tokens, scored, _facts(checkpoint, pass_settings, settings, texts))
    write(arguments.output, partial(table.to_parquet, index=False))


def _facts(
    checkpoint: Checkpoint, pass_settings: PassSettings, settings: ScoreSettings, texts: Sequence[Text]
) -> dict[str, str]:
    """Metadata of a file of scores."""
    return {
        **checkpoint_facts(checkpoint, pass_settings),
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
        "scale": settings.scale,
        "texts sha256": texts_sha256(texts),
    }


def controls(arguments: argparse.Namespace) -> None:
    """Count the heads that hold each role, beside the same count under random weights, permuted keys, shuffled words.

    A count that is no smaller under a control does not show what the control takes away: training, where heads look,
    or the order of words. "positional" counts the heads that hold a syntactic role and score no higher on pairs of
    words that a relation joins than on pairs at the same distance that none joins.
    """
    settings, texts = _score_settings(arguments), read_texts(arguments.texts, arguments.text_columns)
    criterion = criterion_of(arguments, arguments.scale)
    check_output(arguments.output, (CSV,), [arguments.texts])
    if arguments.pairs is not None:
        check_output(arguments.pairs, (CSV,), [arguments.texts, arguments.output])
    checkpoint, pass_settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, pass_settings, arguments.too_long)
    measured = list(answers(checkpoint, SCORES, texts, prepared, pass_settings).values())
    counted, positional = [role_counts(measured, settings, criterion, "none")], None
    if pass_settings.kind in MATCHED_PAIRS.kinds:
        pairs = answers(checkpoint, MATCHED_PAIRS, texts, prepared, pass_settings, "pairs of words")
        scored, matched = (
            role_scores(measured, settings),
            matched_tests(list(pairs.values()), settings.direction, criterion),
        )
        tests = role_tests(scored.scores, ROLES, criterion, scored.uniform)
        positional = matched.positional(tests).sum(axis=(1, 2))
        _write_pairs(arguments.pairs, tests, matched)
    counted += _control_counts(arguments, checkpoint, [texts[index] for index in prepared], pass_settings)
    table = counts_table(counted, positional)
    write(arguments.output, partial(table.to_csv, index=False))
    print(f"Heads that hold a role at tau {criterion.tau:g}:\n{counts_by_control(table)}", file=sys.stderr)


def _control_counts(
    arguments: argparse.Namespace, checkpoint: Checkpoint, texts: Sequence[Text], pass_settings: PassSettings
) -> list[RoleCounts]:
    """The counts of every control; a text that is too long after shuffling its words is truncated."""
    settings, criterion = _score_settings(arguments), criterion_of(arguments, arguments.scale)
    counted = []
    for control_pass in control_passes(checkpoint.files, texts):
        control_checkpoint = checkpoint
        if control_pass.files != checkpoint.files:
            control_checkpoint = load_checkpoint(control_pass.files, device=arguments.device, dtype=arguments.dtype)
        prepared, _ = prepare_all(control_checkpoint, control_pass.texts, pass_settings, "truncate")
        measured = answers(
            control_checkpoint, control_pass.question, control_pass.texts, prepared, pass_settings, control_pass.name
        )
        counted.append(
            role_counts(list(measured.values()), settings, criterion, control_pass.control, control_pass.seed)
        )
    return counted


def _write_pairs(path: Path | None, tests: HeadTests, matched: MatchedTests) -> None:
    if path is not None:
        write(path, partial(matched_table(tests, matched).to_csv, index=False))


def roles(arguments: argparse.Namespace) -> None:
    """Test a file of scores and write one row per role, layer and head.

    "low" and "high" are the ends of the interval of the mean, Student's or, for syntactic roles, by the bootstrap-t.
    "stability" is the share of corpora, drawn anew from the texts, in which "holds" stays as it is. p-values are valid
    once, for texts that were chosen before looking; "evidence" (what a bet of 1 against no role has become) and
    "holds_anytime" stay valid however often texts are added.
    """
    table = read_score_table(arguments.scores)
    check_output(arguments.output, (CSV,), [arguments.scores])
    criterion = criterion_of(arguments, table.scale)
    head_tests = role_tests(table.scores, table.roles, criterion, table.uniform)
    tests = head_table(with_syntactic_intervals(head_tests, table.scores), ROLE_FIELDS)
    tests["stability"] = stability(head_tests, resamples(table.scores, table.uniform)).ravel()
    if table.scale == "score":  # a bet needs values from 0 upwards
        evidence = role_evidence(table.scores, criterion, table.uniform)
        holds = holds_by_evidence(evidence, criterion)
        tests = tests.assign(evidence=as_odds(evidence).ravel(), holds_anytime=holds.ravel())
    write(arguments.output, partial(tests.to_csv, index=False))
    if (note := few_texts(len(table.texts))) is not None:
        print(note, file=sys.stderr)


def add_criterion_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the criterion for a head to hold a role."""
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


def criterion_of(arguments: argparse.Namespace, scale: Scale) -> Criterion:
    """The criterion of `add_criterion_options` for scores on a scale."""
    return Criterion(
        tau=USUAL_TAU[scale] if arguments.tau is None else arguments.tau,
        alpha=arguments.alpha,
        correction=arguments.correction,
        family=arguments.family,
        rule=arguments.rule,
        ddof=arguments.ddof,
        method=arguments.method,
    )
