"""The analyses as calls: one function for each of them, with the options of its command as keywords.

    import attention_sieve as sieve
    found = sieve.roles("bundled", ["The chef who ran laughed.", ("A first segment.", "A second.")], tau=3)
    found.table, found.facts

`model` is the name of a checkpoint, its folder, what `load` returns, or a model of transformers in memory with its
tokenizer. Nothing is written to disk, and no answers are kept.
"""

import csv
import io
import json
import sys
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from html import escape
from inspect import Parameter, Signature
from os import PathLike
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float32
from pydantic import TypeAdapter, ValidationError

from attention_sieve.core.analysis import ANALYSES
from attention_sieve.core.answering import Analysis, Reading, find_in
from attention_sieve.core.attention.settings import Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.claims.command import claim_settings, facts_of_claim, read_claim
from attention_sieve.core.claims.judge import ClaimFinding
from attention_sieve.core.claims.places import PLACE_COLUMNS, PROBE_TEXTS, Place, TestedClaim, place_of, tested
from attention_sieve.core.claims.probe import ClaimSettings
from attention_sieve.core.command_lines import options_of, parts_of
from attention_sieve.core.commands import (
    check_output,
    checkpoint_facts,
    facts_of_texts,
    finding_facts,
    prepared_texts,
    progress_bar,
    write,
)
from attention_sieve.core.coreference.files import read_mentions
from attention_sieve.core.coreference.mentions import WINDOW, MentionText, windows
from attention_sieve.core.errors import AnalysisError, TextError, shortened
from attention_sieve.core.importance.analysis import ABLATION_ANALYSIS, IMPORTANCE_ANALYSIS, SINGLE_HEAD_ANALYSIS
from attention_sieve.core.importance.labels import Labels, read_labels
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.maps.command import bytes_of
from attention_sieve.core.options import settings_of
from attention_sieve.core.passes.prepare import check_settings, prepare
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.relations.command import relation_settings
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.command import role_settings, scores_of, written_in
from attention_sieve.core.roles.on_text import pass_text
from attention_sieve.core.roles.roles import known_roles
from attention_sieve.core.roles.tables import SCORE_COLUMNS
from attention_sieve.core.texts.json_files import from_object, parsed_json
from attention_sieve.core.texts.parsers import NO_PARSER, parsed_by
from attention_sieve.core.texts.text import Text, text_as_written, text_of
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.core.word_links.command import word_link_settings

if TYPE_CHECKING:
    from attention_sieve.dashboard.standalone.notebook import HeadsWidget

