"""Distances between the heads over the texts of the page, as Similar heads and the card of a head read them."""

from dataclasses import replace
from typing import Final

import streamlit as st

from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.similarity.distances import HeadDistances
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.views.asking import kept_finding
from attention_sieve.dashboard.views.frame import Visit

N_TEXTS: Final = (16, 64, 256)
USUAL: Final = 64
"""Default number of texts that are compared."""
N_TEXTS_KEY: Final = "similarity texts"
ALL_TEXTS: Final = "all"


def compared_texts(texts: tuple[Text, ...]) -> tuple[Text, ...]:
    """The texts of the corpus that are compared: as many as chosen, evenly spaced."""
    n_texts = st.session_state.get(N_TEXTS_KEY, USUAL)
    if n_texts == ALL_TEXTS or len(texts) <= int(n_texts):
        return texts
    return tuple(texts[index * len(texts) // int(n_texts)] for index in range(int(n_texts)))


def kept_distances(visit: Visit) -> HeadDistances | None:
    """Mean distances over the texts of the page for the card of a head, if they need no pass; None otherwise."""
    compared = replace(visit, texts=compared_texts(visit.texts))
    found = kept_finding(compared, SIMILARITY_ANALYSIS, SIMILARITY_ANALYSIS.settings)
    return None if found is None else found.finding
