"""Questions besides the scores: what a pass finds of each of many items, computed in groups and kept in the store.

An item is a text, or a text with more, such as its words. A worker takes the items in small groups, one between two
batches of other sessions, and looks again into the store before each: what another session has asked meanwhile is not
computed twice.
"""

import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Generic, TypeVar

import numpy as np

from cache.answers import Engine
from cache.keys import answer_key
from cache.packing import Arrays
from cache.requests import SIZE_OF_ANY, Report, Status
from cache.store import Store
from cache.worker import Worker
from core.analysis import prepare
from core.checkpoints import Checkpoint
from core.errors import EveryTextTooLong, TextTooLong
from core.passes import PassSettings, PassText
from core.texts import Text
from core.tokens import TooLong

FIRST_GROUP: Final = 8_000
"""Characters of the first group of items that is passed; from there on what takes about GROUP_SECONDS."""
GROUP_SECONDS: Final = 1.0
"""How long others may wait for a group."""

Item = TypeVar("Item")

_log = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False, kw_only=True)
class Question(Generic[Item]):
    """What a pass is to find of each of many items."""

    kind: str
    """Its name in keys; other than that of all other questions."""
    text_of: Callable[[Item], Text]
    ingredients: Callable[[Item], Mapping[str, object]]
    """All of an item that its answer depends on, as JSON can write it: `cache.keys.text_ingredients` of its text, and
    what else it has."""
    answer: Callable[
        [Checkpoint, Sequence[Item], Sequence[PassText], PassSettings], Iterable[Sequence[tuple[int, Arrays]]]
    ]
    """Gives place and answer of items, batch by batch in any order, from items and their texts as prepared for the
    pass; runs in the worker's thread. No array of an answer is named n_tokens or n_cut."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Answers:
    """What passes found of many items."""

    results: tuple[Arrays, ...]
    """In the order given; the same object for equal items. For reading only."""
    positions: tuple[int, ...]
    """Place of each of them among the items given."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""

    @property
    def n_bytes(self) -> int:
        """Memory that the answers take."""
        different = {id(result): result for result in self.results}
        return sum(array.nbytes for result in different.values() for array in result.values())


def kept_answers(
    store: Store,
    question: Question[Item],
    engine: Engine,
    settings: PassSettings,
    items: Sequence[Item],
    too_long: TooLong,
) -> Answers | None:
    """Answers that need no pass; None when any item would need one.

    Raises: EveryTextTooLong when no text is left.
    """
    keys = _keys(question, engine, settings, items)
    kept = _kept(store, keys, too_long)
    return _collected([kept[key] for key in keys], too_long) if all(key in kept for key in keys) else None


def found_answers(
    store: Store,
    worker: Worker,
    question: Question[Item],
    engine: Engine,
    settings: PassSettings,
    items: Sequence[Item],
    too_long: TooLong,
    report: Report | None,
) -> Answers:
    """Answers to a question, from the store where it has them.

    Raises: as Inference.answers.
    """
    keys = _keys(question, engine, settings, items)
    found = _kept(store, keys, too_long)
    missing = {key: place for place, key in reversed(list(enumerate(keys))) if key not in found}
    work = _Work(store, worker, question, settings, items, too_long)
    todo = sorted(missing, key=lambda key: work.size(missing[key]))
    pace = _Pace(len(set(keys)) - len(missing), [work.size(missing[key]) for key in todo], report)
    while todo:
        group = {key: missing[key] for key in todo[: pace.n_next()]}
        todo = todo[len(group) :]
        begun = time.monotonic()
        found |= worker.run(lambda checkpoint: work.do(checkpoint, group), pace.waiting())  # noqa: B023
        pace.take(len(group), time.monotonic() - begun)
    return _collected([found[key] for key in keys], too_long)


def _keys(question: Question[Item], engine: Engine, settings: PassSettings, items: Sequence[Item]) -> list[str]:
    checkpoint, dtype = engine.files.fingerprint, engine.dtype
    return [answer_key(question.kind, checkpoint, dtype, settings, **question.ingredients(item)) for item in items]


def _kept(store: Store, keys: Sequence[str], too_long: TooLong) -> dict[str, Arrays]:
    kept = store.get_many(list(dict.fromkeys(keys)))
    return {key: answer for key, answer in kept.items() if _serves(answer, too_long)}


def _serves(answer: Arrays, too_long: TooLong) -> bool:
    """Whether what is kept of a text serves the wish for long texts; a text that was left out can still be cut."""
    if too_long == "error":
        return not _is_too_long(answer)
    return too_long == "skip" or not _is_left_out(answer)


