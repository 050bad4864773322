"""Answers to questions: of one item as it is asked for and stored, of many items, and findings of analyses.

The answers of pages are computed by workers; `KeepingAnswers` keeps those of commands in the same store.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Final, Generic

import numpy as np

from attention_sieve.cache.memory import new_number
from attention_sieve.cache.store.store import Store, answer_key, divergence_key
from attention_sieve.core.answering import (
    SIDES,
    Analysis,
    AnswerQuestion,
    Arrays,
    Finding,
    Input,
    Item,
    Question,
    Result,
    Settings,
    answer,
    part,
    part_of,
)
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint, CheckpointFiles
from attention_sieve.core.errors import EveryTextTooLong
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong

LENGTHS: Final = ("n_tokens", "n_cut")


@dataclass(frozen=True)
class Engine:
    """A checkpoint on a device, in a number format."""

    files: CheckpointFiles
    device: str = "auto"
    dtype: str = "float32"

    def settings(self, settings: PassSettings | None) -> PassSettings:
        """The given settings, or by default the checkpoint's first kind of attention with all heads on."""
        return settings or PassSettings(self.files.kinds[0])


@dataclass(frozen=True, eq=False, kw_only=True)
class Record:
    """The result for one item, or the fact that its text was too long."""

    arrays: Arrays | None
    """From the question's `pack`; None for a text that was left out because it is too long."""
    attention: Arrays | None = None
    """From packed_attention, for a text on screen: rounded as in the store."""
    n_tokens: int
    """Number of tokens of the whole text; for separately encoded segments, or two checkpoints, of the longer one."""
    n_cut: int
    """Number of tokens that were cut off."""

    @classmethod
    def of(cls, arrays: Arrays, texts: Sequence[PassText], attention: Arrays | None = None) -> "Record":
        """The record of a text that was passed, as each checkpoint has read it."""
        n_tokens, n_cut = (max(text.lengths[name] for text in texts) for name in LENGTHS)
        return cls(arrays=arrays, attention=attention, n_tokens=n_tokens, n_cut=n_cut)

    @classmethod
    def left_out(cls, n_tokens: int) -> "Record":
        """The record of a text that is too long."""
        return cls(arrays=None, n_tokens=n_tokens, n_cut=0)

    @property
    def is_too_long(self) -> bool:
        """Whether the text was left out or cut."""
        return self.arrays is None or self.n_cut > 0

    def serves(self, too_long: TooLong) -> bool:
        """Whether it is valid for this treatment of long texts; a skipped text can still be truncated."""
        if too_long == "error":
            return not self.is_too_long
        return too_long == "skip" or self.arrays is not None

    @property
    def n_bytes(self) -> int:
        """Total size of the arrays."""
        return sum(array.nbytes for arrays in (self.arrays, self.attention) for array in (arrays or {}).values())


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers(Generic[Result]):
    """A question's results for many items."""

    results: tuple[Result, ...]
    """In input order; equal items share one object. Read-only."""
    positions: tuple[int, ...]
    """Index of each result's item in the input."""
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out or cut."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each result's text, as far as it was read."""
    number: int = field(default_factory=new_number, init=False)
    """Identifies these answers in the cache keys of results derived from them, which may outlive them in memory."""


@dataclass(frozen=True)
class FindingRequest(Generic[Input, Item, Result, Settings, Finding]):
    """An analysis of some texts under a checkpoint: all that the finding depends on."""

    engine: Engine
    analysis: Analysis[Input, Item, Result, Settings, Finding]
    inputs: tuple[Input, ...]
    """One or more texts, or what else the analysis takes."""
    settings: Settings
    pass_settings: PassSettings
    """Which attention, and which heads are off."""
    too_long: TooLong = "skip"

    def items(self, parse: Callable[[Sequence[Text]], Iterable[Dependencies]]) -> dict[int, Item]:
        """The items of the inputs; as `Analysis.items_of`."""
        return self.analysis.items_of(self.inputs, self.pass_settings.kind, self.settings, parse)


