"""The tasks made from a corpus of trees, and which could not be made."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from inspect import getdoc
from random import Random
from typing import Final

from core.errors import AnalysisError
from core.probing_tasks.from_trees.coordination_inversion import coordination_inversion
from core.probing_tasks.from_trees.number_and_tense import object_number, subject_number, tense
from core.probing_tasks.from_trees.odd_man_out import odd_man_out
from core.probing_tasks.from_trees.rows import LEAST_ROWS_OF_A_TASK, Candidate, balanced_rows
from core.probing_tasks.from_trees.sentences import Sentence, n_documents, usable
from core.probing_tasks.from_trees.surface import length, word_content
from core.probing_tasks.from_trees.syntax import bigram_shift, top_relations, tree_depth, tree_depth_matched
from core.probing_tasks.task import Task

MOST_ROWS: Final = 12_000
"""Rows of a task, unless told otherwise."""
DEFINITIONS: Final[tuple[Callable[[Sequence[Sentence], Random], list[Candidate]], ...]] = (
    length,
    word_content,
    tree_depth,
    tree_depth_matched,
    top_relations,
    bigram_shift,
    tense,
    subject_number,
    object_number,
    odd_man_out,
    coordination_inversion,
)
"""Functions from sentences to candidates; a task has the name of its function, and is defined by its docstring."""
OF_FORMS: Final = frozenset((tense, subject_number, object_number))
"""Split into parts by the key word form."""


@dataclass(frozen=True)
class MadeTask:
    """A task, or why there is none."""

    name: str
    definition: str
    """In several paragraphs."""
    n_rows: int
    """Of all parts; where there is no task, those that could be made."""
    task: Task | None
    """None where the rows are too few."""

    @property
    def left_out(self) -> str | None:
        """Why there is no task; None where there is one."""
        if self.task is not None:
            return None
        return (
            f"{self.name} is left out: {self.n_rows:,} balanced rows were found and at least {LEAST_ROWS_OF_A_TASK:,} "
            "are needed. Give more texts."
        )


def make_tasks(
    sentences: Iterable[Sentence], source: str, *, seed: int = 0, most: int = MOST_ROWS
) -> Iterator[MadeTask]:
    """Make the ten tasks, that of depth in two forms, one after the other.

    Args:
        sentences: with trees; those of 5 to 28 words are used, of equal ones the first.
        source: where sentences and trees come from, in one line.
        seed: of all random numbers; the same seed makes the same rows of the same sentences.
        most: rows of a task, at most.

    Raises: AnalysisError for a number of rows below LEAST_ROWS_OF_A_TASK; TextError for too many sentences.
    """
    if most < LEAST_ROWS_OF_A_TASK:
        raise AnalysisError(
            f"A task of at most {most:,} rows is too small. Ask for at least {LEAST_ROWS_OF_A_TASK:,} rows."
        )
    used = usable(sentences)
    for find in DEFINITIONS:
        chance = Random(f"{seed} {find.__name__}")
        rows = balanced_rows(find(used, chance), most, chance)
        told = f"{source}; {len(used):,} sentences of 5 to 28 words, {_split_by(find, used)}; seed {seed}"
        task = Task(find.__name__, rows, source=told) if len(rows) >= LEAST_ROWS_OF_A_TASK else None
        yield MadeTask(find.__name__, getdoc(find) or "", len(rows), task)


def _split_by(find: object, sentences: Sequence[Sentence]) -> str:
    if find in OF_FORMS:
        return "split into parts by the key word"
    by_documents = n_documents(sentences) < len(sentences)
    return f"split into parts by {'document' if by_documents else 'sentence'}"
