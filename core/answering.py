"""A question of forward passes, answered item by item, and an analysis, from the reader's texts to a table, as values.

    texts -> items -> (pass with observers) -> answers || judged -> finding -> table

Left of the bar stands a question: it costs a forward pass and is kept by the cache, as named arrays, into which strings
are packed, too. Right of it is instant. Pages, commands and programs differ in where they get texts and settings, and
in what they do with a finding. An item is a text, possibly with additions such as its words or mentions.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, Final, Generic, Protocol, TypeVar, runtime_checkable

import numpy as np
from jaxtyping import UInt8

from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS, Kind, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText, prepare_all, queries_text
from attention_sieve.core.statistics.series import Series, Values
from attention_sieve.core.texts.relations import Dependencies, dependencies, pairs_as_tree
from attention_sieve.core.texts.text import Text, text_fields
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.core.usage import Usage

if TYPE_CHECKING:
    import pandas as pd

Item = TypeVar("Item")
Result = TypeVar("Result")
REMOVED: Final = -2
"""In place of an index, for a head that was removed from its checkpoint: it attends to nothing."""
SIDES: Final = ("a", "b")
"""Parts of an answer about two checkpoints: what is found under the reference, and under the compared one."""
Arrays = Mapping[str, np.ndarray]
"""A result as named arrays, the form in which it is stored."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(Generic[Item, Result]):
    """What a pass computes for each of many items. Items are hashable; equal ones have equal answers."""

    name: str
    """Part of the key under which answers are stored. Questions of one name differ in what an answer depends on."""
    text_of: Callable[[Item], Text]
    """The text of an item that the checkpoint reads."""
    depends_on: Callable[[Item], Mapping[str, object]]
    """Everything in an item that its answer depends on, as JSON values; also part of the key."""
    compute: Callable[[Any, Sequence[Item], Sequence[Any], Any], Iterable[Sequence[tuple[int, Result]]]]
    """Index and result of each item, batch by batch in any order: from the checkpoint, items, their texts as prepared
    for the pass (PassText), and PassSettings. A question about two checkpoints takes pairs of these."""
    pack: Callable[[Result], Arrays]
    """A result as arrays to store; none is named n_tokens or n_cut."""
    unpack: Callable[[Arrays], Result]
    """The inverse of `pack`, up to rounding to single precision."""
    kinds: tuple[Kind, ...] = (*ONE_STACK, *TWO_STACKS)
    """The kinds of attention that the question supports."""
    why_not: str = ""
    """Why it does not support the others, and what to choose, in sentences."""
    version: int = 5
    """Version of the answers, part of the key; increase it when answers to this question change."""
    parts: "tuple[Question[Item, Any], ...]" = ()
    """Questions whose answers are kept in place of those to this one, and computed one question after the other."""
    join: Callable[[Sequence[Any]], Result] | None = None
    """Makes an answer of those to the parts, if there are any."""

    def check(self, kind: Kind) -> None:
        """Raise AnalysisError for a kind of attention that the question does not support."""
        if kind not in self.kinds:
            raise AnalysisError(self.why_not)


@runtime_checkable
class AnswerQuestion(Protocol):
    """`answer`, or the same with what the cache keeps."""

    def __call__(
        self,
        checkpoint: Checkpoint,
        question: Question[Item, Result],
        items: Sequence[Item],
        prepared: Mapping[int, PassText],
        settings: PassSettings,
    ) -> Iterator[list[tuple[int, Result]]]:
        """As `answer`."""


def answer(
    checkpoint: Checkpoint,
    question: Question[Item, Result],
    items: Sequence[Item],
    prepared: Mapping[int, PassText],
    settings: PassSettings,
) -> Iterator[list[tuple[int, Result]]]:
    """Answer a question without a cache.

    Args:
        prepared: text of each item that is not left out, by the item's index; from
            `attention_sieve.core.passes.texts.prepare_all`.

    Yields: index among the items and result, batch by batch, in any order.
    Raises: AnalysisError for a kind of attention that the question does not support, and whatever `compute` raises.
    """
    question.check(settings.kind)
    indices = list(prepared)
    for batch in question.compute(checkpoint, [items[index] for index in indices], list(prepared.values()), settings):
        yield [(indices[row], result) for row, result in batch]


