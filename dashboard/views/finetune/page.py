"""Fine-tune: labelled texts make a checkpoint of one's own, in the background."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.checkpoints.checkpoint import CheckpointFiles
from core.checkpoints.folders import checkpoints_folder
from core.checkpoints.saved_runs import Progress, delete_run
from core.errors import AnalysisError
from core.finetuning.settings import TrainingSettings
from dashboard import controls, drawer, state
from dashboard.controls import from_home
from dashboard.figures.finetune.training import training_curve
from dashboard.plain import plain, show_error
from dashboard.views import frame
from dashboard.views.finetune import runs as training_runs
from dashboard.views.finetune import wording
from dashboard.views.finetune.folders import Asked, Made, check_name, free_name, keep_data, made_here
from dashboard.views.finetune.labelled import Labelled, labelled_texts
from dashboard.views.finetune.runs import FineTuning
from dashboard.views.layout import halves

LOOK_AGAIN: Final = 1.0
"""Seconds between two looks at a run that is on."""
NARROWEST: Final = 140
"""Pixels of a setting."""
WATCHED: Final = "run watched"
"""The run that this reader saw last."""
NOTES: Final = replace(frame.read_notes(Path(__file__).parent, wording.NUMBERS), caveat="")
DEFAULTS: Final = TrainingSettings()


def show() -> None:
    """Draw the page."""
    frame.page("Fine-tune", wording.SEE, _finetune, NOTES, settings=drawer.device_settings)


def _finetune() -> None:
    run = running_panel()
    with st.expander(wording.FORM, expanded=run is None):
        try:
            _form()
        except AnalysisError as error:
            show_error(error)
    _made_here()


def running_panel() -> FineTuning | None:
    """Draw the run that is on, or how the one ended that this reader saw; the same bar on every page.

    Returns: that run; None where there is none.
    """
    run = training_runs.running() or st.session_state.get(WATCHED)
    if run is None:
        return None
    st.session_state[WATCHED] = run
    is_on = training_runs.progress(run).state == "running"

    @st.fragment(run_every=LOOK_AGAIN if is_on else None)
    def panel() -> None:
        now = training_runs.progress(run)
        if is_on and now.state != "running":
            st.rerun()  # what the rest of the page says and offers has changed
        _panel(run, now)

    with st.container(border=True, key="run"):
        panel()
    return run


def _panel(run: FineTuning, now: Progress) -> None:
    st.markdown(wording.head(plain(run.name), plain(now.checkpoint)))
    if now.state == "running":
        st.progress(min(now.step / now.steps, 1.0) if now.steps else 0.0, plain(wording.running(now)))
    else:
        _say_end(run, now)
    with st.container(horizontal=True, vertical_alignment="center"):
        if now.state == "running":
            _stop_button(run)
        else:
            _after(run)
    if measured := wording.measured(now):
        st.markdown(measured)
    for note in now.notes:
        st.markdown(plain(note))
    if now.losses or now.held_out:
        figure = training_curve(now)
        # With other words the chart would be drawn anew every second.
        said = wording.CURVE if now.state == "running" else figure.description
        st.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=said, key="training curve")


def _say_end(run: FineTuning, now: Progress) -> None:
    if now.state == "finished":
        st.success(plain(wording.finished(now, from_home(training_runs.folder(run)))), icon=":material/check_circle:")
    elif now.state == "failed":
        st.error(plain(now.message), icon=":material/error:")
    else:
        said = wording.stopped(now) if now.state == "stopped" else wording.left(now)
        st.info(plain(said), icon=":material/pause_circle:")


def _stop_button(run: FineTuning) -> None:
    if training_runs.is_stopping(run):
        st.markdown(wording.STOPPING)
        return
    st.button(
        wording.STOP,
        key="stop run",
        icon=":material/stop_circle:",
        help=wording.STOP_HELP,
        on_click=run.stop,
    )


def _after(run: FineTuning) -> None:
    """What can be done once a run has ended."""
    made = next((each for each in made_here() if each.name == run.name), None)
    if made is not None:
        _next_step(made, "panel")
    if st.button(wording.CLOSE, key="close run", icon=":material/close:"):
        del st.session_state[WATCHED]
        st.rerun(scope="app")


def _next_step(made: Made, where: str) -> None:
    """Compare what is finished; go on with what is not."""
    pages = st.session_state["pages"]
    if made.progress.state == "finished" and "compare" in pages:
        st.page_link(
            pages["compare"],
            label=plain(wording.compare_with(made.checkpoint)),
            icon=":material/compare:",
            query_params={"checkpoint": made.checkpoint, "with": made.name},
        )
    if training_runs.can_resume(made) and st.button(
        wording.resume(made.name), key=f"resume {made.name} {where}", icon=":material/play_circle:"
    ):
        _begin(lambda: training_runs.resume(made, state.choice().device))


def _begin(start: Callable[[], FineTuning]) -> None:
    """Start a run and show it; say here why it cannot."""
    try:
        st.session_state[WATCHED] = start()
    except AnalysisError as error:
        show_error(error)
    else:
        st.rerun(scope="app")


def _form() -> None:
    files = controls.engine(state.choice()).files
    left, right = halves()
    with left:
        labelled = labelled_texts()
    with right:
        name = _name(labelled)
        buttons = st.container(horizontal=True)
        settings = _settings(buttons)
        running = training_runs.running()
        ready = labelled and name and settings and running is None
        if running is not None:
            st.info(plain(wording.one_at_a_time(running.name)))
        pressed = buttons.button(
            plain(wording.start(files.name)),
            key="start run",
            icon=":material/play_arrow:",
            disabled=not ready,
        )
        if pressed and labelled and name and settings:
            _begin(lambda: training_runs.start(_asked(files, labelled, name, settings), state.choice().device))


def _asked(files: CheckpointFiles, labelled: Labelled, name: str, settings: TrainingSettings) -> Asked:
    data = labelled.data
    return Asked(
        name=name,
        checkpoint=files.name,
        data=keep_data(data.name, labelled.content()),
        text_columns=data.text_columns,
        label_column=data.label_column,
        task=data.task,
        settings=settings,
    )


def _name(labelled: Labelled | None) -> str | None:
    """A name that the new checkpoint can have; None until there is one."""
    proposed = "" if labelled is None else free_name(labelled.data.name)
    # A proposal that is taken by now makes way for the next.
    name = st.text_input(
        wording.NAME, proposed, key=f"name {proposed}", help=wording.NAME_HELP, disabled=labelled is None
    )
    if labelled is None:
        return None
    try:
        check_name(name.strip())
    except AnalysisError as error:
        show_error(error)
        return None
    return name.strip()


def _settings(place: DeltaGenerator) -> TrainingSettings | None:
    """How to train, in a drawer at a place; None where a number is out of range, which is said below."""
    with place, st.popover(wording.TRAINING_SETTINGS, icon=":material/tune:", key="training settings"):
        grid = st.grid(2, min_column_width=NARROWEST)
        asked = {key: _number(grid.cell(), key, *said) for key, said in wording.SETTINGS.items()}
    try:
        return TrainingSettings(**asked)
    except AnalysisError as error:
        show_error(error)
        return None


def _number(place: DeltaGenerator, key: str, label: str, explained: str, step: float) -> Any:
    """One of the settings, whole where its step is; None where an optional one is left empty."""
    return place.number_input(
        label,
        value=getattr(DEFAULTS, key),
        step=step,
        format="%d" if isinstance(step, int) else "%g",
        key=key,
        help=explained,
        placeholder=wording.OFF,
        bind="query-params",
        persist_state="session",
    )


def _made_here() -> None:
    all_made = made_here()
    if not all_made:
        return
    st.subheader(wording.MADE_HERE)
    st.markdown(wording.where(plain(from_home(checkpoints_folder()))))
    for made in all_made:
        with st.container(border=True, gap="small"):
            data = plain(made.data_name or "")
            about = wording.made(plain(made.name), plain(made.checkpoint), made.task, data, made.n_texts)
            st.markdown(f"{about}  \n{wording.made_state(made.progress, made.n_bytes)}")
            if made.progress.state == "failed":
                st.markdown(plain(made.progress.message))
            with st.container(horizontal=True):
                _next_step(made, "list")
                if made.progress.state != "running":
                    _delete(made)


def _delete(made: Made) -> None:
    """Delete a run, once the reader has said so twice."""
    with st.popover(wording.DELETE, icon=":material/delete:"):
        st.markdown(wording.about_to_delete(plain(made.name), made.n_bytes))
        if st.button(plain(wording.delete(made.name)), key=f"delete {made.name}", type="primary"):
            try:
                delete_run(made.name)
            except AnalysisError as error:
                show_error(error)
                return
            watched = st.session_state.get(WATCHED)
            if watched is not None and watched.name == made.name:
                del st.session_state[WATCHED]
            st.rerun()
