"""In-memory cache of recent results, which clicks and sliders request repeatedly."""

from collections import OrderedDict
from itertools import count
from threading import Lock
from typing import Final, Generic, TypeVar

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
        self._answers: OrderedDict[Question, tuple[Answer, int]] = OrderedDict()
        self._size = 0
        self._lock = Lock()

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
            self._size += size - self._answers.pop(question, (None, 0))[1]
            self._answers[question] = answer, size
            while self._size > self._limit and len(self._answers) > self._always:
                _, (_, freed) = self._answers.popitem(last=False)
                self._size -= freed
