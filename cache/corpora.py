"""Measures of many texts, and what becomes of those that are too long."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

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
