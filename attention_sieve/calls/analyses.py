"""One call for each analysis, made from it: its settings are keywords, with the sentences of their options."""

import csv
import io
import json
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from inspect import Parameter, Signature
from pathlib import PurePath
from typing import Any, Final

from attention_sieve.calls.finding import Finding
from attention_sieve.calls.given import (
    OF_ROLES,
    SHARED,
    check_keywords,
    checked,
    kinds_of,
    listed,
    of_pass_of,
    opened,
    parsed,
    too_long_in,
    watched,
)
from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.answering import Analysis, Reading, find_in
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.command_lines import options_of, parts_of
from attention_sieve.core.commands import facts_of_texts, finding_facts, prepared_texts
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, MentionText, windows
from attention_sieve.core.errors import AnalysisError, TextError
from attention_sieve.core.importance.labels import LabelledTexts, read_labels
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.options import settings_of
from attention_sieve.core.relations.command import relation_settings
from attention_sieve.core.roles.command import SCORE_ANALYSIS, role_settings, scores_of, written_in
from attention_sieve.core.roles.roles import asked_roles
from attention_sieve.core.texts.text import Text
from attention_sieve.core.word_links.command import word_link_settings

AnyAnalysis = Analysis[Any, Any, Any, Any, Any]


@dataclass(frozen=True, kw_only=True)
class _Call:
    """What differs between the calls: what is read, which settings there are, and an example."""

    example: tuple[str, str]
    """Texts and keywords of the example, as they are written in a program."""
    further: Mapping[str, Any] = field(default_factory=dict)
    """Keywords beside those of the settings, with what they are if they are not given."""
    settings: Callable[[Namespace], Any] | None = None
    """As the command makes them, of options that also hold the files of the checkpoint; None for the analysis's own."""
    model: str = '"bundled"'
    """That of the example."""
    before: tuple[str, ...] = ()
    """Lines of the example before the call."""
    analysis_of: Callable[[Reading[Any]], AnyAnalysis] | None = None
    """The analysis of what was read; None for the one of this name."""
    read: Callable[[Checkpoint, Any, Mapping[str, Any], Any], tuple[Sequence[Any], Any]] | None = None
    """The inputs of texts and keywords, and the settings, which they may change; None for texts as they are."""


def _of_roles(options: Namespace) -> Any:
    return role_settings(options, options.files)


def _windows(
    checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any], settings: Any
) -> tuple[Sequence[MentionText], Any]:
    """Texts with mentions, cut to what the checkpoint reads."""
    return windows(checkpoint, _mentions(texts), given.get("window", WINDOW)).texts, settings


def _with_labels(
    checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any], settings: Any
) -> tuple[Sequence[LabelledText], Any]:
    """Texts with the labels that a metric needs, and the settings, which say how many classes these have."""
    from attention_sieve.core.passes.readout import check_metric

    read, metric, labels = parsed(texts, given), settings.of_metric.metric, given.get("labels")
    check_metric(checkpoint, metric, given.get("attention") or checkpoint.files.kinds[0])
    if metric != "labels" and labels is not None:
        raise AnalysisError(f'The metric {metric} uses no labels. Choose metric="labels", or leave out labels.')
    if metric != "labels":
        return tuple(map(LabelledText, read)), settings
    n_labels = len(labels) if isinstance(labels, Sized) else 0
    if labels is None or n_labels != len(read):
        raise AnalysisError(
            f"The metric labels needs a label for each of {len(read):,} texts, and there are {n_labels or 'none'}."
        )
    known = _labelled(checkpoint, read, labels)
    labelled = tuple(LabelledText(text, value) for text, value in zip(read, known.values.tolist(), strict=True))
    return labelled, replace(settings, of_metric=replace(settings.of_metric, n_classes=known.n_classes))


