"""The one text on screen: its attention and scores, with all heads on and, where some are off, without them."""

from contextlib import nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Engine, Inference, Report, Status
from core.errors import TextTooLong
from core.measures import role_scores
from core.passes import PassSettings, TextAttention
from core.texts import Text
from core.tokens import TooLong
from dashboard import state, wording
from dashboard.plain import plain
from dashboard.state import Choice

SLOW_SECONDS: Final = 2
"""Waits longer than this are explained."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What one pass saw of a text."""

    looked: TextAttention
    scores: Float[np.ndarray, "role layer head"]


@dataclass(frozen=True, eq=False, kw_only=True)
class OnScreen:
    """The text that the reader picked."""

    text: Text
    now: Seen
    """Without the heads that are off."""
    all_on: Seen | None
    """With all heads on; None where none is off."""


def on_screen(inference: Inference, engine: Engine, chosen: Choice, text: Text) -> OnScreen:
    """Look at a text; one that is too long is cut only when the reader says so.

    Raises: AnalysisError of any stage.
    """
    settings = chosen.pass_settings(engine)
    try:
        return _seen_both(inference, engine, chosen, text, settings, "error")
    except TextTooLong:
        if not st.toggle(wording.CUT_THIS, key="cut", bind="query-params", persist_state="session"):
            raise
    return _seen_both(inference, engine, chosen, text, settings, "truncate")


def waiting() -> Report:
    """Say here what a longer wait is for; Streamlit ends the run of a reader who has gone at such a report."""
    said = st.empty()

    def report(status: Status) -> None:
        slow = (status.seconds_left or 0) > SLOW_SECONDS or status.n_waiting_before
        said.markdown(wording.looking(status.seconds_left, status.n_waiting_before) if slow else "")

    return report


def _seen_both(
    inference: Inference, engine: Engine, chosen: Choice, text: Text, settings: PassSettings, too_long: TooLong
) -> OnScreen:
    waits = not inference.is_loaded(engine)
    loading = wording.loading(plain(engine.files.name))
    # A place of its own keeps what follows where it is, whether there is something to wait for or not.
    place = st.empty()
    with place.container(), st.spinner(loading, show_time=True) if waits else nullcontext():
        start, report = state.window_start(text), waiting()

        def seen(asked: PassSettings) -> Seen:
            looked, measured = inference.look(engine, text, asked, start=start, too_long=too_long, report=report)
            if measured.measures is None:
                raise TextTooLong(None, measured.n_tokens, measured.n_tokens - measured.n_cut)
            return Seen(looked=looked, scores=role_scores(measured.measures[None], chosen.score_settings)[0])

        found = OnScreen(
            text=text,
            now=seen(settings),
            all_on=seen(PassSettings(settings.kind)) if settings.off else None,
        )
    place.empty()
    return found
