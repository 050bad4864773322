"""The one text on screen: its attention and scores, with all heads on and, where some are off, without them."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from cache.serving.requests import Report, Status
from core.attention.settings import PassSettings
from core.errors import TextTooLong
from core.passes.texts import TextAttention
from core.roles.hypotheses import Criterion, text_roles
from core.roles.measures import RoleScores, role_scores
from core.roles.question import SCORES
from core.texts.text import Text
from core.texts.tokens import TooLong
from dashboard import state, wording
from dashboard.plain import plain, show_error
from dashboard.views.frame import Visit
from dashboard.views.pickers import toggle

SLOW_SECONDS: Final = 2
"""Waits longer than this are explained."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PassedText:
    """Attention and scores of a text under one choice of heads."""

    looked: TextAttention
    scored: RoleScores
    """Of this one text."""

    @property
    def scores(self) -> Float[np.ndarray, "role layer head"]:
        """Scores by role; NaN where one does not apply."""
        return self.scored.scores[0]

    def roles(self, criterion: Criterion) -> Bool[np.ndarray, "role layer head"]:
        """Which head plays which role in this text: by its scores alone, as one text allows no test."""
        return text_roles(self.scores, self.scored.uniform[0], criterion)


@dataclass(frozen=True, eq=False, kw_only=True)
class OnScreen:
    """The text that the reader picked."""

    text: Text
    now: PassedText
    """Without the heads that are off."""
    all_on: PassedText | None
    """With all heads on; None where none is off."""


def on_screen(visit: Visit, text: Text) -> OnScreen | None:
    """Run a text through the model; None for one that is too long, after saying so, until the reader has it cut.

    Raises: AnalysisError of any other kind.
    """
    try:
        return _passed_both(visit, text, "error")
    except TextTooLong as error:
        refusal = st.container()
        if not toggle(wording.cut_to(error.limit), key="cut"):
            with refusal:
                show_error(error)
            return None
    return _passed_both(visit, text, "truncate")


@contextmanager
def waiting(loading: str = "") -> Iterator[Report]:
    """Show what a longer wait is for, while it lasts; if the reader has left, Streamlit ends the run at a report.

    Args:
        loading: what is loaded meanwhile; empty for nothing.
    """
    # A container of its own keeps what follows in place, whether there is something to wait for or not.
    container = st.empty()
    try:
        with container.container(), st.spinner(loading, show_time=True) if loading else nullcontext():
            line = st.empty()

            def report(status: Status) -> None:
                slow = (status.seconds_left or 0) > SLOW_SECONDS or status.n_waiting_before
                line.markdown(wording.looking(status.seconds_left, status.n_waiting_before) if slow else "")

            yield report
    finally:
        container.empty()  # also beside a refusal, where nothing is waited for any more


def _passed_both(visit: Visit, text: Text, too_long: TooLong) -> OnScreen:
    inference, engine, settings = visit.inference, visit.engine, visit.settings
    start = state.window_start(text)
    with waiting("" if inference.is_loaded(engine) else wording.loading(plain(engine.files.name))) as report:

        def passed(settings: PassSettings) -> PassedText:
            looked, record = inference.look(engine, text, settings, start=start, too_long=too_long, report=report)
            if record.arrays is None:
                raise TextTooLong(None, record.n_tokens, record.n_tokens - record.n_cut)
            measures = SCORES.unpack(record.arrays)
            return PassedText(looked=looked, scored=role_scores([measures], visit.chosen.score_settings))

        return OnScreen(
            text=text,
            now=passed(settings),
            all_on=passed(PassSettings(settings.kind)) if settings.off else None,
        )
