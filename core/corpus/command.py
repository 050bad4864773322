"""Analyse corpora of any size, in shards: parse, plan, run, merge, verify, show and compare.

A run can be stopped at any time; the same command continues it.
"""

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pandas as pd

from attention_sieve.core import options
from attention_sieve.core.attention.settings import Kind
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import choose_device, find_checkpoint, randomly_initialised
from attention_sieve.core.commands import TABLE_FILE, TABLES, check_output, write_table
from attention_sieve.core.comparison.sizes import LEAST_DIFFERENCE, difference_sizes
from attention_sieve.core.corpus.manifest import MANIFEST, CorpusSettings, Manifest, read_manifest
from attention_sieve.core.corpus.paired import read_differences, write_differences
from attention_sieve.core.corpus.plan import SHARD_SIZE, corpus_plan, existing_plan, parse_corpus, write_plan
from attention_sieve.core.corpus.results import CorpusPart, open_results, remember_results
from attention_sieve.core.corpus.run import REDUCTIONS, alone, check, merge, named, reductions, run
from attention_sieve.core.corpus.statistics import EVERYTHING, STRATUM_KINDS, Stratum
from attention_sieve.core.corpus.texts.inputs import HUB
from attention_sieve.core.engines.options import add_engine_options, check_engine, counted, engine_of
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.analysis import RELATION_NAMES
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.roles.command import add_roles_options
from attention_sieve.core.roles.hypotheses import Criterion, few_texts, n_holding
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.roles import role_title, shown_roles
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.roles.uncertainty.anytime import as_odds
from attention_sieve.core.roles.usage import asked_for, role_options
from attention_sieve.core.running import GO_ON, Journal, carried_out
from attention_sieve.core.texts.text import STREAMED

RESULTS_FOLDER: Final = "folder of the results"
SHOWN_COLUMNS: Final = ("texts", "mean", "std", "low", "high", "t", "p", "p_uniform", "p_role", "p_adjusted", "holds")


def add_commands(commands: Any) -> None:
    """Add the commands to the command line's subparsers."""
    parser = commands.add_parser("corpus", help="analyse corpora of millions of texts, in shards", description=__doc__)
    verbs = parser.add_subparsers(required=True)

    def verb(name: str, function: Callable[[argparse.Namespace], None], summary: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=summary, description=function.__doc__)
        added.set_defaults(run=function)
        return added

    _add_plan(verb("plan", plan, "split the texts into shards, without a run"))
    run_parser = verb("run", run_corpus, "analyse all shards and merge the results")
    _add_plan(run_parser)
    run_parser.set_defaults(folder_of_run="output")
    add_engine_options(run_parser)
    merge_parser = verb("merge", merge_corpus, "merge the statistics of all shards")
    verify_parser = verb("verify", verify, "check that all result files are complete and unchanged")
    parse_parser = verb("parse", parse, "parse the texts once, for runs of several checkpoints")
    _add_texts_options(parse_parser, required=True)
    options.add_output_option(parse_parser, "folder for the parsed texts")
    add_engine_options(parse_parser)
    compare_parser = verb("compare", compare, "compare the results of two checkpoints on the same texts")
    compare_parser.add_argument("reference", type=Path, help="results folder of the reference checkpoint")
    compare_parser.add_argument("compared", type=Path, help="results folder of the other checkpoint")
    show_parser = verb("show", show, "print a summary of the results")
    for folder_parser in (merge_parser, verify_parser, show_parser):
        folder_parser.add_argument("folder", type=Path, help=RESULTS_FOLDER)
    show_parser.add_argument("--output", type=Path, help=f"file to write all results to: {TABLE_FILE}")
    show_parser.add_argument(
        "--question", choices=REDUCTIONS, help="question to show; default: the first of the run's --questions"
    )
    show_parser.add_argument(
        "--part", help="part of the texts, such as language=de, length=9 to 16 or data set=news; default: all texts"
    )
    options.add_settings_options(show_parser, Criterion())


def _add_plan(parser: argparse.ArgumentParser) -> None:
    """Add the options of a plan; a folder that already has a plan needs only --output."""
    defaults = CorpusSettings()
    options.add_output_option(parser, RESULTS_FOLDER)
    options.add_checkpoint_option(parser, required=False)
    _add_texts_options(parser, required=False)
    parser.add_argument(
        "--questions",
        help=f"what to analyse, separated by commas: {','.join(REDUCTIONS)}; default: all that apply to the attention",
    )
    options.add_device_option(parser)
    options.add_dtype_option(parser)
    options.add_attention_option(parser)
    options.add_off_option(parser)
    options.add_random_weights_option(parser)
    options.add_too_long_option(parser, defaults.too_long)
    add_roles_options(parser, role_options())
    options.add_settings_options(parser, ScoreSettings())
    parser.add_argument(
        "--no-parser",
        dest="parses",
        action="store_false",
        help="do not parse texts that have no dependency trees; syntactic roles do not apply to them",
    )
    parser.add_argument(
        "--threads", type=int, default=defaults.n_threads, help="threads per process; default: %(default)s"
    )