@dataclass(frozen=True, eq=False)
class CorpusFinding(Generic[Finding]):
    """What an analysis finds in a corpus, and in which of its texts."""

    finding: Finding
    positions: tuple[int, ...]
    """Index in the corpus of each text that the finding is of."""
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out or cut."""
    n_tokens: tuple[int, ...]
    """Number of tokens of each text that the finding is of, as far as it was read."""
    number: int = field(default_factory=new_number, init=False)
    """As `Answers.number`."""


def collected(question: Question[Any, Result], records: Sequence[Record], too_long: TooLong) -> Answers[Result]:
    """Unpack many records into the results of a question; equal items share one.

    Raises: EveryTextTooLong if there are texts and none remains.
    """
    positions = tuple(i for i, record in enumerate(records) if too_long != "skip" or not record.is_too_long)
    too_long_texts = tuple((i, record.n_tokens) for i, record in enumerate(records) if record.is_too_long)
    if too_long_texts and not positions:
        raise EveryTextTooLong(too_long_texts)
    arrays = {id(records[i]): _arrays(records[i]) for i in positions}
    results = {record: question.unpack(packed) for record, packed in arrays.items()}
    return Answers(
        results=tuple(results[id(records[i])] for i in positions),
        positions=positions,
        too_long=too_long_texts,
        n_tokens=tuple(records[i].n_tokens - records[i].n_cut for i in positions),
    )


def joined(question: Question[Any, Result], parts: Sequence[Answers[Any]]) -> Answers[Result]:
    """The answers to a question from those to each of its parts about the same items.

    Raises: RuntimeError for a question without parts.
    """
    if question.join is None:
        raise RuntimeError(f"The question {question.name!r} has no parts to be joined.")
    return replace(parts[0], results=tuple(map(question.join, zip(*(part.results for part in parts), strict=True))))


def _arrays(record: Record) -> Arrays:
    if record.arrays is None:
        raise RuntimeError("A text that was left out is asked for its answer.")
    return record.arrays


@dataclass(frozen=True)
class ItemRequest:
    """One item that a session requests; equal to another if the keys of the results are equal."""

    question: Question[Any, Any] = field(compare=False)
    item: Hashable = field(compare=False)
    """Items of equal requests may differ in what the result does not depend on, such as the name of the text."""
    key: str
    """Key of the result, or of what no other request stores: in a comparison of two checkpoints, the divergence."""
    truncate: bool = False
    """Cut the text where it is too long."""
    start: tuple[int, int] | None = None
    """First query and key of the attention window to keep for the screen; None keeps none."""
    attention_key: str | None = None
    parts: tuple[tuple[str, str], ...] = ()
    """Name and key of each part of the result that has a key of its own: the scores under each of two checkpoints."""

    @property
    def text(self) -> Text:
        """The text that the checkpoint reads."""
        return self.question.text_of(self.item)

    @property
    def keys(self) -> list[str]:
        """Keys of all requested results."""
        attention = [] if self.attention_key is None else [self.attention_key]
        return [self.key, *attention, *(key for _, key in self.parts)]


def item_requests(
    engines: tuple[Engine, ...],
    question: Question[Item, Any],
    items: Iterable[Item],
    settings: tuple[PassSettings, ...],
    truncate: bool,
) -> list[ItemRequest]:
    """Requests for the results of a question for items: about one checkpoint, or COMPARISON about two."""
    if len(engines) == 1:
        return [ItemRequest(question, item, _key(engines[0], question, item, settings[0]), truncate) for item in items]
    pairs = list(zip(SIDES, engines, settings, strict=True))
    return [
        ItemRequest(
            question,
            item,
            divergence_key([engine.files.fingerprint for engine in engines], engines[0].dtype, settings, text),
            truncate,
            parts=tuple((name, _key(engine, SCORES, text, own_settings)) for name, engine, own_settings in pairs),
        )
        for item in items
        for text in [question.text_of(item)]
    ]


def _key(engine: Engine, question: Question[Item, Any], item: Item, settings: PassSettings) -> str:
    versioned, fingerprint = (question.name, question.version), engine.files.fingerprint
    return answer_key(versioned, fingerprint, engine.dtype, settings, **question.depends_on(item))


def read(store: Store, requests: Sequence[ItemRequest]) -> dict[ItemRequest, Record]:
    """Stored results by request; requests that are not or only partly stored are absent."""
    keys = [key for request in requests for key in request.keys]
    stored = store.get_many(list(dict.fromkeys(keys)))
    records = {request: _stored_record(request, stored) for request in requests}
    return {request: record for request, record in records.items() if record is not None}


def _stored_record(request: ItemRequest, stored: Mapping[str, Arrays]) -> Record | None:
    own = stored.get(request.key)
    if own is None:
        return None
    arrays = {name: array for name, array in own.items() if name not in LENGTHS}
    # A text that is too long for one of two checkpoints has no scores under this key.
    if not arrays and request.parts:
        return Record.left_out(int(own["n_tokens"]))
    if any(key not in stored for key in request.keys):
        return None
    entries = [stored[key] for _, key in request.parts]
    for (name, _), entry in zip(request.parts, entries, strict=True):
        arrays |= part(name, entry)
    n_tokens, n_cut = (max(int(entry[name]) for entry in (own, *entries) if name in entry) for name in LENGTHS)
    attention = None if request.attention_key is None else stored[request.attention_key]
    return Record(arrays=arrays or None, attention=attention, n_tokens=n_tokens, n_cut=n_cut)


def write(store: Store, records: Mapping[ItemRequest, Record]) -> None:
    """Store the results of passes in one transaction."""
    results: dict[str, Arrays] = {}
    for request, record in records.items():
        results |= _packed(request, record)
    if results:
        store.put_many(results)


def _packed(request: ItemRequest, record: Record) -> dict[str, Arrays]:
    """Arrays by key. A text that is too long for one of two checkpoints may not be for the other."""
    arrays = dict(record.arrays or {})
    results: dict[str, Arrays] = {}
    if request.attention_key is not None and record.attention is not None:
        results[request.attention_key] = record.attention
    for name, key in request.parts if record.arrays else ():
        results[key] = part_of(arrays, name)
        arrays = {other: array for other, array in arrays.items() if not other.startswith(f"{name} ")}
    return {**results, request.key: {**arrays, **{name: np.array(getattr(record, name)) for name in LENGTHS}}}


@dataclass(frozen=True, eq=False)
class KeepingAnswers:
    """`attention_sieve.core.answering.answer`, with each batch kept in a store as soon as it is there.

    Answers to a question with parts are kept only where it resumes, as the parts then take a pass each; those that
    other processes compute are not kept.
    """

    store: Store
    """The results of the dashboard."""
    resumes: bool
    """Whether answers are taken from the store where it has them."""

    def __reduce__(self) -> tuple[Callable[[], AnswerQuestion], tuple[()]]:
        """For another process, where there is no store: `answer` itself."""
        return _answer, ()

    def __call__(
        self,
        checkpoint: Checkpoint,
        question: Question[Item, Result],
        items: Sequence[Item],
        prepared: Mapping[int, PassText],
        settings: PassSettings,
    ) -> Iterator[list[tuple[int, Result]]]:
        """As `answer`."""
        if question.parts and not self.resumes:  # a pass finds all parts together, and they are kept one by one
            yield from answer(checkpoint, question, items, prepared, settings)
            return
        if question.join is not None and question.parts:
            parts = [
                dict(chain.from_iterable(self(checkpoint, part, items, prepared, settings))) for part in question.parts
            ]
            yield [(index, question.join([part[index] for part in parts])) for index in prepared]
            return
        question.check(settings.kind)
        engine = Engine(checkpoint.files, checkpoint.device, checkpoint.dtype)
        asked = item_requests((engine,), question, [items[index] for index in prepared], (settings,), truncate=False)
        requests = dict(zip(prepared, asked, strict=True))
        stored = read(self.store, asked) if self.resumes else {}
        results = {
            index: question.unpack(record.arrays)
            for index, request in requests.items()
            if (record := stored.get(request)) is not None
            and record.arrays is not None
            and record.n_cut == prepared[index].lengths["n_cut"]
        }
        yield list(results.items())
        missing = {index: text for index, text in prepared.items() if index not in results}
        for batch in answer(checkpoint, question, items, missing, settings) if missing else ():
            packed = {index: Record.of(question.pack(result), [prepared[index]]) for index, result in batch}
            write(self.store, {requests[index]: record for index, record in packed.items()})
            yield batch


def _answer() -> AnswerQuestion:
    return answer
