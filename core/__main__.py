"""The command line: `python -m core score`, `roles` and `compare`, the chain without a page, and fine-tuning."""

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from tqdm import tqdm

from core.analysis import check_settings, measure
from core.checkpoints import DTYPES, Checkpoint, find_checkpoint, load_checkpoint
from core.comparison import ROUNDING, PairedTests, paired_tests
from core.errors import AnalysisError, ColumnsNeeded, TextError, TextTooLong
from core.frames import (
    comparison_table,
    head_table,
    heads_written,
    on_same_texts,
    read_score_table,
    score_table,
    texts_sha256,
)
from core.hypotheses import Criterion, role_tests
from core.measures import ScoreSettings, role_scores
from core.passes import ONE_STACK, TWO_STACKS, PassSettings
from core.roles import shown_roles_of_all
from core.texts import MAX_BYTES, Text, read_file
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
    texts = _read_texts(chosen.texts, chosen.text_columns)
    _check_output(chosen.output)
    checkpoint = load_checkpoint(find_checkpoint(chosen.checkpoint), device=chosen.device, dtype=chosen.dtype)
    asked = PassSettings(chosen.attention or checkpoint.files.kinds[0], chosen.off)
    check_settings(checkpoint, asked)
    work = measure(checkpoint, texts, asked, too_long=chosen.too_long)
    measured = list(tqdm(work, total=len(texts), unit="text", disable=not sys.stderr.isatty()))
    kept = {text.position: text.measures for text in measured if text.measures is not None}
    left_out = f"{len(texts) - len(kept)} of {len(texts)} texts have more than {checkpoint.max_tokens} tokens"
    if not kept:
        raise TextError(f"{left_out}. Give shorter texts, or cut them with --too-long truncate.")
    if len(kept) < len(texts):
        print(f"{left_out} and were left out.", file=sys.stderr)
    if n_cut := sum(text.n_cut > 0 for text in measured):
        print(f"{n_cut} of {len(texts)} texts were cut to {checkpoint.max_tokens} tokens.", file=sys.stderr)
    positions = sorted(kept)
    scores = role_scores(np.stack([kept[position] for position in positions]), settings)
    table = score_table(positions, scores, _facts(checkpoint, asked, settings, texts))
    _write(chosen.output, partial(table.to_parquet, index=False))


def _facts(
    checkpoint: Checkpoint, asked: PassSettings, settings: ScoreSettings, texts: Sequence[Text]
) -> dict[str, str]:
    """What a file of scores says about where it comes from."""
    return {
        "checkpoint": checkpoint.files.name,
        "fingerprint": checkpoint.files.fingerprint,
        "dtype": checkpoint.dtype,
        "attention": asked.kind,
        "heads off": heads_written(asked.off),
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
        "texts sha256": texts_sha256(texts),
    }


def roles(chosen: argparse.Namespace) -> None:
    """Test a file of scores and write one row per role, layer and head."""
    criterion = _criterion(chosen)
    found = read_score_table(chosen.scores)
    _check_output(chosen.output)
    table = head_table(role_tests(found.scores, found.roles, criterion), ROLE_FIELDS)
    _write(chosen.output, partial(table.to_csv, index=False))


def compare(chosen: argparse.Namespace) -> None:
    """Test two files of scores of the same texts against each other and write one row per role, layer and head."""
    criterion = _criterion(chosen)
    found = [read_score_table(path) for path in (chosen.a, chosen.b)]
    _check_output(chosen.output)
    a, b = on_same_texts(*found)
    rounding = max(ROUNDING.get(side.facts.get("dtype", ""), ROUNDING["float32"]) for side in found)
    tests = paired_tests(
        a.scores, b.scores, a.roles, alpha=criterion.alpha, correction=criterion.correction, rounding=rounding
    )
    holds_a, holds_b = (role_tests(side.scores, a.roles, criterion).holds for side in (a, b))
    n_texts = len({text for side in found for text in side.texts})
    if len(a.texts) < n_texts:
        print(f"{n_texts - len(a.texts)} of {n_texts} texts are in one file only and were left out.", file=sys.stderr)
    _write(chosen.output, partial(comparison_table(tests, holds_a, holds_b).to_csv, index=False))
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


def _read_texts(path: Path, columns: str | None) -> tuple[Text, ...]:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise TextError(f"{path} is larger than {MAX_BYTES // 10**6} MB. Split it.")
        content = path.read_bytes()
    except OSError as error:
        raise TextError(f"{path} cannot be read ({error.strerror}). Check the path.") from None
    return read_file(path.name, content, tuple(name.strip() for name in columns.split(",")) if columns else None)


def _heads(written: str) -> tuple[tuple[int, int], ...]:
    """Heads as `3-7,2-5`: layer and head, both 0-based."""
    found = [re.fullmatch(r"\s*(\d+)-(\d+)\s*", part, re.ASCII) for part in written.split(",")]
    if not all(found):
        raise argparse.ArgumentTypeError(f"{written!r} names no heads; write layer-head, as in 3-7,2-5")
    return tuple(sorted({(int(head[1]), int(head[2])) for head in found if head}))


def _check_output(output: Path) -> None:
    """Refuse what cannot be written before the work is done."""
    folder = output.resolve().parent
    if not folder.is_dir():
        raise AnalysisError(f"There is no folder {folder} to write {output.name} to. Make it first.")
    if output.is_dir():
        raise AnalysisError(f"{output} is a folder. Name a file in it.")


def _write(output: Path, write: Callable[[Path], object]) -> None:
    try:
        write(output)
    except OSError as error:
        raise AnalysisError(f"{output} cannot be written ({error.strerror or error}). Choose another place.") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m core", description=__doc__)
    commands = parser.add_subparsers(required=True)
    scoring = commands.add_parser("score", help="score texts under a checkpoint", description=score.__doc__)
    scoring.add_argument("--checkpoint", required=True, help="a hub id, a folder, or: bundled")
    scoring.add_argument("--texts", required=True, type=Path, help=".txt, .csv, .tsv, .json or .jsonl")
    scoring.add_argument("--output", required=True, type=Path, help="Parquet file to write")
    scoring.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    scoring.add_argument("--dtype", default="float32", choices=DTYPES)
    scoring.add_argument(
        "--attention", choices=(*ONE_STACK, *TWO_STACKS), help="of an encoder-decoder; a pair is source and target"
    )
    scoring.add_argument("--off", type=_heads, default=(), help="heads to switch off, as layer-head: 3-7,2-5")
    scoring.add_argument("--no-block-entropy", dest="block_entropy", action="store_false")
    scoring.add_argument(
        "--direction", default="dependent-to-head", choices=("dependent-to-head", "head-to-dependent", "both")
    )
    scoring.add_argument("--text-columns", help="column or two columns of a table, as a,b")
    scoring.add_argument("--too-long", default="error", choices=("error", "skip", "truncate"))
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
