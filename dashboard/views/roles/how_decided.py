"""Sentences about how roles over the corpus are decided, and how long that is valid."""

import streamlit as st

from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.evidence import ledger, wording
from attention_sieve.dashboard.views.frame import Visit


def how_decided(visit: Visit, tested: Corpus) -> None:
    """Say whether a test or evidence decides, and when that is valid."""
    criterion = visit.choice.criterion
    if tested.bets is not None:
        st.markdown(wording.evidence(criterion.alpha))
        if len(set(visit.texts)) < len(visit.texts):
            st.markdown(wording.DUPLICATES)
        _taken_out(ledger.taken_out(visit), ledger.counted(visit), tested)
    elif criterion.method == "mean":
        if ledger.is_typed(visit.choice):
            st.markdown(wording.BY_MEAN)
    else:
        st.markdown(wording.BY_SHARE if ledger.is_typed(visit.choice) else wording.VALID_ONCE)


def _taken_out(removed: tuple[Text, ...], counted: tuple[Text, ...], tested: Corpus) -> None:
    """List the texts that count although they were taken out, with a button to start over."""
    if not removed:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="taken out"):
        st.markdown(wording.taken_out(len(removed)))
        st.button(
            wording.START_OVER,
            key="start over",
            icon=":material/restart_alt:",
            help=wording.START_OVER_HELP,
            on_click=ledger.start_over,
        )
    with st.expander(wording.WHICH):
        st.markdown(wording.WHY_COUNTED)
        st.markdown("\n".join(f"- {plain(provenance.shortened(write_typed([text])))}" for text in removed))
        unread = sum(text not in tested.bets_on for text in removed)
        if unread:
            st.markdown(wording.left_out(unread))
