"""Requested results of one item, computed results, and reading and writing them in the store."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.engine import Engine
from attention_sieve.cache.store.keys import answer_key, attention_key, divergence_key
from attention_sieve.cache.store.record import Record, pack_record, unpack_record
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.passes.arrays import Arrays
from attention_sieve.core.passes.question import Item, Question
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text


@dataclass(frozen=True)
class ComparisonKeys:
    """Keys of a text's additional results in a comparison of two checkpoints."""

    scores_key: str
    """Key of its scores under the compared checkpoint."""
    divergence_key: str


@dataclass(frozen=True)
class ItemRequest:
    """One item that a session requests; equal to another if the keys of the results are equal."""

    question: Question[Any, Any] = field(compare=False)
    item: Hashable = field(compare=False)
    """Items of equal requests may differ in what the result does not depend on, such as the name of the text."""
    key: str
    """Key of the result."""
    truncate: bool = False
    """Cut the text where it is too long."""
    start: tuple[int, int] | None = None
    """First query and key of the attention window to keep for the screen; None keeps none."""
    attention_key: str | None = None
    against: ComparisonKeys | None = None

    @property
    def text(self) -> Text:
        """The text that the checkpoint reads."""
        return self.question.text_of(self.item)

    @property
    def keys(self) -> list[str]:
        """Keys of all requested results."""
        against = (None, None) if self.against is None else (self.against.scores_key, self.against.divergence_key)
        return [key for key in (self.key, self.attention_key, *against) if key is not None]


@dataclass(frozen=True, eq=False, kw_only=True)
class PassResult:
    """Result of a pass for one item, or of two passes in step."""

    record: Record
    attention: Arrays | None = None
    """From packed_attention, if requested: rounded as in the store."""
    against: Record | None = None
    """The record under the compared checkpoint."""
    divergence: Float[np.ndarray, "layer head"] | None = None
    """Between the two, from attention_sieve.core.comparison.in_step; empty if the numbers of layers or heads differ."""

    @property
    def sides(self) -> tuple[Record, ...]:
        """The record under each checkpoint."""
        return (self.record,) if self.against is None else (self.record, self.against)

    @property
    def n_bytes(self) -> int:
        """Total size of the arrays."""
        groups = [self.attention or {}, *(side.arrays or {} for side in self.sides)]
        arrays = [array for group in groups for array in group.values()]
        return sum(array.nbytes for array in arrays) + (0 if self.divergence is None else self.divergence.nbytes)


def item_requests(
    engine: Engine, question: Question[Item, Any], items: Iterable[Item], settings: PassSettings, truncate: bool
) -> list[ItemRequest]:
    """Requests for the results of a question for items."""
    return [ItemRequest(question, item, _key(engine, question, item, settings), truncate) for item in items]


def _key(engine: Engine, question: Question[Item, Any], item: Item, settings: PassSettings) -> str:
    versioned, fingerprint = (question.name, question.version), engine.files.fingerprint
    return answer_key(versioned, fingerprint, engine.dtype, settings, **question.depends_on(item))


def look_request(
    engine: Engine, settings: PassSettings, text: Text, truncate: bool, start: tuple[int, int]
) -> ItemRequest:
    """Request for the scores and attention of one text."""
    (request,) = item_requests(engine, SCORES, [text], settings, truncate)
    key = attention_key(engine.files.fingerprint, engine.dtype, settings, start, **SCORES.depends_on(text))
    return replace(request, start=start, attention_key=key)


def comparison_requests(
    engines: tuple[Engine, Engine], settings: tuple[PassSettings, PassSettings], texts: Sequence[Text], truncate: bool
) -> list[ItemRequest]:
    """Requests for the scores of texts under two checkpoints and the divergence of their attention."""
    a, b = (
        item_requests(engine, SCORES, texts, own_settings, truncate) for engine, own_settings in zip(engines, settings)
    )
    fingerprints, dtype = (engines[0].files.fingerprint, engines[1].files.fingerprint), engines[0].dtype
    return [
        replace(request_a, against=ComparisonKeys(request_b.key, divergence_key(fingerprints, dtype, settings, text)))
        for request_a, request_b, text in zip(a, b, texts)
    ]


def read(store: Store, requests: Sequence[ItemRequest]) -> dict[ItemRequest, PassResult]:
    """Stored results by request; requests that are not or only partly stored are absent."""
    keys = [key for request in requests for key in request.keys]
    stored = store.get_many(list(dict.fromkeys(keys)))
    results = {request: _stored_result(request, stored) for request in requests}
    return {request: result for request, result in results.items() if result is not None}


def _stored_result(request: ItemRequest, stored: Mapping[str, Arrays]) -> PassResult | None:
    against = request.against
    compared = {} if against is None else stored.get(against.divergence_key, {})
    if compared and "divergence" not in compared:
        return PassResult(record=unpack_record(compared))
    if any(key not in stored for key in request.keys):
        return None
    return PassResult(
        record=unpack_record(stored[request.key]),
        attention=None if request.attention_key is None else stored[request.attention_key],
        against=None if against is None else unpack_record(stored[against.scores_key]),
        divergence=compared.get("divergence"),
    )


def write(store: Store, pass_results: Mapping[ItemRequest, PassResult]) -> None:
    """Store the results of passes in one transaction."""
    results: dict[str, Arrays] = {}
    for request, result in pass_results.items():
        results |= _packed(request, result)
    if results:
        store.put_many(results)


def _packed(request: ItemRequest, result: PassResult) -> dict[str, Arrays]:
    against = request.against
    if against is not None and result.against is None:
        # Too long for one of the two checkpoints, but possibly not for the other.
        return {against.divergence_key: pack_record(result.record)}
    results: dict[str, Arrays] = {request.key: pack_record(result.record)}
    if request.attention_key is not None and result.attention is not None:
        results[request.attention_key] = result.attention
    if against is not None and result.against is not None and result.divergence is not None:
        results[against.scores_key] = pack_record(result.against)
        results[against.divergence_key] = {"divergence": result.divergence}
    return results
