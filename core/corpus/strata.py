"""Strata of a corpus: data sets, languages, and lengths in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from attention_sieve.core.corpus.texts.inputs import CorpusText

StratumKind = Literal["all", "data set", "language", "length"]
STRATUM_KINDS: Final[tuple[StratumKind, ...]] = ("all", "data set", "language", "length")
LENGTHS: Final = (8, 16, 32, 64, 128)
"""Upper bound of each length in tokens, special tokens included; one more stratum has all longer texts."""
MOST_NAMES: Final = 64
"""Maximum number of data sets, or languages: each takes as much space in the statistics as the whole corpus."""


@dataclass(frozen=True)
class Stratum:
    """A subset of the texts with statistics of its own."""

    kind: StratumKind
    name: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        """Sort key: by kind, then by name; lengths from the shortest."""
        index = LENGTH_NAMES.index(self.name) if self.kind == "length" else 0
        return STRATUM_KINDS.index(self.kind), index, self.name

    @property
    def title(self) -> str:
        """Display name."""
        if self.kind == "all":
            return "all texts"
        return f"{self.name} tokens" if self.kind == "length" else f"{self.kind} {self.name}"


LENGTH_NAMES: Final = (
    *(f"{low + 1} to {high}" for low, high in zip((0, *LENGTHS), LENGTHS)),
    f"more than {LENGTHS[-1]}",
)
EVERYTHING: Final = Stratum("all")


def groups_of(
    texts: Sequence[CorpusText], n_tokens: Int[np.ndarray, " text"]
) -> dict[tuple[Stratum, ...], Int[np.ndarray, " row"]]:
    """Rows of the texts by the strata that they belong to, in the order of these strata.

    Args:
        texts: texts of a shard.
        n_tokens: number of tokens of each; 0 for a text that is left out, which belongs to no stratum.
    """
    lengths = np.searchsorted(np.array(LENGTHS), n_tokens)
    groups: dict[tuple[Stratum, ...], list[int]] = {}
    for row, (text, length) in enumerate(zip(texts, lengths.tolist(), strict=True)):
        if n_tokens[row]:
            of_kinds = (
                Stratum("data set", text.dataset),
                Stratum("language", text.language),
                Stratum("length", LENGTH_NAMES[length]),
            )
            strata = (EVERYTHING, *(stratum for stratum in of_kinds if stratum.name))
            groups.setdefault(strata, []).append(row)
    ordered = sorted(groups, key=lambda strata: [stratum.order for stratum in strata])
    return {strata: np.array(groups[strata]) for strata in ordered}
