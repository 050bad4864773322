"""The one text on screen: its attention and scores, with all heads on and, where some are off, without them."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

import streamlit as st

from attention_sieve.cache.serving.requests import Report, Status
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.errors import TextTooLong
from attention_sieve.core.roles.measures import joined, role_scores
from attention_sieve.core.roles.question import SCORES, PassedText, each_alone, scores_question
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import state, wording
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import toggle

SLOW_SECONDS: Final = 2
"""Longer waits are explained."""


@dataclass(frozen=True, eq=False, kw_only=True)
class OnScreen:
    text: Text
    now: PassedText
    """Without the heads that are off."""
    all_on: PassedText | None
    """With all heads on; None where none is off."""


def on_screen(visit: Visit, text: Text) -> OnScreen | None:
    """Run a text through the model; None for a text that is too long, which is reported, until the reader has it cut.

    Raises: AnalysisError of any other kind.
    """
    try:
        return _run_both(visit, text, "error")
    except TextTooLong as error:
        refusal = st.container()
        if not toggle(wording.cut_to(error.limit), key="cut"):
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


def _run_both(visit: Visit, text: Text, too_long: TooLong) -> OnScreen:
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
            return PassedText(text_attention=text_attention, scored=scored)

        return OnScreen(
            text=text,
            now=run(settings),
            all_on=run(PassSettings(settings.kind)) if settings.off else None,
        )
