"""An analysis as one value, from the reader's texts to a table, and the one way through it.

    texts -> items -> (pass with observers) -> answers || judged -> finding -> table

Left of the bar costs a forward pass and is kept by the cache; right of it is instant. Pages, commands and programs
differ in where they get texts and settings, and in what they do with a finding.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar, runtime_checkable

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.prepare import prepare_all, queries_text
from attention_sieve.core.passes.question import Item, Question, Result, answer
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.relations import Dependencies, dependencies
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    import pandas as pd

Settings = TypeVar("Settings")
Finding = TypeVar("Finding")
Done = TypeVar("Done")


@dataclass(frozen=True, eq=False, kw_only=True)
class Analysis(Generic[Item, Result, Settings, Finding]):
    """What is asked of which texts, how the answers are judged, and as what table they are written."""

    name: str
    """The one word for it."""
    settings: Settings
    """The usual ones: a frozen dataclass, whose fields are annotated with the sentences of their options."""
    items: Callable[[Sequence[Text], Iterable[Dependencies]], Sequence[Item]]
    """The item of each text, from the texts and the trees of what their queries are; these are parsed as they are
    read."""
    question: Callable[[Settings], Question[Item, Result]]
    judge: Callable[[Sequence[Item], Sequence[Result], Settings], Finding]
    """The finding, from items and their answers."""
    table: "Callable[[Finding], pd.DataFrame]"
    """Raises AnalysisError where there is nothing to write."""
    columns: Mapping[str, str]
    """What each column of the table holds."""
    facts: Callable[[Finding, Settings], Mapping[str, str]]
    """Metadata of files: the settings, and what is known of the texts."""


@runtime_checkable
class Watch(Protocol):
    """Passes on the results of all batches one by one, and may show how many there are."""

    def __call__(self, work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None) -> Iterable[Done]:
        """The results; `doing` says what is done, or is None for a pass."""


def _unwatched(work: Iterable[Sequence[Done]], n_texts: int, doing: str | None = None) -> Iterable[Done]:
    return chain.from_iterable(work)


def find(
    analysis: Analysis[Item, Result, Settings, Finding],
    checkpoint: Checkpoint,
    texts: Sequence[Text],
    settings: Settings | None = None,
    of_pass: PassSettings | None = None,
    *,
    prepared: Mapping[int, PassText] | None = None,
    watch: Watch = _unwatched,
) -> Finding:
    """What an analysis finds about the heads of a checkpoint, without a cache.

    Args:
        checkpoint: loaded, from `attention_sieve.core.checkpoints.find.load_checkpoint`.
        texts: one or more.
        settings: None for the usual ones.
        of_pass: which attention, and which heads are off; None for the checkpoint's first attention, all heads on.
        prepared: tokens of each text that is not left out, by its index; None to leave out none.
        watch: for a bar of progress.

    Raises: AnalysisError for a kind of attention that the analysis does not support, and of any stage; TextTooLong,
        NoTokens or PairNeeded for the first such text if none may be left out.
    """
    settings, of_pass = settings or analysis.settings, of_pass or PassSettings(checkpoint.files.kinds[0])
    question = analysis.question(settings)
    question.check(of_pass.kind)
    if prepared is None:
        prepared, _ = prepare_all(checkpoint, texts, of_pass, "error")
    read = [texts[index] for index in prepared]
    queries = [queries_text(text, of_pass.kind) for text in read]
    items = analysis.items(read, watch(([tree] for tree in dependencies(queries)), len(queries), "parsing"))
    work = answer(checkpoint, question, items, dict(enumerate(prepared.values())), of_pass)
    results = dict(watch(work, len(items)))
    return analysis.judge(items, [results[row] for row in range(len(items))], settings)