SHOWN_TABLE: Final = {"max_rows": 20, "float_format": "{:.4g}".format, "na_rep": ""}
"""How a table is shown where a finding is: some rows, numbers of four digits, nothing where there is none."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Finding:
    """What an analysis found about the heads of a checkpoint."""

    analysis: str
    """Name of the analysis."""
    table: pd.DataFrame
    """As the command of the analysis writes it; `attrs` are the facts."""
    columns: Mapping[str, str]
    """What each column of the table holds."""
    facts: Mapping[str, str]
    """Checkpoint, texts and settings, as in files."""
    result: Any
    """What the table was made of: the arrays that the analysis found."""

    @property
    def title(self) -> str:
        """What was found, of what, in one line."""
        return f"{self.analysis} of {self.facts['checkpoint']}: {len(self.table):,} rows"

    def __repr__(self) -> str:
        return f"{self.title}\n{self.table.to_string(**SHOWN_TABLE, show_dimensions=False)}"

    def _repr_html_(self) -> str:
        """For notebooks. Texts, tokens and names are data, which are escaped."""
        return f"<p>{escape(self.title)}</p>{self.table.to_html(**SHOWN_TABLE, escape=True, border=0)}"


def load(model: str | PathLike[str], *, device: str = "auto", dtype: str = "float32") -> Checkpoint:
    """Load a checkpoint once, for several calls.

    Args:
        model: `bundled`, a folder, or an id of the Hugging Face hub.
        device: auto, cuda, mps or cpu.
        dtype: number format of the weights.

    Raises: CheckpointError.

    >>> import attention_sieve as sieve
    >>> checkpoint = sieve.load("bundled", device="cpu")
    >>> checkpoint.files.n_layers, checkpoint.files.n_heads
    (6, 12)
    """
    return load_checkpoint(find_checkpoint(str(model)), device=device, dtype=dtype)


@dataclass(frozen=True, eq=False, kw_only=True)
class Attention:
    """Attention of all heads on one text, as arrays for other programs."""

    kind: Kind
    """self, or one of the three of an encoder-decoder."""
    query_tokens: list[str]
    key_tokens: list[str]
    weights: Float32[np.ndarray, "layer head query key"]
    """The rows of a head sum to 1; NaN for heads that are not there."""
    second: int | None
    """Index of the first token of the second segment; None for one segment."""

    def bertviz(self) -> dict[str, Any]:
        """Keywords of BertViz: `head_view(**attention.bertviz())`, and `model_view` likewise.

        Returns: attention as a tuple with a tensor (1, heads, queries, keys) for each layer, and the tokens.
        """
        import torch

        maps = tuple(torch.from_numpy(layer)[None] for layer in self.weights)
        if self.kind == "self":
            return {"attention": maps, "tokens": self.query_tokens, "sentence_b_start": self.second}
        of_encoder = {} if self.kind == "decoder" else {"encoder_tokens": self.key_tokens}
        of_decoder = {} if self.kind == "encoder" else {"decoder_tokens": self.query_tokens}
        return {f"{self.kind}_attention": maps, **of_encoder, **of_decoder}

    def circuitsvis(self, layer: int) -> dict[str, Any]:
        """Keywords of CircuitsVis: `circuitsvis.attention.attention_patterns(**attention.circuitsvis(layer=3))`.

        Args:
            layer: index of the layer, from 0.

        Returns: attention (heads, queries, keys), and the tokens.

        Raises: AnalysisError for a layer that is not there, and for cross-attention, whose keys are other tokens.
        """
        if self.kind == "cross":
            raise AnalysisError("CircuitsVis shows a text that attends to itself. Choose the encoder or the decoder.")
        if not 0 <= layer < len(self.weights):
            raise AnalysisError(f"There is no layer {layer}. The layers are 0 to {len(self.weights) - 1}.")
        return {"tokens": self.query_tokens, "attention": self.weights[layer]}


def attention(
    model: Any,
    text: str | tuple[str, str],
    *,
    tokenizer: Any = None,
    attention: Kind | None = None,
    off: Sequence[tuple[int, int]] = (),
) -> Attention:
    """Attention of all heads on one text, for BertViz, CircuitsVis and programs of one's own.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        text: a string, or a pair of strings for two segments; source and target of an encoder-decoder.
        tokenizer: that of a model in memory.
        attention: encoder, decoder or cross in an encoder-decoder; by default the encoder's.
        off: heads to switch off, as pairs of layer and head.

    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> found = sieve.attention("bundled", "The old dog chased a cat.")
    >>> found.weights.shape, found.query_tokens[:4]
    ((6, 12, 9, 9), ['[CLS]', 'the', 'old', 'dog'])
    >>> [layer.shape for layer in found.bertviz()["attention"]][:1]
    [torch.Size([1, 12, 9, 9])]
    >>> found.circuitsvis(layer=2)["attention"].shape
    (12, 9, 9)
    """
    from attention_sieve.core.passes.batches import collect
    from attention_sieve.core.passes.whole_maps import PreciseMapCollector

    with _opened(model, tokenizer, None, None) as checkpoint:
        of_pass = _of_pass(checkpoint, {"attention": attention, "off": off})
        prepared = prepare(checkpoint, _text(text, "The text"), of_pass)
        bytes_of(checkpoint, [prepared])  # raises where they are too large
        ((_, weights),) = (
            found for batch in collect(checkpoint, [prepared], of_pass, PreciseMapCollector) for found in batch
        )
    return Attention(
        kind=of_pass.kind,
        query_tokens=list(prepared.queries.tokens),
        key_tokens=list(prepared.keys.tokens),
        weights=weights,
        second=int(np.argmax(prepared.queries.segments == 1)) if prepared.queries.n_segments > 1 else None,
    )


@contextmanager
def _opened(model: Any, tokenizer: Any, device: str | None, dtype: str | None) -> Iterator[Checkpoint]:
    """The checkpoint of a name or a folder, one that is loaded, or a model in memory, where it is."""
    is_named = isinstance(model, str | PathLike)
    if not is_named and (device, dtype) != (None, None):
        raise AnalysisError("The model is in memory, and is observed where it is. Leave out device and dtype.")
    if (is_named or isinstance(model, Checkpoint)) and tokenizer is not None:
        raise AnalysisError("A checkpoint brings its own tokenizer. Leave out tokenizer, or give a model in memory.")
    if is_named:
        yield load(model, device=device or "auto", dtype=dtype or "float32")
    elif isinstance(model, Checkpoint):
        yield model
    else:
        from attention_sieve.core.checkpoints.in_memory import observed_in_place

        with observed_in_place(model, tokenizer) as checkpoint:
            yield checkpoint


@dataclass(frozen=True, kw_only=True)
class _Call:
    """What differs between the calls: what is read, which settings there are, and how they are described."""

    sentence: str
    """What the call does."""
    example: tuple[str, str]
    """Texts and keywords of the example, as they are written in a program."""
    further: Mapping[str, Any]
    """Keywords beside those of the settings, with what they are if they are not given."""
    settings: Callable[[Namespace], Any] | None = None
    """As the command makes them, of options that also hold the files of the checkpoint; None for the analysis's own."""
    model: str = '"bundled"'
    """That of the example."""
    before: tuple[str, ...] = ()
    """Lines of the example before the call."""


