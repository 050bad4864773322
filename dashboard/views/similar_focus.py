"""What the page Similar heads shows: distances over the chosen texts, and what is drawn of them."""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from cache.distances import distance_question, found_distances
from cache.inference import Answers, Engine, Inference
from cache.recent import Recent
from core.errors import EveryTextTooLong
from core.head_layout import HeadPlane, HeadTree, head_plane, head_tree
from core.similar_heads import Distances, DistanceSettings, HeadDistances
from core.texts import Text
from dashboard import similar_wording as wording
from dashboard.figures.head_kinds import HeadKinds
from dashboard.state import Choice, Head
from dashboard.views.corpus import policy

N_TEXTS: Final = (16, 64, 256)
USUAL: Final = 64
"""Texts that are compared unless the reader asks for others."""
N_TEXTS_KEY: Final = "similar texts"
HOW_FAR_KEY: Final = "similar distance"
MEAN_UNIT: Final = "nats"
SUM_UNIT: Final = "summed nats"
ARRANGED_BYTES: Final = 128 * 2**20
"""Of the latest planes and trees in memory, with their distances, for all readers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Arranged:
    """Distances, and how they are laid out."""

    found: HeadDistances
    distances: Distances
    """Those that are shown."""
    plane: HeadPlane
    tree: HeadTree


@dataclass(frozen=True, eq=False, kw_only=True)
class Similar:
    """What the page's views share."""

    engine: Engine
    arranged: Arranged
    unit: str
    kinds: HeadKinds
    heads: list[Head]
    """That are chosen; the last is the one that others are compared with."""
    facts: dict[str, str]


_arranged: Final[Recent[Hashable, Arranged]] = Recent(ARRANGED_BYTES)
_found: Final[Recent[Hashable, HeadDistances]] = Recent(ARRANGED_BYTES)


def compared_texts(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """Those of the corpus that are compared: as many as chosen, at even steps."""
    wanted = st.session_state.get(N_TEXTS_KEY, USUAL)
    if wanted == wording.ALL_TEXTS or len(texts) <= int(wanted):
        return texts
    return tuple(texts[place * len(texts) // int(wanted)] for place in range(int(wanted)))


def how() -> DistanceSettings:
    """Whether rows are smoothed: for the authors' sum."""
    return DistanceSettings(smoothed=st.session_state.get(HOW_FAR_KEY) == wording.AUTHORS)


def arranged(answers: Answers, question: Hashable) -> Arranged:
    """Distances over the texts and their layout, which a click asks for again and again.

    Args:
        answers: of the texts, two heads or more.
        question: what they answer.
    """
    kept = _arranged.get(question)
    if kept is None:
        found = found_distances(answers)
        distances = found.sum if how().smoothed else found.mean
        kept = Arranged(found=found, distances=distances, plane=head_plane(distances), tree=head_tree(distances))
        _arranged.put(question, kept, 3 * distances.nbytes)
    return kept


def kept_distances(
    inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...]
) -> HeadDistances | None:
    """Mean distances over the texts of the page where they need no pass, for the card of a head; None otherwise."""
    wanted, settings, too_long = compared_texts(texts), chosen.pass_settings(engine), policy()
    try:
        answers = inference.kept_answers(
            engine, distance_question(DistanceSettings()), wanted, settings, too_long=too_long
        )
    except EveryTextTooLong:
        return None
    if answers is None:
        return None
    question = (engine, wanted, settings, too_long)
    kept = _found.get(question)
    if kept is None:
        kept = found_distances(answers)
        _found.put(question, kept, 2 * kept.mean.nbytes)
    return kept
