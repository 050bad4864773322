"""Shared by both engines: tasks as plain values, and their outcomes."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.running import Journal

Piece = TypeVar("Piece")
Done = TypeVar("Done")
Do = Callable[[Piece], Done]
"""Runs one task."""
MOST_TRIES: Final = 3
"""Maximum number of tries for a task whose process ends in the middle of it."""
PAUSE_EVERY: Final = 0.2
"""Seconds between two pauses while an engine waits for its processes."""


@dataclass(frozen=True, kw_only=True)
class TaskOutcome(Generic[Done]):
    """The outcome of one task."""

    index: int
    """Index of the task in the input."""
    result: Done | None
    """None if it failed."""
    why: str = ""
    """Why it failed, in sentences."""
    n_tries: int = 1
    """Number of tries."""


Executor = Callable[[Callable[[], Do[Any, Any]], Sequence[Any]], Iterator[TaskOutcome[Any]]]
"""Runs tasks in separate processes.

The first argument is called once in each process, for example to load a checkpoint, and returns the function that runs
one task; both raise AnalysisError for bad input. The second argument is the tasks. All of these, and the results, must
be picklable. Outcomes come in order of completion. A task whose process ends is tried again, MOST_TRIES times at most.
Where `pause` of attention_sieve.core.pauses raises, for example because a stop was requested, all processes end.
AnalysisError is raised if no process can be set up."""


def run_missing(
    engine: Executor,
    begin: Callable[[], Do[Any, Any]],
    missing: Mapping[str, Any],
    sizes: Mapping[str, int],
    journal: Journal,
) -> None:
    """Do the missing pieces of a run on an engine; the others were kept from before.

    Args:
        begin: as in `Executor`.
        missing: task of each piece that is to be done, by its name.
        sizes: number of texts of each piece of the run, by its name.

    Raises: AnalysisError for the first piece that cannot be done.
    """
    journal.plan(len(sizes), sum(sizes.values()))
    for name in sizes.keys() - missing.keys():
        journal.done(sizes[name], was_kept=True)
    names = list(missing)
    for outcome in engine(begin, list(missing.values())):
        name = names[outcome.index]
        journal.piece(name)
        if outcome.result is None:
            journal.failed(name, outcome.why)
            raise AnalysisError(outcome.why)
        journal.done(sizes[name])


def tried_twice(
    engine: Executor,
    begin: Callable[[], Do[Piece, Done]],
    pieces: Sequence[Piece],
    journal: Journal,
    name: Callable[[Piece], str],
) -> Iterator[tuple[Piece, TaskOutcome[Done]]]:
    """Do pieces of a run on an engine, each of which is reported by its name; one that fails is tried once more after
    the others, and its second outcome counts.

    Raises: Stopped where a piece fails once the run is asked to stop.
    """
    for is_last in (False, True):
        failed = list[Piece]()
        for outcome in engine(begin, pieces):
            piece = pieces[outcome.index]
            journal.piece(name(piece))
            if outcome.result is None:
                journal.check()
                failed.append(piece)
            if outcome.result is not None or is_last:
                yield piece, outcome
        if not failed:
            return
        pieces = failed


def died(n_tries: int) -> str:
    """The message for a task whose processes ended in the middle of it."""
    return (
        f"Its process ended {n_tries} times before it was done, which happens where memory runs out. Use fewer "
        "workers, or smaller pieces."
    )
