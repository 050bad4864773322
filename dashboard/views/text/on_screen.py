"""The one text on screen, as typed: its attention and scores, with all heads on and, where some are off, without them;
and two fields for a pair of texts."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Final

import streamlit as st

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import TextTooLong
from attention_sieve.core.roles.measures import joined, role_scores
from attention_sieve.core.roles.question import SCORES, PassedText, each_alone, scores_question
from attention_sieve.core.texts.text import PAIR_MARK, Text, write_typed
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import link, state, wording
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.samples import EXAMPLE, PAIR
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import toggle
from attention_sieve.dashboard.views.text import wording as page_wording

EXAMPLE_TYPED: Final = write_typed([EXAMPLE])
PAIR_TYPED: Final = write_typed([PAIR])
"""The text on screen at first where a decoder needs a source and a target."""
NUMBER: Final = "number"
"""Query parameter of the text on screen, counted from 1."""
SEGMENTS: Final = ("first segment", "second segment")


def text_on_screen(texts: tuple[Text, ...]) -> Text:
    """The only text, or the one that the reader selects; the link holds its number."""
    if (value := link.take(NUMBER)) is not None:
        number = int(value) if re.fullmatch("[0-9]{1,6}", value) else 1
        index = min(max(number, 1), len(texts)) - 1
        st.session_state[NUMBER] = index
        if str(index + 1) != value:
            link.say(wording.no_such_number(link.quoted(value), len(texts), index + 1))
    if len(texts) == 1:
        link.put([NUMBER], {})
        return texts[0]
    st.session_state[NUMBER] = min(st.session_state.get(NUMBER, 0), len(texts) - 1)
    selected = st.selectbox(
        wording.ON_SCREEN,
        range(len(texts)),
        format_func=lambda i: f"{i + 1}: {provenance.shortened(' ||| '.join(texts[i].segments))}",
        key=NUMBER,
        persist_state="session",
    )
    link.put([NUMBER], {NUMBER: str(selected + 1)} if selected else {})
    return texts[selected]


def pair_fields() -> None:
    """Draw two fields; what is typed there becomes the text on screen."""
    with st.form("pair of texts", border=False):
        st.markdown(f"**{page_wording.PAIR}**", help=page_wording.PAIR_HELP)
        for key, label in zip(SEGMENTS, (page_wording.FIRST_TEXT, page_wording.SECOND_TEXT)):
            st.text_input(label, key=key)
        st.form_submit_button(page_wording.LOOK_AT_PAIR, on_click=_put_pair)


def _put_pair() -> None:
    # A form that is sent by hand may lack its fields.
    segments = [st.session_state.get(key, "").strip() for key in SEGMENTS]
    if any(segments):
        st.session_state["text"] = PAIR_MARK.join(filter(None, segments))


def text_facts(visit: Visit, text: Text) -> dict[str, str]:
    """What a file about one text was computed from."""
    return {**provenance.engine_facts(visit.choice, visit.engine), "text": " ||| ".join(text.segments)}


SLOW_SECONDS: Final = 2
"""Longer waits are explained."""


def on_screen(visit: Visit, text: Text) -> PassedText | None:
    """Run a text through the model; None for a text that is too long, which is reported, until the reader has it cut.

    Raises: AnalysisError of any other kind.
    """
    try:
        return _run_both(visit, text, "error")
    except TextTooLong as error:
        refusal = st.container()
        if not toggle(f"Use the first {error.limit:,} tokens", key="cut"):
            with refusal:
                show_error(error)
            return None
    return _run_both(visit, text, "truncate")


@contextmanager
def waiting(loading: str = "") -> Iterator[Report]:
    """Explain a longer wait, or what is being loaded, while it lasts; if the reader has left, a report ends the run."""
    # Places of their own keep the position of what follows; while they are empty they take no room, not even a gap.
    spinner, line = st.empty(), st.empty()

    def report(status: Status) -> None:
        if (status.seconds_left or 0) > SLOW_SECONDS or status.n_waiting_before:
            line.markdown(wording.looking(status.seconds_left, status.n_waiting_before))
        else:
            line.empty()

    try:
        with spinner, st.spinner(loading, show_time=True) if loading else nullcontext():
            yield report
    finally:
        for place in (spinner, line):
            place.empty()  # also after an error, when the wait is over


def _run_both(visit: Visit, text: Text, too_long: TooLong) -> PassedText:
    inference, engine, settings = visit.inference, visit.engine, visit.settings
    start = state.window_start(text)
    with waiting("" if inference.is_loaded(engine) else wording.loading(plain(engine.files.name))) as report:

        def run(settings: PassSettings) -> PassedText:
            text_attention, record = inference.look(
                engine, text, settings, start=start, too_long=too_long, report=report
            )
            if record.arrays is None:
                raise TextTooLong(None, record.n_tokens, record.n_tokens - record.n_cut)
            measures = [SCORES.unpack(record.arrays)]
            for names in each_alone(visit.choice.roles)[1:]:
                question = scores_question(names)
                further = inference.ask(engine, question, [text], settings, too_long=too_long, report=report)
                measures += further.results
            scored = role_scores([joined(measures)], visit.choice.score_settings)
            return PassedText(text=text, text_attention=text_attention, scored=scored)

        return replace(run(settings), all_on=run(PassSettings(settings.kind)) if settings.off else None)
