"""A reader's own texts with gold mentions, as last asked on Grammar, for what is said of heads everywhere."""

from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.coreference.analysis import COREFERENCE_ANALYSIS, CoreferenceFinding, CoreferenceSettings
from attention_sieve.core.coreference.mentions import Windows
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.views.asking import kept_finding
from attention_sieve.dashboard.views.frame import Visit

_OWN: Final = "own texts with mentions"
"""Session key of the file as last read, with the settings."""
WINDOWS: Final = "windows"
"""Key in memory of texts that are cut to windows, by checkpoint, digest and size of a window."""


@dataclass(frozen=True)
class OwnMentions:
    name: str
    """Of the file."""
    sha256: str
    window: int
    settings: CoreferenceSettings


def remember(own: OwnMentions | None) -> None:
    """Remember what was asked last; None for texts that are not the reader's own."""
    st.session_state[_OWN] = own


def kept_own_mentions(visit: Visit) -> tuple[str, CoreferenceFinding] | None:
    """Name of the reader's own file, and what is found in it; None where there is none or that needs a pass."""
    own: OwnMentions | None = st.session_state.get(_OWN)
    if own is None:
        return None
    cut: Windows | None = memory().get(WINDOWS, (visit.engine, own.sha256, own.window))
    found = None if cut is None else kept_finding(visit, COREFERENCE_ANALYSIS, own.settings, cut.texts)
    return None if found is None else (own.name, found.finding)