TEXTS: Final = '["The old dog chased a cat.", "She closed the shop because it was late."]'
A_DECODER: Final = (
    "from transformers import LlamaConfig, LlamaForCausalLM",
    'shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}',
    "model = LlamaForCausalLM(LlamaConfig(**shape, vocab_size=30_522))  # with random weights",
)
REPEATS: Final = '["one red dog and one red cat and one red dog and one red cat"]'
MENTIONS: Final = '[{"text": "Ann left. She was tired.", "clusters": [[[0, 3], [10, 13]]]}]'
CALLS: Final = {
    "roles": _Call(
        example=(TEXTS, "tau=2"),
        further=OF_ROLES,
        settings=_of_roles,
    ),
    "scores": _Call(
        example=(TEXTS, 'roles=("local", "delimiter")'),
        further=OF_ROLES,
        settings=_of_roles,
        analysis_of=scores_of,
    ),
    "sinks": _Call(
        example=(TEXTS, 'tokens=8, tokenizer=sieve.load("bundled").tokenizer'),
        model="model",
        before=A_DECODER,
    ),
    "copying": _Call(
        example=(REPEATS, 'no_ablation=True, tokenizer=sieve.load("bundled").tokenizer'),
        model="model",
        before=A_DECODER,
    ),
    "surface": _Call(
        example=(TEXTS, "alpha=0.1"),
    ),
    "gradients": _Call(
        example=(TEXTS, 'tokenizer=sieve.load("bundled").tokenizer'),
        model="model",
        before=(
            "from transformers import BertConfig, BertForMaskedLM",
            "model = BertForMaskedLM(BertConfig(num_hidden_layers=2))  # with random weights",
        ),
    ),
    "relations": _Call(
        example=(TEXTS, "least_cases=1"),
        further={"as_in_code": False},
        settings=relation_settings,
    ),
    "coreference": _Call(
        example=(MENTIONS, ""),
        further={"window": WINDOW},
        read=_windows,
    ),
    "word_links": _Call(
        example=(TEXTS, 'relation="det"'),
        further={"query": None, "key": None, "relation": None, "from_head": False},
        settings=word_link_settings,
    ),
    "similarity": _Call(
        example=(TEXTS, "rows=16"),
    ),
    "ablation": _Call(
        example=(TEXTS, 'replace="mean"'),
        further={"labels": None},
        read=_with_labels,
    ),
    "single_heads": _Call(
        example=(TEXTS, ""),
        further={"labels": None},
        read=_with_labels,
    ),
    "importance": _Call(
        example=(TEXTS, "no_ablation=True"),
        further={"labels": None},
        read=_with_labels,
    ),
}
"""By the name of the analysis."""
BY_NAME: Final[Mapping[str, AnyAnalysis]] = {analysis.name: analysis for analysis in (*ANALYSES, SCORE_ANALYSIS)}


def call_of(name: str) -> Callable[..., Finding]:
    """The function of an analysis, with a signature and a docstring of its own.

    Args:
        name: one of CALLS.
    """
    call, analysis = CALLS[name], BY_NAME[name]
    sentences = dict(_sentences(analysis.settings))
    usual = SHARED | dict(call.further) | {setting: value for setting, (value, _) in sentences.items()}

    def find(model: Any, texts: Any, *, tokenizer: Any = None, **given: Any) -> Finding:
        check_keywords(name, given, usual)
        with opened(model, tokenizer, given) as checkpoint:
            return _found(name, checkpoint, texts, given)

    find.__name__ = find.__qualname__ = name
    find.__module__ = "attention_sieve"
    find.__doc__ = _docstring(name, call, analysis, sentences)
    keywords = {"tokenizer": None, **usual}
    find.__signature__ = Signature(  # type: ignore[attr-defined]
        [
            *(Parameter(each, Parameter.POSITIONAL_OR_KEYWORD) for each in ("model", "texts")),
            *(Parameter(each, Parameter.KEYWORD_ONLY, default=value) for each, value in keywords.items()),
        ],
        return_annotation=Finding,
    )
    return find


def _sentences(settings: Any) -> Iterator[tuple[str, tuple[Any, str]]]:
    """Usual value and sentence of each setting, and of the settings within, by its name."""
    for name, (_, sentence) in options_of(settings).items():
        yield name, (getattr(settings, name), sentence)
    for part in parts_of(settings).values():
        yield from _sentences(part)


