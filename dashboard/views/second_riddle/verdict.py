"""What a reader has found: heads without which the decoder says another word, some of them, or none."""

from collections.abc import Collection, Sequence
from typing import Final, Literal

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.fewest_heads import Heads
from attention_sieve.core.texts.text import Text

RIDDLE: Final = Text(("When Mary and John went to the store, John gave a drink to",))
WORD: Final = "Mary"
"""That the decoder says after it."""
PAIRS: Final[tuple[Heads, ...]] = (
    ((1, 3), (1, 5)),
    ((0, 0), (0, 5)),
    ((0, 0), (0, 8)),
    ((0, 5), (0, 8)),
)
"""Pairs without which it says another word: all such pairs of the 24 heads without which, alone, the lead of the word
is smallest. The first one is hinted at."""

Verdict = Literal["asked", "no", "close", "found", "more than two"]


def verdict_of(off: Sequence[Head], *, is_changed: bool, pairs: Collection[Heads] = PAIRS) -> Verdict:
    """What is found by the heads that are off; `is_changed` if the decoder says another word without them."""
    if not off:
        return "asked"
    if is_changed:
        return "found" if len(off) <= 2 else "more than two"
    return "close" if among(off, pairs) else "no"


def among(off: Sequence[Head], pairs: Collection[Heads] = PAIRS) -> list[Head]:
    """The heads that are off and belong to a pair, those of one pair if there are some."""
    for pair in pairs:
        if of_pair := [head for head in off if head in pair]:
            return of_pair
    return []
