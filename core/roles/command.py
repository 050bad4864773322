"""The commands `python -m attention_sieve score` and `python -m attention_sieve roles`: sieve bias scores of texts, and
tests for roles."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.find import load_checkpoint
from attention_sieve.core.commands import (
    CSV,
    PARQUET,
    answers,
    check_output,
    checkpoint_facts,
    loaded,
    prepared_texts,
    read_texts,
    write,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import (
    add_alpha_option,
    add_checkpoint_options,
    add_correction_option,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.passes.prepare import prepare_all
from attention_sieve.core.roles.controls import RoleCounts, control_passes, role_counts
from attention_sieve.core.roles.hypotheses import Criterion, Family, HeadTests, Rule, role_tests
from attention_sieve.core.roles.matched_pairs import MatchedTests, matched_tests
from attention_sieve.core.roles.measures import SYNTACTIC, USUAL_TAU, Direction, Scale, ScoreSettings, role_scores
from attention_sieve.core.roles.question import MATCHED_PAIRS, scores_question
from attention_sieve.core.roles.roles import BY_NAME, FURTHER_ROLES, ROLES, known_roles
from attention_sieve.core.roles.tables import (
    ScoreTable,
    counts_by_control,
    counts_table,
    head_table,
    matched_table,
    read_score_table,
    score_table,
)
from attention_sieve.core.roles.uncertainty.anytime import as_odds, holds_by_evidence, role_evidence
from attention_sieve.core.roles.uncertainty.stability import few_texts, resamples, stability
from attention_sieve.core.texts.text import Text, texts_sha256

ROLE_FIELDS: Final = ("texts", "mean", "std", "t", "p", "p_uniform", "p_role", "p_adjusted", "holds")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    scoring = commands.add_parser(
        "score", help="compute the sieve bias score of every head for every role", description=score.__doc__
    )
    add_checkpoint_options(scoring)
    add_random_weights_option(scoring)
    add_texts_options(scoring)
    add_output_option(scoring, "Parquet file to write")
    _add_roles_option(scoring)
    add_score_options(scoring)
    scoring.set_defaults(run=score)
    counting = commands.add_parser(
        "controls",
        help="compare the number of heads in each role with control conditions",
        description=controls.__doc__,
    )
    add_checkpoint_options(counting)
    add_texts_options(counting)
    add_output_option(counting, "CSV file to write")
    counting.add_argument(
        "--pairs",
        type=Path,
        help="second CSV file to write: the syntactic scores of each head for related pairs of words, and for "
        "unrelated pairs at the same distance",
    )
    _add_roles_option(counting)
    add_score_options(counting)
    add_criterion_options(counting)
    counting.set_defaults(run=controls)
    testing = commands.add_parser("roles", help="test which heads have which roles", description=roles.__doc__)
    testing.add_argument("scores", type=Path, help="Parquet file written by the score command")
    add_output_option(testing, "CSV file to write")
    add_criterion_options(testing)
    testing.set_defaults(run=roles)


def add_score_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that select the scores."""
    parser.add_argument(
        "--no-block-entropy",
        dest="block_entropy",
        action="store_false",
        help="leave the entropy of the attention row out of the block score; the authors' code multiplies by it",
    )
    parser.add_argument(
        "--direction",
        default="dependent-to-head",
        choices=get_args(Direction),
        help="syntactic roles: attention from the dependent to its head, from the head to its dependent, or the mean "
        "of both; default: %(default)s",
    )
    parser.add_argument(
        "--scale",
        default="score",
        choices=get_args(Scale),
        help="attention as a multiple of uniform attention (score), or as a share above chance, from 0 to 1 (share); "
        "default: %(default)s",
    )


def _add_roles_option(parser: argparse.ArgumentParser) -> None:
    """Add the option that chooses the roles."""
    parser.add_argument(
        "--roles",
        type=_roles,
        default=ROLES,
        metavar="NAMES",
        help=f"roles to score, separated by commas, or all, also {' and '.join(FURTHER_ROLES)}; "
        f"default: {','.join(ROLES)}",
    )


