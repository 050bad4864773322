"""Requested results of one item, computed results, and reading and writing them in the store."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from cache.engine import Engine
from cache.store.keys import answer_key, attention_key, divergence_key
from cache.store.record import Record, pack_record, unpack_record
from cache.store.store import Store
from core.attention.settings import PassSettings
from core.passes.arrays import Arrays
from core.passes.question import Item, Question
from core.roles.question import SCORES
from core.texts.text import Text


@dataclass(frozen=True)
class ComparisonKeys:
    """Keys of the other results of a text for a comparison of two checkpoints."""

    scores_key: str
    """Of its scores under the compared checkpoint."""
    divergence_key: str


@dataclass(frozen=True)
class ItemRequest:
    """One item that a session requests; equal to another if the keys of the results are equal."""

    question: Question[Any, Any] = field(compare=False)
    item: Hashable = field(compare=False)
    """It may differ from an equal one in what its answer does not depend on, such as the name of its text."""
    key: str
    """Of the answer."""
    truncate: bool = False
    """Cut the text where it is too long."""
    start: tuple[int, int] | None = None
    """First query and key of the part of its attention to keep for the screen; None keeps none."""
    attention_key: str | None = None
    against: ComparisonKeys | None = None

    @property
    def text(self) -> Text:
        """What the checkpoint reads."""
        return self.question.text_of(self.item)

    @property
    def keys(self) -> list[str]:
        """Keys of everything that is wanted."""
        against = (None, None) if self.against is None else (self.against.scores_key, self.against.divergence_key)
        return [key for key in (self.key, self.attention_key, *against) if key is not None]


@dataclass(frozen=True, eq=False, kw_only=True)
class PassResult:
    """Result of a pass for one item, or of two passes in step."""

    record: Record
    attention: Arrays | None = None
    """From packed_attention, where it was wanted: rounded as the store rounds it."""
    against: Record | None = None
    """Under the compared checkpoint."""
    divergence: Float[np.ndarray, "layer head"] | None = None
    """Between the two, as core.comparison.in_step gives it; empty where the checkpoints have not the same heads."""

    @property
    def sides(self) -> tuple[Record, ...]:
        """The record under each checkpoint."""
        return (self.record,) if self.against is None else (self.record, self.against)

    @property
    def n_bytes(self) -> int:
        """Size of all its arrays."""
        named = [self.attention or {}, *(side.arrays or {} for side in self.sides)]
        arrays = [array for of_one in named for array in of_one.values()]
        return sum(array.nbytes for array in arrays) + (0 if self.divergence is None else self.divergence.nbytes)


def item_requests(
    engine: Engine, question: Question[Item, Any], items: Iterable[Item], settings: PassSettings, truncate: bool
) -> list[ItemRequest]:
    """The answers to a question for items."""
    return [ItemRequest(question, item, _key(engine, question, item, settings), truncate) for item in items]


def _key(engine: Engine, question: Question[Item, Any], item: Item, settings: PassSettings) -> str:
    return answer_key(question.name, engine.files.fingerprint, engine.dtype, settings, **question.depends_on(item))


def look_request(
    engine: Engine, settings: PassSettings, text: Text, truncate: bool, start: tuple[int, int]
) -> ItemRequest:
    """Scores and attention of one text."""
    (wanted,) = item_requests(engine, SCORES, [text], settings, truncate)
    key = attention_key(engine.files.fingerprint, engine.dtype, settings, start, **SCORES.depends_on(text))
    return replace(wanted, start=start, attention_key=key)


def comparison_requests(
    engines: tuple[Engine, Engine], settings: tuple[PassSettings, PassSettings], texts: Sequence[Text], truncate: bool
) -> list[ItemRequest]:
    """Scores of texts under two checkpoints, and the divergence of their attention."""
    a, b = (item_requests(engine, SCORES, texts, own, truncate) for engine, own in zip(engines, settings))
    fingerprints, dtype = (engines[0].files.fingerprint, engines[1].files.fingerprint), engines[0].dtype
    return [
        replace(of_a, against=ComparisonKeys(of_b.key, divergence_key(fingerprints, dtype, settings, text)))
        for of_a, of_b, text in zip(a, b, texts)
    ]


def read(store: Store, wanted: Sequence[ItemRequest]) -> dict[ItemRequest, PassResult]:
    """What the store has of everything that is wanted of an item; items of which it has less are absent."""
    keys = [key for one in wanted for key in one.keys]
    stored = store.get_many(list(dict.fromkeys(keys)))
    seen = {one: _seen(one, stored) for one in wanted}
    return {one: of_one for one, of_one in seen.items() if of_one is not None}


def _seen(wanted: ItemRequest, stored: Mapping[str, Arrays]) -> PassResult | None:
    against = wanted.against
    compared = {} if against is None else stored.get(against.divergence_key, {})
    if compared and "divergence" not in compared:
        return PassResult(record=unpack_record(compared))
    if any(key not in stored for key in wanted.keys):
        return None
    return PassResult(
        record=unpack_record(stored[wanted.key]),
        attention=None if wanted.attention_key is None else stored[wanted.attention_key],
        against=None if against is None else unpack_record(stored[against.scores_key]),
        divergence=compared.get("divergence"),
    )


def write(store: Store, seen: Mapping[ItemRequest, PassResult]) -> None:
    """Keep what passes gave, in one transaction."""
    results: dict[str, Arrays] = {}
    for wanted, of_item in seen.items():
        results |= _packed(wanted, of_item)
    if results:
        store.put_many(results)


def _packed(wanted: ItemRequest, seen: PassResult) -> dict[str, Arrays]:
    against = wanted.against
    if against is not None and seen.against is None:
        # Left out as too long for one of the two; for the other it may not be.
        return {against.divergence_key: pack_record(seen.record)}
    results: dict[str, Arrays] = {wanted.key: pack_record(seen.record)}
    if wanted.attention_key is not None and seen.attention is not None:
        results[wanted.attention_key] = seen.attention
    if against is not None and seen.against is not None and seen.divergence is not None:
        results[against.scores_key] = pack_record(seen.against)
        results[against.divergence_key] = {"divergence": seen.divergence}
    return results
