"""The latest answers in memory: what a click or a moved slider asks for again."""

from collections import OrderedDict
from threading import Lock
from typing import Generic, TypeVar

Question = TypeVar("Question")
Answer = TypeVar("Answer")


class Recent(Generic[Question, Answer]):
    """Answers by question, the least recently used let go first; safe to share between threads."""

    def __init__(self, limit_bytes: int) -> None:
        """Say how many bytes may be held; the latest answer is held however large it is."""
        self._limit = limit_bytes
        self._answers: OrderedDict[Question, tuple[Answer, int]] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()

    @property
    def n_bytes(self) -> int:
        """Bytes held."""
        return self._n_bytes

    def get(self, question: Question) -> Answer | None:
        """The answer, or None; now the latest."""
        with self._lock:
            if question not in self._answers:
                return None
            self._answers.move_to_end(question)
            return self._answers[question][0]

    def put(self, question: Question, answer: Answer, n_bytes: int) -> None:
        """Hold an answer of so many bytes."""
        with self._lock:
            self._n_bytes += n_bytes - self._answers.pop(question, (None, 0))[1]
            self._answers[question] = answer, n_bytes
            while self._n_bytes > self._limit and len(self._answers) > 1:
                _, (_, freed) = self._answers.popitem(last=False)
                self._n_bytes -= freed