def _roles(names: str) -> tuple[str, ...]:
    """Type of the option that chooses the roles."""
    try:
        return known_roles(BY_NAME if names == "all" else names.split(","))
    except AnalysisError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _score_settings(arguments: argparse.Namespace) -> ScoreSettings:
    return ScoreSettings(direction=arguments.direction, block_entropy=arguments.block_entropy, scale=arguments.scale)


def score(arguments: argparse.Namespace) -> None:
    """Compute the sieve bias score of every head for every role on each text; write a row per text, role and head.

    Columns:
        text: index of the text in the file, from 0
        role: name of the role
        layer, head: index of the layer and of the head, from 0
        score: sieve bias score, which is 1 for uniform attention, or with --scale share the share above chance; empty
            where the role does not apply to the text
        uniform: score of uniform attention on the same text
        greatest: greatest possible score on the same text
        tokens: number of tokens of the text, special tokens included
    """
    settings = _score_settings(arguments)
    texts = read_texts(arguments.texts, arguments.text_columns)
    check_output(arguments.output, (PARQUET,), [arguments.texts])
    checkpoint, pass_settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, pass_settings, arguments.too_long)
    measures = answers(checkpoint, scores_question(arguments.roles), texts, prepared, pass_settings)
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
    """Count the heads that have each role, and count them again with random weights, permuted keys and shuffled words.

    If as many heads have a role under a control, the count shows no effect of what that control removes: training
    (random weights), where heads look (permuted keys) or word order (shuffled words). The counts of the coarse roles
    are also printed to standard error.

    Columns:
        control: none for the checkpoint itself
        seed: random seed of the control
        role: name of the role
        heads: number of heads that have the role
        of: number of all heads
        positional: of the heads with a syntactic role, how many do not score significantly higher on related pairs of
            words than on unrelated pairs at the same distance; empty for other roles and for controls

    Columns of --pairs:
        role: name of the syntactic role
        layer, head: index of the layer and of the head, from 0
        texts: number of texts with both kinds of pairs
        related, control: mean score of related pairs, and of unrelated pairs at the same distance
        p_control, p_control_adjusted: one-sided p-value of related being above control, and after correction
        holds: whether the head has the role
        positional: whether it has the role but does not score significantly higher on related pairs
    """
    settings, texts = _score_settings(arguments), read_texts(arguments.texts, arguments.text_columns)
    criterion = criterion_of(arguments, arguments.scale)
    check_output(arguments.output, (CSV,), [arguments.texts])
    if arguments.pairs is not None:
        check_output(arguments.pairs, (CSV,), [arguments.texts, arguments.output])
        if missing := [role for role in SYNTACTIC if role not in arguments.roles]:
            raise AnalysisError(f"--pairs compares the syntactic roles. Add {', '.join(missing)} to --roles.")
    checkpoint, pass_settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, pass_settings, arguments.too_long)
    measured = answers(checkpoint, scores_question(arguments.roles), texts, prepared, pass_settings)
    scored = role_scores(list(measured.values()), settings)
    counted, positional = [role_counts(scored, criterion, "none")], None
    if pass_settings.kind in MATCHED_PAIRS.kinds and set(SYNTACTIC) <= set(arguments.roles):
        pairs = answers(checkpoint, MATCHED_PAIRS, texts, prepared, pass_settings, "pairs of words")
        matched = matched_tests(list(pairs.values()), settings.direction, criterion)
        tests = role_tests(scored.scores, scored.roles, criterion, scored.uniform)
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
    for control_pass in control_passes(checkpoint.files, texts, arguments.roles):
        control_checkpoint = checkpoint
        if control_pass.files != checkpoint.files:
            control_checkpoint = load_checkpoint(control_pass.files, device=arguments.device, dtype=arguments.dtype)
        prepared, _ = prepare_all(control_checkpoint, control_pass.texts, pass_settings, "truncate")
        measured = answers(
            control_checkpoint, control_pass.question, control_pass.texts, prepared, pass_settings, control_pass.name
        )
        scored = role_scores(list(measured.values()), settings)
        counted.append(role_counts(scored, criterion, control_pass.control, control_pass.seed))
    return counted


