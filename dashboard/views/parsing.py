"""Heads as parsers: what each head finds of a sentence's structure, in three sections of which one is open."""

from collections.abc import Callable

import streamlit as st

from dashboard import parsing_wording as wording
from dashboard.views import coreference, probing, relations


def show() -> None:
    """Draw the page."""
    st.title("Heads as parsers")
    st.markdown(wording.SEE)
    sections: dict[str, Callable[[], None]] = {
        wording.RELATIONS: relations.show_section,
        wording.COREFERENCE: coreference.show_section,
        wording.PROBES: probing.show_section,
    }
    tabs = st.tabs(list(sections), key="parsing section", on_change="rerun", bind="query-params")
    for tab, show_section in zip(tabs, sections.values()):
        if tab.open:
            with tab:
                show_section()
