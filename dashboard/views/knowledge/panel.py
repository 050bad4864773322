"""The probing run: start it, watch it, stop it, and resume it."""

from collections.abc import Sequence

import streamlit as st

from attention_sieve.core.knowledge.trials.progress import TrialsProgress
from attention_sieve.core.knowledge.trials.result import TrialResult, TrialStage
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.progress import stop_button
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.knowledge import runs, wording
from attention_sieve.dashboard.views.knowledge.asked import REFRESH_SECONDS
from attention_sieve.dashboard.views.knowledge.numbers import Settings, Subject, known_result, trial_of
from attention_sieve.dashboard.views.knowledge.task_files import TaskFile, before_others


def run_panel(
    visit: Visit,
    subjects: Sequence[Subject],
    tasks: Sequence[TaskFile],
    settings: Settings,
    stages: tuple[TrialStage, ...],
) -> None:
    if is_public():
        st.caption(NOT_HERE)
        return
    progress = runs.look()
    if progress is not None and progress.state == "running":
        _watch(progress)
        return
    results = [[known_result(subject, task, settings, visit) for task in tasks] for subject in subjects]
    n_known = sum(_is_done(result, stages) for row in results for result in row)
    if n_known == len(subjects) * len(tasks):
        return
    unknown = [
        trial_of(subject, task, settings, visit)
        for subject, row in zip(subjects, results, strict=True)
        for task, result in zip(tasks, row, strict=True)
        if not _is_done(result, stages)
    ]
    if progress is not None and runs.was_about(unknown):
        _show_outcome(progress)
    has_begun = any(result is not None for row in results for result in row)
    if has_begun:
        st.caption(wording.known_already(n_known, len(subjects) * len(tasks)))
    missing = [task for index, task in enumerate(tasks) if not all(_is_done(row[index], stages) for row in results)]
    label = wording.probe_button(len(missing), len(subjects), has_begun)
    missing.sort(key=before_others)  # the task that the page opens on comes first
    if st.button(label, key="probe", icon=":material/play_arrow:", type="primary"):
        trials = [trial_of(subject, task, settings, visit) for subject in subjects for task in missing]
        with errors_shown():
            runs.start(trials, stages, visit.choice.device, visit.engine.dtype)
            st.rerun()


def _is_done(result: TrialResult | None, stages: Sequence[TrialStage]) -> bool:
    return result is not None and set(stages) <= set(result.stages)


def _watch(initial: TrialsProgress) -> None:
    @st.fragment(run_every=REFRESH_SECONDS)
    def panel() -> None:
        progress = runs.look()
        if progress is None or progress.state != "running" or progress.done != initial.done:
            st.rerun()
            return
        st.progress(progress.share, plain(wording.running(progress)))
        stop_button("stop probing", runs.stop, wording.STOP_HELP, wording.STOPPING if runs.is_stopping() else "")

    with st.container(border=True, key="probing run"):
        panel()


def _show_outcome(progress: TrialsProgress) -> None:
    if progress.failed:
        failed_trials = [(plain(failure.trial), plain(failure.why)) for failure in progress.failed]
        st.warning(wording.failures(failed_trials), icon=":material/warning:")
    elif progress.state == "failed":
        st.error(plain(progress.message), icon=":material/error:")
    elif progress.state in ("stopped", "left"):
        st.info(wording.ended(progress), icon=":material/pause_circle:")
