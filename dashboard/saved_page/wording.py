"""The sentences of a saved page that are made of numbers."""

from collections.abc import Sequence
from typing import Final

from attention_sieve.core.comparison.differences import PairedTests

ON_WORDS: Final = (
    "The two tokenizers split this text differently, so the difference is between words: to a word, the sum over its "
    "pieces; from a word, their mean. All special tokens together are the word [special]."
)


def title(names: Sequence[str]) -> str:
    return f"Attention heads of {names[0]}" if len(names) == 1 else f"{names[1]} compared with {names[0]}"


def changes(n_changed: int, n_heads: int, names: Sequence[str], tests: PairedTests) -> str:
    n_tested = int((tests.texts >= 2).sum())
    return (
        f"From {names[0]} to {names[1]}, {n_changed} of {n_heads} heads gain or lose a role, and "
        f"{int(tests.differs.sum()):,} of {n_tested:,} mean scores differ (paired t-test, alpha {tests.alpha:g}, "
        f"correction {tests.correction})."
    )
