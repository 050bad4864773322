"""Above the grid of a decoder, or of long texts: why shares are shown, and which texts tell what its heads do."""

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.dashboard import controls, state, wording
from attention_sieve.dashboard.state import Choice


def decoder_notes(choice: Choice) -> None:
    """One line each, with buttons; nothing for an encoder on short texts.

    Below what the reader can switch: what stands above a switch must not come and go, or the address forgets it.
    """
    writes = st.session_state.get(state.WRITES, False)
    by_share = choice.scale == "share" == state.usual_scale() and not st.session_state.get(state.SCALE_CHOSEN)
    offers_probes = writes and choice.corpus not in (*controls.PROBES, controls.RESULTS)
    if not by_share and not offers_probes:
        return
    with st.container(gap="xxsmall"):
        if by_share:
            with _line("usual scale", wording.BY_DECODER if writes else wording.BY_LENGTH):
                st.button(wording.BACK_TO_SCORES, type="tertiary", on_click=state.choose_scale, args=("score",))
        if offers_probes:
            with _line("offer probe texts", wording.ON_PROBES):
                for corpus in controls.PROBES:
                    label = corpus.removeprefix("probe texts: ")
                    st.button(label, key=f"to {corpus}", type="tertiary", on_click=_choose, args=(corpus,))


def _line(key: str, sentence: str) -> DeltaGenerator:
    line = st.container(horizontal=True, gap="small", vertical_alignment="center", key=key)
    line.caption(sentence, width="content")
    return line


def _choose(corpus: str) -> None:
    st.session_state["corpus"] = corpus
