"""The typed texts that count as evidence: all whose scores the reader has seen, even if deleted later.

Otherwise, deleting texts until only those with high scores remain would count as evidence. Only the texts are kept
here; their scores are in the store, so evidence can be recomputed for another tau, checkpoint or setting.
"""

from collections.abc import Iterable
from typing import Final

import streamlit as st

from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.frame import Visit, can_read

BETS: Final = "texts bet on"
"""Key in the session only: evidence after opening a link starts with the texts of the link."""


def is_typed(choice: Choice) -> bool:
    """Whether the corpus is typed, so that it may grow while the reader looks at results."""
    return choice.corpus == controls.TYPED


def decides(choice: Choice) -> bool:
    """Whether evidence decides instead of the t-test: for typed texts, unless the mean decides.

    Shares above chance can be negative, and a bet needs values from 0 upwards.
    """
    return is_typed(choice) and choice.criterion.method == "test" and choice.score_settings.scale == "score"


def remember(texts: Iterable[Text]) -> None:
    st.session_state[BETS] = tuple(dict.fromkeys((*st.session_state.get(BETS, ()), *texts)))


def counted(visit: Visit) -> tuple[Text, ...]:
    """Distinct texts that count as evidence and that the attention can read, in order of first appearance."""
    kind = visit.settings.kind
    return tuple(
        text for text in dict.fromkeys((*st.session_state.get(BETS, ()), *visit.texts)) if can_read(kind, text)
    )


def taken_out(visit: Visit) -> tuple[Text, ...]:
    """Counted texts that are no longer in the corpus."""
    corpus = set(visit.texts)
    return tuple(text for text in counted(visit) if text not in corpus)


def start_over() -> None:
    st.session_state[BETS] = ()
