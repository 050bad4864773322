"""One number per head on a colour scale, for the page and the file."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from math import isnan, log10
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.dashboard.figures.figure import interval

MINUS: Final = "\N{MINUS SIGN}"
NOT_APPLICABLE: Final = "not applicable"
ROUND_NUMBERS: Final = (1, 1.5, 2, 3, 4, 5, 7.5, 10)

Detail = tuple[str, Sequence[Sequence[str]] | Float[np.ndarray, "layer head"]]
"""Name of a number, and its value for every head, as text or to be formatted with three digits."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadMap:
    """One number per head.

    Raises: ValueError for a bound or values that the scale has no place for.
    """

    title: str
    """What the numbers are, before the scale on the page."""
    label: str
    """What the map shows, with its checkpoint: for screen readers, and the title of the file."""
    values: Float[np.ndarray, "layer head"]
    """NaN where the number does not apply."""
    bound: float
    """End of the scale; maps with one bound can be compared. A value beyond it has the colour of the end."""
    signed: bool = False
    """Whether the scale runs from -bound over 0 to bound, or from 0 to bound."""
    low_label: str = ""
    high_label: str = ""
    outlined: Bool[np.ndarray, "layer head"] | None = None
    outline: str = ""
    """What the outline means, such as "differs significantly"."""
    cells: Sequence[Sequence[str]] | None = None
    """Text of each cell; None for its number."""
    details: Sequence[Detail] = ()
    """Lines of the tooltip."""
    n_shared: int = 1
    """How many neighbouring heads share keys and values; these are bracketed."""
    layers_across: bool = False
    """Whether columns are layers and rows heads instead."""

    def __post_init__(self) -> None:
        if not 0 < self.bound < np.inf:
            raise ValueError(f"The scale's bound must be above 0 and finite, got {self.bound}.")
        if np.isinf(self.values).any():
            n_infinite = int(np.isinf(self.values).sum())
            raise ValueError(f"{n_infinite} values are infinite; give NaN where nothing applies.")
        if not self.signed and (self.values < 0).any():
            raise ValueError(f"A scale from 0 has no place for {np.nanmin(self.values):.3g}; use the signed scale.")

    def written_in(self, layer: int, head: int) -> str:
        return self.written(float(self.values[layer, head])) if self.cells is None else self.cells[layer][head]

    @property
    def ends(self) -> tuple[str, str]:
        """The numbers at both ends of the scale, with ≤ or ≥ if some value is beyond."""
        bound = f"{self.bound:.3g}"
        high = ("≥ " if (self.values > self.bound).any() else "") + ("+" if self.signed else "") + bound
        return ("≤ " if (self.values < -self.bound).any() else "") + MINUS + bound if self.signed else "0", high

    def written(self, value: float) -> str:
        return short_number(value, self.bound, self.signed)


def round_bound(largest: float) -> float:
    """A round number at or above the largest of some amounts, as the end of a scale that several maps share.

    Returns: 1 if the largest is 0 or NaN, since a scale needs a positive bound.
    """
    if not largest > 0:
        return 1.0
    size = 10.0 ** np.floor(log10(largest))
    return float(next(step * size for step in ROUND_NUMBERS if step * size >= largest * (1 - 1e-9)))


def texts_of(write: Callable[..., str], *values: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    """A text for every head, written from one or more numbers of it, for the tooltip."""
    return [[write(*of_head) for of_head in zip(*of_layer)] for of_layer in zip(*(each.tolist() for each in values))]


def intervals(
    low: Float[np.ndarray, "layer head"], high: Float[np.ndarray, "layer head"], number: str, missing: str = ""
) -> list[list[str]]:
    """The interval of every head in a number format, for the tooltip; `missing` where it is NaN."""
    return texts_of(partial(interval, number=number, missing=missing), low, high)


def percents(shares: Float[np.ndarray, "layer head"], missing: str = NOT_APPLICABLE) -> list[list[str]]:
    """Shares from 0 to 1 of every head as text for the tooltip; `missing` where they are NaN."""
    return texts_of(lambda share: missing if isnan(share) else f"{share:.1%}", shares)


def short_number(value: float, bound: float, signed: bool) -> str:
    """At most three characters and, for differences, a sign that stays at 0: `+0.8`, `−.04` or `12`."""
    if isnan(value):
        return ""
    if value == 0:
        return "0"
    decimals = 0 if bound >= 10 else 1 if bound >= 1 else 2 if bound >= 0.1 else 3
    size = f"{abs(value):.{decimals}f}"
    if bound < 1:
        size = size.removeprefix("0")
    return f"{(MINUS if value < 0 else '+') if signed else ''}{size}"