def _add_texts_options(parser: argparse.ArgumentParser, *, required: bool) -> None:
    parser.add_argument(
        "--texts",
        required=required,
        help=f"folder or file of texts ({', '.join(STREAMED)}), or {HUB}name for a data set on the Hugging Face Hub",
    )
    parser.add_argument(
        "--text-columns",
        help="column of a table, or key of a JSON object, that holds the texts; or the two of a pair, as first,second",
    )
    parser.add_argument(
        "--shard-size", type=int, default=SHARD_SIZE, help="number of texts per shard; default: %(default)s"
    )


def parse(arguments: argparse.Namespace) -> None:
    """Parse texts once, for runs of several checkpoints: pass the folder to `corpus run` as --texts.

    If it is interrupted, the same command continues. Texts that already have trees keep them.
    """
    check_engine(arguments)
    engine = counted(engine_of(arguments, "cpu"), "shard")
    with alone(arguments.output), carried_out(Journal(arguments.output), GO_ON) as journal:
        parsing = parse_corpus(
            arguments.output, arguments.texts, _columns(arguments), engine, journal, arguments.shard_size
        )
        print(f"{parsing.n_texts:,} texts parsed by {parsing.parser}: {arguments.output}")


def plan(arguments: argparse.Namespace) -> None:
    """Split the texts into shards and write a manifest; no model runs."""
    with alone(arguments.output):
        manifest = write_plan(arguments.output, _planned(arguments), Journal(None))
    print(f"{manifest.n_texts:,} texts in {len(manifest.shards):,} shards: {arguments.output}")


def run_corpus(arguments: argparse.Namespace) -> None:
    """Analyse all shards that are not done yet, and merge their statistics.

    If a run is interrupted, the same command continues it. For a folder that already has a plan, --checkpoint and
    --texts can be left out. Shards that are damaged, or were computed with other settings, are listed and computed
    again. Only one run at a time can use a folder.
    """
    check_engine(arguments)
    with alone(arguments.output):
        planned = _planned(arguments)
        with carried_out(Journal(arguments.output, planned.checkpoint), GO_ON) as journal:
            manifest = write_plan(arguments.output, planned, journal)
            engine = engine_of(arguments, manifest.settings.device, manifest.settings.n_threads)
            run(arguments.output, manifest, counted(engine, "shard"), journal)
            remember_results(arguments.output)
            part = open_results(arguments.output).part()
            print(f"{part.n_texts:,} of {manifest.n_texts:,} texts scored in {len(manifest.shards):,} shards.")


def merge_corpus(arguments: argparse.Namespace) -> None:
    """Merge the statistics of all shards, in their order, as a run does when it ends."""
    manifest = read_manifest(arguments.folder)
    merge(arguments.folder, manifest)
    print(f"Merged {len(manifest.shards):,} shards.")


def verify(arguments: argparse.Namespace) -> None:
    """Check that every file of every shard is complete and unchanged; exits with code 2 if one is not."""
    manifest = read_manifest(arguments.folder)
    states = check(arguments.folder, manifest, Journal(None))
    n_done = sum(state == "done" for state in states.values())
    print(f"{n_done:,} of {len(states):,} shards are complete and unchanged.")
    sentences = [
        f"{named(names)}: {problem}."
        for problem in ("missing", "damaged", "foreign")
        if (names := [name for name, state in states.items() if state == problem])
    ]
    if sentences:
        raise AnalysisError(f"{' '.join(sentences)} Run the corpus again to compute them.")


def compare(arguments: argparse.Namespace) -> None:
    """Compare the scores of two checkpoints text by text, and write the statistics of their differences.

    They are written to the second folder and shown on the page Compare; no model runs.
    """
    a, b = open_results(arguments.reference), open_results(arguments.compared)
    path = write_differences(a, b)
    differences = read_differences(a, b, Criterion())
    if differences is not None:
        sizes = difference_sizes(differences, LEAST_DIFFERENCE[a.settings.scale])
        print(f"{sizes.sentence} (p < 0.05): {path}")


def show(arguments: argparse.Namespace) -> None:
    """Print a summary of the results: the number of heads with each role, or the best head for each surface statistic
    or relation.

    Columns of --output, for the question roles:
        role, layer, head, texts, mean, std, t, p, p_uniform, p_role, p_adjusted, holds: as in the `roles` command
        low, high: confidence interval of the mean
        evidence, holds_anytime: as in the `roles` command, if the run recorded evidence

    Columns of --output, for the question surface:
        statistic, layer, head: as in the `surface` command
        mean, low, high: mean over texts, and its confidence interval

    Columns of --output, for the question relations:
        relation, direction, layer, head: as in the `relations` command
        accuracy: share of the cases that the head gets right
        low, high: its confidence interval, with texts as units
        cases: number of words with this relation
        offset, baseline: the best fixed offset in words, and its accuracy
    """
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


