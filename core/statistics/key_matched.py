"""A control for heads that join two words: the attention that other words of the text give to the same word.

A head that looks at a name from everywhere also looks at it from the pronouns that stand for it, and its accuracy does
not reveal the difference. A head that follows a relation gives the right word more attention from the word that the
relation joins to it than from other words. The other words are compared over the same cases, so that both sides have
the same keys.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.statistics.documents import above_zero, document_means, document_sums
from attention_sieve.core.statistics.means import ratio

LEAST_TIMES: Final = 2
"""How many times as much attention as from other words the right word has to get for a head to beat the control. With
many texts, even a head that looks there from everywhere can give significantly, if only slightly, more; this bound is a
choice of this project."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Joined:
    """Attention of every head to the right word of each case; NaN in both arrays where a case cannot be compared."""

    to_right: Float[np.ndarray, "*head case"]
    """From the word that should look at it, 0 to 1."""
    from_others: Float[np.ndarray, "*head case"]
    """Mean over the other words of the text that can look at it."""
    unit: Int[np.ndarray, " case"]
    """Number of the case's document, or of its text if no document is known."""

    def of(self, cases: Bool[np.ndarray, " case"] | Int[np.ndarray, " some"]) -> "Joined":
        """The same for some of the cases."""
        return Joined(
            to_right=self.to_right[..., cases], from_others=self.from_others[..., cases], unit=self.unit[cases]
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class KeyMatched:
    """Whether heads give the right word more attention from the word that should look at it than from others."""

    n_cases: Int[np.ndarray, "*head"]
    """Cases that can be compared; fewer than all where the word cannot look at the right one, or no other word can."""
    to_right: Float[np.ndarray, "*head"]
    from_others: Float[np.ndarray, "*head"]
    """Means over these cases; NaN without any."""
    p_values: Float[np.ndarray, "*head"]
    """One-sided, of "the first is not above the second", paired by case with documents (or texts) as units, times the
    number of heads (Bonferroni); NaN with fewer than two units."""
    beats: Bool[np.ndarray, "*head"]
    """Whether the p-value is below the level, and the first at least LEAST_TIMES times the second."""

    @property
    def times(self) -> Float[np.ndarray, "*head"]:
        """How many times as much attention the right word gets from the word that should look at it as from others."""
        return ratio(self.to_right, self.from_others)

    @property
    def from_everywhere(self) -> Bool[np.ndarray, "*head"]:
        """Heads that look there from everywhere: the right word gets less than LEAST_TIMES times as much.

        For the other heads that do not beat the control, there are too few cases for a verdict.
        """
        return np.asarray(self.to_right < LEAST_TIMES * self.from_others)

    def at(self, head: tuple[int, ...]) -> "KeyMatched":
        """The same of one head, by its index."""
        return KeyMatched(
            n_cases=np.asarray(self.n_cases[head]),
            to_right=np.asarray(self.to_right[head]),
            from_others=np.asarray(self.from_others[head]),
            p_values=np.asarray(self.p_values[head]),
            beats=np.asarray(self.beats[head]),
        )

    def columns(self) -> dict[str, np.ndarray]:
        """Columns of files, one row per head: compared (cases), attention_to_right (word), attention_of_others (to
        the same word), times_others (their ratio), p_others, beats_others and from_everywhere."""
        values = {
            "compared": self.n_cases,
            "attention_to_right": self.to_right,
            "attention_of_others": self.from_others,
            "times_others": self.times,
            "p_others": self.p_values,
            "beats_others": self.beats,
            "from_everywhere": self.from_everywhere,
        }
        return {name: column.ravel() for name, column in values.items()}


def key_matched(joined: Joined, alpha: float, n_heads: int = 1) -> KeyMatched:
    """Compare the attention to the right word with what other words give to the same word.

    Args:
        joined: of one or more heads.
        alpha: level of the test.
        n_heads: how many heads were searched; p-values are multiplied by it.
    """
    shape, n_all = joined.to_right.shape[:-1], joined.to_right.shape[-1]
    to_right, from_others = (part.reshape(math.prod(shape), n_all) for part in (joined.to_right, joined.from_others))
    comparable = np.isfinite(to_right) & np.isfinite(from_others)
    means = np.full((3, len(to_right)), np.nan)
    # Heads of one layer, or of all layers without windows, can be compared on the same cases.
    _, first, row = np.unique(np.packbits(comparable, axis=-1), axis=0, return_index=True, return_inverse=True)
    for number, one in enumerate(first):
        heads = np.flatnonzero(row.ravel() == number) if len(first) > 1 else slice(None)
        cases = np.flatnonzero(comparable[one])
        if len(cases):
            right, others, unit = to_right[heads][:, cases], from_others[heads][:, cases], joined.unit[cases]
            n_cases = np.unique(unit, return_counts=True)[1]
            differences = document_means(document_sums(right - others, unit), n_cases)
            p_values = np.minimum(1, n_heads * above_zero(differences))
            means[:, heads] = right.mean(axis=-1, dtype=float), others.mean(axis=-1, dtype=float), p_values
    of_right, of_others, p = (np.asarray(values) for values in means.reshape(3, *shape))
    return KeyMatched(
        n_cases=comparable.sum(axis=-1).reshape(shape),
        to_right=of_right,
        from_others=of_others,
        p_values=p,
        beats=np.asarray((p < alpha) & (of_right >= LEAST_TIMES * of_others)),
    )
