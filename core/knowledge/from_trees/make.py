"""Creates tasks from a corpus of trees, and reports which could not be created."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getdoc
from random import Random
from typing import Final

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.from_trees import properties
from attention_sieve.core.knowledge.from_trees.changes import bigram_shift, coordination_inversion, odd_man_out
from attention_sieve.core.knowledge.from_trees.rows import LEAST_ROWS_OF_A_TASK, Candidate, balanced_rows
from attention_sieve.core.knowledge.from_trees.sentences import ParsedSentence, n_documents, usable
from attention_sieve.core.knowledge.task import Task

MOST_ROWS: Final = 12_000
"""Default maximum number of rows of a task."""
DEFINITIONS: Final[tuple[Callable[[Sequence[ParsedSentence], Random], list[Candidate]], ...]] = (
    properties.length,
    properties.word_content,
    properties.tree_depth,
    properties.tree_depth_matched,
    properties.top_relations,
    bigram_shift,
    properties.tense,
    properties.subject_number,
    properties.object_number,
    odd_man_out,
    coordination_inversion,
)
"""Functions from sentences to candidates; each gives its task a name, and by its docstring a definition."""
BY_WORD_FORM: Final = frozenset((properties.tense, properties.subject_number, properties.object_number))
"""Tasks that are split into parts by the form of the key word."""


@dataclass(frozen=True)
class MadeTask:
    """A task, or the reason why it could not be created."""

    name: str
    definition: str
    n_rows: int
    """Number of rows of all parts; without a task, the number that could be made."""
    task: Task | None
    """None if there are too few rows."""

    @property
    def left_out(self) -> str | None:
        """Why there is no task; None if there is one."""
        if self.task is not None:
            return None
        return (
            f"{self.name} is left out: {self.n_rows:,} balanced rows were found and at least {LEAST_ROWS_OF_A_TASK:,} "
            "are needed. Give more texts."
        )


def make_tasks(
    sentences: Iterable[ParsedSentence], source: str, *, seed: int = 0, most: int = MOST_ROWS
) -> Iterator[MadeTask]:
    """Make the ten tasks, tree depth in two variants, one after the other.

    Args:
        sentences: with trees; those of 5 to 28 words are used, without duplicates.
        source: provenance of sentences and trees, in one line.
        seed: of all random numbers; the same seed and sentences give the same rows.

    Raises: AnalysisError for a number of rows below LEAST_ROWS_OF_A_TASK; TextError for too many sentences.
    """
    if most < LEAST_ROWS_OF_A_TASK:
        raise AnalysisError(
            f"A task of at most {most:,} rows is too small. Ask for at least {LEAST_ROWS_OF_A_TASK:,} rows."
        )
    used = usable(sentences)
    for define in DEFINITIONS:
        rng = Random(f"{seed} {define.__name__}")
        rows = balanced_rows(define(used, rng), most, rng)
        provenance = f"{source}; {len(used):,} sentences of 5 to 28 words, {_split_by(define, used)}; seed {seed}"
        task = Task(define.__name__, rows, source=provenance) if len(rows) >= LEAST_ROWS_OF_A_TASK else None
        yield MadeTask(define.__name__, getdoc(define) or "", len(rows), task)


def _split_by(define: object, sentences: Sequence[ParsedSentence]) -> str:
    if define in BY_WORD_FORM:
        return "split into parts by the key word"
    by_documents = n_documents(sentences) < len(sentences)
    return f"split into parts by {'document' if by_documents else 'sentence'}"
