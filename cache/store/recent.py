"""In-memory cache of recent results, which clicks and sliders request repeatedly."""

import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import count
from threading import Lock
from typing import Final, Generic, TypeVar
from weakref import WeakSet

Question = TypeVar("Question")
Answer = TypeVar("Answer")
_numbers: Final = count()


def new_number() -> int:
    """A unique number, used as the cache key of something derived from a large object.

    With the large object itself in the key, a small entry would keep it in memory without counting its size.
    """
    return next(_numbers)


class Recent(Generic[Question, Answer]):
    """Thread-safe least-recently-used cache with a size limit."""

    def __init__(self, limit: int, always: int = 1) -> None:
        """Limit the total size; the latest `always` entries are kept regardless of their size."""
        self._limit, self._always = limit, always
        self._answers: OrderedDict[Question, tuple[Answer, int, float]] = OrderedDict()
        """Each answer with its size, and the time it was put, in seconds since 1970."""
        self._size = 0
        self._lock = Lock()
        with _every_lock:
            _every.add(self)

    @property
    def size(self) -> int:
        """Total size of the answers."""
        return self._size

    def get(self, question: Question) -> Answer | None:
        """The answer, which becomes the most recently used, or None."""
        with self._lock:
            if question not in self._answers:
                return None
            self._answers.move_to_end(question)
            return self._answers[question][0]

    def put(self, question: Question, answer: Answer, size: int = 1) -> None:
        """Add an answer; its size is in bytes, or 1 where answers are counted."""
        with self._lock:
            self._size += size - self._answers.pop(question, (None, 0, 0.0))[1]
            self._answers[question] = answer, size, time.time()
            while self._size > self._limit and len(self._answers) > self._always:
                _, (_, freed, _) = self._answers.popitem(last=False)
                self._size -= freed

    def get_or_put(self, question: Question, make: Callable[[], Answer]) -> Answer:
        """The answer, made and added if there is none."""
        answer = self.get(question)
        if answer is None:
            answer = make()
            self.put(question, answer)
        return answer

    def forget(self, before: float) -> None:
        """Drop all answers that were put before a time, in seconds since 1970."""
        with self._lock:
            for question in [question for question, (_, _, put) in self._answers.items() if put < before]:
                self._size -= self._answers.pop(question)[1]


_every: Final[WeakSet[Recent]] = WeakSet()
_every_lock: Final = Lock()


def forget_everywhere(before: float) -> None:
    """Drop from all memories of this process what was put before a time, in seconds since 1970."""
    with _every_lock:
        memories = list(_every)
    for memory in memories:
        memory.forget(before)
