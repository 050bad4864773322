"""What was written after each text: in the session, and in the link."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.generation.settings import WritingSettings
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.writing import wording

WRITTEN: Final = "written"
"""Key, and query parameter, of the ids of what was written after the text on screen."""
BEFORE: Final = "written before"
"""Key of what stood in its place before."""
STEP: Final = "step of writing"
"""Key of the position of the token whose step is to be shown: the one from which the next token was written."""
_IDS: Final = re.compile("[0-9]{1,9}(,[0-9]{1,9})*")


@dataclass(frozen=True)
class Written:
    ids: tuple[int, ...]
    off: tuple[Head, ...] | None = None
    """Heads that were off when the last of them was written; None where the link gives the tokens."""
    settings: WritingSettings | None = None
    """How they were chosen; None likewise."""


def written(visit: Visit, prompt: Text) -> Written | None:
    """What stands after a text; on a first visit, what the link says."""
    value = link.take(WRITTEN)
    if value is not None:
        if _IDS.fullmatch(value):
            put(visit, prompt, Written(tuple(map(int, value.split(",")))))
        else:
            link.say(wording.no_ids(link.quoted(value)))
    found: Written | None = st.session_state.get(WRITTEN, {}).get(_key(visit, prompt))
    return found


def written_before(visit: Visit, prompt: Text) -> Written | None:
    """What stood there before it was written again."""
    found: Written | None = st.session_state.get(BEFORE, {}).get(_key(visit, prompt))
    return found


def put(visit: Visit, prompt: Text, now: Written | None) -> None:
    """Put tokens after a text in place of those that stand there; None for nothing."""
    after = st.session_state.setdefault(WRITTEN, {})
    after.pop(_key(visit, prompt), None)
    if now is not None and now.ids:
        after[_key(visit, prompt)] = now


def remember(visit: Visit, prompt: Text, before: Written | None) -> None:
    st.session_state.setdefault(BEFORE, {})[_key(visit, prompt)] = before


def put_in_link(now: Written | None) -> None:
    """Write the tokens to the address bar, unless they are too many."""
    value = "" if now is None else ",".join(map(str, now.ids))
    fits = state.fits_link(value)
    link.put([WRITTEN], {WRITTEN: value} if value and fits else {})
    if not fits:
        link.leave_out_text()


def go(position: int) -> None:
    """Go to the step in which the token after this one was written."""
    st.session_state[state.GUESS] = st.session_state[STEP] = position


def first_difference(now: Sequence[int], before: Sequence[int]) -> int | None:
    """Index of the first token in which two texts differ; None where one begins with the other."""
    return next((index for index, (a, b) in enumerate(zip(now, before)) if a != b), None)


def _key(visit: Visit, prompt: Text) -> tuple[str, Text]:
    return visit.engine.files.fingerprint, prompt