def _write_pairs(path: Path | None, tests: HeadTests, matched: MatchedTests) -> None:
    if path is not None:
        write(path, partial(matched_table(tests, matched).to_csv, index=False))


def roles(arguments: argparse.Namespace) -> None:
    """Test which heads have which roles, given a file of scores; write a row per role, layer and head.

    The p-values are valid for a single test of texts that were chosen in advance. `evidence` and `holds_anytime` remain
    valid however often texts are added and the command is repeated.

    Columns:
        role: name of the role
        layer, head: index of the layer and of the head, from 0
        texts: number of texts to which the role applies
        mean, std: mean and standard deviation of the score
        t, p: one-sided t-test of the mean being above tau; empty for fewer than two texts and for a constant score
        p_uniform: p-value of the mean being clearly above the score of uniform attention
        p_role: p-value of the role: the larger of the two, or p alone with --rule paper
        p_adjusted: p_role after correction
        holds: whether the head has the role
        stability: share of bootstrap resamples of the texts in which holds is the same
        evidence: betting evidence (e-value) that the head has the role: what a stake of 1 has grown to; 20 is 20 : 1;
            only with scores, not with shares
        holds_anytime: whether the head has the role by its evidence; only with scores, not with shares
    """
    table = read_score_table(arguments.scores)
    check_output(arguments.output, (CSV,), [arguments.scores])
    criterion = criterion_of(arguments, table.scale)
    head_tests = role_tests(table.scores, table.roles, criterion, table.uniform)
    tests = head_table(head_tests, ROLE_FIELDS)
    tests["stability"] = stability(head_tests, resamples(table.scores, table.uniform)).ravel()
    if table.scale == "score":  # a bet needs values from 0 upwards
        evidence = role_evidence(table.scores, criterion, table.uniform)
        holds = holds_by_evidence(evidence, criterion)
        tests = tests.assign(evidence=as_odds(evidence).ravel(), holds_anytime=holds.ravel())
    write(arguments.output, partial(tests.to_csv, index=False))
    for note in (few_texts(len(table.texts)), _too_short(table, criterion.tau)):
        if note is not None:
            print(note, file=sys.stderr)


def _too_short(table: ScoreTable, tau: float) -> str | None:
    """Warning about roles that no head can have in most of the texts, as these are too short; None without any."""
    if table.scale == "share":  # it does not grow with the length
        return None
    n_texts = np.isfinite(table.greatest).any(axis=2).sum(axis=0)
    n_short = (table.greatest < tau).all(axis=2).sum(axis=0)
    named = [
        f"for {role} in {short:,} of {of:,} texts"
        for role, short, of in zip(table.roles, n_short, n_texts, strict=True)
        if 2 * short > of
    ]
    if not named:
        return None
    return f"No head can reach tau {tau:g} {', '.join(named)}, because they are short. Use `score --scale share`."


def add_criterion_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the criterion for a head to hold a role."""
    defaults = ", ".join(f"{tau:g} on the scale {scale}" for scale, tau in USUAL_TAU.items())
    parser.add_argument("--tau", type=float, help=f"threshold that the mean score must exceed; default: {defaults}")
    add_alpha_option(parser)
    add_correction_option(parser)
    parser.add_argument(
        "--family",
        default="role",
        choices=get_args(Family),
        help="tests that are corrected together: those of one role, or of all roles; default: %(default)s",
    )
    parser.add_argument(
        "--rule",
        default="role",
        choices=get_args(Rule),
        help="a head has a role if its mean score is above tau and clearly above that of uniform attention (role), or "
        "above tau only (paper); default: %(default)s",
    )
    parser.add_argument(
        "--ddof",
        type=int,
        default=1,
        choices=(0, 1),
        help="standard deviation of the sample (1), or of the population as in the authors' code (0); default: "
        "%(default)s",
    )
    parser.add_argument(
        "--method",
        default="test",
        choices=("test", "mean"),
        help="decide by the corrected p-value (test), or only by whether the mean score is above its thresholds "
        "(mean); default: %(default)s",
    )


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
