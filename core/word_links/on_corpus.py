"""Which heads link the words of a pattern over many texts, against evenly spread attention and other words at the same
distance; texts are the units.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from core.attention.settings import Head
from core.errors import AnalysisError
from core.statistics.means import Correction, adjusted, half_interval, moments, ratio
from core.word_links.pattern import PatternAttention

LEAST_TEXTS: Final = 2
"""With fewer texts there is neither an interval nor a test."""

LEAST_GAIN: Final = 0.1
"""Part by which a share has to exceed that of evenly spread attention: also a trifle is significant in enough texts."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeldOutLink:
    """The head with the greatest mean share on each half of the texts, on the other half; both results pooled."""

    heads: tuple[Head, Head]
    """Best on the texts with even numbers, and on those with odd numbers."""
    share: float
    """Mean attention, 0 to 1."""
    low: float
    high: float
    """Interval of that mean."""
    others: float
    """Mean attention of the same heads between other words at the same distance; NaN where no text has such words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PatternLinks:
    """How much every head looks from the first word of a pattern to the second."""

    n_texts: int
    """Texts with a pair of which the first word sees the second."""
    n_pairs: int
    """Such pairs in all of them."""
    shares: Float[np.ndarray, "layer head"]
    """Attention from the first word to the second, 0 to 1: mean over texts of the mean over the pairs of a text."""
    low: Float[np.ndarray, "layer head"]
    high: Float[np.ndarray, "layer head"]
    """Interval of that mean over texts; NaN with one text."""
    even: Float[np.ndarray, " layer"]
    """What evenly spread attention gives."""
    n_compared: int
    """Texts with other words at the distance of a pair."""
    compared: Float[np.ndarray, "layer head"]
    """As `shares`, over the pairs and texts with other words at their distance; NaN without any."""
    others: Float[np.ndarray, "layer head"]
    """Attention between those other words."""
    p: Float[np.ndarray, "layer head"]
    """One-sided p-value of the paired t-test over texts that `compared` is above `others`, corrected over all heads;
    NaN with fewer than 2 texts to compare, or where the difference is the same in all of them."""
    held_out: HeldOutLink | None
    """None with fewer than 2 texts."""

    def beats(self, alpha: float) -> Bool[np.ndarray, "layer head"]:
        """Heads that look from the first word to the second clearly more than evenly spread attention would, and
        significantly more than between other words at the same distance.
        """
        return (self.p < alpha) & (self.shares > (1 + LEAST_GAIN) * self.even[:, None])


def pattern_links(
    texts: Sequence[PatternAttention], *, alpha: float = 0.05, correction: Correction = "bh"
) -> PatternLinks:
    """Sum up over texts.

    Args:
        texts: results of `core.word_links.question.WORD_LINKS`.
        alpha: intervals cover 1 - alpha.
        correction: of the p-values over all heads.

    Raises: AnalysisError where no text has a pair that can be seen.
    """
    texts = [text for text in texts if text.n_pairs]
    if not texts:
        raise AnalysisError("No text has this pattern where its first word sees the second. Choose other words.")
    shares, compared, others = (
        np.stack([getattr(text, name) for text in texts]).astype(np.float64)
        for name in ("shares", "compared", "others")
    )
    n_texts, mean, squares = moments(shares)
    half = half_interval(n_texts, squares, alpha)
    n_compared, difference, spread = moments(compared - others)
    return PatternLinks(
        n_texts=len(texts),
        n_pairs=sum(text.n_pairs for text in texts),
        shares=mean,
        low=np.maximum(mean - half, 0),
        high=np.minimum(mean + half, 1),
        even=np.stack([text.even for text in texts]).mean(axis=0, dtype=np.float64),
        n_compared=int(n_compared.max()),
        compared=moments(compared)[1],
        others=moments(others)[1],
        p=adjusted(_above_zero(n_compared, difference, spread), correction),
        held_out=_held_out(shares, others, alpha) if len(texts) >= LEAST_TEXTS else None,
    )


def _above_zero(
    n_texts: Int[np.ndarray, "layer head"],
    mean: Float[np.ndarray, "layer head"],
    squares: Float[np.ndarray, "layer head"],
) -> Float[np.ndarray, "layer head"]:
    """One-sided p-values of the t-test that a mean is above 0."""
    from scipy.special import stdtr  # takes a quarter of a second

    return stdtr(n_texts - 1, -ratio(mean, np.sqrt(ratio(squares, n_texts * (n_texts - 1)))))


def _held_out(
    shares: Float[np.ndarray, "text layer head"], others: Float[np.ndarray, "text layer head"], alpha: float
) -> HeldOutLink:
    heads, held, controls = [], [], []
    for half in (0, 1):
        best = np.unravel_index(shares[half::2].mean(axis=0).argmax(), shares.shape[1:])
        layer, head = (int(index) for index in best)
        heads.append((layer, head))
        held.append(shares[1 - half :: 2, layer, head])
        controls.append(others[1 - half :: 2, layer, head])
    n_texts, mean, squares = moments(np.stack([np.concatenate(held), np.concatenate(controls)], axis=1))
    share, half_width = float(mean[0]), float(half_interval(n_texts, squares, alpha)[0])
    return HeldOutLink(
        heads=(heads[0], heads[1]),
        share=share,
        low=max(share - half_width, 0.0),
        high=min(share + half_width, 1.0),
        others=float(mean[1]),
    )
