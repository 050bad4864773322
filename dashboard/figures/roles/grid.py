"""The roles of every head as a grid, for the page and the file."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.hypotheses import CERTAIN
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.dashboard.figures.figure import percent

STABLE: Final = "share of bootstrap resamples of the texts in which the head has the same label: the role, or no role"
FAINT: Final = f"faint: the label stays in fewer than {percent(CERTAIN)} of bootstrap resamples"


@dataclass(frozen=True, eq=False, kw_only=True)
class RoleGrid:
    """Rows are layers, columns heads; a cell has one corner per shown role."""

    label: str
    """Description of the grid with its checkpoint, for screen readers and as the title of the file."""
    scores: Float[np.ndarray, "role layer head"]
    """Mean scores; NaN where a role is not applicable, and for heads that were removed from the checkpoint."""
    holds: Bool[np.ndarray, "role layer head"]
    tau: float
    """Threshold on the mean score; the tint of a corner is its score relative to it."""
    scale: Scale = "score"
    roles: Sequence[str] = ROLES
    """Names of the role axis, in order; none where only patterns are shown, whose cells `sentences` describe."""
    shown: Sequence[str] | None = None
    """Those with a corner in each cell; None for all."""
    title: str = ""
    """Of its files, before the checkpoint and the texts; the number of heads by default."""
    highlight: Collection[Head] | None = None
    """Heads that stay bright on the page while the others are dimmed; None keeps all bright."""
    off: Collection[Head] = ()
    """Heads that are switched off; their cells are struck through."""
    held_before: Bool[np.ndarray, "role layer head"] | None = None
    """Which heads hold which role in the reference of a comparison; corners then show gained, kept and lost roles."""
    before: str = "before"
    """Name of the reference in the legend: "against ..."."""
    filled: str = ""
    """Explanation of a filled corner, a sentence for the tooltip."""
    uniform: Float[np.ndarray, "role layer"] | None = None
    """Score of uniform attention; for the tooltip, with `greatest`."""
    greatest: Float[np.ndarray, "role layer"] | None = None
    """Score of the best possible attention; None leaves both columns out."""
    positional: Bool[np.ndarray, "role layer head"] | None = None
    """Held syntactic roles that are not significantly above other words at the same distance; marked in the tooltip."""
    p_values: Float[np.ndarray, "role layer head"] | None = None
    """None leaves the column out."""
    p_name: str = "p"
    """Header of that column, such as "p (Holm)"."""
    odds: bool = False
    """Whether that column holds natural logarithms of evidence in place of p-values."""
    stability: Float[np.ndarray, "role layer head"] | None = None
    """Share of bootstrap resamples in which each label stays; letters under CERTAIN are faint. None leaves it out."""
    sentences: Sequence[Sequence[str]] | None = None
    """Description of each head, by layer: for the tooltip and the file; None leaves it out."""
    n_shared: int = 1
    """How many neighbouring heads share keys and values; these are bracketed."""
    layers_across: bool = False
    """Whether columns are layers and rows heads instead."""

    @property
    def corners(self) -> list[int]:
        return [self.roles.index(role) for role in (self.roles if self.shown is None else self.shown)]

    @property
    def removed(self) -> Bool[np.ndarray, "layer head"]:
        """Heads that were removed from the checkpoint: they have no score, while other heads have."""
        has_score = ~np.isnan(self.scores).all(axis=0)
        return ~has_score & has_score.any()

    @property
    def faint(self) -> Bool[np.ndarray, "role layer head"]:
        return np.zeros(self.holds.shape, bool) if self.stability is None else self.stability < CERTAIN
