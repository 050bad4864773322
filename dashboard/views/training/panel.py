"""The panel of a training, the same on every page: how far it is, how it ended, and what can be done next."""

from collections.abc import Callable
from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.core.finetuning.chance import against_chance
from attention_sieve.core.running import Progress
from attention_sieve.dashboard import runs, state, trainings
from attention_sieve.dashboard.controls import from_home
from attention_sieve.dashboard.figures.finetune import training_curve
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views.training import runs as training_runs
from attention_sieve.dashboard.views.training import wording
from attention_sieve.dashboard.views.training.folders import (
    RunSummary,
    made_here,
)

LOOK_AGAIN: Final = 1.0
"""Seconds between two checks of an active run."""
WATCHED: Final = "run watched"
"""Key of the run that this reader saw last."""


def running_panel() -> str | None:
    """Draw the active run, or the end of the one that this reader saw last; the same panel on every page.

    Returns: its name; None if there is none.
    """
    run = trainings.running() or st.session_state.get(WATCHED)
    now = None if run is None else trainings.look(run)
    if run is None or now is None:
        st.session_state.pop(WATCHED, None)
        return None
    st.session_state[WATCHED] = run
    is_on = now.state == "running"

    @st.fragment(run_every=LOOK_AGAIN if is_on else None)
    def panel() -> None:
        progress = trainings.look(run)
        if progress is None or (is_on and progress.state != "running"):
            st.rerun()  # the rest of the page has changed
        _panel(run, progress)

    with st.container(border=True, key="run"):
        panel()
    return run


def _panel(run: str, progress: Progress) -> None:
    summary = None
    st.markdown(wording.head(plain(run), plain(progress.checkpoint)))
    if progress.state == "running":
        st.progress(progress.share, plain(wording.running(progress)))
    else:
        _say_end(run, progress)
    with st.container(horizontal=True, vertical_alignment="center"):
        if progress.state == "running":
            folder = trainings.folder(run)
            runs.stop_of("stop run", folder)
        else:
            summary = next((item for item in made_here() if item.name == run), None)
            if summary is not None:
                next_step(summary, "panel")
            if st.button(wording.CLOSE, key="close run", icon=":material/close:"):
                del st.session_state[WATCHED]
                st.rerun(scope="app")
    if measured := wording.measured(progress):
        st.markdown(measured)
    for note in progress.notes:
        st.markdown(plain(note))
    if progress.losses or progress.held_out:
        figure = training_curve(progress)
        # With a changing description the chart would be redrawn every second.
        alt = wording.CURVE if progress.state == "running" else figure.description
        st.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=alt, key="training curve")
    if summary is not None:
        wrong_texts(summary, "panel")


def _say_end(run: str, progress: Progress) -> None:
    if progress.state == "finished":
        beside = against_chance(progress)
        sentence = plain(wording.finished(progress, from_home(trainings.folder(run))))
        if beside is not None and beside.is_above:
            st.success(sentence, icon=":material/check_circle:")
        else:
            st.info(sentence, icon=":material/flag:")
    elif progress.state == "failed":
        st.error(plain(progress.message), icon=":material/error:")
    else:
        sentence = wording.stopped(progress) if progress.state == "stopped" else wording.left(progress)
        st.info(plain(sentence), icon=":material/pause_circle:")


def wrong_texts(summary: RunSummary, area: str) -> None:
    if not summary.wrong:
        return
    with st.expander(wording.WRONG):
        st.markdown(wording.LARGEST_ERRORS if summary.task == "regression" else wording.SUREST_WRONG)
        segments = [wording.SHOWN_TEXT, wording.SHOWN_SECOND][: len(summary.wrong[0].segments)]
        rows = [[text.label, text.predicted, *text.segments] for text in summary.wrong]
        st.dataframe(
            pd.DataFrame(rows, columns=[wording.SHOWN_LABEL, wording.SHOWN_PREDICTED, *segments]),
            hide_index=True,
            alt=wording.WRONG,
            key=f"wrong texts {summary.name} {area}",
        )


def next_step(summary: RunSummary, area: str) -> None:
    """A link to compare a finished run, or a button to resume an unfinished one."""
    pages = st.session_state["pages"]
    if summary.progress.state == "finished" and "compare" in pages:
        st.page_link(
            pages["compare"],
            label=plain(wording.compare_with(summary.checkpoint)),
            icon=":material/compare:",
            query_params={"checkpoint": summary.checkpoint, "with": summary.name},
        )
    if training_runs.can_resume(summary) and st.button(
        wording.resume(summary.name), key=f"resume {summary.name} {area}", icon=":material/play_circle:"
    ):
        begin(lambda: training_runs.resume(summary, state.choice().device))


def begin(start: Callable[[], str]) -> None:
    with errors_shown():
        st.session_state[WATCHED] = start()
        st.rerun(scope="app")