TEXTS: Final = '["The old dog chased a cat.", "She closed the shop because it was late."]'
A_DECODER: Final = (
    "from transformers import LlamaConfig, LlamaForCausalLM",
    'shape = {"num_hidden_layers": 2, "num_attention_heads": 4, "hidden_size": 64}',
    "model = LlamaForCausalLM(LlamaConfig(**shape, vocab_size=30_522))  # with random weights",
)
REPEATS: Final = '["one red dog and one red cat and one red dog and one red cat"]'
MENTIONS: Final = '[{"text": "Ann left. She was tired.", "clusters": [[[0, 3], [10, 13]]]}]'


OF_ROLES: Final = {"roles": None, "role": None}
CALLS: Final = {
    "roles": _Call(
        sentence="Test which heads have which roles over texts; a row per role, layer and head.",
        example=(TEXTS, "tau=2"),
        further=OF_ROLES,
        settings=lambda options: role_settings(options, options.files),
    ),
    "scores": _Call(
        sentence="Compute the sieve bias score of every head for every role; a row per text, role, layer and head.",
        example=(TEXTS, 'roles=("local", "delimiter")'),
        further=OF_ROLES,
        settings=lambda options: role_settings(options, options.files),
    ),
    "sinks": _Call(
        sentence="Measure attention sinks as they are published: the share of heads that look at the first token.",
        example=(TEXTS, 'tokens=8, tokenizer=sieve.load("bundled").tokenizer'),
        further={},
        model="model",
        before=A_DECODER,
    ),
    "copying": _Call(
        sentence="Test whether heads of a decoder look at what is copied, write it, and matter; a row per head.",
        example=(REPEATS, 'no_ablation=True, tokenizer=sieve.load("bundled").tokenizer'),
        further={},
        model="model",
        before=A_DECODER,
    ),
    "surface": _Call(
        sentence="Measure where each head looks, without a syntactic analysis; a row per statistic, layer and head.",
        example=(TEXTS, "alpha=0.1"),
        further={},
    ),
    "gradients": _Call(
        sentence="Measure how much the loss of a masked language model depends on attention, by kind of key and layer.",
        example=(TEXTS, 'tokenizer=sieve.load("bundled").tokenizer'),
        further={},
        model="model",
        before=(
            "from transformers import BertConfig, BertForMaskedLM",
            "model = BertForMaskedLM(BertConfig(num_hidden_layers=2))  # with random weights",
        ),
    ),
    "relations": _Call(
        sentence="Measure how well each head predicts syntactic relations; a row per relation, direction and head.",
        example=(TEXTS, "least_cases=1"),
        further={"as_in_code": False},
        settings=relation_settings,
    ),
    "coreference": _Call(
        sentence="Measure how well each head finds the antecedents of mentions; a row per group of mentions and head.",
        example=(MENTIONS, ""),
        further={"window": WINDOW},
    ),
    "word_links": _Call(
        sentence="Measure which heads attend from one word to another, by a relation or two words; a row per head.",
        example=(TEXTS, 'relation="det"'),
        further={"query": None, "key": None, "relation": None, "from_head": False},
        settings=word_link_settings,
    ),
    "similarity": _Call(
        sentence="Measure how differently each pair of heads attends; a row per pair of heads.",
        example=(TEXTS, "rows=16"),
        further={},
    ),
    "ablation": _Call(
        sentence="Ablate each head in turn and measure how a metric of the model changes; a row per head.",
        example=(TEXTS, 'replace="mean"'),
        further={"labels": None},
    ),
    "single_heads": _Call(
        sentence="Keep one head of a layer at a time and measure how a metric of the model changes; a row per layer.",
        example=(TEXTS, ""),
        further={"labels": None},
    ),
    "importance": _Call(
        sentence="Measure the importance of each head in several ways; a row per measure and head.",
        example=(TEXTS, "no_ablation=True"),
        further={"labels": None},
    ),
}
"""By the name of the analysis; `scores` has the table of the command `score`."""
BY_NAME: Final[Mapping[str, Analysis[Any, Any, Any, Any, Any]]] = {
    **{analysis.name: analysis for analysis in ANALYSES},
    "scores": ROLE_ANALYSIS,
}
OF_METRIC: Final = (ABLATION_ANALYSIS, SINGLE_HEAD_ANALYSIS, IMPORTANCE_ANALYSIS)
SHARED: Final = {"device": None, "dtype": None, "attention": None, "off": (), "too_long": "error", "parser": None}
"""Keywords of all calls, with what they are if they are not given."""
SHOWN: Final = {*SHARED, "roles", "direction", "block_entropy", "scale", "tau", "rule"}
"""Keywords of `show`: those that say something of one text."""


