"""One call for each analysis, made from it: its settings are keywords, with the sentences of their options."""

from argparse import Namespace
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from inspect import Parameter, Signature
from typing import Any, Final

from attention_sieve.calls.finding import Finding
from attention_sieve.calls.given import (
    SHARED,
    check_keywords,
    checked,
    kinds_of,
    opened,
    parsed,
    pass_settings_of,
    too_long_in,
    watched,
)
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.analysis_command import AnyAnalysis, asked_settings, read_inputs
from attention_sieve.core.answering import answer, find_in
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.command_lines import options_of, parts_of
from attention_sieve.core.commands import finding_facts
from attention_sieve.core.roles.score_analysis import SCORE_ANALYSIS

CALLS: Final[Mapping[str, AnyAnalysis]] = {analysis.name: analysis for analysis in (*ANALYSES, SCORE_ANALYSIS)}
"""The analysis of each call."""

ON_TEXTS: Final = {
    "too_long": "    too_long: error, skip or truncate.",
    "parser": "    parser: of texts without trees: a spaCy package, or its language, such as French; False for none.",
}


def call_of(analysis: AnyAnalysis) -> Callable[..., Finding]:
    """The function of an analysis, with a signature and a docstring of its own."""
    name, sentences = analysis.name, dict(_sentences(_asked(analysis)))
    further = {keyword: (option.usual, option.sentence) for keyword, option in analysis.usage.keywords.items()}
    usual = _shared(analysis) | {keyword: value for keyword, (value, _) in (further | sentences).items()}

    def find(model: Any, texts: Any, *, tokenizer: Any = None, **given: Any) -> Finding:
        check_keywords(name, given, usual)
        with opened(model, tokenizer, given) as checkpoint:
            return _finding(analysis, checkpoint, texts, given)

    find.__name__ = find.__qualname__ = name
    find.__module__ = "attention_sieve"
    find.__doc__ = _docstring(analysis, sentences | further)
    keywords = {"tokenizer": None, **usual}
    find.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            *(Parameter(keyword, Parameter.POSITIONAL_OR_KEYWORD) for keyword in ("model", "texts")),
            *(Parameter(keyword, Parameter.KEYWORD_ONLY, default=value) for keyword, value in keywords.items()),
        ],
        return_annotation=Finding,
    )
    return find


def _asked(analysis: AnyAnalysis) -> Any:
    """The settings, or those within them, whose fields are keywords."""
    return getattr(analysis.settings, analysis.usage.asks) if analysis.usage.asks else analysis.settings


def _shared(analysis: AnyAnalysis) -> dict[str, Any]:
    """Keywords of all calls, but for those on texts where the inputs are others."""
    inputs = analysis.usage.inputs
    reads_texts = inputs is None or inputs.are_texts
    return {name: usual for name, usual in SHARED.items() if reads_texts or name not in ("too_long", "parser")}


def _sentences(settings: Any) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Usual value and sentence of each setting, and of the settings within, by its name."""
    for name, (_, sentence) in options_of(settings).items():
        yield name, (getattr(settings, name), sentence)
    for part in parts_of(settings).values():
        yield from _sentences(part)


def _docstring(analysis: AnyAnalysis, sentences: Mapping[str, tuple[Any, str]]) -> str:
    example = analysis.usage.example
    asked = f"sieve.{analysis.name}({example.model}, {example.texts}, {example.keywords})".replace(", )", ")")
    return "\n".join(
        (
            f"{analysis.sentence}\n\nArgs:",
            "    model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory. Its",
            "        hooks also see the short texts of a check.",
            "    texts: a text, or a list of texts, each a string, a pair of strings, or an object as files of JSON",
            "        have it, such as words with heads, or a text with pairs; of coreference, objects with text and",
            "        clusters.",
            "    tokenizer: of a model in memory.",
            "    device, dtype: of a checkpoint that is loaded: auto, cuda, mps or cpu; and its number format.",
            "    attention: encoder, decoder or cross in an encoder-decoder.",
            "    off: heads to switch off, as pairs of layer and head.",
            *(says for name, says in ON_TEXTS.items() if name in _shared(analysis)),
            *(f"    {keyword}: {sentence}; usual: {value!r}" for keyword, (value, sentence) in sentences.items()),
            "\nRaises: AnalysisError, which says what was found and what to do.",
            "\nColumns of the table:",
            *(f"    {column}: {sentence}" for column, sentence in analysis.columns.items()),
            "\n>>> import attention_sieve as sieve",
            *(f">>> {line}" for line in example.before),
            f">>> found = {asked}",
            f">>> list(found.table.columns) == {list(analysis.columns)!r}",
            "True",
        )
    )


def _finding(analysis: AnyAnalysis, checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any]) -> Finding:
    options, inputs = _options(analysis, given, checkpoint.files), analysis.usage.inputs
    settings, read_by = asked_settings(analysis, options), (checkpoint, pass_settings_of(checkpoint, given))

    def as_in_file() -> Any:
        read_texts = partial(parsed, given=given)
        return read_texts(texts) if inputs is None else inputs.given(texts, options, read_texts)

    reading, read = read_inputs(analysis, settings, options, read_by, as_in_file, watched)
    asked = analysis if analysis.usage.reading_analysis is None else analysis.usage.reading_analysis(reading)
    result = find_in(asked, reading, read.settings, watched)
    facts = finding_facts(asked, reading, result, read.settings, read.facts)
    return Finding(analysis=analysis.name, table=asked.table(result), columns=asked.columns, facts=facts, result=result)


def _options(analysis: AnyAnalysis, given: Mapping[str, Any], files: CheckpointFiles) -> Namespace:
    """The keywords as the options of the command, with the files of the checkpoint.

    Raises: AnalysisError for a value of another kind.
    """
    kinds = kinds_of(analysis.settings)
    options: dict[str, Any] = {name: checked(name, given[name], kinds[name]) for name in kinds if name in given}
    for name, option in analysis.usage.keywords.items():
        value = given.get(name)
        if value is None:
            options[name] = option.usual
        elif option.given is not None:
            options[name] = option.given(value)
        else:
            options[name] = checked(name, value, bool if option.usual is False else option.kind)
    further = {"attention": given.get("attention"), "too_long": too_long_in(given), "answer": answer, "files": files}
    return Namespace(**dict.fromkeys(kinds) | options | further)


def settings_of_call(analysis: AnyAnalysis, given: Mapping[str, Any], files: CheckpointFiles) -> Any:
    """The settings of the keywords, made as the command makes them of its options.

    Raises: AnalysisError for a value of another kind, or out of its range.
    """
    return asked_settings(analysis, _options(analysis, given, files))
