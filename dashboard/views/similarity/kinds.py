"""What the colours of the map say of heads: behaviours or roles."""

import numpy as np
import streamlit as st

from attention_sieve.core.roles.roles import shown_roles
from attention_sieve.core.surface.analysis import SURFACE_ANALYSIS
from attention_sieve.core.surface.statistics import behaviours
from attention_sieve.dashboard.figures.similarity.head_kinds import BEHAVIOUR_LOOKS, HeadKinds, role_looks
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.similarity import wording


def kinds_of_heads(visit: Visit, compared: Visit, shape: tuple[int, int], by: str) -> HeadKinds:
    """Behaviours over the compared texts, or roles over the corpus; -1 throughout after the reader stopped the work."""
    if by == wording.ROLE:
        return _roles(visit, shape)
    kind_indices = np.full(shape, -1)
    corpus_finding = find(compared, SURFACE_ANALYSIS, SURFACE_ANALYSIS.settings)
    if corpus_finding is None:
        st.info(wording.NO_BEHAVIOUR)
    else:
        kind_indices = behaviours(corpus_finding.finding.heads)
    return HeadKinds(title=wording.BEHAVIOUR, looks=BEHAVIOUR_LOOKS, of=kind_indices)


def _roles(visit: Visit, shape: tuple[int, int]) -> HeadKinds:
    tested, coarse = corpus(visit), tuple[str, ...]()
    kind_indices = np.full(shape, -1)
    if tested is not None:
        tests = tested.tests
        coarse, _ = shown_roles(tests.mean, tests.roles)
        holds = tests.holds[[tests.roles.index(role) for role in coarse]]
        one = np.where(holds.any(axis=0), holds.argmax(axis=0), -1)
        kind_indices = np.where(holds.sum(axis=0) > 1, len(coarse), one)
    return HeadKinds(title=wording.ROLE, looks=role_looks(coarse), of=kind_indices)
