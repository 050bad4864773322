"""Requested results of one item, and reading and writing them in the store."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from attention_sieve.cache.answers import LENGTHS, Record
from attention_sieve.cache.engine import Engine
from attention_sieve.cache.store.keys import answer_key, attention_key, divergence_key
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.comparison.question import SIDES
from attention_sieve.core.passes.arrays import Arrays, part, part_of
from attention_sieve.core.passes.question import Item, Question
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text


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


def look_request(
    engine: Engine, settings: PassSettings, text: Text, truncate: bool, start: tuple[int, int]
) -> ItemRequest:
    """Request for the scores and attention of one text."""
    (request,) = item_requests((engine,), SCORES, [text], (settings,), truncate)
    key = attention_key(engine.files.fingerprint, engine.dtype, settings, start, **SCORES.depends_on(text))
    return replace(request, start=start, attention_key=key)


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
    return {**results, request.key: {**arrays, **record.lengths}}