def _criterion(arguments: argparse.Namespace, part: CorpusPart) -> Criterion:
    return options.settings_of(arguments, Criterion.usual(part.results.settings.scale))


def _role_summary(arguments: argparse.Namespace, part: CorpusPart) -> str:
    """Number of heads with each coarse role, and why a role was not tested."""
    tests = part.tests(_criterion(arguments, part))
    coarse, _ = shown_roles(tests.mean, tests.roles)
    reasons = {role_title(role): reason for role, reason in part.untested(tests).items() if role in coarse}
    held = n_holding(tests, coarse).items()
    counts = {role_title(role): "not tested" if n_heads is None else n_heads for role, n_heads in held}
    lines = [pd.Series(counts, dtype=object).rename_axis("role").to_string()]
    return "\n".join([*lines, *(f"Not tested: {role}; {reason}." for role, reason in reasons.items())])


def _best(question: str, table: pd.DataFrame) -> str:
    """The head with the highest value of each statistic, or of each relation."""
    key = "statistic" if question == "surface" else "relation"
    column = "mean" if question == "surface" else "accuracy"
    with_values = table[table[column].notna()]
    best = with_values.loc[with_values.groupby(key, sort=False)[column].idxmax()]
    return best.to_string(index=False)


def _role_table(arguments: argparse.Namespace, part: CorpusPart) -> pd.DataFrame:
    settings = _criterion(arguments, part)
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


def _surface_table(arguments: argparse.Namespace, part: CorpusPart) -> pd.DataFrame:
    statistics = part.surface(_criterion(arguments, part).alpha)
    index = pd.MultiIndex.from_product(
        [statistics.names, *map(range, statistics.mean.shape[1:])], names=["statistic", "layer", "head"]
    )
    columns = {name: getattr(statistics, name).ravel() for name in ("mean", "low", "high")}
    return pd.DataFrame(columns, index=index).reset_index()


def _relation_table(arguments: argparse.Namespace, part: CorpusPart) -> pd.DataFrame:
    relations = part.relations(_criterion(arguments, part).alpha)
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
        raise AnalysisError(
            f"{part[:60]!r} is not a part of the texts. Write it as language=de, length=9 to 16 or data set=news."
        )
    return Stratum(kinds[word], name)


def _planned(arguments: argparse.Namespace) -> Manifest:
    """The plan of a folder: the existing one, or a new one without shards."""
    has_plan = os.path.exists(arguments.output / MANIFEST)
    if has_plan and arguments.texts is None and arguments.checkpoint is None:
        return read_manifest(arguments.output)
    if arguments.texts is None or arguments.checkpoint is None:
        missing = "--texts" if arguments.texts is None else "--checkpoint"
        raise AnalysisError(f"{arguments.output} has no plan yet, which needs {missing}. Add {missing}.")
    files = find_checkpoint(arguments.checkpoint)
    if arguments.random_weights is not None:
        files = randomly_initialised(files, arguments.random_weights)
    planned = corpus_plan(
        files, _settings(arguments, files), arguments.texts, _columns(arguments), arguments.shard_size
    )
    return existing_plan(arguments.output, planned) if has_plan else planned


def _columns(arguments: argparse.Namespace) -> tuple[str, ...] | None:
    columns = arguments.text_columns
    return tuple(name.strip() for name in columns.split(",")) if columns else None


def _settings(arguments: argparse.Namespace, files: CheckpointFiles) -> CorpusSettings:
    scores = options.settings_of(arguments, ScoreSettings(roles=asked_for(arguments)))
    kind = arguments.attention or files.kinds[0]
    return CorpusSettings(
        questions=_questions(arguments.questions, kind),
        kind=kind,
        off=tuple(sorted(set(arguments.off))),
        device=choose_device(arguments.device),
        dtype=arguments.dtype,
        too_long=arguments.too_long,
        roles=scores.roles,
        direction=scores.direction,
        block_entropy=scores.block_entropy,
        scale=scores.scale,
        parses=arguments.parses,
        n_threads=arguments.threads,
    )


def _questions(named: str | None, kind: Kind) -> tuple[str, ...]:
    """The questions that are named; or else all that pages ask of results and that apply to this attention."""
    if named is not None:
        return tuple(analysis.name for analysis, _ in reductions([name.strip() for name in named.split(",")]))
    asked = [analysis for analysis, _ in reductions(list(REDUCTIONS))]
    return tuple(analysis.name for analysis in asked if kind in analysis.question(analysis.settings).kinds)