def _docstring(name: str, call: _Call, analysis: AnyAnalysis, sentences: Mapping[str, tuple[Any, str]]) -> str:
    given, keywords = call.example
    asked = f"sieve.{name}({call.model}, {given}, {keywords})".replace(", )", ")")
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
            "    too_long: error, skip or truncate.",
            "    parser: of texts without trees: a spaCy package, or its language, such as French; False for none.",
            *(f"    {setting}: {sentence}; usual: {value!r}" for setting, (value, sentence) in sentences.items()),
            *(
                f"    {setting}: as the option of the command; usual: {value!r}"
                for setting, value in call.further.items()
            ),
            "\nRaises: AnalysisError, which says what was found and what to do.",
            "\nColumns of the table:",
            *(f"    {column}: {sentence}" for column, sentence in analysis.columns.items()),
            "\n>>> import attention_sieve as sieve",
            *(f">>> {line}" for line in call.before),
            f">>> found = {asked}",
            f">>> list(found.table.columns) == {list(analysis.columns)!r}",
            "True",
        )
    )


def _found(name: str, checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any]) -> Finding:
    call, analysis, settings = CALLS[name], BY_NAME[name], settings_of_call(name, given, checkpoint.files)
    of_pass = of_pass_of(checkpoint, given)
    analysis.question(settings).check(of_pass.kind)
    analysis.check(checkpoint)
    if call.read is None:
        inputs: Sequence[Any] = parsed(texts, given)
    else:
        inputs, settings = call.read(checkpoint, texts, given, settings)
    read = [analysis.text_of(each) for each in inputs]
    prepared = prepared_texts(checkpoint, read, of_pass, analysis.too_long or too_long_in(given))
    reading: Reading[Any] = Reading(checkpoint=checkpoint, of_pass=of_pass, inputs=inputs, prepared=prepared)
    if call.analysis_of is not None:
        analysis = call.analysis_of(reading)
    result = find_in(analysis, reading, settings, watched)
    table = analysis.table(result)
    facts = finding_facts(analysis, reading, result, settings, facts_of_texts(read))
    return Finding(analysis=name, table=table, columns=analysis.columns, facts=facts, result=result)


def _labelled(checkpoint: Checkpoint, texts: Sequence[Text], labels: Sequence[Any]) -> LabelledTexts:
    """Texts with labels as a table has them: names or numbers of the checkpoint's classes, or values."""
    columns, file = ("first", "second")[: len(texts[0].segments)], io.StringIO()
    writer = csv.writer(file)
    writer.writerows(
        [(*columns, "label"), *((*text.segments, label) for text, label in zip(texts, labels, strict=True))]
    )
    return read_labels(checkpoint, "texts.csv", file.getvalue().encode(), columns, "label")


def settings_of_call(name: str, given: Mapping[str, Any], files: CheckpointFiles) -> Any:
    """The settings of the keywords, made as the command makes them of its options.

    Raises: AnalysisError for a value of another kind, or out of its range.
    """
    call, usual = CALLS[name], BY_NAME[name].settings
    kinds = kinds_of(usual)
    options: dict[str, Any] = dict.fromkeys(kinds) | dict(call.further)
    options |= {
        setting: checked(setting, given[setting], kinds.get(setting)) for setting in options if setting in given
    }
    if options.get("roles") is not None:
        options["roles"] = asked_roles(listed("roles", options["roles"], str, 'names of roles, such as "local"'))
    if options.get("role") is not None:
        paths = listed("role", options["role"], str | PurePath, "files of TOML, such as mine.toml")
        options["role"] = list(map(written_in, paths))
    return (call.settings or (lambda of_options: settings_of(of_options, usual)))(Namespace(**options, files=files))


def _mentions(texts: Any) -> tuple[MentionText, ...]:
    """Texts with mentions, from objects as files have them, or as the readers of files return them.

    Raises: TextError.
    """
    given = [texts] if isinstance(texts, dict | MentionText) or not isinstance(texts, Iterable) else list(texts)
    if (read := tuple(each for each in given if isinstance(each, MentionText))) and len(read) == len(given):
        return read
    try:
        return read_mentions(json.dumps(given).encode())
    except TypeError:
        raise TextError(
            'The texts are no objects with clusters. Write them as {"text": ..., "clusters": ...}.'
        ) from None
