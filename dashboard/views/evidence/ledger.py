"""The typed texts that evidence counts: every one whose scores the reader has seen, also after it was taken out.

Without that, deleting texts until only those remain that a head scores high on would count as evidence. Only the texts
are kept here; their scores are in the store, so evidence is computed anew for another tau, checkpoint or setting.
"""

from collections.abc import Iterable
from typing import Final

import streamlit as st

from core.texts.text import Text
from dashboard import controls
from dashboard.state import Choice
from dashboard.views.frame import Visit, can_read

BETS: Final = "texts bet on"
"""Key in the session, not in the link: evidence of a link starts with the texts that it brings."""


def is_typed(chosen: Choice) -> bool:
    """Whether the corpus is typed, so that it may grow while the reader looks."""
    return chosen.corpus == controls.TYPED


def decides(chosen: Choice) -> bool:
    """Whether evidence decides in place of the t-test: over typed texts, unless the mean decides.

    Shares above chance can be negative, and a bet needs values from 0 upwards.
    """
    return is_typed(chosen) and chosen.criterion.method == "test" and chosen.score_settings.scale == "score"


def remember(texts: Iterable[Text]) -> None:
    """The reader is about to see scores of these texts."""
    st.session_state[BETS] = tuple(dict.fromkeys((*st.session_state.get(BETS, ()), *texts)))


def counted(visit: Visit) -> tuple[Text, ...]:
    """Texts that evidence counts, each once, in the order in which they came, as far as the attention can read them."""
    kind = visit.settings.kind
    return tuple(
        text for text in dict.fromkeys((*st.session_state.get(BETS, ()), *visit.texts)) if can_read(kind, text)
    )


def taken_out(visit: Visit) -> tuple[Text, ...]:
    """Those of them that are not in the corpus any more."""
    here = set(visit.texts)
    return tuple(text for text in counted(visit) if text not in here)


def start_over() -> None:
    """Let evidence start with the texts that are there now."""
    st.session_state[BETS] = ()
