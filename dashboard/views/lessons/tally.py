"""Counts of the predictions of a class, on the server that it shares: without names, and deleted after a day."""

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
"""Lifetime of a class, in hours."""
MOST_CLASSES: Final = 500
MOST_ANSWERS: Final = 2_000
"""Maximum number of different answers to one question; more are not counted."""
LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Characters of codes: none that is easily misread."""
LENGTH: Final = 6
_COUNTED: Final = "counted for the class"
"""Key of this reader's counted answers, by class, lesson and step: a second guess replaces the first."""

Question = tuple[int, int]
"""Number of a lesson, from 1, and index of its step, from 0."""


@dataclass
class _Class:
    created: float
    counts: dict[Question, Counter[str]] = field(default_factory=dict)


class Tally:
    """Counts of all classes of one server; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Start without classes.

        Args:
            clock: returns the time in seconds.
        """
        self._clock = clock
        self._lock = Lock()
        self._classes: dict[str, _Class] = {}

    def make(self) -> str:
        """Create a class.

        Returns: its code.
        Raises: AnalysisError if there are too many.
        """
        with self._lock:
            self._forget()
            if len(self._classes) >= MOST_CLASSES:
                raise AnalysisError(f"This server counts for {MOST_CLASSES} classes already. Try again later.")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            self._classes[code] = _Class(self._clock())
            return code

    def knows(self, code: str) -> bool:
        """Whether there is a class with this code, not older than HOURS."""
        with self._lock:
            self._forget()
            return code in self._classes

    def count(self, code: str, question: Question, answer: str, *, instead_of: str | None = None) -> bool:
        """Count an answer.

        Args:
            code: of the class.
            question: the question.
            answer: as displayed.
            instead_of: the previous answer of the same reader.

        Returns: whether it was counted: not for an unknown class, nor beyond MOST_ANSWERS.
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
            self._classes[code].counts[question] = +counts  # drops answers with count 0
            return True

    def counts(self, code: str, question: Question) -> list[tuple[str, int]]:
        """Answers with their counts, most frequent first."""
        with self._lock:
            self._forget()
            school_class = self._classes.get(code)
            return [] if school_class is None else school_class.counts.get(question, Counter()).most_common()

    def _forget(self) -> None:
        oldest = self._clock() - HOURS * 3600
        for code in [code for code, school_class in self._classes.items() if school_class.created < oldest]:
            del self._classes[code]


@st.cache_resource(show_spinner=False)
def tally() -> Tally:
    """The tally of this server."""
    return Tally()


def join_linked_class(unknown: Callable[[str], str]) -> None:
    """Join the class in the link.

    Args:
        unknown: message for an unknown code.
    """
    if (value := link.take(CLASS)) is not None:
        code = value.strip().upper()
        if tally().knows(code):
            st.session_state[CLASS] = code
        else:
            link.say(unknown(link.quoted(value)))
    code = code_now()
    link.put([CLASS], {CLASS: code} if code else {})


def code_now() -> str:
    """Code of the reader's class; empty if there is none."""
    return str(st.session_state.get(CLASS) or "")


def count_own(question: Question, answer: str) -> None:
    """Count this reader's answer if there is a class; it replaces an earlier one to the same question."""
    if not (code := code_now()):
        return
    counted: dict[tuple[str, Question], str] = st.session_state.setdefault(_COUNTED, {})
    if tally().count(code, question, answer, instead_of=counted.get((code, question))):
        counted[code, question] = answer