def text_itself(text: Text) -> Text:
    """The text of an item that is itself a text."""
    return text


def text_alone(text: Text) -> dict[str, object]:
    """The dependencies of an answer that depends on the text only."""
    return {"text": text_fields(text)}


def in_single_precision(result: Any) -> dict[str, np.ndarray]:
    """The fields of a result, which are arrays and numbers, as arrays to store."""
    arrays = {field.name: np.asarray(getattr(result, field.name)) for field in fields(result)}
    return {name: array.astype(np.float32) if array.dtype.kind == "f" else array for name, array in arrays.items()}


def as_fields(arrays: Arrays) -> dict[str, Any]:
    """The inverse of `in_single_precision`: fields by name, whose numbers are numbers again."""
    return {name: array if array.ndim else array.item() for name, array in arrays.items()}


def text_to_array(value: str) -> UInt8[np.ndarray, " byte"]:
    """Encode any Python string, lone surrogates included, as an array."""
    return np.frombuffer(value.encode("utf-8", "surrogatepass"), np.uint8)


def array_to_text(array: UInt8[np.ndarray, " byte"]) -> str:
    """The inverse of `text_to_array`."""
    return array.tobytes().decode("utf-8", "surrogatepass")


def part(name: str, arrays: Arrays) -> dict[str, np.ndarray]:
    """Arrays as a part of a result, whose names begin with the name of the part."""
    return {f"{name} {array_name}": array for array_name, array in arrays.items()}


def part_of(arrays: Arrays, name: str) -> dict[str, np.ndarray]:
    """The arrays of one part of a result: the inverse of `part`."""
    start = f"{name} "
    return {other.removeprefix(start): array for other, array in arrays.items() if other.startswith(start)}