def call_of(name: str) -> Callable[..., Finding]:
    """The function of an analysis, with a signature and a docstring of its own.

    Args:
        name: one of CALLS.
    """
    call, analysis = CALLS[name], BY_NAME[name]
    sentences = dict(_sentences(analysis.settings))
    usual = SHARED | dict(call.further) | {setting: value for setting, (value, _) in sentences.items()}

    def find(model: Any, texts: Any, *, tokenizer: Any = None, **given: Any) -> Finding:
        if unknown := sorted(set(given) - set(usual)):
            raise TypeError(f"{name}() got an unexpected keyword argument {unknown[0]!r}")
        with _opened(model, tokenizer, given.get("device"), given.get("dtype")) as checkpoint:
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


def _docstring(
    name: str, call: _Call, analysis: Analysis[Any, Any, Any, Any, Any], sentences: Mapping[str, tuple[Any, str]]
) -> str:
    given, keywords = call.example
    columns = SCORE_COLUMNS if name == "scores" else analysis.columns
    asked = f"sieve.{name}({call.model}, {given}, {keywords})".replace(", )", ")")
    return "\n".join(
        (
            f"{call.sentence}\n\nArgs:",
            "    model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.",
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
            *(f"    {column}: {sentence}" for column, sentence in columns.items()),
            "\n>>> import attention_sieve as sieve",
            *(f">>> {line}" for line in call.before),
            f">>> found = {asked}",
            f">>> list(found.table.columns) == {list(columns)!r}",
            "True",
        )
    )


