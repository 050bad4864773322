"""The head of the riddle, tried on the sentence of the reader's own that follows it."""

from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.core.word_links.pronouns import found_before
from attention_sieve.dashboard.views.riddle import wording

_TRIED: Final = "riddle tried on"


@dataclass(frozen=True)
class _Tried:
    head: Head
    typed: str
    fingerprint: str
    """Of the checkpoint."""


def try_on(head: Head, typed: str, fingerprint: str) -> None:
    """Have the working page say what a head does with the pronouns of a text, as long as that is on screen."""
    st.session_state[_TRIED] = _Tried(head, typed, fingerprint)


def say_what_it_finds(typed: str, text_attention: TextAttention, fingerprint: str) -> None:
    tried: _Tried | None = st.session_state.get(_TRIED)
    if tried is None or (tried.typed, tried.fingerprint) != (typed, fingerprint):
        return
    links, name = found_before(text_attention, tried.head), head_name(*tried.head)
    if not links:
        st.markdown(wording.nothing_to_find(name))
        return
    found, missed = (
        [(link.sentence, float(link.attention[tried.head])) for link in links if link.follows[tried.head] == follows]
        for follows in (True, False)
    )
    st.markdown(wording.on_own(name, found, missed))
