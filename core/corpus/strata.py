"""Parts of a corpus that are told apart: data sets, languages, and lengths in tokens."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Int

from core.corpus.texts.inputs import CorpusText
from core.errors import AnalysisError

StratumKind = Literal["all", "data set", "language", "length"]
STRATUM_KINDS: Final[tuple[StratumKind, ...]] = ("all", "data set", "language", "length")
LENGTHS: Final = (8, 16, 32, 64, 128)
"""Last number of tokens of each length, special tokens included; then all longer ones."""
MOST_NAMES: Final = 64
"""Data sets, or languages, that a corpus may have: each takes as much room in the statistics as the whole."""


@dataclass(frozen=True)
class Stratum:
    """Texts that are told apart."""

    kind: StratumKind
    name: str = ""

    @property
    def order(self) -> tuple[int, int, str]:
        """By kind, then by name; lengths from the shortest."""
        place = LENGTH_NAMES.index(self.name) if self.kind == "length" else 0
        return STRATUM_KINDS.index(self.kind), place, self.name

    @property
    def title(self) -> str:
        """As a page names it."""
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
    """Rows of the texts that belong to the same strata, by these strata, in the order of their names.

    Args:
        texts: of a shard.
        n_tokens: of each; 0 for a text that is left out, which belongs to none.
    """
    lengths = np.searchsorted(np.array(LENGTHS), n_tokens)
    groups: dict[tuple[Stratum, ...], list[int]] = {}
    for row, (each, length) in enumerate(zip(texts, lengths.tolist(), strict=True)):
        if n_tokens[row]:
            groups.setdefault(_strata_of(each, length), []).append(row)
    ordered = sorted(groups, key=lambda strata: [stratum.order for stratum in strata])
    return {strata: np.array(groups[strata]) for strata in ordered}


def _strata_of(each: CorpusText, length: int) -> tuple[Stratum, ...]:
    named = (Stratum("data set", each.dataset), Stratum("language", each.language))
    return (EVERYTHING, *(stratum for stratum in named if stratum.name), Stratum("length", LENGTH_NAMES[length]))


class Names:
    """Counts the data sets and the languages of a corpus while it is read."""

    def __init__(self) -> None:
        """None so far."""
        self._datasets: set[str] = set()
        self._languages: set[str] = set()

    def add(self, each: CorpusText) -> None:
        """Count those of one more text.

        Raises: AnalysisError for more than MOST_NAMES.
        """
        for names, name, word in (
            (self._datasets, each.dataset, "data sets"),
            (self._languages, each.language, "languages"),
        ):
            names.add(name)
            if len(names) > MOST_NAMES:
                raise AnalysisError(
                    f"The corpus has more than {MOST_NAMES} {word}, among them {name[:40]!r}. Statistics are kept of "
                    f"each: put its texts into fewer folders, or take the column with the {word} out."
                )
