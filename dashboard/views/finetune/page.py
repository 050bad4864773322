"""Fine-tune: train a checkpoint on labelled texts in the background."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.checkpoints.saved_runs import delete_run
from attention_sieve.core.finetuning.settings import TrainingSettings, default_settings
from attention_sieve.dashboard import controls, costs, drawer, state, trainings
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.controls import from_home
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.finetune import wording
from attention_sieve.dashboard.views.finetune.last_run import last_run
from attention_sieve.dashboard.views.pickers import halves, numbers
from attention_sieve.dashboard.views.training import runs as training_runs
from attention_sieve.dashboard.views.training import wording as training_wording
from attention_sieve.dashboard.views.training.folders import (
    RunRequest,
    RunSummary,
    check_name,
    free_name,
    keep_data,
    made_here,
)
from attention_sieve.dashboard.views.training.labelled import Labelled, labelled_texts
from attention_sieve.dashboard.views.training.panel import begin, next_step, running_panel, wrong_texts

NARROWEST: Final = 140
"""Minimum width of a setting, in pixels."""
NOTES: Final = replace(frame.read_notes(Path(__file__).parent, wording.NUMBERS), caveat="")
DEFAULTS: Final = TrainingSettings()


def show() -> None:
    about = frame.about_checkpoint()
    frame.page("Fine-tune", wording.SEE, _finetune, NOTES, about=about, settings=drawer.device_settings)


def _finetune() -> None:
    run = running_panel()
    if run is None:
        last_run()
    with st.expander(wording.FORM, expanded=run is None), errors_shown():
        _form()
    _all_runs()


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
            data = labelled.data
            request = RunRequest(
                name=name,
                checkpoint=files.name,
                data=keep_data(data.name, labelled.content()),
                text_columns=data.text_columns,
                label_column=data.label_column,
                task=data.task,
                settings=settings,
            )
            begin(lambda: training_runs.start(request, state.choice().device))


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
            wrong_texts(summary, "list")
            with st.container(horizontal=True):
                next_step(summary, "list")
                if summary.progress.state != "running":
                    _delete(summary)


def _delete(summary: RunSummary) -> None:
    with st.popover(training_wording.DELETE, icon=":material/delete:"):
        st.markdown(training_wording.about_to_delete(plain(summary.name), summary.n_bytes))
        if st.button(plain(training_wording.delete(summary.name)), key=f"delete {summary.name}", type="primary"):
            with errors_shown():
                delete_run(summary.name)
                st.rerun()