Input = TypeVar("Input")
"""A text, or a text with additions that the reader brings, such as mentions."""
Settings = TypeVar("Settings")
Finding = TypeVar("Finding")
Done = TypeVar("Done")
Ask = Callable[..., tuple[Any, ...]]
"""ask(question, items, doing=None) -> the answer about each item whose text is read, in order. Items have texts of the
analysis; `doing` is as for `Watch`. Raises AnalysisError for a question that the checkpoint does not allow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Reduction(Generic[Item, Result, Settings]):
    """How answers become series of numbers, of which a corpus of any size keeps sums, for an analysis that has an item
    of every text.

    The first word of the name of a series is that of the analysis.
    """

    values: Callable[[Sequence[Item], Sequence[Result], Settings], Values]
    """The numbers of some texts, from their items and answers."""
    series: Callable[[Values, Settings], Mapping[str, Series]]
    """The series of the numbers of all texts, which say what is kept of them."""
    cells: Callable[[Settings, int, int], Mapping[str, tuple[int, ...]]]
    """Axes of the numbers of one text by name of the series, for numbers of layers and of heads."""
    columns: Callable[[Settings], Mapping[str, tuple[str, ...]]]
    """Series that are also written text by text -> names along the second axis; layers and heads follow."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysis(Generic[Input, Item, Result, Settings, Finding]):
    """What is asked of which texts, how the answers are judged, and as what table they are written."""

    name: str
    """The one word for it."""
    sentence: str
    """What it does, and after a semicolon what a row of its table is."""
    settings: Settings
    """The usual ones: a frozen dataclass, whose fields are annotated with the sentences of their options; a field
    without a sentence is no option."""
    text_of: Callable[[Input], Text]
    """The text of an input that the checkpoint reads."""
    items: Callable[[Sequence[Input], Iterable[tuple[Text, Dependencies]], Settings], Sequence[Item | None]] = (
        lambda inputs, *_: inputs
    )
    """The item of each input, or None for an input that has none; from the inputs, and the text of the queries of each
    with its tree, which is parsed as it is read. By default the inputs themselves."""
    question: Callable[[Settings], Question[Any, Result]]
    """Asked about each item; of several questions, the one that all kinds of attention have to support."""
    judge: Callable[[tuple[Item, ...], tuple[Result, ...], Settings], Finding]
    """The finding, from items and their answers."""
    table: "Callable[[Finding], pd.DataFrame]"
    """Raises AnalysisError where there is nothing to write."""
    columns: Mapping[str, str]
    """What each column of the table holds."""
    facts: Callable[[Finding, Settings], Mapping[str, str]]
    """Metadata of files: the settings, and what is known of the texts."""
    collect: Callable[[Ask, tuple[Item, ...], Settings], tuple[Result, ...]] | None = None
    """Asks several questions, such as one that depends on the answers to another; the first is about all items. None
    asks `question` alone."""
    reads_pairs: bool = False
    """Whether the pairs that a file marks in a text take the place of its tree."""
    reduction: Reduction[Item, Result, Settings] | None = None
    """For corpora of any size; None where they do not run it."""
    check: Callable[[Checkpoint], None] = lambda _: None
    """Raises AnalysisError for a checkpoint that cannot be asked, before anything is read."""
    too_long: TooLong | None = None
    """What becomes of texts that a checkpoint cannot read whole; None where the reader decides."""
    usage: Usage = field(default_factory=Usage)
    """How its command and its call ask for it, beside the settings."""

    @property
    def command(self) -> str:
        """Name of its command, where it has one."""
        return self.usage.command or self.name.replace("_", "-")

    def answers(self, ask: Ask, items: tuple[Item, ...], settings: Settings) -> tuple[Result, ...]:
        """What the finding is judged by, in the order of the items."""
        return ask(self.question(settings), items) if self.collect is None else self.collect(ask, items, settings)

    def items_of(
        self,
        inputs: Sequence[Input],
        kind: Kind,
        settings: Settings,
        parse: Callable[[Sequence[Text]], Iterable[Dependencies]],
    ) -> dict[int, Item]:
        """The item of each input that has one, by the index of the input. `parse` returns the trees of some texts,
        parsed or looked up as they are read.

        Raises: AnalysisError for a kind of attention that the analysis does not support, or that reads one segment of
            texts whose pairs join two; whatever `parse` raises.
        """
        self.question(settings).check(kind)
        texts = [self.text_of(given) for given in inputs]
        queries = [queries_text(text, kind) for text in texts]
        if self.reads_pairs:
            _check_segments(texts, kind)
        trees = _with_pairs(queries, parse) if self.reads_pairs else parse(queries)
        items = self.items(inputs, zip(queries, trees, strict=True), settings)
        return {index: item for index, item in enumerate(items) if item is not None}


def _check_segments(texts: Sequence[Text], kind: Kind) -> None:
    across = [place for place, text in enumerate(texts, start=1) if text.pairs is not None and text.pairs.is_across]
    if kind != "self" and across:
        raise AnalysisError(
            f"A pair of text {across[0]:,} joins its two segments, and {kind} attention reads one of them. Choose a "
            "model that reads both together, or pairs within a segment."
        )


def _with_pairs(
    texts: Sequence[Text], parse: Callable[[Sequence[Text]], Iterable[Dependencies]]
) -> Iterator[Dependencies]:
    """The tree of each text, or its pairs if its file marks them, so that it is not parsed."""
    unmarked = [text for text in texts if text.pairs is None]
    parsed = iter(parse(unmarked) if unmarked else ())
    for text in texts:
        yield next(parsed) if text.pairs is None else pairs_as_tree(text.pairs)
    next(parsed, None)  # so that a bar of progress comes to its end


