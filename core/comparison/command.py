"""The command `python -m attention_sieve compare`: scores of two checkpoints on the same texts, tested against each
other."""

import argparse
import sys
from pathlib import Path
from typing import Any

import numpy as np

from attention_sieve.core.commands import TABLES, check_output, write_table
from attention_sieve.core.comparison.differences import ROUNDING, PairedTests, paired_tests
from attention_sieve.core.comparison.tables import comparison_table, facts_of_both
from attention_sieve.core.comparison.transitions import busiest_layers, changed_heads
from attention_sieve.core.options import add_output_option, add_settings_options, settings_of
from attention_sieve.core.roles.finding import role_finding
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.roles import shown_roles_of_all
from attention_sieve.core.roles.tables import on_same_texts, read_score_table


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser(
        "compare", help="test how the scores of two checkpoints differ", description=compare.__doc__
    )
    parser.add_argument("a", type=Path, help="file written by the score command for the reference checkpoint")
    parser.add_argument("b", type=Path, help="the same for the other checkpoint; differences are b - a")
    add_output_option(parser)
    add_settings_options(parser, Criterion())
    parser.set_defaults(run=compare)


def compare(arguments: argparse.Namespace) -> None:
    """Test how the scores of two checkpoints differ on the same texts; write a row per role, layer and head.

    Columns:
        role: name of the role
        layer, head: index of the layer and of the head, from 0
        texts: number of texts with a score under both checkpoints
        mean_a, mean_b: mean score under each checkpoint
        difference: mean of b - a
        t, p: paired t-test, two-sided
        p_adjusted: p after correction
        wilcoxon_p: Wilcoxon signed-rank test, two-sided
        effect: Cohen's d of the paired differences
        holds_a, holds_b: whether the head has the role under each checkpoint
    """
    tables = [read_score_table(path) for path in (arguments.a, arguments.b)]
    check_output(arguments.output, TABLES, [arguments.a, arguments.b])
    a, b = on_same_texts(*tables)
    criterion = settings_of(arguments, Criterion.usual(a.scored.scale))
    rounding = max(ROUNDING.get(side.facts.get("dtype", ""), ROUNDING["float32"]) for side in tables)
    tests = paired_tests(
        a.scored.scores,
        b.scored.scores,
        a.scored.roles,
        alpha=criterion.alpha,
        correction=criterion.correction,
        family=criterion.family,
        rounding=rounding,
    )
    holds_a, holds_b = (role_finding(side.scored, criterion).tests.holds for side in (a, b))
    n_texts = len({text for side in tables for text in side.texts})
    if len(a.texts) < n_texts:
        print(f"{n_texts - len(a.texts)} of {n_texts} texts are in one file only and were left out.", file=sys.stderr)
    facts = facts_of_both(a.facts, b.facts) | criterion.facts
    write_table(arguments.output, comparison_table(tests, holds_a, holds_b), facts)
    print(_summary(tests, holds_a, holds_b, criterion.tau), file=sys.stderr)


def _summary(tests: PairedTests, holds_a: np.ndarray, holds_b: np.ndarray, tau: float) -> str:
    """How many heads changed, where, and how many scores differ."""
    coarse, _ = shown_roles_of_all((tests.mean_a, tests.mean_b), tests.roles)
    changed = changed_heads(holds_a, holds_b, tests.roles, coarse)
    parts = [f"{changed.sum()} of {changed.size} heads changed a coarse role at tau {tau:g}"]
    if layers := busiest_layers(changed):
        first, last, n_changed = layers
        parts.append(
            (f"layers {first}-{last} hold" if first < last else f"layer {first} holds") + f" {n_changed} of them"
        )
    n_tested = (tests.texts >= 2).sum()
    parts.append(
        f"{tests.differs.sum()} of {n_tested} mean scores differ at alpha {tests.alpha:g} "
        f"(correction: {tests.correction})"
    )
    return "; ".join(parts) + "."
