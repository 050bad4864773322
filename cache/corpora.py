"""Measures of many texts, and what becomes of those that are too long."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from cache.answers import Seen
from core.analysis import MeasuredText
from core.errors import EveryTextTooLong
from core.tokens import TooLong


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusMeasures:
    """What passes measured of many texts."""

    measures: Float[np.ndarray, "text measure layer head"]
    """By core.measures.MEASURES, texts in the order given."""
    positions: tuple[int, ...]
    """Place of each of them among the texts given."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedCorpus:
    """What two passes measured of many texts, and how far apart their attention is."""

    a: Float[np.ndarray, "text measure layer_a head_a"]
    """By core.measures.MEASURES under the reference, texts in the order given."""
    b: Float[np.ndarray, "text measure layer_b head_b"]
    """Under the compared checkpoint, of the same texts."""
    divergence: Float[np.ndarray, "text layer head"] | None
    """In nats, 0 to ln 2; NaN for texts whose tokens differ. None where the checkpoints have not the same heads."""
    positions: tuple[int, ...]
    """Place of each text among those given."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut, under either."""


def serves(kept: MeasuredText, too_long: TooLong) -> bool:
    """Whether what is kept of a text serves the wish for long texts; a text that was left out can still be cut."""
    if too_long == "error":
        return not _is_too_long(kept)
    return too_long == "skip" or kept.measures is not None


def collected(texts: Sequence[MeasuredText], too_long: TooLong) -> CorpusMeasures:
    """Many texts' measures together.

    Raises: EveryTextTooLong when no text is left.
    """
    taken = {i: text.measures for i, text in enumerate(texts) if too_long != "skip" or not _is_too_long(text)}
    measures = [of_text for of_text in taken.values() if of_text is not None]
    long_ones = tuple((i, text.n_tokens) for i, text in enumerate(texts) if _is_too_long(text))
    if not measures:
        raise EveryTextTooLong(long_ones)
    return CorpusMeasures(measures=np.stack(measures), positions=tuple(taken), too_long=long_ones)


def _is_too_long(text: MeasuredText) -> bool:
    return text.measures is None or text.n_cut > 0


def collected_pairs(texts: Sequence[Seen], too_long: TooLong) -> ComparedCorpus:
    """Many texts' measures under two checkpoints together; a text that is too long for either is so for both.

    Raises: EveryTextTooLong when no text is left.
    """
    long_ones = tuple(
        (i, max(side.n_tokens for side in text.sides))
        for i, text in enumerate(texts)
        if any(map(_is_too_long, text.sides))
    )
    left_out = {place for place, _ in long_ones} if too_long == "skip" else set()
    taken = {i: text for i, text in enumerate(texts) if i not in left_out}
    if not taken:
        raise EveryTextTooLong(long_ones)
    pairs = [(text.measured.measures, text.against.measures) for text in taken.values() if text.against is not None]
    divergence = np.stack([text.divergence for text in taken.values() if text.divergence is not None])
    return ComparedCorpus(
        a=np.stack([a for a, _ in pairs if a is not None]),
        b=np.stack([b for _, b in pairs if b is not None]),
        divergence=divergence if divergence.size else None,
        positions=tuple(taken),
        too_long=long_ones,
    )
