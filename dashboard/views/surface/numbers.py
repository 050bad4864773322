"""Data of the page Where heads look: the statistics of every head over the corpus."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.surface.labels import HeadLabels, RareShares
from attention_sieve.core.surface.statistics import HeadStatistics, LayerStatistics
from attention_sieve.dashboard.progress import in_its_place
from attention_sieve.dashboard.views.frame import Visit

KEPT: Final = "surface numbers"
"""Session-state key of the last result and its question."""

Statistics = TypeVar("Statistics")


@dataclass(frozen=True, eq=False, kw_only=True)
class Numbers:
    """Statistics of the heads over a corpus."""

    heads: HeadStatistics
    layers: LayerStatistics
    uniform: dict[str, Float[np.ndarray, " layer"]]
    """Entropy of uniform attention by the statistic that it is compared with, in nats."""
    labels: HeadLabels
    rare: RareShares
    n_texts: int
    too_long: tuple[tuple[int, int], ...]
    """Position and number of tokens of each text that was left out or cut."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Surface:
    """What the views of the page share."""

    visit: Visit
    numbers: Numbers
    heads: list[Head]
    """The chosen heads."""
    as_in_code: bool
    """Whether shares are divided as in the authors' code."""
    facts: dict[str, str]


@in_its_place
def remembered(question: Hashable, compute: Callable[[], Statistics | None]) -> Statistics | None:
    """The result, taken from this session's last run if the question is the same; None is computed again."""
    cached = st.session_state.get(KEPT)
    if cached is not None and cached[0] == question:
        return cached[1]
    result = compute()
    if result is not None:
        st.session_state[KEPT] = (question, result)
    return result
