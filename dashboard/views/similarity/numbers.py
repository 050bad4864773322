"""Data of the page Similar heads: distances over the chosen texts, and their layouts."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.similarity.distances import Distances, DistanceSettings, HeadDistances
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.views.asking import kept_finding
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.similarity import wording

if TYPE_CHECKING:
    from attention_sieve.core.similarity.layout import HeadPlane, HeadTree
    from attention_sieve.dashboard.figures.similarity.head_kinds import HeadKinds
    from attention_sieve.dashboard.views.descriptions.sentences import Sentences

N_TEXTS: Final = (16, 64, 256)
USUAL: Final = 64
"""Default number of texts that are compared."""
N_TEXTS_KEY: Final = "similarity texts"
HOW_FAR_KEY: Final = "similarity distance"
MEAN_UNIT: Final = "nats"
SUM_UNIT: Final = "summed nats"


@dataclass(frozen=True, eq=False, kw_only=True)
class Arranged:
    divergences: HeadDistances
    distances: Distances
    """The distances that are shown."""
    plane: "HeadPlane"
    tree: "HeadTree"


@dataclass(frozen=True, eq=False, kw_only=True)
class Similar:
    engine: Engine
    arranged: Arranged
    unit: str
    kinds: "HeadKinds"
    heads: list[Head]
    """The chosen heads; the others are compared with the last one."""
    facts: dict[str, str]
    sentences: "Sentences | None"
    """What each head mostly does over the corpus; None if unknown."""


def compared_texts(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The texts of the corpus that are compared: as many as chosen, evenly spaced."""
    n_texts = st.session_state.get(N_TEXTS_KEY, USUAL)
    if n_texts == wording.ALL_TEXTS or len(texts) <= int(n_texts):
        return texts
    return tuple(texts[index * len(texts) // int(n_texts)] for index in range(int(n_texts)))


def how() -> DistanceSettings:
    """Settings of the distance: rows are smoothed only for the authors' sum."""
    return DistanceSettings(smoothed=st.session_state.get(HOW_FAR_KEY) == wording.AUTHORS)


def arranged(measured: HeadDistances) -> Arranged:
    """Distances of two heads or more, and their layouts, cached between clicks."""
    from attention_sieve.core.similarity.layout import head_plane, head_tree  # which the card of a head does without

    distances = measured.sum if how().smoothed else measured.mean

    def laid_out() -> Arranged:
        plane, tree = head_plane(distances), head_tree(distances)
        return Arranged(divergences=measured, distances=distances, plane=plane, tree=tree)

    return memory().get_or_put("arranged", measured, laid_out)


def kept_distances(visit: Visit) -> HeadDistances | None:
    """Mean distances over the texts of the page for the card of a head, if they need no pass; None otherwise."""
    compared = replace(visit, texts=compared_texts(visit.texts))
    found = kept_finding(compared, SIMILARITY_ANALYSIS, SIMILARITY_ANALYSIS.settings)
    return None if found is None else found.finding
