"""What the page Surface shows: the statistics of every head over the corpus, and how a figure of them is drawn."""

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Final, TypeVar

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Engine, Inference
from core.surface_labels import HeadLabels, RareShares
from core.surface_statistics import HeadStatistics, LayerStatistics
from core.texts import Text
from dashboard.state import Choice, Head

KEPT: Final = "surface numbers"
"""Key of what a session computed last."""

Found = TypeVar("Found")


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

    inference: Inference
    engine: Engine
    chosen: Choice
    texts: tuple[Text, ...]
    numbers: Numbers
    heads: list[Head]
    """That are chosen."""
    facts: dict[str, str]


def remembered(question: Hashable, found: Callable[[], Found | None]) -> Found | None:
    """What was found for the same question in this session's last run, or else finds it; None is not remembered."""
    kept = st.session_state.get(KEPT)
    if kept is not None and kept[0] == question:
        return kept[1]
    new = found()
    if new is not None:
        st.session_state[KEPT] = (question, new)
    return new