def claim(model: Any, claimed: str | Mapping[str, Any], texts: Any = None, **given: Any) -> Finding:
    """Test a claim about heads: does each that it names have the role? A row per head of the claim.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        claimed: a sentence, such as "L16 H19, L11 H15 are retrieval heads"; scores by head, such as {"16-19": 0.8}; or
            the name of a .json file of them.
        texts: to test the claim on, as of `roles`; none for the role's probe texts.
        given: keywords as the options of the command `claim`: number, seed, scale, tau, alpha and others; and
            role: name of the role, or a file of TOML with one of your own; none where the sentence names it;
            also: other places in which to test the same claim, by a name of yours: a list is of texts, anything else a
            checkpoint, such as {"in French": ["Elle a ferme la porte."], "the base": "bundled"};
            tokenizer: of a model in memory.

    Returns: the table; `result.summary` says it in sentences.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> found = sieve.claim("bundled", "L3 H7 and L2 H5 are duplicate-token heads", number=4)
    >>> found.table["verdict"].tolist()
    ['does not hold', 'does not hold']
    """
    kinds = dict(_kinds(ClaimSettings()))
    if unknown := sorted(set(given) - {*SHARED, *kinds, "role", "also", "tokenizer"}):
        raise TypeError(f"claim() got an unexpected keyword argument {unknown[0]!r}")
    options = Namespace(**{name: _checked(name, given[name], kinds[name]) if name in given else None for name in kinds})
    role = given.get("role")
    settings = claim_settings(options, read_claim(claimed, role if role is None else str(role)))
    own, also = None if texts is None else _parsed(texts, given), dict(given.get("also") or {})
    with _opened(model, given.get("tokenizer"), given.get("device"), given.get("dtype")) as checkpoint:
        finding = _tested(checkpoint, own, settings, given)
        facts = checkpoint_facts(checkpoint, _of_pass(checkpoint, given)) | facts_of_claim(finding, own)
        name, of_texts = checkpoint.files.name, PROBE_TEXTS if own is None else "texts"
        places = [Place(checkpoint=name, texts=of_texts, finding=finding)]
        for place, other in also.items():
            if isinstance(other, list):
                those = _parsed(other, given)
                places.append(place_of(name, place, partial(_tested, checkpoint, those, settings, given)))
            else:
                with _opened(other, None, given.get("device"), given.get("dtype")) as on:
                    places.append(place_of(place, of_texts, partial(_tested, on, own, settings, given)))
    found = TestedClaim(first=finding, places=tuple(places))
    table = found.table
    table.attrs = dict(facts)
    return Finding(analysis="claim", table=table, columns=PLACE_COLUMNS, facts=facts, result=found)


def _tested(
    checkpoint: Checkpoint, texts: Sequence[Text] | None, settings: ClaimSettings, given: Mapping[str, Any]
) -> ClaimFinding:
    """What becomes of a claim in one place."""
    of_pass, too_long = _of_pass(checkpoint, given), _checked("too_long", given.get("too_long", "error"), TooLong)
    checkpoint.files.check_heads(of_pass.kind, settings.claim.heads)

    def read(those: Sequence[Text]) -> Reading[Text]:
        prepared = prepared_texts(checkpoint, those, of_pass, too_long)
        return Reading(checkpoint=checkpoint, of_pass=of_pass, inputs=those, prepared=prepared)

    return tested(settings, texts, checkpoint, read, partial(progress_bar, bar=_bar))


