"""The second sentence: its way into the session and the link, and out of them again."""

from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.core.errors import TextError
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import controls, link, state
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED, NUMBER
from attention_sieve.dashboard.views.text.stories import put_on_screen
from attention_sieve.dashboard.views.word_swap import wording

SWAP: Final = "swap"
"""Key, and query parameter, of the second sentence."""
IS_ON: Final = "two sentences"
"""Key of whether the page shows two sentences; a link with a second one does."""


@dataclass(frozen=True)
class SwapExample:
    label: str
    a: str
    b: str
    note: str = ""
    """What to look for, where little changes."""


EXAMPLES: Final = (
    SwapExample("a fish, a cold", "She caught a fish at the lake.", "She caught a cold at the lake."),
    SwapExample(
        "a typo",
        "The old baker closed her shop because customers had left.",
        "The old bakre closed her shop because customers had left.",
    ),
    SwapExample(
        "he and she",
        "The nurse told the doctor that he was late.",
        "The nurse told the doctor that she was late.",
    ),
    SwapExample(
        "too big, too small",
        "The trophy did not fit into the suitcase because it was too big.",
        "The trophy did not fit into the suitcase because it was too small.",
        wording.WHAT_IS_IT,
    ),
)
"""The first one moves much of the attention of the bundled checkpoint, and turns its sentence vector far."""


def is_on() -> bool:
    """Whether the page Inspect shows two sentences; a lesson shows its own."""
    if link.asks_for([SWAP, SWAP + controls.IN_TAB]):
        st.session_state[IS_ON] = True
    return st.session_state.get(IS_ON, False) and not state.lesson_is_on("inspect")


def change_a_word(typed: str) -> None:
    is_pair = any(len(text.segments) > 1 for text in _on_screen(typed))
    st.button(
        wording.CHANGE,
        key="change a word",
        icon=":material/swap_horiz:",
        help=wording.NOT_OF_PAIRS if is_pair else wording.CHANGE_HELP,
        disabled=is_pair,
        on_click=_begin,
    )


def examples() -> None:
    """Draw a button for each ready example, one that leads back to one sentence, and one to click after typing."""
    with st.container(horizontal=True, vertical_alignment="center", key="swaps"):
        st.button(wording.LOOK, key="look at both", icon=":material/visibility:", help=wording.LOOK_HELP)
        st.markdown(wording.EXAMPLES, width="content")
        for number, example in enumerate(EXAMPLES):
            st.button(example.label, key=f"swap example {number}", on_click=_take, args=(example,))
        st.button(wording.BACK, key="end swap", icon=":material/undo:", type="tertiary", on_click=_end)


def note(a: str, b: str) -> None:
    """Say what to look for, if both sentences are an example with a note."""
    for example in EXAMPLES:
        if (example.a, example.b) == (a, b) and example.note:
            st.caption(example.note)


def _begin() -> None:
    """Callback: the text arrives with the click, so it is read here. The first visit's text gives way to an example."""
    st.session_state[IS_ON] = True
    state.forget_heads()
    typed = st.session_state["text"] or ""
    if typed == EXAMPLE_TYPED:
        _take(EXAMPLES[0])
        return
    st.session_state[SWAP] = write_typed(_on_screen(typed))


def _on_screen(typed: str) -> tuple[Text, ...]:
    """The typed text that is on screen; empty for what cannot be read, of which the page says what is wrong."""
    try:
        texts = controls.read_typed_texts(typed)
    except TextError:
        return ()
    return texts[min(st.session_state.get(NUMBER) or 0, len(texts) - 1) :][:1]


def _take(example: SwapExample) -> None:
    put_on_screen(example.a)
    state.forget_heads()
    st.session_state[SWAP] = example.b


def _end() -> None:
    st.session_state[IS_ON] = False  # Streamlit removes the field and its parameter
    link.put([SWAP + controls.IN_TAB], {})
