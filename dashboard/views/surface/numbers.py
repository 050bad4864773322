"""What the page Where heads look shows: the statistics of every head over the corpus."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import streamlit as st
from jaxtyping import Float

from core.attention.settings import Head
from core.surface.labels import HeadLabels, RareShares
from core.surface.statistics import HeadStatistics, LayerStatistics
from dashboard.progress import in_its_place
from dashboard.views.frame import Visit

KEPT: Final = "surface numbers"
"""Key of what a session computed last."""

Statistics = TypeVar("Statistics")


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """What is said of the heads over a corpus."""

    heads: HeadStatistics
    layers: LayerStatistics
    uniform: dict[str, Float[np.ndarray, " layer"]]
    """Entropy of uniform attention by the statistic that it is compared with, in nats."""
    labels: HeadLabels
    rare: RareShares
    n_texts: int
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface:
    """The page's numbers and what they are of."""

    visit: Visit
    numbers: Numbers
    heads: list[Head]
    """That are chosen."""
    as_in_code: bool
    """Whether shares are divided as in the authors' code."""
    facts: dict[str, str]


@in_its_place
def remembered(question: Hashable, compute: Callable[[], Statistics | None]) -> Statistics | None:
    """Computed, or as it was in this session's last run if that asked the same; None is computed again."""
    kept = st.session_state.get(KEPT)
    if kept is not None and kept[0] == question:
        return kept[1]
    new = compute()
    if new is not None:
        st.session_state[KEPT] = (question, new)
    return new