def show(model: Any, texts: Any, *, tokenizer: Any = None, **given: Any) -> "HeadsWidget":
    """Show in a cell of a notebook which roles heads have in texts, and where the heads that you click look.

    The widget has the chosen heads as `heads`, pairs of layer and head, which other cells read, set and observe; and as
    `text` the position of the text that is shown. What it shows stays usable without Python.

    Args:
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        texts: a text, or a list of texts to choose from, each a string or a pair of strings.
        tokenizer: of a model in memory.
        given: keywords as of `roles`: attention, block_entropy, device, direction, dtype, off, roles, rule, scale, tau,
            too_long. Of a text of more tokens than a window holds, its first window is shown.

    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> shown = sieve.show("bundled", "The old dog chased a cat.")
    >>> shown.heads = [(3, 7), (2, 5)]
    >>> shown
    Heads of bundled in 1 text; chosen: L3 H7, L2 H5
    """
    if unknown := sorted(set(given) - SHOWN):
        raise TypeError(f"show() got an unexpected keyword argument {unknown[0]!r}")
    try:
        from attention_sieve.dashboard.standalone.notebook import HeadsWidget
    except ModuleNotFoundError as error:
        if error.name != "anywidget":
            raise
        raise AnalysisError(
            "Heads are shown in notebooks by the package anywidget, which is not installed. Install it with: "
            "pip install anywidget"
        ) from None
    with _opened(model, tokenizer, given.get("device"), given.get("dtype")) as checkpoint:
        settings, of_pass = _settings("roles", given, checkpoint.files), _of_pass(checkpoint, given)
        BY_NAME["roles"].question(settings).check(of_pass.kind)
        read = _parsed(texts, given)
        prepared = prepared_texts(
            checkpoint, read, of_pass, _checked("too_long", given.get("too_long", "error"), TooLong)
        )
        work = (
            [(read[index], pass_text(checkpoint, read[index], tokens, of_pass, settings.scores))]
            for index, tokens in prepared.items()
        )
        passed = list(progress_bar(work, len(prepared), bar=_bar))
    return HeadsWidget(checkpoint.files, settings, of_pass.off, passed)


def _found(name: str, checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any]) -> Finding:
    analysis, settings = BY_NAME[name], _settings(name, given, checkpoint.files)
    of_pass = _of_pass(checkpoint, given)
    analysis.question(settings).check(of_pass.kind)
    inputs, settings = _inputs(name, checkpoint, texts, given, settings)
    if name == "gradients":
        from attention_sieve.core.surface.gradients import check_gradients

        check_gradients(checkpoint)
    too_long = _checked("too_long", "truncate" if name == "coreference" else given.get("too_long", "error"), TooLong)
    read = [analysis.text_of(each) for each in inputs]
    prepared = prepared_texts(checkpoint, read, of_pass, too_long)
    reading: Reading[Any] = Reading(checkpoint=checkpoint, of_pass=of_pass, inputs=inputs, prepared=prepared)
    if name == "scores":
        analysis = scores_of(reading)
    result = find_in(analysis, reading, settings, partial(progress_bar, bar=_bar))
    table = analysis.table(result)
    facts = finding_facts(analysis, reading, result, settings, facts_of_texts(read))
    table.attrs = dict(facts)
    return Finding(analysis=name, table=table, columns=analysis.columns, facts=facts, result=result)


def _of_pass(checkpoint: Checkpoint, given: Mapping[str, Any]) -> PassSettings:
    """Which attention is asked for, and which heads are off.

    Raises: AnalysisError if the checkpoint lacks them.
    """
    off = _checked("off", [np.asarray(head).tolist() for head in given.get("off", ())], tuple[tuple[int, int], ...])
    of_pass = PassSettings(given.get("attention") or checkpoint.files.kinds[0], tuple(sorted(set(off))))
    check_settings(checkpoint, of_pass)
    return of_pass


