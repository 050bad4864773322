"""What a class predicts, counted on the server that the class shares: no names, and forgotten after a day."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import streamlit as st

from core.errors import AnalysisError
from dashboard import link
from dashboard.state import CLASS

HOURS: Final = 24
"""After which a class is forgotten."""
MOST_CLASSES: Final = 500
MOST_ANSWERS: Final = 2_000
"""Different answers to one question; more are not counted."""
LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Of codes: none that is read as another."""
LENGTH: Final = 6
_COUNTED: Final = "counted for the class"
"""What was counted of this reader, by class, lesson and step: a second guess takes the place of the first."""

Question = tuple[int, int]
"""A lesson, from 1, and the place of its step, from 0."""


@dataclass
class _Class:
    made: float
    counts: dict[Question, Counter[str]] = field(default_factory=dict)


class Tally:
    """Counts of all classes of one server; safe under threads."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Begin without classes.

        Args:
            clock: gives the time in seconds.
        """
        self._clock = clock
        self._lock = Lock()
        self._classes: dict[str, _Class] = {}

    def make(self) -> str:
        """A code for a new class.

        Raises: AnalysisError where there are too many.
        """
        with self._lock:
            self._forget()
            if len(self._classes) >= MOST_CLASSES:
                raise AnalysisError(f"This server counts for {MOST_CLASSES} classes already. Try again later.")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            self._classes[code] = _Class(self._clock())
            return code

    def knows(self, code: str) -> bool:
        """Whether there is such a class, not older than HOURS."""
        with self._lock:
            self._forget()
            return code in self._classes

    def count(self, code: str, question: Question, answer: str, *, instead_of: str | None = None) -> bool:
        """Count an answer.

        Args:
            code: of the class.
            question: that is answered.
            answer: as it is shown.
            instead_of: what was counted of the same reader before.

        Returns: whether it is counted now: not for an unknown class, nor beyond MOST_ANSWERS.
        """
        with self._lock:
            self._forget()
            if code not in self._classes:
                return False
            counts = self._classes[code].counts.setdefault(question, Counter())
            if answer not in counts and len(counts) >= MOST_ANSWERS:
                return False
            if instead_of is not None:
                counts[instead_of] -= 1
            counts[answer] += 1
            self._classes[code].counts[question] = +counts  # without answers that nobody gives any more
            return True

    def counts(self, code: str, question: Question) -> list[tuple[str, int]]:
        """Answers and how many gave each, the most frequent first."""
        with self._lock:
            self._forget()
            found = self._classes.get(code)
            return [] if found is None else found.counts.get(question, Counter()).most_common()

    def _forget(self) -> None:
        oldest = self._clock() - HOURS * 3600
        for code in [code for code, each in self._classes.items() if each.made < oldest]:
            del self._classes[code]


@st.cache_resource(show_spinner=False)
def tally() -> Tally:
    """The one of this server."""
    return Tally()


def join_as_asked(unknown: Callable[[str], str]) -> None:
    """Join the class that the link names.

    Args:
        unknown: says that there is no such class.
    """
    if (asked := link.take(CLASS)) is not None:
        code = asked.strip().upper()
        if tally().knows(code):
            st.session_state[CLASS] = code
        else:
            link.say(unknown(link.quoted(asked)))
    code = code_now()
    link.put([CLASS], {CLASS: code} if code else {})


def code_now() -> str:
    """Code of the reader's class; empty where there is none."""
    return str(st.session_state.get(CLASS) or "")


def count_own(question: Question, answer: str) -> None:
    """Count this reader's answer, where there is a class; an earlier one to the same question goes."""
    if not (code := code_now()):
        return
    counted: dict[tuple[str, Question], str] = st.session_state.setdefault(_COUNTED, {})
    if tally().count(code, question, answer, instead_of=counted.get((code, question))):
        counted[code, question] = answer