@dataclass(frozen=True, eq=False, kw_only=True)
class Reading(Generic[Input]):
    """Inputs of an analysis as a checkpoint reads them."""

    checkpoint: Checkpoint
    pass_settings: PassSettings
    """Which attention, and which heads are off."""
    inputs: Sequence[Input]
    prepared: Mapping[int, PassText]
    """Tokens of each input that is not left out, by its index."""
    answer: AnswerQuestion = answer


def on_common_inputs(readings: Sequence[Reading[Input]]) -> list[Reading[Input]]:
    """Readings of the same inputs by one or more checkpoints, of those inputs that none of them leaves out.

    Raises: AnalysisError if none remains.
    """
    first, *others = readings
    common = [index for index in first.prepared if all(index in other.prepared for other in others)]
    if not common:
        raise AnalysisError("No text is short enough for both checkpoints. Add shorter texts.")
    inputs = tuple(first.inputs[index] for index in common)
    return [
        replace(reading, inputs=inputs, prepared={row: reading.prepared[index] for row, index in enumerate(common)})
        for reading in readings
    ]


@runtime_checkable
class Watch(Protocol):
    """Passes on the results of all batches one by one, and may show how many there are."""

    def __call__(self, work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None) -> Iterable[Done]:
        """The results; `doing` says what is done, or is None for a pass."""


def _unwatched(work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None) -> Iterable[Done]:
    return chain.from_iterable(work)


def find(
    analysis: Analysis[Input, Any, Any, Settings, Finding],
    checkpoint: Checkpoint,
    inputs: Sequence[Input],
    settings: Settings | None = None,
    pass_settings: PassSettings | None = None,
) -> Finding:
    """What an analysis finds about the heads of a checkpoint, without a cache.

    Args:
        analysis: one of attention_sieve.core.analysis.ANALYSES.
        inputs: one or more texts, or what else the analysis takes.
        pass_settings: which attention, and which heads are off; None for the checkpoint's first attention, all on.

    Raises: AnalysisError for a kind of attention that the analysis does not support, and of any stage; TextTooLong,
        NoTokens or PairNeeded for the first such text.
    """
    settings, pass_settings = settings or analysis.settings, pass_settings or PassSettings(checkpoint.files.kinds[0])
    analysis.question(settings).check(pass_settings.kind)
    prepared, _ = prepare_all(checkpoint, [analysis.text_of(given) for given in inputs], pass_settings, "error")
    reading = Reading(checkpoint=checkpoint, pass_settings=pass_settings, inputs=inputs, prepared=prepared)
    return find_in(analysis, reading, settings)


def find_in(
    analysis: Analysis[Input, Item, Result, Settings, Finding],
    reading: Reading[Input],
    settings: Settings,
    watch: Watch = _unwatched,
) -> Finding:
    """What an analysis finds in texts that are prepared; `watch` is for bars of progress.

    Raises: AnalysisError for a kind of attention that the analysis does not support, and of any stage.
    """

    def parse(queries: Sequence[Text]) -> Iterable[Dependencies]:
        return watch(([tree] for tree in dependencies(queries)), len(queries), "parsing")

    read = [reading.inputs[index] for index in reading.prepared]
    by_place = analysis.items_of(read, reading.pass_settings.kind, settings, parse)
    items, tokens = tuple(by_place.values()), list(reading.prepared.values())
    by_text = {analysis.text_of(read[place]): tokens[place] for place in by_place}

    def ask(question: Question[Any, Result], about: Sequence[Any], doing: str | None = None) -> tuple[Result, ...]:
        prepared = {row: by_text[question.text_of(item)] for row, item in enumerate(about)}
        work = reading.answer(reading.checkpoint, question, about, prepared, reading.pass_settings)
        results = dict(watch(work, len(about), doing))
        return tuple(results[row] for row in range(len(about)))

    return analysis.judge(items, analysis.answers(ask, items, settings), settings)