def save_page(
    path: str | PathLike[str],
    model: Any,
    texts: Any,
    *,
    compare: Any = None,
    drawn: Any = (),
    tokenizer: Any = None,
    **settings: Any,
) -> Path:
    """Save the heads of a model as one HTML file, which opens without a network; `attention-sieve check` checks it.

    Args:
        path: of the file to write.
        model: name or folder of a checkpoint, what `load` returns, or a model of transformers in memory.
        texts: over which roles are tested: a text, or a list of texts, each a string or a pair of strings.
        compare: another model of the same shape, which is compared with it.
        drawn: the text or texts whose attention is drawn; none for the first of `texts`.
        tokenizer: of models in memory.
        settings: those of `roles`.

    Returns: the file.
    Raises: AnalysisError, which says what was found and what to do.

    >>> import attention_sieve as sieve
    >>> sieve.save_page("heads.html", "bundled", ["The old dog chased a cat.", "She closed the shop."]).name
    'heads.html'
    """
    from attention_sieve.dashboard.saved_page.content import Request, compute
    from attention_sieve.dashboard.saved_page.data import page_data
    from attention_sieve.dashboard.saved_page.file import page_html

    usual = {*SHARED, *OF_ROLES, *dict(_kinds(ROLE_ANALYSIS.settings))}
    if unknown := sorted(set(settings) - usual):
        raise TypeError(f"save_page() got an unexpected keyword argument {unknown[0]!r}")
    output, given = Path(path), (model,) if compare is None else (model, compare)
    check_output(output, (".html",))
    with ExitStack() as opened:
        checkpoints = [
            opened.enter_context(
                _opened(
                    each,
                    None if isinstance(each, str | PathLike | Checkpoint) else tokenizer,
                    settings.get("device"),
                    settings.get("dtype"),
                )
            )
            for each in given
        ]
        request = Request(
            of_pass=_of_pass(checkpoints[0], settings),
            settings=_settings("roles", settings, checkpoints[0].files),
            texts=_parsed(texts, settings),
            drawn=_parsed(drawn, settings) if drawn else (),
            too_long=_checked("too_long", settings.get("too_long", "error"), TooLong),
        )
        html = page_html(page_data(compute(checkpoints, request)))
    write(output, partial(Path.write_text, data=html, encoding="utf-8", newline="\n"))
    return output


def _inputs(
    name: str, checkpoint: Checkpoint, texts: Any, given: Mapping[str, Any], settings: Any
) -> tuple[Sequence[Any], Any]:
    """What an analysis reads, and its settings, which say how many classes the labels have."""
    if name == "coreference":
        return windows(checkpoint, _mentions(texts), given.get("window", WINDOW)).texts, settings
    read = _parsed(texts, given)
    if BY_NAME[name] not in OF_METRIC:
        return read, settings
    from attention_sieve.core.passes.readout import check_metric

    metric, labels = settings.of_metric.metric, given.get("labels")
    check_metric(checkpoint, metric, given.get("attention") or checkpoint.files.kinds[0])
    if metric != "labels" and labels is not None:
        raise AnalysisError(f'The metric {metric} uses no labels. Choose metric="labels", or leave out labels.')
    if metric != "labels":
        return tuple(map(LabelledText, read)), settings
    if labels is None or len(labels) != len(read):
        n_labels = "none" if labels is None else f"{len(labels):,}"
        raise AnalysisError(
            f"The metric labels needs a label for each of {len(read):,} texts, and there are {n_labels}."
        )
    known = _labelled(checkpoint, read, labels)
    labelled = tuple(LabelledText(text, value) for text, value in zip(read, known.values.tolist(), strict=True))
    return labelled, replace(settings, of_metric=replace(settings.of_metric, n_classes=known.n_classes))


def _labelled(checkpoint: Checkpoint, texts: Sequence[Text], labels: Sequence[Any]) -> Labels:
    """Texts with labels as a table has them: names or numbers of the checkpoint's classes, or values."""
    columns, file = ("first", "second")[: len(texts[0].segments)], io.StringIO()
    writer = csv.writer(file)
    writer.writerows(
        [(*columns, "label"), *((*text.segments, label) for text, label in zip(texts, labels, strict=True))]
    )
    return read_labels(checkpoint, "texts.csv", file.getvalue().encode(), columns, "label")


