"""The commands `python -m core corpus parse|plan|run|merge|verify|show|compare`: corpora of any size, in shards."""

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final, get_args

import pandas as pd
from tqdm import tqdm

from core.attention.settings import ONE_STACK, TWO_STACKS
from core.checkpoints.checkpoint import DTYPES, CheckpointFiles
from core.checkpoints.find import choose_device, find_checkpoint, randomly_initialised
from core.commands import INTERRUPTED, TABLES, add_random_weights_option, check_output, heads, write_table
from core.corpus import plan as planning
from core.corpus.manifest import MANIFEST, Manifest, read_manifest
from core.corpus.paired import read_differences, write_differences
from core.corpus.parsing import parse_corpus
from core.corpus.questions import RELATION_NAMES
from core.corpus.recent import remember_results
from core.corpus.results import Part, open_results
from core.corpus.run import Progress, alone, check, merge, named, run
from core.corpus.settings import QUESTIONS, CorpusSettings, QuestionName
from core.corpus.strata import EVERYTHING, STRATUM_KINDS, Stratum
from core.corpus.texts.inputs import SUFFIXES
from core.engines.options import add_engine_options, check_engine, engine_of
from core.errors import AnalysisError
from core.relations.accuracy import DIRECTIONS
from core.roles.command import add_criterion_options, criterion_of
from core.roles.hypotheses import Criterion, n_holding
from core.roles.measures import Direction, Scale
from core.roles.roles import shown_roles
from core.roles.tables import head_table
from core.roles.uncertainty.anytime import as_odds
from core.roles.uncertainty.stability import few_texts
from core.texts.tokens import TooLong

EVERY: Final = 30.0
"""Seconds from one line about progress to the next, where standard error is a file."""
READING_STOPPED: Final = "The texts were still being read, so the same command starts again."
SHOWN_COLUMNS: Final = ("texts", "mean", "std", "low", "high", "t", "p", "p_uniform", "p_role", "p_adjusted", "holds")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    parser = commands.add_parser("corpus", help="score corpora of millions of texts, in shards", description=__doc__)
    verbs = parser.add_subparsers(required=True)
    _add_plan(verbs.add_parser("plan", help="split texts into shards", description=plan.__doc__)).set_defaults(run=plan)
    run_parser = _add_plan(verbs.add_parser("run", help="score the shards", description=run_corpus.__doc__))
    add_engine_options(run_parser)
    run_parser.set_defaults(run=run_corpus)
    for name, function, summary in (
        ("merge", merge_corpus, "merge the statistics of all shards"),
        ("verify", verify, "check every file"),
    ):
        folder_parser = verbs.add_parser(name, help=summary, description=function.__doc__)
        folder_parser.add_argument("folder", type=Path, help="of the results")
        folder_parser.set_defaults(run=function)
    _add_parse(verbs.add_parser("parse", help="parse texts once for all runs", description=parse.__doc__))
    compare_parser = verbs.add_parser(
        "compare", help="compare two results on the same texts", description=compare.__doc__
    )
    compare_parser.add_argument("reference", type=Path, help="results folder of the reference")
    compare_parser.add_argument("compared", type=Path, help="results folder of the other checkpoint")
    compare_parser.set_defaults(run=compare)
    show_parser = verbs.add_parser("show", help="tell what came out", description=show.__doc__)
    show_parser.add_argument("folder", type=Path, help="of the results")
    show_parser.add_argument("--output", type=Path, help="also write all of it: " + " or ".join(TABLES))
    show_parser.add_argument("--question", choices=QUESTIONS, help="what is told; the first that was asked unless told")
    show_parser.add_argument("--part", help="such as language=de, length=9 to 16, or data set=news; else all texts")
    add_criterion_options(show_parser)
    show_parser.set_defaults(run=show)


