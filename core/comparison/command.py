"""The command `python -m attention_sieve compare`: scores of two checkpoints on the same texts, tested against each
other."""

import argparse
import sys
from pathlib import Path
from typing import Any

from attention_sieve.core.commands import TABLES, check_output, write_table
from attention_sieve.core.comparison.finding import COMPARISON_COLUMNS, RoleComparison, compared, facts_of_both
from attention_sieve.core.comparison.sizes import HELP
from attention_sieve.core.comparison.transitions import busiest_layers
from attention_sieve.core.options import add_output_option, add_settings_options, settings_of
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.tables import on_same_texts, read_score_table
from attention_sieve.core.usage import column_list


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "compare",
        help="test how the scores of two checkpoints differ",
        description=f"{compare.__doc__}{column_list('Columns', COMPARISON_COLUMNS)}",
    )
    parser.add_argument("a", type=Path, help="file written by the score command for the reference checkpoint")
    parser.add_argument("b", type=Path, help="the same for the other checkpoint; differences are b - a")
    add_output_option(parser)
    add_settings_options(parser, Criterion())
    parser.add_argument("--least-difference", type=float, help=HELP)
    parser.set_defaults(run=compare)


def compare(arguments: argparse.Namespace) -> None:
    """Test how the scores of two checkpoints differ on the same texts; write a row per role, layer and head."""
    tables = [read_score_table(path) for path in (arguments.a, arguments.b)]
    check_output(arguments.output, TABLES, [arguments.a, arguments.b])
    a, b = on_same_texts(*tables)
    criterion = settings_of(arguments, Criterion.usual(a.scored.scale))
    sides = [role_finding(side.scored, criterion, numbers=side.numbers) for side in (a, b)]
    comparison = compared(sides, [side.facts.get("dtype", "") for side in tables], arguments.least_difference)
    n_texts = len({text for side in tables for text in side.texts})
    if len(a.texts) < n_texts:
        print(f"{n_texts - len(a.texts)} of {n_texts} texts are in one file only and were left out.", file=sys.stderr)
    if sides[0].note:
        print(sides[0].note, file=sys.stderr)
    facts = facts_of_both(a.facts, b.facts) | criterion.facts | comparison.facts
    write_table(arguments.output, comparison.table, facts)
    print(_summary(comparison, criterion.tau), file=sys.stderr)


def _summary(comparison: RoleComparison, tau: float) -> str:
    """How many heads changed, where, by how much scores differ, and how many significantly."""
    changed = comparison.changed
    parts = [f"{changed.sum()} of {changed.size} heads changed a coarse role at tau {tau:g}"]
    if layers := busiest_layers(changed):
        first, last, n_changed = layers
        parts.append(
            (f"layers {first}-{last} hold" if first < last else f"layer {first} holds") + f" {n_changed} of them"
        )
    tests = f"alpha {comparison.tests.alpha:g}, correction {comparison.tests.correction}"
    return f"{'; '.join(parts)}. {comparison.sizes.sentence} (paired t-test, {tests})."
