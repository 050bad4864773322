"""Above the grid of a decoder, or of long texts: why shares are shown, and which texts tell what its heads do."""

from functools import partial

import streamlit as st

from attention_sieve.dashboard import controls, state, wording
from attention_sieve.dashboard.run_kinds import A_RESULTS_FOLDER
from attention_sieve.dashboard.state import Choice


def decoder_notes(choice: Choice) -> None:
    """A sentence each, with buttons; nothing for an encoder on short texts.

    Below what the reader can switch: what stands above a switch must not come and go, or the address forgets it.
    """
    writes = st.session_state.get(state.WRITES, False)
    by_share = choice.scale == "share" and not st.session_state.get("scale")
    offers_probes = writes and choice.corpus not in (*controls.PROBES, A_RESULTS_FOLDER)
    if by_share:
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="shares above chance"):
            st.caption(wording.BY_DECODER if writes else wording.BY_LENGTH, width="content")
            st.button(wording.BACK_TO_SCORES, type="tertiary", on_click=state.choose_scale, args=("score",))
    if offers_probes:
        with st.container(horizontal=True, gap="xsmall", vertical_alignment="center", key="probe texts"):
            st.caption(wording.ON_PROBES, width="content")
            for corpus in controls.PROBES:
                label = corpus.removeprefix("probe texts: ")
                choose = partial(st.session_state.update, {"corpus": corpus})
                st.button(label, key=f"to {corpus}", type="tertiary", on_click=choose)
