"""Fine-tune: train a checkpoint on labelled texts in the background."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.checkpoints.saved_runs import delete_run
from attention_sieve.core.finetuning.chance import against_chance
from attention_sieve.core.finetuning.settings import TrainingSettings, default_settings
from attention_sieve.core.running import Progress
from attention_sieve.dashboard import controls, costs, drawer, runs, state, trainings
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import from_home
from attention_sieve.dashboard.figures.finetune.training import training_curve
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.progress import stop_button
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.finetune import runs as training_runs
from attention_sieve.dashboard.views.finetune import wording
from attention_sieve.dashboard.views.finetune.folders import (
    RunRequest,
    RunSummary,
    check_name,
    free_name,
    keep_data,
    made_here,
)
from attention_sieve.dashboard.views.finetune.labelled import Labelled, labelled_texts
from attention_sieve.dashboard.views.pickers import halves, numbers

LOOK_AGAIN: Final = 1.0
"""Seconds between two checks of an active run."""
NARROWEST: Final = 140
"""Minimum width of a setting, in pixels."""
WATCHED: Final = "run watched"
"""Key of the run that this reader saw last."""
NOTES: Final = replace(frame.read_notes(Path(__file__).parent, wording.NUMBERS), caveat="")
DEFAULTS: Final = TrainingSettings()


def show() -> None:
    frame.page("Fine-tune", wording.SEE, _finetune, NOTES, settings=drawer.device_settings)


def _finetune() -> None:
    run = running_panel()
    with st.expander(wording.FORM, expanded=run is None), errors_shown():
        _form()
    _all_runs()


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
            stopping = wording.STOPPING if runs.is_stopping(folder) else ""
            stop_button("stop run", partial(runs.stop, folder), wording.STOP_HELP, stopping)
        else:
            summary = next((item for item in made_here() if item.name == run), None)
            if summary is not None:
                _next_step(summary, "panel")
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
        _wrong_texts(summary, "panel")


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


def _wrong_texts(summary: RunSummary, area: str) -> None:
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


def _next_step(summary: RunSummary, area: str) -> None:
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
        _begin(lambda: training_runs.resume(summary, state.choice().device))


def _begin(start: Callable[[], str]) -> None:
    with errors_shown():
        st.session_state[WATCHED] = start()
        st.rerun(scope="app")


def _form() -> None:
    files = controls.engine(state.choice()).files
    left, right = halves()
    with left:
        labelled = labelled_texts()
    with right:
        with st.container():  # whether or not a sentence follows the name, the buttons below keep their place
            name = _name(labelled)
        buttons = st.container(horizontal=True)
        settings = _settings(buttons, DEFAULTS if labelled is None else default_settings(len(labelled.data.texts)))
        running = trainings.running()
        ready = labelled and name and settings and running is None
        if running is not None:
            st.info(plain(shared_wording.one_at_a_time(running)))
        pressed = buttons.button(
            plain(wording.start(files.name)),
            key="start run",
            icon=":material/play_arrow:",
            disabled=not ready,
        )
        if labelled and settings:
            texts = labelled.data.texts
            costs.say(files, costs.TRAINING * settings.epochs * len(texts), texts)
        if pressed and labelled and name and settings:
            _begin(lambda: training_runs.start(_request(files, labelled, name, settings), state.choice().device))


def _request(files: CheckpointFiles, labelled: Labelled, name: str, settings: TrainingSettings) -> RunRequest:
    data = labelled.data
    return RunRequest(
        name=name,
        checkpoint=files.name,
        data=keep_data(data.name, labelled.content()),
        text_columns=data.text_columns,
        label_column=data.label_column,
        task=data.task,
        settings=settings,
    )


def _name(labelled: Labelled | None) -> str | None:
    """A valid name of the new checkpoint; None until there is one."""
    proposed = "" if labelled is None else free_name(labelled.data.name)
    # A proposal that has been taken meanwhile is replaced by the next.
    name = st.text_input(
        wording.NAME, proposed, key=f"name {proposed}", help=wording.NAME_HELP, disabled=labelled is None
    )
    if labelled is None:
        return None
    with errors_shown():
        check_name(name.strip())
        return name.strip()
    return None


def _settings(container: DeltaGenerator, defaults: TrainingSettings) -> TrainingSettings | None:
    """Training settings, in a popover in a container; None if a number is out of range, which is reported below."""
    with container, st.popover(wording.TRAINING_SETTINGS, icon=":material/tune:", key="training settings"):
        grid = st.grid(2, min_column_width=NARROWEST)
        values = numbers(grid, wording.SETTINGS, defaults, empty=wording.OFF)
        st.caption(wording.SETTINGS_NOTE)
    with errors_shown():
        return TrainingSettings(**values)
    return None


def _all_runs() -> None:
    summaries = made_here()
    if not summaries:
        return
    st.subheader(wording.MADE_HERE)
    st.markdown(wording.where(plain(from_home(checkpoints_folder()))))
    for summary in summaries:
        with st.container(border=True, gap="small"):
            data = plain(summary.data_name or "")
            about = wording.made(plain(summary.name), plain(summary.checkpoint), summary.task, data, summary.n_texts)
            st.markdown(f"{about}  \n{wording.made_state(summary.progress, summary.n_bytes)}")
            if summary.progress.state == "failed":
                st.markdown(plain(summary.progress.message))
            _wrong_texts(summary, "list")
            with st.container(horizontal=True):
                _next_step(summary, "list")
                if summary.progress.state != "running":
                    _delete(summary)


def _delete(summary: RunSummary) -> None:
    with st.popover(wording.DELETE, icon=":material/delete:"):
        st.markdown(wording.about_to_delete(plain(summary.name), summary.n_bytes))
        if st.button(plain(wording.delete(summary.name)), key=f"delete {summary.name}", type="primary"):
            with errors_shown():
                delete_run(summary.name)
                st.rerun()
