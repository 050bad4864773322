"""The roles of every head as a grid, as the page and the file draw it."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from core.attention.settings import Head
from core.roles.measures import Scale
from core.roles.roles import ROLES
from core.roles.uncertainty.stability import CERTAIN
from dashboard.figures.figure import percent

FAINT: Final = f"faint: the label stays in fewer than {percent(CERTAIN)} of resampled corpora"
"""Entry of the legend."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleGrid:
    """Rows are layers, columns heads; a cell has one corner per shown role."""

    label: str
    """What the grid shows, with its checkpoint: for screen readers, and the title of the file."""
    scores: Float[np.ndarray, "role layer head"]
    """Mean scores; NaN where a role does not apply, and for heads that were removed from the checkpoint."""
    holds: Bool[np.ndarray, "role layer head"]
    """Which heads hold which role."""
    tau: float
    """Threshold on the mean score; the tint of a corner is its score relative to it."""
    scale: Scale = "score"
    """Of the scores."""
    roles: Sequence[str] = ROLES
    """Names of the role axis, in order."""
    shown: Sequence[str] | None = None
    """Roles that get a corner of each cell; None shows every role."""
    off: Collection[Head] = ()
    """Heads that are switched off; their cells are struck through."""
    held_before: Bool[np.ndarray, "role layer head"] | None = None
    """Which heads hold which role in what this is compared with; corners then show gained, kept and lost."""
    before: str = "before"
    """What this is compared with, as the legend names it: "against ..."."""
    filled: str = ""
    """What a filled corner means, in a sentence under the tooltip."""
    uniform: Float[np.ndarray, "role layer"] | None = None
    """What evenly spread attention scores; for the tooltip, with `greatest`."""
    greatest: Float[np.ndarray, "role layer"] | None = None
    """What the best possible attention scores; None leaves both columns out."""
    positional: Bool[np.ndarray, "role layer head"] | None = None
    """Held syntactic roles that do not beat pairs of words at the same distance; the tooltip marks them."""
    p_values: Float[np.ndarray, "role layer head"] | None = None
    """Of the tooltip; None leaves the column out."""
    p_name: str = "p"
    """Head of that column, such as "p (Holm)"."""
    odds: bool = False
    """Whether that column holds natural logarithms of evidence, written as odds, in place of p-values."""
    stability: Float[np.ndarray, "role layer head"] | None = None
    """Share of resampled corpora in which each label stays; letters under CERTAIN are faint. None leaves it out."""
    sentences: Sequence[Sequence[str]] | None = None
    """What each head mostly does, by layer: for the tooltip and the file; None leaves it out."""

    @property
    def corners(self) -> list[int]:
        """Positions on the role axis of the roles that get a corner."""
        return [self.roles.index(role) for role in (self.roles if self.shown is None else self.shown)]

    @property
    def removed(self) -> Bool[np.ndarray, "layer head"]:
        """Heads that were removed from the checkpoint: no role of theirs has a score, and some of other heads has."""
        has_score = ~np.isnan(self.scores).all(axis=0)
        return ~has_score & has_score.any()

    @property
    def faint(self) -> Bool[np.ndarray, "role layer head"]:
        """Labels that another corpus could well change."""
        return np.zeros(self.holds.shape, bool) if self.stability is None else self.stability < CERTAIN
