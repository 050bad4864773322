"""The link that a lesson asks for: all links hidden while it asks, the guess beside the true one when it answers."""

from collections.abc import Callable
from dataclasses import dataclass

from attention_sieve.core.attention.settings import Head


@dataclass(frozen=True, kw_only=True)
class AskedLink:
    """From which token a lesson asks where a head looks, and the reader's guess."""

    head: Head
    query: int
    """Position of the token that looks, in the whole text."""
    guess: int | None = None
    """Position of the guessed token, in the answer."""
    take: Callable[[int], None] | None = None
    """Takes the position of a guessed token; None in the answer."""
    label: str = ""
    """Label of the button that makes the pinned token the guess."""

    @property
    def is_answered(self) -> bool:
        """Whether the links are shown."""
        return self.take is None