def _bar(**options: Any) -> Any:
    """A bar for work that takes more than a second, which goes when it is done; in a notebook tqdm's own for these."""
    if "ipykernel" not in sys.modules:
        return ProgressBar(**options, leave=False, delay=1)
    from tqdm.auto import tqdm

    return tqdm(**options, leave=False, delay=1)


def _settings(name: str, given: Mapping[str, Any], files: CheckpointFiles) -> Any:
    """The settings of the keywords, made as the command makes them of its options.

    Raises: AnalysisError for a value of another kind, or out of its range.
    """
    call, usual = CALLS[name], BY_NAME[name].settings
    kinds = dict(_kinds(usual))
    options: dict[str, Any] = dict.fromkeys(kinds) | dict(call.further)
    options |= {
        setting: _checked(setting, given[setting], kinds.get(setting)) for setting in options if setting in given
    }
    if options.get("roles") is not None:
        options["roles"] = known_roles([options["roles"]] if isinstance(options["roles"], str) else options["roles"])
    if options.get("role") is not None:
        given_files = [options["role"]] if isinstance(options["role"], str | PurePath) else options["role"]
        options["role"] = list(map(written_in, given_files))
    return (call.settings or (lambda of_options: settings_of(of_options, usual)))(Namespace(**options, files=files))


def _kinds(settings: Any) -> Iterator[tuple[str, Any]]:
    for name, (kind, _) in options_of(settings).items():
        yield name, kind
    for part in parts_of(settings).values():
        yield from _kinds(part)


def _checked(name: str, value: Any, kind: Any) -> Any:
    """A value of a setting, as its kind has it."""
    if kind == tuple[str, ...] and isinstance(value, str):
        value = tuple(value)  # characters, which the option takes written together
    try:
        return value if kind is None else TypeAdapter(kind).validate_python(value)
    except ValidationError as error:
        raise AnalysisError(f"{name} is {shortened(repr(value))}. {error.errors()[0]['msg']}.") from None


def _parsed(texts: Any, given: Mapping[str, Any]) -> tuple[Text, ...]:
    """Texts, to be parsed by the parser that the keywords name.

    Raises: TextError; AnalysisError for a parser that is not installed.
    """
    parser = given.get("parser")
    return parsed_by(_texts(texts), NO_PARSER if parser is False else parser)


def _texts(texts: Any) -> tuple[Text, ...]:
    """Texts of strings, pairs of strings, objects as files of JSON have them, and what the readers of files return.

    Raises: TextError.
    """
    given = [texts] if isinstance(texts, str | dict | Text) or not isinstance(texts, Iterable) else list(texts)
    if not given:
        raise TextError("There is no text. Give a string, or a list of strings.")
    return tuple(_text(each, f"Text {position:,}") for position, each in enumerate(given, start=1))


def _text(given: Any, where: str) -> Text:
    if isinstance(given, Text):
        return given
    if isinstance(given, dict):
        try:
            item = parsed_json(json.dumps(given), first_line=1)
        except (TypeError, ValueError, RecursionError):
            raise TextError(f"{where} is no object of JSON. Write strings, numbers, lists and objects alone.") from None
        return text_as_written(from_object(item, where))
    segments = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, list | tuple) else ()
    if len(segments) not in (1, 2) or not all(isinstance(segment, str) for segment in segments):
        raise TextError(f"{where} is {shortened(repr(given))}. Give a string, or a pair of strings for two segments.")
    return text_of(segments, where)


def _mentions(texts: Any) -> tuple[MentionText, ...]:
    """Texts with mentions, from objects as files have them, or as the readers of files return them.

    Raises: TextError.
    """
    given = [texts] if isinstance(texts, dict | MentionText) else list(texts)
    if (read := tuple(each for each in given if isinstance(each, MentionText))) and len(read) == len(given):
        return read
    try:
        return read_mentions(json.dumps(given).encode())
    except TypeError:
        raise TextError(
            'The texts are no objects with clusters. Write them as {"text": ..., "clusters": ...}.'
        ) from None
