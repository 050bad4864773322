"""The command of an analysis, made from its value: it reads a file, and writes the table of what is found in it."""

import argparse
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attention_sieve.core.answering import Analysis, Reading, find_in
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    facts_of_texts,
    finding_facts,
    loaded,
    prepared_texts,
    progress_bar,
    read_texts,
    write_table,
)
from attention_sieve.core.options import (
    add_analysis_command,
    add_inputs_options,
    add_option,
    add_parser_options,
    add_texts_options,
    settings_of,
)
from attention_sieve.core.usage import ReadInputs, SecondTable, column_list

AnyAnalysis = Analysis[Any, Any, Any, Any, Any]


def add_command(commands: Any, analysis: AnyAnalysis) -> None:
    """Add the command of an analysis to the command line's subparsers."""
    usage, inputs = analysis.usage, analysis.usage.inputs
    does, row = analysis.sentence.rsplit("; ", maxsplit=1)
    said = "\n\n".join(filter(None, (f"{does}; write {row}", usage.details)))
    parser = add_analysis_command(commands, analysis.command, said, partial(_run, analysis), analysis)
    seconds = [column_list(f"Columns of {_flag(name)}", second.columns) for name, second in usage.second.items()]
    parser.description = "".join((parser.description or "", *seconds, usage.more))
    if inputs is None:
        add_texts_options(parser)
    else:
        add_inputs_options(parser, inputs)
    if usage.parses:
        add_parser_options(parser)
    for name, option in usage.options.items():
        add_option(parser, name, option)
    for name, second in usage.second.items():
        parser.add_argument(_flag(name), dest=name, type=Path, help=f"second file to write: {second.sentence}")


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _run(analysis: AnyAnalysis, options: argparse.Namespace) -> None:
    """Write the table of what an analysis finds, its further tables, and remarks on both.

    Raises: AnalysisError of any stage.
    """
    usage = analysis.usage
    settings = settings_of(options, analysis.settings if usage.usual is None else usage.usual(options))
    second = {name: table for name, table in usage.second.items() if getattr(options, name) is not None}
    _check_files(options, second)
    given: Any = _texts(options, analysis) if usage.inputs is None else usage.inputs.in_file(options, progress_bar)
    checkpoint, pass_settings = loaded(options)
    analysis.question(settings).check(pass_settings.kind)
    for checked in (analysis, *(table.analysis for table in second.values() if table.analysis is not None)):
        checked.check(checkpoint)
    if usage.inputs is None:
        read = ReadInputs(inputs=given, settings=settings, facts=facts_of_texts(given))
    else:
        usage.inputs.check(checkpoint, options, settings)
        read = usage.inputs.read(given, checkpoint, options, settings, progress_bar)
    too_long = analysis.too_long or options.too_long
    prepared = prepared_texts(checkpoint, [analysis.text_of(item) for item in read.inputs], pass_settings, too_long)
    reading: Reading[Any] = Reading(
        checkpoint=checkpoint, pass_settings=pass_settings, inputs=read.inputs, prepared=prepared, answer=options.answer
    )
    for table in second.values():
        table.check(reading, read.settings)
    finding = find_in(analysis, reading, read.settings, progress_bar)
    facts = finding_facts(analysis, reading, finding, read.settings, read.facts)
    write_table(options.output, analysis.table(finding), facts)
    for note in (*usage.notes(finding), *filter(None, (read.note,))):
        print(note, file=sys.stderr)
    for line in usage.summary(finding):
        print(line)
    for name, table in second.items():
        _write_second(getattr(options, name), table, reading, read, (finding, facts))


def _check_files(options: argparse.Namespace, second: Mapping[str, SecondTable]) -> None:
    """Raise AnalysisError if a file cannot be written, or is another one of the command."""
    outputs = [options.output, *(getattr(options, name) for name in second)]
    given = {name: value for name, value in vars(options).items() if isinstance(value, Path)}
    inputs = [path for name, path in given.items() if name not in ("output", *second)]
    for place, output in enumerate(outputs):
        check_output(output, TABLES, [*inputs, *outputs[:place]])


def _texts(options: argparse.Namespace, analysis: AnyAnalysis) -> Any:
    return read_texts(options.texts, options.text_columns, options.parser if analysis.usage.parses else None)


def _write_second(
    output: Path, second: SecondTable, reading: Reading[Any], read: ReadInputs, first: tuple[Any, Mapping[str, str]]
) -> None:
    """Write a further table, of the finding and facts of the first one, or of another analysis of the same texts."""
    finding, facts = first
    if second.table is not None:
        write_table(output, second.table(finding), facts)
    elif second.analysis is not None:
        settings = second.settings(read.settings)
        finding = find_in(second.analysis, reading, settings, progress_bar)
        facts = finding_facts(second.analysis, reading, finding, settings, read.facts)
        write_table(output, second.analysis.table(finding), facts)
