"""Counts of the predictions of a class, on the server that it shares: without names, and deleted after a day."""

import secrets
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.dashboard import link
from attention_sieve.dashboard.state import CLASS
from attention_sieve.dashboard.web.session import session_id

HOURS: Final = 24
"""Lifetime of a class, in hours."""
MOST_CLASSES: Final = 500
MOST_OF_PAGE: Final = 5
"""Maximum number of classes made on one open page."""
MOST_OF_ADDRESS: Final = 40
"""Maximum number of classes made from one address, which all teachers of a school may share."""
IDLE_SECONDS: Final = 3600
"""A class that others have joined keeps its place until nobody has used it for so long."""
MOST_ANSWERS: Final = 2_000
"""Maximum number of different answers to one question; more are not counted."""
LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Characters of codes: none that is easily misread."""
LENGTH: Final = 6
_COUNTED: Final = "counted for the class"
"""Key of this reader's counted answers, by class, lesson and step: a second guess replaces the first."""

BEFORE: Final = -1
"""In the place of the index of a step: the question of the lesson, asked before it."""
LessonStep = tuple[int, int]
"""Number of a lesson, from 1, and index of its step, from 0."""


@dataclass(frozen=True)
class Visitor:
    """Who makes or joins a class, as far as the server can tell."""

    page: str | None
    """Id of the Streamlit session, which begins when the page is opened."""
    address: str | None
    """IP address; None for this machine itself, and so behind a proxy on it."""


@dataclass
class _Class:
    maker: Visitor
    created: float
    used: float
    """When its code was last made, joined or counted for."""
    is_joined: bool = False
    """Whether another page than the maker's has joined it."""
    counts: dict[LessonStep, Counter[str]] = field(default_factory=dict)


class Tally:
    """Counts of all classes of one server; thread-safe."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._lock = Lock()
        self._classes: dict[str, _Class] = {}

    def make(self, maker: Visitor) -> str:
        """Create a class; where there are too many, it takes the place of the least recently used idle one.

        Classes of the same page go first, then those of the same address, so that nobody who clicks takes the place of
        others. No class goes that is at work: one that others have joined and that was used within IDLE_SECONDS.

        Returns: its code.
        Raises: AnalysisError if there are too many, all at work.
        """
        with self._lock:
            self._forget()
            of_page = [code for code, each in self._classes.items() if each.maker.page == maker.page]
            of_address = [code for code, each in self._classes.items() if each.maker.address == maker.address]
            if len(of_page) >= MOST_OF_PAGE:
                self._make_room(of_page, "on this page")
            elif maker.address and len(of_address) >= MOST_OF_ADDRESS:
                self._make_room(of_address, "from your address")
            elif len(self._classes) >= MOST_CLASSES:
                self._make_room(list(self._classes), "on this server")
            code = "".join(secrets.choice(LETTERS) for _ in range(LENGTH))
            self._classes[code] = _Class(maker, created=self._clock(), used=self._clock())
            return code

    def join(self, code: str, visitor: Visitor) -> bool:
        """Join a class; returns whether there is one with this code, not older than HOURS."""
        with self._lock:
            school_class = self._use(code)
            if school_class is None:
                return False
            school_class.is_joined |= visitor.page != school_class.maker.page
            return True

    def count(self, code: str, question: LessonStep, answer: str, *, instead_of: str | None = None) -> bool:
        """Count an answer.

        Args:
            instead_of: the previous answer of the same reader.

        Returns: whether it was counted: not for an unknown class, nor beyond MOST_ANSWERS.
        """
        with self._lock:
            school_class = self._use(code)
            if school_class is None:
                return False
            counts = school_class.counts.setdefault(question, Counter())
            if answer not in counts and len(counts) >= MOST_ANSWERS:
                return False
            if instead_of is not None:
                counts[instead_of] -= 1
            counts[answer] += 1
            school_class.counts[question] = +counts  # drops answers with count 0
            return True

    def counts(self, code: str, question: LessonStep) -> list[tuple[str, int]]:
        """Answers with their counts, most frequent first."""
        with self._lock:
            school_class = self._use(code)
            return [] if school_class is None else school_class.counts.get(question, Counter()).most_common()

    def answered(self, code: str) -> list[tuple[LessonStep, list[tuple[str, int]]]]:
        """All questions that somebody has answered, in their order, each with its `counts`."""
        with self._lock:
            school_class = self._use(code)
            counts = {} if school_class is None else school_class.counts
            return [(question, counts[question].most_common()) for question in sorted(counts) if counts[question]]

    def _use(self, code: str) -> _Class | None:
        """The class with this code, which is in use now; None if there is none."""
        self._forget()
        school_class = self._classes.get(code)
        if school_class is not None:
            school_class.used = self._clock()
        return school_class

    def _make_room(self, codes: list[str], made: str) -> None:
        """Forget the least recently used of these classes that is not at work."""
        since = self._clock() - IDLE_SECONDS
        idle = [code for code in codes if not self._classes[code].is_joined or self._classes[code].used < since]
        if not idle:
            raise AnalysisError(f"All {len(codes)} class codes made {made} are in use. Use one of them, or try later.")
        del self._classes[min(idle, key=lambda code: self._classes[code].used)]

    def _forget(self) -> None:
        oldest = self._clock() - HOURS * 3600
        for code in [code for code, school_class in self._classes.items() if school_class.created < oldest]:
            del self._classes[code]


@st.cache_resource(show_spinner=False)
def tally() -> Tally:
    return Tally()


def visitor() -> Visitor:
    return Visitor(session_id(), st.context.ip_address)


def join_linked_class(unknown: Callable[[str], str]) -> None:
    """Join the class in the link; `unknown` is what is said of an unknown code."""
    if (value := link.take(CLASS)) is not None and not join_class(value):
        link.say(unknown(link.quoted(value)))
    code = code_now()
    link.put([CLASS], {CLASS: code} if code else {})


def join_class(written: str) -> bool:
    """Join the class with a code as somebody wrote it; returns whether there is one."""
    code = written.strip().upper()
    if not tally().join(code, visitor()):
        return False
    st.session_state[CLASS] = code
    return True


def code_now() -> str:
    """Code of the reader's class; empty if there is none."""
    return str(st.session_state.get(CLASS) or "")


def own_answer(question: LessonStep) -> str | None:
    """This reader's answer that is counted for the class; None if there is none."""
    counted: dict[tuple[str, LessonStep], str] = st.session_state.get(_COUNTED, {})
    return counted.get((code_now(), question))


def count_own(question: LessonStep, answer: str) -> None:
    """Count this reader's answer if there is a class; it replaces an earlier one to the same question."""
    code = code_now()
    if code and tally().count(code, question, answer, instead_of=own_answer(question)):
        st.session_state.setdefault(_COUNTED, {})[code, question] = answer