def _is_left_out(answer: Arrays) -> bool:
    return len(answer) == len(("n_tokens", "n_cut"))


def _is_too_long(answer: Arrays) -> bool:
    return _is_left_out(answer) or int(answer["n_cut"]) > 0


def _collected(answers: Sequence[Arrays], too_long: TooLong) -> Answers:
    taken = {i: answer for i, answer in enumerate(answers) if too_long != "skip" or not _is_too_long(answer)}
    long_ones = tuple((i, int(answer["n_tokens"])) for i, answer in enumerate(answers) if _is_too_long(answer))
    if not taken:
        raise EveryTextTooLong(long_ones)
    return Answers(results=tuple(taken.values()), positions=tuple(taken), too_long=long_ones)


class _Work(Generic[Item]):
    """The items of a question, a group at a time."""

    def __init__(
        self,
        store: Store,
        worker: Worker,
        question: Question[Item],
        settings: PassSettings,
        items: Sequence[Item],
        too_long: TooLong,
    ) -> None:
        self._store, self._worker, self._question, self._settings = store, worker, question, settings
        self._items, self._too_long = items, too_long

    def size(self, place: int) -> int:
        """Characters of an item's text: what order and pace go by, known before anything is tokenised."""
        return SIZE_OF_ANY + sum(map(len, self._question.text_of(self._items[place]).segments))

    def do(self, checkpoint: Checkpoint, group: Mapping[str, int]) -> dict[str, Arrays]:
        """Answers of a group of items, by key; keeps what is new."""
        found = _kept(self._store, list(group), self._too_long)
        keys, prepared, new = list[str](), list[PassText](), dict[str, Arrays]()
        for key, place in group.items():
            if key in found:
                continue
            try:
                prepared.append(self._prepared(checkpoint, place))
                keys.append(key)
            except TextTooLong as error:
                if self._too_long == "error":
                    raise
                new[key] = {"n_tokens": np.array(error.n_tokens), "n_cut": np.array(0)}
        items = [self._items[group[key]] for key in keys]
        for batch in self._question.answer(checkpoint, items, prepared, self._settings) if items else ():
            new |= {keys[row]: _with_lengths(answer, prepared[row]) for row, answer in batch}
        self._worker.n_passed += len(items)
        self._keep(new)
        return found | new

    def _prepared(self, checkpoint: Checkpoint, place: int) -> PassText:
        text, truncate = self._question.text_of(self._items[place]), self._too_long == "truncate"
        return prepare(checkpoint, text, self._settings, position=place, truncate=truncate)

    def _keep(self, new: Mapping[str, Arrays]) -> None:
        try:
            if new:
                self._store.put_many(dict(new))
        except Exception:
            _log.exception("Results could not be kept; the analysis goes on.")


def _with_lengths(answer: Arrays, text: PassText) -> Arrays:
    sides = (text.queries, text.keys)
    n_tokens, n_cut = max(len(side.ids) + side.n_cut for side in sides), max(side.n_cut for side in sides)
    return {**answer, "n_tokens": np.array(n_tokens), "n_cut": np.array(n_cut)}


class _Pace:
    """How many items the next group has, and how far the work is."""

    def __init__(self, n_kept: int, sizes: Sequence[int], report: Report | None) -> None:
        self._n_kept, self._sizes, self._report = n_kept, sizes, report
        self._n_done, self._characters, self._seconds = 0, FIRST_GROUP, 0.0

    def n_next(self) -> int:
        """Items of the next group: as many as about a second allows, at least one."""
        sums = np.cumsum(self._sizes[self._n_done :])
        return max(1, int(np.searchsorted(sums, self._characters, side="right")))

    def take(self, n_items: int, seconds: float) -> None:
        """Count a group that is done."""
        n_characters = sum(self._sizes[self._n_done : self._n_done + n_items])
        self._n_done += n_items
        self._seconds += seconds
        in_time = int(n_characters * GROUP_SECONDS / max(seconds, 1e-3))
        self._characters = max(1, min(2 * self._characters, in_time))
        if self._report is not None:
            self._report(self._status())

    def waiting(self) -> Report | None:
        """What is called while the worker is waited for."""
        report = self._report
        return None if report is None else lambda _: report(self._status())

    def _status(self) -> Status:
        done = sum(self._sizes[: self._n_done])
        left = self._seconds * (sum(self._sizes) - done) / done if done else None
        n_all = self._n_kept + len(self._sizes)
        return Status(done=self._n_kept + self._n_done, total=n_all, seconds_left=left, n_waiting_before=0)
