"""The button that lets a decoder write on, the writing, and what was written after each text: in the session, and in
the link."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.looks import chat, continued
from attention_sieve.cache.serving.shares import STEP_SECONDS
from attention_sieve.core.attention.settings import ONE_STACK, Head
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.generation.settings import HOTTEST, WritingSettings
from attention_sieve.core.roles.question import PassedText
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.arcs import pin_word
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import toggle
from attention_sieve.dashboard.views.text.on_screen import waiting
from attention_sieve.dashboard.views.writing import wording

if TYPE_CHECKING:
    from attention_sieve.core.generation.continuation import Continuation
    from attention_sieve.core.generation.writer import Writer

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
    whole: tuple[int, ...] = ()
    """Positions, in the whole text, of those that took a pass over the whole text each."""


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


WISH: Final = "wish to write"
"""Key of what the reader has asked for: to write "on", or "again" from the prompt."""
CHAT: Final = "chat"
"""Key, and query parameter, of whether the typed lines are turns of a chat."""
MOST_PER_CLICK: Final = 200
LARGEST_SEED: Final = 10**9
TOKENS, TEMPERATURE, SEED = "tokens to write", "temperature", "writing seed"
USUAL: Final = WritingSettings()


def write_button() -> None:
    if not _can_write():
        return
    st.button(
        wording.WRITE,
        key="write on",
        icon=":material/edit_note:",
        help=wording.WRITE_HELP,
        on_click=wish_to_write,
        args=("on",),
    )
    toggle(wording.CHAT, key=CHAT, help=wording.CHAT_HELP)
    with st.popover(wording.HOW, icon=":material/tune:", key="how it writes"):
        kept: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
        st.number_input(wording.TOKENS, 1, MOST_PER_CLICK, USUAL.tokens, key=TOKENS, **kept)
        steps = {"step": 0.1, "format": "%.1f", "help": wording.TEMPERATURE_HELP, **kept}
        st.number_input(wording.TEMPERATURE, 0.0, HOTTEST, USUAL.temperature, key=TEMPERATURE, **steps)
        st.number_input(wording.SEED, 0, LARGEST_SEED, USUAL.seed, key=SEED, help=wording.SEED_HELP, **kept)


def _can_write() -> bool:
    return bool(st.session_state.get(state.WRITES)) and st.session_state.get("kinds", ONE_STACK) == ONE_STACK


def is_chat() -> bool:
    return _can_write() and bool(st.session_state.get(CHAT))


def chat_of(visit: Visit, typed: str) -> Text:
    """The typed turns as the checkpoint reads them; raises AnalysisError."""
    with waiting(_loading(visit)) as report:
        return visit.inference.on_screen(visit.engine, chat, Text((typed,)), typed, report=report)


def _loading(visit: Visit) -> str:
    """What is said while the checkpoint is loaded; empty if it is."""
    is_loaded = visit.inference.is_loaded(visit.engine)
    return "" if is_loaded else shared_wording.loading(plain(visit.engine.files.name))


def text_so_far(visit: Visit, prompt: Text, slot: DeltaGenerator) -> "Continuation | None":
    """The typed text with what was written after it, or None; if the reader has just asked, it grows in the slot."""
    now = written(visit, prompt)
    if (wish := st.session_state.pop(WISH, None)) is not None:
        try:
            _write(visit, prompt, slot, () if wish == "again" or now is None else now.ids)
        except AnalysisError as error:
            with slot:
                show_error(error)
        now = written(visit, prompt)
    try:
        found = None if now is None else continuation_of(visit, prompt, now.ids)
    except AnalysisError as error:  # tokens of a link that are not in the vocabulary
        link.say(plain(str(error)))
        put(visit, prompt, None)
        found = now = None
    put_in_link(now)
    return found


def continuation_of(visit: Visit, prompt: Text, ids: tuple[int, ...]) -> "Continuation":
    """The text with these tokens after it; raises AnalysisError for ids that are not in the vocabulary."""
    with waiting() as report:
        return visit.inference.on_screen(visit.engine, continued, prompt, visit.settings, ids, report=report)


def _write(visit: Visit, prompt: Text, slot: DeltaGenerator, ids: tuple[int, ...]) -> None:
    """Have the model write, a part of a second at a time, between which the work of other readers has its turn.

    All that is written so far is kept at each turn: a click on anything else ends the writing, and nothing is lost.

    Raises: AnalysisError of any stage, and for a text that has its maximum length.
    """
    from attention_sieve.core.generation.writer import Writer  # imports torch

    values = st.session_state
    settings = WritingSettings(int(values[TOKENS]), float(values[TEMPERATURE]), int(values[SEED]))
    growing = slot.empty()
    try:
        with growing.container(key="writing"), waiting(_loading(visit)) as report:
            before = visit.inference.on_screen(visit.engine, continued, prompt, visit.settings, ids, report=report)
            if before.end == "full":
                raise AnalysisError(wording.full(before.n_prompt + len(ids)))
            previous, earlier = written(visit, prompt), written_before(visit, prompt)
            if not ids:
                remember(visit, prompt, previous)
            earlier_whole = previous.whole if ids and previous is not None else ()
            go(before.n_prompt + len(ids) - 1)  # to the first step of what is new
            writer = Writer(before.whole, visit.settings, settings)
            line = st.empty()
            st.button(wording.STOP, key="stop writing", icon=":material/stop:")
            while writer.end is None:
                new, text = visit.inference.run(visit.engine, partial(_turn, writer, before.n_prompt), report)
                ids = (*ids, *new)
                put(visit, prompt, Written(ids, visit.choice.off, settings, (*earlier_whole, *writer.whole)))
                line.markdown(plain(text))
            if previous is not None and previous.ids == ids:  # the same once more
                remember(visit, prompt, earlier)
    finally:
        growing.empty()


def _turn(writer: "Writer", n_prompt: int, checkpoint: Checkpoint) -> tuple[tuple[int, ...], str]:
    """Write for a step; returns the new ids, and all that was written as it is read."""
    new = tuple(each.token for each in writer.write(checkpoint, STEP_SECONDS))
    return new, checkpoint.tokenizer.decode(writer.ids[n_prompt:])


def show_step(screen: PassedText) -> None:
    """Pin the token of the step that the reader has gone to. Call it before the arcs are drawn."""
    position = st.session_state.get(STEP)
    text_attention = screen.text_attention
    if position is None or position >= len(text_attention.text.queries.ids):
        return
    first, last = text_attention.window.queries
    if not first <= position < last:
        start = max(0, position + 1 - (last - first))
        state.move_window(screen.text, (start, start))
        st.rerun()
    del st.session_state[STEP]
    pin_word(text_attention, position)


def wish_to_write(what: str) -> None:
    """Ask to write "on", or "again" from the prompt; a callback."""
    st.session_state[WISH] = what
