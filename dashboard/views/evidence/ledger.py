"""The typed texts that count as evidence, all whose scores the reader has seen, even if deleted later; and the button
that adds the text on screen to the typed corpus, which becomes the current corpus.

Otherwise, deleting texts until only those with high scores remain would count as evidence. Only the texts are kept
here; their scores are in the store, so evidence can be recomputed for another tau, checkpoint or setting.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import controls, link, state
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.evidence import wording
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


BEFORE: Final = "corpus before"
"""Key of the corpus before a text was kept."""
KEPT: Final = "kept text"


@dataclass(frozen=True)
class LastKept:
    """Result of the last click."""

    text: Text
    is_new: bool
    """Whether the text was not in the typed corpus yet."""


def keep_button() -> None:
    st.button(
        wording.KEEP,
        key="keep",
        icon=":material/playlist_add:",
        help=wording.KEEP_HELP,
        on_click=_keep,
    )


def say_what_was_kept(text: Text) -> None:
    """Confirm that the text on screen was kept, with a button back to the previous corpus."""
    last: LastKept | None = st.session_state.get(KEPT)
    if st.session_state["corpus"] != controls.TYPED or last is None or last.text != text:
        return
    previous_corpus: str | None = st.session_state.get(BEFORE)
    n_texts = len(_texts(st.session_state.get(controls.TYPED_TEXTS) or ""))
    with st.container(horizontal=True, vertical_alignment="center", key="kept"):
        st.markdown(wording.kept(n_texts, last.is_new, previous_corpus), width="stretch")
        if previous_corpus is not None:
            st.button(
                wording.BACK[previous_corpus],
                key="corpus back",
                icon=":material/undo:",
                type="tertiary",
                help=wording.BACK_HELP,
                on_click=_back,
            )


def _keep() -> None:
    """Callback: widgets take values written to their keys before they are drawn.

    The reader may click without leaving the text area; the typed text arrives with the click, so it is read here.
    """
    values = st.session_state
    on_screen = _texts(values["text"] or "")
    if not on_screen:
        return  # The page says what is wrong with it.
    text = on_screen[min(values.get("number") or 0, len(on_screen) - 1)]
    typed = (values.get(controls.TYPED_TEXTS) or "").rstrip()
    is_new = text not in _texts(typed)
    if is_new:
        values[controls.TYPED_TEXTS] = "\n".join(filter(None, (typed, write_typed([text]))))
    if values["corpus"] != controls.TYPED:
        values[BEFORE] = values["corpus"]
        values["corpus"] = controls.TYPED
        if state.fits_link(values[controls.TYPED_TEXTS]):
            # A text area that is drawn for the first time, in a sidebar that is folded away, does not write the link.
            link.put([], {controls.TYPED_TEXTS: values[controls.TYPED_TEXTS]})
    values[KEPT] = LastKept(text, is_new)


def _back() -> None:
    st.session_state["corpus"] = st.session_state.pop(BEFORE)


def _texts(typed: str) -> tuple[Text, ...]:
    """The typed texts; none if they cannot be read, which the page reports."""
    try:
        return controls.read_typed_texts(typed) if typed.strip() else ()
    except TextError:
        return ()
