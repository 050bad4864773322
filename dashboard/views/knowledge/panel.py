"""The run that probes: begun, watched, stopped, and gone on with."""

from collections.abc import Sequence

import streamlit as st

from core.errors import AnalysisError
from core.probing_tasks.trials.progress import TrialsProgress
from core.probing_tasks.trials.result import Stage, TrialResult
from dashboard.plain import plain, show_error
from dashboard.public import NOT_HERE, is_public
from dashboard.views.frame import Visit
from dashboard.views.knowledge import runs, wording
from dashboard.views.knowledge.asked import LOOK_AGAIN
from dashboard.views.knowledge.numbers import Settings, Subject, known_result, trial_of
from dashboard.views.knowledge.task_files import TaskFile


def run_panel(
    visit: Visit,
    subjects: Sequence[Subject],
    tasks: Sequence[TaskFile],
    settings: Settings,
    stages: tuple[Stage, ...],
) -> None:
    """Show the run that is on, or offer to begin what is not known yet."""
    if is_public():
        st.caption(NOT_HERE)
        return
    now = runs.look()
    if now is not None and now.state == "running":
        _watch(now)
        return
    if now is not None:
        _say_how_it_ended(now)
    known = [[known_result(subject, task, settings, visit) for task in tasks] for subject in subjects]
    n_known = sum(_is_done(each, stages) for row in known for each in row)
    if n_known == len(subjects) * len(tasks):
        return
    begun = any(each is not None for row in known for each in row)
    if begun:
        st.caption(wording.known_already(n_known, len(subjects) * len(tasks)))
    missing = [task for place, task in enumerate(tasks) if not all(_is_done(row[place], stages) for row in known)]
    label = wording.probe_button(len(missing), len(subjects), begun)
    missing.sort(key=lambda task: sum(task.n_rows))  # the first result is there soon
    if st.button(label, key="probe", icon=":material/play_arrow:", type="primary"):
        trials = [trial_of(subject, task, settings, visit) for subject in subjects for task in missing]
        try:
            runs.start(trials, stages, visit.chosen.device, visit.engine.dtype)
        except AnalysisError as error:
            show_error(error)
        else:
            st.rerun()


def _is_done(result: TrialResult | None, stages: Sequence[Stage]) -> bool:
    """Whether all wanted stages are there."""
    return result is not None and set(stages) <= set(result.stages)


def _watch(begun_with: TrialsProgress) -> None:
    """The run that is on, looked at again and again; the whole page is drawn anew once something more is known."""

    @st.fragment(run_every=LOOK_AGAIN)
    def panel() -> None:
        now = runs.look()
        if now is None or now.state != "running" or now.done != begun_with.done:
            st.rerun()
            return
        share = min(now.done / now.total, 1.0) if now.total else 0.0
        st.progress(share, plain(wording.running(now)))
        if runs.is_stopping():
            st.markdown(wording.STOPPING)
        else:
            st.button(
                wording.STOP,
                key="stop probing",
                icon=":material/stop_circle:",
                help=wording.STOP_HELP,
                on_click=runs.stop,
            )

    with st.container(border=True, key="probing run"):
        panel()


def _say_how_it_ended(now: TrialsProgress) -> None:
    if now.failed:
        failed = [(plain(each.trial), plain(each.why)) for each in now.failed]
        st.warning(wording.failures(failed), icon=":material/warning:")
    elif now.state == "failed":
        st.error(plain(now.message), icon=":material/error:")
    elif now.state in ("stopped", "left"):
        st.info(wording.ended(now), icon=":material/pause_circle:")
