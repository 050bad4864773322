"""The commands `python -m attention_sieve score`, `roles` and `controls`: sieve bias scores of texts, which heads hold
which roles, and what chance would give."""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from attention_sieve.core.answering import Reading, find_in
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.commands import (
    TABLES,
    answers,
    check_output,
    facts_of_texts,
    finding_facts,
    loaded,
    progress_bar,
    read_texts,
    reading_of,
    write,
    write_reading,
    write_table,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import (
    add_analysis_command,
    add_option,
    add_parser_options,
    add_texts_options,
    settings_of,
)
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.card import MARKDOWN, role_card
from attention_sieve.core.roles.controls import ControlPass, control_passes, counts_of
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings, role_finding
from attention_sieve.core.roles.hypotheses import Criterion, few_texts
from attention_sieve.core.roles.matched_pairs import joined_tests, matched_tests
from attention_sieve.core.roles.measures import SYNTACTIC, ScoreSettings
from attention_sieve.core.roles.question import MATCHED_PAIRS, matched_questions
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.score_analysis import scores_of
from attention_sieve.core.roles.tables import (
    SCORE_COLUMNS,
    counts_by_control,
    counts_table,
    matched_table,
    read_score_table,
)
from attention_sieve.core.roles.usage import ROLE_OPTIONS, usual_settings
from attention_sieve.core.statistics.cases import LEAST_TIMES
from attention_sieve.core.texts.equal import different_rows
from attention_sieve.core.texts.text import Text
from attention_sieve.core.usage import HEAD_COLUMNS, Option, column_list

OF_READING: Final = ("checkpoint", "texts", "text_columns", "parser", "random_weights", "attention", "off")
OF_SCORES: Final = ("roles", "role", "direction", "block_entropy", "scale")
"""Options that say what is scored."""
CONTROL_COLUMNS: Final = {
    "control": "none for the checkpoint itself",
    "seed": "random seed of the control",
    "role": "name of the role",
    "heads": "number of heads that have the role",
    "of": "number of all heads",
    "positional": "of the heads with a syntactic role, or a written one that joins tokens, how many do not score "
    f"significantly higher, and {LEAST_TIMES:g} times as high, on related pairs as on unrelated pairs at the same "
    "distance; empty for other roles and for controls",
}
PAIR_COLUMNS: Final = {
    "role": "name of the syntactic or written role",
    **HEAD_COLUMNS,
    "texts": "number of texts with both kinds of pairs",
    "related": "mean score of related pairs",
    "control": "the same of unrelated pairs at the same distance, as a multiple of what uniform attention gives to "
    "related ones",
    "p_control": "one-sided p-value of related being above control",
    "p_control_adjusted": "p_control after correction",
    "holds": "whether the head has the role",
    "positional": "whether it has the role but does not score significantly higher, and "
    f"{LEAST_TIMES:g} times as high, on related pairs",
}


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    role_analysis: Any = ROLE_ANALYSIS
    score_analysis = replace(role_analysis, settings=ScoreSettings(), columns=SCORE_COLUMNS)
    _add_inputs(add_analysis_command(commands, "score", score.__doc__ or "", score, score_analysis))
    counting = add_analysis_command(
        commands, "controls", controls.__doc__ or "", controls, replace(role_analysis, columns=CONTROL_COLUMNS)
    )
    counting.description = f"{counting.description}{column_list('Columns of --pairs', PAIR_COLUMNS)}"
    _add_inputs(counting)
    counting.add_argument(
        "--pairs",
        type=Path,
        help="second file to write: the scores of each head for related pairs, of syntactic roles and of written ones "
        "that join tokens, and for unrelated pairs at the same distance",
    )
    testing = add_analysis_command(commands, "roles", roles.__doc__ or "", roles, ROLE_ANALYSIS, required=False)
    testing.add_argument("scores", nargs="?", type=Path, help="file written by the score command, instead of texts")
    _add_inputs(testing, required=False)


def _add_inputs(parser: argparse.ArgumentParser, *, required: bool = True) -> None:
    add_texts_options(parser, required=required)
    add_parser_options(parser)
    add_roles_options(parser)


def add_roles_options(parser: argparse.ArgumentParser, options: Mapping[str, Option] = ROLE_OPTIONS) -> None:
    """Add the options that choose the roles."""
    for name, option in options.items():
        add_option(parser, name, option)


def role_settings(arguments: argparse.Namespace, files: CheckpointFiles) -> RoleSettings:
    """The scores and the criterion that the options ask for; tau is the usual one of the scale."""
    return settings_of(arguments, usual_settings(arguments, files))


def score(arguments: argparse.Namespace) -> None:
    """Compute the sieve bias score of every head for every role on each text; write a row per text, role and head."""
    texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    check_output(arguments.output, TABLES, [arguments.texts])
    checkpoint, pass_settings = loaded(arguments)
    reading = reading_of(checkpoint, pass_settings, texts, arguments.too_long, arguments.answer)
    usual = usual_settings(arguments, checkpoint.files)
    settings = RoleSettings(settings_of(arguments, usual.scores))
    write_reading(arguments.output, scores_of(reading), reading, settings, facts_of_texts(texts))


def roles(arguments: argparse.Namespace) -> None:
    """Test which heads have which roles, over texts or over a file of scores; write a row per role, layer and head.

    The p-values are valid for a single test of texts that were chosen in advance. `evidence` and `holds_anytime` remain
    valid however often texts are added and the command is repeated. With --output card.md, it writes a section of a
    model card: how many and which heads have each role. With a file of scores no model runs, so that
    another tau takes no time; the options on the checkpoint, the texts and the scores are those of `score`.
    """
    given = [name for name in OF_READING + OF_SCORES if getattr(arguments, name) not in (None, [])]
    if arguments.scores is None:
        missing = [name for name in ("checkpoint", "texts") if getattr(arguments, name) is None]
        if missing:
            raise AnalysisError(f"There are no scores to test. Give a file of scores, or add --{missing[0]}.")
        texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
        settings = role_settings(arguments, find_checkpoint(arguments.checkpoint))
        check_output(arguments.output, (*TABLES, MARKDOWN), [arguments.texts])
        checkpoint, pass_settings = loaded(arguments)
        ROLE_ANALYSIS.question(settings).check(pass_settings.kind)
        reading = reading_of(checkpoint, pass_settings, texts, arguments.too_long, arguments.answer)
        finding = find_in(ROLE_ANALYSIS, reading, settings, progress_bar)
        facts = finding_facts(ROLE_ANALYSIS, reading, finding, settings, facts_of_texts(texts))
    elif given:
        raise AnalysisError(
            f"{arguments.scores} holds scores, and the option on {given[0].replace('_', ' ')} is for texts. Leave one "
            "of the two out."
        )
    else:
        table = read_score_table(arguments.scores)
        check_output(arguments.output, (*TABLES, MARKDOWN), [arguments.scores])
        criterion = settings_of(arguments, Criterion.usual(table.scored.scale))
        finding = role_finding(table.scored, criterion, numbers=table.numbers)
        facts = {name: fact for name, fact in table.facts.items() if name not in ROLE_ANALYSIS.columns}
        facts |= criterion.facts | finding.facts
    if arguments.output.suffix.lower() == MARKDOWN:
        card = role_card(ROLE_ANALYSIS.table(finding), facts)
        write(arguments.output, partial(Path.write_text, data=card, encoding="utf-8"))
    else:
        write_table(arguments.output, ROLE_ANALYSIS.table(finding), facts)
    for note in (finding.note, few_texts(len(finding.counted.scores)), _too_short(finding)):
        if note is not None:
            print(note, file=sys.stderr)


def _too_short(finding: RoleFinding) -> str | None:
    """Warning about roles that no head can have in most of the texts, as these are too short; None without any."""
    scored, tau = finding.counted, finding.tests.settings.tau
    if scored.scale == "share":  # it does not grow with the length
        return None
    n_texts = np.isfinite(scored.greatest).any(axis=2).sum(axis=0)
    named = [
        f"for {role_title(role)} in {short:,} of {n_all:,} texts"
        for role, short, n_all in zip(scored.roles, scored.out_of_reach(tau), n_texts, strict=True)
        if 2 * short > n_all
    ]
    if not named:
        return None
    return f"No head can reach tau {tau:g} {', '.join(named)}, because they are short. Use `score --scale share`."


def controls(arguments: argparse.Namespace) -> None:
    """Count the heads that have each role, and count them again with random weights, permuted keys and shuffled words.

    If as many heads have a role under a control, the count shows no effect of what that control removes: training
    (random weights), where heads look (permuted keys) or word order (shuffled words). The counts of the coarse roles
    are also printed to standard error.
    """
    settings = role_settings(arguments, find_checkpoint(arguments.checkpoint))
    texts = read_texts(arguments.texts, arguments.text_columns, arguments.parser)
    check_output(arguments.output, TABLES, [arguments.texts])
    compared = matched_questions(settings.scores.roles)
    if arguments.pairs is not None:
        check_output(arguments.pairs, TABLES, [arguments.texts, arguments.output])
        if not compared:
            missing = ", ".join(role for role in SYNTACTIC if role not in settings.scores.roles)
            raise AnalysisError(
                f"--pairs compares the syntactic roles. Add {missing} to --roles, or a written role that joins tokens."
            )
    checkpoint, pass_settings = loaded(arguments)
    reading = reading_of(checkpoint, pass_settings, texts, arguments.too_long, arguments.answer)
    finding = find_in(ROLE_ANALYSIS, reading, settings, progress_bar)
    facts = finding_facts(ROLE_ANALYSIS, reading, finding, settings, facts_of_texts(texts))
    tests, positional = finding.tests, None
    if pass_settings.kind in MATCHED_PAIRS.kinds and compared:
        by_roles = {roles: answers(reading, question, texts, "pairs") for roles, question in compared.items()}
        how = settings.scores.direction, settings.criterion
        rows = different_rows(finding.numbers).tolist()
        matched = joined_tests(
            matched_tests([list(pairs.values())[row] for row in rows], *how, roles) for roles, pairs in by_roles.items()
        )
        n_positional = matched.positional(tests).sum(axis=(1, 2))
        positional = {role: int(n_positional[tests.roles.index(role)]) for role in matched.roles}
        if arguments.pairs is not None:
            write_table(arguments.pairs, matched_table(tests, matched), facts)
    read = [texts[index] for index in reading.prepared]
    by_chance = [
        counts_of(_finding_of(control, reading, arguments).tests, control.control, control.seed)
        for control in control_passes(checkpoint.files, read, settings)
    ]
    table = counts_table([counts_of(tests, "none"), *by_chance], positional)
    write_table(arguments.output, table, facts)
    if finding.note:
        print(finding.note, file=sys.stderr)
    print(f"Heads that hold a role at tau {settings.criterion.tau:g}:\n{counts_by_control(table)}", file=sys.stderr)


def _finding_of(control: ControlPass, own: Reading[Text], arguments: argparse.Namespace) -> RoleFinding:
    """The roles under a control; a text that is too long after shuffling its words is truncated."""
    checkpoint = own.checkpoint
    if control.files != checkpoint.files:
        checkpoint = load_checkpoint(control.files, device=arguments.device, dtype=arguments.dtype)
    prepared, _ = prepare_all(checkpoint, control.texts, own.pass_settings, "truncate")
    reading = replace(own, checkpoint=checkpoint, inputs=control.texts, prepared=prepared)
    return find_in(
        ROLE_ANALYSIS,
        reading,
        control.settings,
        lambda work, n_texts, _=None: progress_bar(work, n_texts, control.name),
    )
