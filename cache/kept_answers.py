"""Answers of commands, kept in the same store as those of pages."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from attention_sieve.cache.answers import Record
from attention_sieve.cache.engine import Engine
from attention_sieve.cache.serving.item_requests import item_requests, read, write
from attention_sieve.cache.store.store import Store
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.question import AnswerQuestion, Item, Question, Result, answer
from attention_sieve.core.passes.texts import PassText


@dataclass(frozen=True, eq=False)
class KeepingAnswers:
    """`attention_sieve.core.passes.question.answer`, with each batch kept in a store as soon as it is there.

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
            parts = [_all_of(self(checkpoint, part, items, prepared, settings)) for part in question.parts]
            yield [(index, question.join([part[index] for part in parts])) for index in prepared]
            return
        question.check(settings.kind)
        engine = Engine(checkpoint.files, checkpoint.device, checkpoint.dtype)
        asked = item_requests((engine,), question, [items[index] for index in prepared], (settings,), truncate=False)
        requests = dict(zip(prepared, asked, strict=True))
        stored = read(self.store, asked) if self.resumes else {}
        found = {
            index: question.unpack(record.arrays)
            for index, request in requests.items()
            if (record := stored.get(request)) is not None
            and record.arrays is not None
            and record.n_cut == prepared[index].lengths["n_cut"]
        }
        yield list(found.items())
        missing = {index: text for index, text in prepared.items() if index not in found}
        for batch in answer(checkpoint, question, items, missing, settings) if missing else ():
            packed = {index: Record.of(question.pack(result), [prepared[index]]) for index, result in batch}
            write(self.store, {requests[index]: record for index, record in packed.items()})
            yield batch


def _answer() -> AnswerQuestion:
    return answer


def _all_of(batches: Iterator[list[tuple[int, Any]]]) -> dict[int, Any]:
    return {index: result for batch in batches for index, result in batch}
