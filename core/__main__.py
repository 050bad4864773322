"""The command line, `python -m core`: the chain without a page in `score`, `roles` and `compare`, and the commands
that stand in files of their own."""

import argparse
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from core import (
    attention_command,
    coreference_command,
    distances_command,
    parsing_command,
    probe_command,
    surface_command,
)
from core.analysis import measure
from core.checkpoints import Checkpoint
from core.command_line import (
    add_checkpoint_options,
    add_texts_options,
    check_output,
    checkpoint_facts,
    loaded,
    read_texts,
    say_left_out,
    write,
)
from core.comparison import ROUNDING, PairedTests, paired_tests
from core.errors import AnalysisError, ColumnsNeeded, TextTooLong
from core.frames import (
    comparison_table,
    head_table,
    on_same_texts,
    read_score_table,
    score_table,
    texts_sha256,
)
from core.hypotheses import Criterion, role_tests
from core.measures import ScoreSettings, role_scores
from core.passes import PassSettings
from core.roles import shown_roles_of_all
from core.texts import SUFFIXES, Text
from core.training_commands import add_commands
from core.transitions import busiest_layers, changed_heads

ROLE_FIELDS = ("texts", "mean", "std", "t", "p", "p_adjusted", "holds")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; 0 when it is done, 2 with a sentence on standard error for bad input."""
    chosen = _parser().parse_args(arguments)
    try:
        chosen.run(chosen)
    except AnalysisError as error:
        print(f"{error}{_option_for(error)}", file=sys.stderr)
        return 2
    return 0


def _option_for(error: AnalysisError) -> str:
    """What a page would offer a control for."""
    if isinstance(error, TextTooLong):
        return " Options: --too-long skip, --too-long truncate."
    return " Option: --text-columns first,second." if isinstance(error, ColumnsNeeded) else ""


def score(chosen: argparse.Namespace) -> None:
    """Score the texts of a file and write one row per text, role, layer and head."""
    settings = ScoreSettings(direction=chosen.direction, block_entropy=chosen.block_entropy)
    texts = read_texts(chosen.texts, chosen.text_columns)
    check_output(chosen.output, others=[chosen.texts])
    checkpoint, asked = loaded(chosen)
    work = measure(checkpoint, texts, asked, too_long=chosen.too_long)
    measured = list(tqdm(work, total=len(texts), unit="text", disable=not sys.stderr.isatty()))
    kept = {text.position: text.measures for text in measured if text.measures is not None}
    n_cut = sum(text.n_cut > 0 for text in measured)
    say_left_out(len(texts) - len(kept), n_cut, len(texts), checkpoint.max_tokens)
    positions = sorted(kept)
    scores = role_scores(np.stack([kept[position] for position in positions]), settings)
    table = score_table(positions, scores, _facts(checkpoint, asked, settings, texts))
    write(chosen.output, partial(table.to_parquet, index=False))


def _facts(
    checkpoint: Checkpoint, asked: PassSettings, settings: ScoreSettings, texts: Sequence[Text]
) -> dict[str, str]:
    """What a file of scores says about where it comes from."""
    return {
        **checkpoint_facts(checkpoint, asked),
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
        "texts sha256": texts_sha256(texts),
    }


def roles(chosen: argparse.Namespace) -> None:
    """Test a file of scores and write one row per role, layer and head."""
    criterion = _criterion(chosen)
    found = read_score_table(chosen.scores)
    check_output(chosen.output, others=[chosen.scores])
    table = head_table(role_tests(found.scores, found.roles, criterion), ROLE_FIELDS)
    write(chosen.output, partial(table.to_csv, index=False))


def compare(chosen: argparse.Namespace) -> None:
    """Test two files of scores of the same texts against each other and write one row per role, layer and head."""
    criterion = _criterion(chosen)
    found = [read_score_table(path) for path in (chosen.a, chosen.b)]
    check_output(chosen.output, others=[chosen.a, chosen.b])
    a, b = on_same_texts(*found)
    rounding = max(ROUNDING.get(side.facts.get("dtype", ""), ROUNDING["float32"]) for side in found)
    tests = paired_tests(
        a.scores, b.scores, a.roles, alpha=criterion.alpha, correction=criterion.correction, rounding=rounding
    )
    holds_a, holds_b = (role_tests(side.scores, a.roles, criterion).holds for side in (a, b))
    n_texts = len({text for side in found for text in side.texts})
    if len(a.texts) < n_texts:
        print(f"{n_texts - len(a.texts)} of {n_texts} texts are in one file only and were left out.", file=sys.stderr)
    write(chosen.output, partial(comparison_table(tests, holds_a, holds_b).to_csv, index=False))
    print(_summary(tests, holds_a, holds_b, criterion.tau), file=sys.stderr)


def _summary(tests: PairedTests, holds_a: np.ndarray, holds_b: np.ndarray, tau: float) -> str:
    """How many heads changed, where, and how many scores differ."""
    coarse, _ = shown_roles_of_all((tests.mean_a, tests.mean_b), tests.roles)
    changed = changed_heads(holds_a, holds_b, tests.roles, coarse)
    said = [f"{changed.sum()} of {changed.size} heads changed a coarse role at tau {tau:g}"]
    if run := busiest_layers(changed):
        first, last, n_held = run
        said.append((f"layers {first}-{last} hold" if first < last else f"layer {first} holds") + f" {n_held} of them")
    n_tested = (tests.texts >= 2).sum()
    said.append(
        f"{tests.differs.sum()} of {n_tested} mean scores differ at alpha {tests.alpha:g} "
        f"(correction: {tests.correction})"
    )
    return "; ".join(said) + "."


def _criterion(chosen: argparse.Namespace) -> Criterion:
    return Criterion(
        tau=chosen.tau, alpha=chosen.alpha, correction=chosen.correction, ddof=chosen.ddof, method=chosen.method
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core", description=__doc__)
    commands = parser.add_subparsers(required=True)
    scoring = commands.add_parser("score", help="score texts under a checkpoint", description=score.__doc__)
    add_checkpoint_options(scoring)
    add_texts_options(scoring, ", ".join(SUFFIXES))
    scoring.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    scoring.add_argument("--no-block-entropy", dest="block_entropy", action="store_false")
    scoring.add_argument(
        "--direction", default="dependent-to-head", choices=("dependent-to-head", "head-to-dependent", "both")
    )
    scoring.set_defaults(run=score)
    testing = commands.add_parser("roles", help="test scores for roles", description=roles.__doc__)
    testing.add_argument("scores", type=Path, help="Parquet file from the score command")
    testing.add_argument("--output", required=True, type=Path, help="CSV file to write")
    _add_criterion(testing)
    testing.set_defaults(run=roles)
    comparing = commands.add_parser("compare", help="test scores of two checkpoints", description=compare.__doc__)
    comparing.add_argument("a", type=Path, help="Parquet file from the score command, of the reference")
    comparing.add_argument("b", type=Path, help="the same of the compared checkpoint; differences are b - a")
    comparing.add_argument("--output", required=True, type=Path, help="CSV file to write")
    _add_criterion(comparing)
    comparing.set_defaults(run=compare)
    for command in (
        surface_command,
        parsing_command,
        coreference_command,
        probe_command,
        distances_command,
        attention_command,
    ):
        command.add_command(commands)
    add_commands(commands)
    return parser


def _add_criterion(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--tau", type=float, default=3.0)
    parser.add_argument("--alpha", type=float, default=0.05)
    parser.add_argument("--correction", default="bh", choices=("bh", "holm", "none"))
    parser.add_argument("--ddof", type=int, default=1, choices=(0, 1))
    parser.add_argument("--method", default="test", choices=("test", "mean"))


if __name__ == "__main__":
    sys.exit(main())