def _add_plan(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    """Add the options of a plan; with a folder that is planned already, none of them is needed."""
    defaults = CorpusSettings()
    parser.add_argument("--output", required=True, type=Path, help="folder of the results")
    parser.add_argument("--checkpoint", help="a hub id, a folder, or: bundled")
    parser.add_argument("--texts", help=f"a folder or a file ({', '.join(SUFFIXES)}), or hub:name of a data set")
    parser.add_argument("--text-columns", help="a column or a key of the texts, or two as a,b")
    parser.add_argument("--shard-size", type=int, default=planning.SHARD_SIZE, help="texts of a shard")
    parser.add_argument("--questions", default=",".join(defaults.questions), help=f"some of {','.join(QUESTIONS)}")
    parser.add_argument("--device", default="auto", help="auto, cuda, mps or cpu")
    parser.add_argument("--dtype", default=defaults.dtype, choices=DTYPES)
    parser.add_argument("--attention", choices=(*ONE_STACK, *TWO_STACKS), help="of an encoder-decoder")
    parser.add_argument("--off", type=heads, action="extend", default=[], help="heads to switch off: 3-7,2-5")
    add_random_weights_option(parser)
    parser.add_argument("--too-long", default=defaults.too_long, choices=get_args(TooLong))
    parser.add_argument("--direction", default=defaults.direction, choices=get_args(Direction))
    parser.add_argument("--no-block-entropy", dest="block_entropy", action="store_false")
    parser.add_argument("--scale", default=defaults.scale, choices=get_args(Scale))
    parser.add_argument("--no-parser", dest="parses", action="store_false", help="leave syntactic roles out")
    parser.add_argument("--threads", type=int, default=defaults.n_threads, help="of each process")
    return parser


def _add_parse(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--texts", required=True, help="as for run")
    parser.add_argument("--text-columns", help="as for run")
    parser.add_argument("--output", required=True, type=Path, help="folder of the parsed texts")
    parser.add_argument("--shard-size", type=int, default=planning.SHARD_SIZE, help="texts of a shard")
    add_engine_options(parser)
    parser.set_defaults(run=parse)


def parse(arguments: argparse.Namespace) -> None:
    """Parse texts once, for the runs of any number of checkpoints: give the folder to `run` as --texts.

    Whatever ended it, the same command goes on. Texts that bring trees keep them.
    """
    check_engine(arguments)
    engine = engine_of(arguments, "cpu")
    with alone(arguments.output), _progress(READING_STOPPED) as shown:
        parsing = parse_corpus(
            arguments.output, arguments.texts, _columns(arguments), engine, arguments.shard_size, shown.parsed
        )
    print(f"{parsing.n_texts:,} texts parsed by {parsing.parser}: {arguments.output}")


@dataclass
class _Shown:
    """Progress on standard error: a bar in a terminal, and in a file a line now and then."""

    bar: Any
    """Of tqdm."""
    stopped: str
    """What to say after Ctrl+C."""
    next_line: float = 0.0
    """Time of the next line."""

    def read(self, n_texts: int) -> None:
        """Show how many texts were read for a plan."""
        self.bar.set_description("reading")
        self._show(n_texts, f"{n_texts:,} texts read.")

    def parsed(self, n_parsed: int, n_texts: int) -> None:
        """Show how many texts are parsed."""
        self.bar.total = n_texts
        self._show_kept(n_parsed, f"{n_parsed:,} of {n_texts:,} texts are parsed")

    def scored(self, progress: Progress) -> None:
        """Show how many shards are done."""
        self.bar.set_description(f"shard {progress.n_done:,} of {progress.n_shards:,}")
        self._show_kept(progress.n_texts, f"{progress.n_done:,} of {progress.n_shards:,} shards are done")

    def _show_kept(self, n_texts: int, kept: str) -> None:
        self.stopped = f"{kept}; the same command goes on from there."
        self._show(n_texts, f"{kept}.")

    def _show(self, n_texts: int, line: str) -> None:
        self.bar.update(n_texts - self.bar.n)
        if self.bar.disable and monotonic() >= self.next_line:
            print(line, file=sys.stderr, flush=True)
            self.next_line = monotonic() + EVERY


@contextmanager
def _progress(stopped: str, n_texts: int | None = None) -> Iterator[_Shown]:
    """Context of work whose progress is shown; after Ctrl+C, says what is done.

    Args:
        stopped: what to say after Ctrl+C before anything is done.
        n_texts: of the work, where known.
    """
    with tqdm(total=n_texts, unit="text", disable=not sys.stderr.isatty()) as bar:
        shown = _Shown(bar, stopped)
        try:
            yield shown
        except KeyboardInterrupt:
            bar.close()
            print(f"Stopped. {shown.stopped}", file=sys.stderr)
            raise SystemExit(INTERRUPTED) from None


def plan(arguments: argparse.Namespace) -> None:
    """Read all texts once, write them in shards, and write the manifest; nothing is scored."""
    with alone(arguments.output):
        manifest = _planned(arguments)
    print(f"{manifest.n_texts:,} texts in {len(manifest.shards):,} shards: {arguments.output}")


def run_corpus(arguments: argparse.Namespace) -> None:
    """Score all shards that are not done, and merge their statistics; whatever ended it, the same command goes on.

    With a folder that is planned already, the checkpoint and the texts can be left out. Shards that are damaged, or
    were scored with something else, are named and computed anew. A second run in the same folder is refused.
    """
    check_engine(arguments)
    with alone(arguments.output):
        manifest = _planned(arguments)
        engine = engine_of(arguments, manifest.settings.device, manifest.settings.n_threads)
        with _progress("The same command goes on.", manifest.n_texts) as shown:
            run(arguments.output, manifest, engine, partial(print, file=sys.stderr), shown.scored)
    remember_results(arguments.output)
    part = open_results(arguments.output).part()
    print(f"{part.n_texts:,} of {manifest.n_texts:,} texts scored in {len(manifest.shards):,} shards.")


def merge_corpus(arguments: argparse.Namespace) -> None:
    """Merge the statistics of all shards in their order; a run does that at its end."""
    manifest = read_manifest(arguments.folder)
    merge(arguments.folder, manifest)
    print(f"Merged {len(manifest.shards):,} shards.")


def verify(arguments: argparse.Namespace) -> None:
    """Check every file of every shard against what was written; exit code 2 where one is not as it was."""
    manifest = read_manifest(arguments.folder)
    states = check(arguments.folder, manifest)
    n_done = sum(state == "done" for state in states.values())
    print(f"{n_done:,} of {len(states):,} shards are done and sound.")
    sentences = [
        f"{named(names)}: {problem}."
        for problem in ("missing", "damaged", "foreign")
        if (names := [name for name, state in states.items() if state == problem])
    ]
    if sentences:
        raise AnalysisError(f"{' '.join(sentences)} Run the corpus: they are computed anew.")


def compare(arguments: argparse.Namespace) -> None:
    """Write the statistics of the differences of two checkpoints' scores, text by text, into the second folder.

    The page Compare draws from them; no model runs.
    """
    a, b = open_results(arguments.reference), open_results(arguments.compared)
    path = write_differences(a, b)
    differences = read_differences(a, b, Criterion())
    if differences is not None:
        n_different, n_tested = int(differences.differs.sum()), int((differences.texts > 1).sum())
        print(f"{n_different:,} of {n_tested:,} scores differ (p < 0.05): {path}")


def show(arguments: argparse.Namespace) -> None:
    """Tell what the statistics of a results folder say: roles by test and by evidence, or how heads look, or parse."""
    results = open_results(arguments.folder)
    part = results.part(_stratum(arguments.part))
    question = arguments.question or results.settings.questions[0]
    if arguments.output is not None:
        check_output(arguments.output, TABLES)
    table = {"roles": _role_table, "surface": _surface_table, "relations": _relation_table}[question](arguments, part)
    shortest, longest = part.n_tokens
    n_tokens = f"{shortest:,} to {longest:,} tokens"
    print(f"{results.checkpoint}, {part.stratum.title}: {part.n_texts:,} texts of {n_tokens}")
    print(f"Left out: {results.n_too_long:,} too long, {results.n_without_token:,} without a token.")
    names = [f"{stratum.kind}={stratum.name}" for stratum in results.strata if stratum != EVERYTHING]
    print(f"Parts: {', '.join(names)}")
    print(_role_summary(arguments, part) if question == "roles" else _best(question, table))
    if question == "roles" and (note := few_texts(part.n_texts)) is not None:
        print(note, file=sys.stderr)
    if arguments.output is not None:
        write_table(arguments.output, table, {name: str(fact) for name, fact in part.facts().items()})


def _role_summary(arguments: argparse.Namespace, part: Part) -> str:
    """Number of heads with each coarse role, and why a role was not tested."""
    tests = part.tests(criterion_of(arguments, part.results.settings.scale))
    coarse, _ = shown_roles(tests.mean)
    reasons = {role: reason for role, reason in part.untested(tests).items() if role in coarse}
    counts = {role: "not tested" if n_heads is None else n_heads for role, n_heads in n_holding(tests, coarse).items()}
    lines = [pd.Series(counts, dtype=object).rename_axis("role").to_string()]
    return "\n".join([*lines, *(f"Not tested: {role}; {reason}." for role, reason in reasons.items())])


def _best(question: str, table: pd.DataFrame) -> str:
    """The head with the highest value of each statistic, or of each relation."""
    key = "statistic" if question == "surface" else "relation"
    column = "mean" if question == "surface" else "accuracy"
    with_values = table[table[column].notna()]
    best = with_values.loc[with_values.groupby(key, sort=False)[column].idxmax()]
    return best.to_string(index=False)


def _role_table(arguments: argparse.Namespace, part: Part) -> pd.DataFrame:
    settings = criterion_of(arguments, part.results.settings.scale)
    table = head_table(part.tests(settings), SHOWN_COLUMNS)
    if part.wealth is None:
        return table
    by_evidence = part.by_evidence(settings)
    evidence = by_evidence.evidence
    return (
        table
        if evidence is None
        else table.assign(evidence=as_odds(evidence).ravel(), holds_anytime=by_evidence.holds.ravel())
    )


def _surface_table(arguments: argparse.Namespace, part: Part) -> pd.DataFrame:
    statistics = part.surface(arguments.alpha)
    index = pd.MultiIndex.from_product(
        [statistics.names, *map(range, statistics.mean.shape[1:])], names=["statistic", "layer", "head"]
    )
    columns = {name: getattr(statistics, name).ravel() for name in ("mean", "low", "high")}
    return pd.DataFrame(columns, index=index).reset_index()


def _relation_table(arguments: argparse.Namespace, part: Part) -> pd.DataFrame:
    relations = part.relations(arguments.alpha)
    index = pd.MultiIndex.from_product(
        [RELATION_NAMES, DIRECTIONS, *map(range, relations.accuracy.shape[2:])],
        names=["relation", "direction", "layer", "head"],
    )
    columns = {name: getattr(relations, name).ravel() for name in ("accuracy", "low", "high")}
    table = pd.DataFrame(columns, index=index).reset_index()
    for name, values in (
        ("cases", relations.n_cases),
        ("offset", relations.offset),
        ("baseline", relations.offset_accuracy),
    ):
        table[name] = table["relation"].map(dict(zip(RELATION_NAMES, values.tolist())))
    return table


def _stratum(part: str | None) -> Stratum:
    if part is None:
        return EVERYTHING
    word, _, name = part.partition("=")
    kinds = {kind: kind for kind in STRATUM_KINDS[1:]}
    if word not in kinds or not name:
        raise AnalysisError(f"{part[:60]!r} names no part. Write it as language=de, length=9 to 16 or data set=news.")
    return Stratum(kinds[word], name)


def _planned(arguments: argparse.Namespace) -> Manifest:
    """The plan of a folder: that which is there, or a new one."""
    if arguments.texts is None and arguments.checkpoint is None and (arguments.output / MANIFEST).exists():
        return read_manifest(arguments.output)
    if arguments.texts is None or arguments.checkpoint is None:
        missing = "--texts" if arguments.texts is None else "--checkpoint"
        raise AnalysisError(f"{arguments.output} is not planned, and {missing} is not given. Add {missing}.")
    files = find_checkpoint(arguments.checkpoint)
    if arguments.random_weights is not None:
        files = randomly_initialised(files, arguments.random_weights)
    with _progress(READING_STOPPED) as shown:
        return planning.plan(
            arguments.output,
            files,
            _settings(arguments, files),
            arguments.texts,
            _columns(arguments),
            arguments.shard_size,
            shown.read,
        )


def _columns(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    columns = arguments.text_columns
    return tuple(name.strip() for name in columns.split(",")) if columns else None


def _questions(written: str) -> tuple[QuestionName, ...]:
    names = [name.strip() for name in written.split(",")]
    if unknown := [name for name in names if name not in QUESTIONS]:
        known = ", ".join(QUESTIONS)
        raise AnalysisError(f"Corpora are asked for {known}, got {unknown[0][:40]!r}. Choose among them.")
    return tuple(name for name in QUESTIONS if name in names)


def _settings(arguments: argparse.Namespace, files: CheckpointFiles) -> CorpusSettings:
    return CorpusSettings(
        questions=_questions(arguments.questions),
        kind=arguments.attention or files.kinds[0],
        off=tuple(sorted(set(arguments.off))),
        device=choose_device(arguments.device),
        dtype=arguments.dtype,
        too_long=arguments.too_long,
        direction=arguments.direction,
        block_entropy=arguments.block_entropy,
        scale=arguments.scale,
        parses=arguments.parses,
        n_threads=arguments.threads,
    )
