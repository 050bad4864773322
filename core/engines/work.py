"""What both engines run: pieces of work as plain values, and what came of each."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, Generic, TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")
Do = Callable[[Piece], Result]
"""Does one piece of work."""
MOST_TRIES: Final = 3
"""Times that a piece of work is begun at most, where processes end in the middle of it."""


@dataclass(frozen=True, kw_only=True)
class Outcome(Generic[Result]):
    """What came of one piece of work."""

    place: int
    """Of the piece, among those that were given."""
    result: Result | None
    """None where it failed."""
    why: str = ""
    """Why it failed, in sentences."""
    n_tries: int = 1
    """Times that it was begun."""


Engine = Callable[[Callable[[], Do[Any, Any]], Sequence[Any]], Iterator[Outcome[Any]]]
"""Runs pieces of work in processes of its own.

The first argument is called once in each process, such as to load a checkpoint, and returns what does one piece; both
raise AnalysisError for bad input. The second are the pieces. All of these, and the results, can be pickled. Outcomes
come in the order in which they are done. A piece in the middle of which a process ends is begun again, MOST_TRIES times
at most. AnalysisError is raised where no process can begin."""


def died(n_tries: int) -> str:
    """The sentence on a piece of work whose processes ended in the middle of it."""
    return (
        f"Its process ended {n_tries} times before it was done, which happens where memory runs out. Use fewer "
        "workers, or smaller pieces."
    )
