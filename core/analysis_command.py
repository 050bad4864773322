"""The command of an analysis, made from its value: it reads a file, and writes the table of what is found in it."""

import sys
from argparse import Namespace
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attention_sieve.core.answering import Analysis, Reading, Watch, find_in
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import (
    TABLES,
    check_output,
    facts_of_texts,
    finding_facts,
    loaded,
    progress_bar,
    read_texts,
    reading_of,
    write_reading,
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
ReadBy = tuple[Checkpoint, PassSettings]


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


def asked_settings(analysis: AnyAnalysis, options: Namespace) -> Any:
    """The settings that the options ask for, or the keywords of a call, which are named as these.

    Raises: AnalysisError of the settings, such as for a number out of its range.
    """
    usual = analysis.usage.usual
    return settings_of(options, analysis.settings if usual is None else usual(options))


def read_inputs(
    analysis: AnyAnalysis, settings: Any, options: Namespace, read_by: ReadBy, given: Callable[[], Any], watch: Watch
) -> tuple[Reading[Any], ReadInputs]:
    """Inputs as a checkpoint reads them, for a command or a call. Once the checkpoint is checked, `given` returns
    texts, or what else the file of a command holds.

    Raises: AnalysisError of any stage.
    """
    inputs, (checkpoint, pass_settings) = analysis.usage.inputs, read_by
    analysis.question(settings).check(pass_settings.kind)
    analysis.check(checkpoint)
    if inputs is None:
        texts = given()
        read = ReadInputs(inputs=texts, settings=settings, facts=facts_of_texts(texts))
    else:
        inputs.check(checkpoint, options, settings)
        read = inputs.read(given(), checkpoint, options, settings, watch)
    too_long = analysis.too_long or options.too_long
    return reading_of(*read_by, read.inputs, too_long, options.answer, analysis.text_of), read


def _run(analysis: AnyAnalysis, options: Namespace) -> None:
    """Write the table of what an analysis finds, its further tables, and remarks on both.

    Raises: AnalysisError of any stage.
    """
    usage, settings = analysis.usage, asked_settings(analysis, options)
    second = {name: table for name, table in usage.second.items() if getattr(options, name) is not None}
    _check_files(options, second)
    if usage.inputs is None:
        given: Any = read_texts(options.texts, options.text_columns, options.parser if usage.parses else None)
    else:
        given = usage.inputs.in_file(options, progress_bar)
    read_by = loaded(options)
    for other in filter(None, (table.analysis for table in second.values())):
        other.check(read_by[0])
    reading, read = read_inputs(analysis, settings, options, read_by, lambda: given, progress_bar)
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
        output = getattr(options, name)
        if table.table is not None:
            write_table(output, table.table(finding), facts)
        elif table.analysis is not None:
            further = write_reading(output, table.analysis, reading, table.settings(read.settings), read.facts)
            for note in table.analysis.usage.notes(further):
                print(note, file=sys.stderr)


def _check_files(options: Namespace, second: Mapping[str, SecondTable]) -> None:
    """Raise AnalysisError if a file cannot be written, or is another one of the command."""
    outputs = [options.output, *(getattr(options, name) for name in second)]
    given = {name: value for name, value in vars(options).items() if isinstance(value, Path)}
    inputs = [path for name, path in given.items() if name not in ("output", *second)]
    for place, output in enumerate(outputs):
        check_output(output, TABLES, [*inputs, *outputs[:place]])
