"""What the page Knowledge asks: which tasks and checkpoints to probe, how texts are read, and to start, stop or resume
the run."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.knowledge.trials.result import TrialResult, TrialStage
from attention_sieve.core.running import Progress
from attention_sieve.core.texts.text import MAX_BYTES
from attention_sieve.dashboard import controls, costs, runs
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.offers import runs_here
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.views.asking import policy
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.knowledge import runs as knowledge_runs
from attention_sieve.dashboard.views.knowledge import wording
from attention_sieve.dashboard.views.knowledge.numbers import (
    SEED_OF_WEIGHTS,
    Subject,
    VectorSettings,
    known_result,
    subject_of,
    trial_of,
)
from attention_sieve.dashboard.views.knowledge.task_files import (
    TableColumns,
    TaskFile,
    before_others,
    forget,
    keep_columns,
    keep_task,
    own_tasks,
    sample_tasks,
)
from attention_sieve.dashboard.views.other_checkpoints import buttons_of_steps, other_checkpoints
from attention_sieve.dashboard.views.pickers import one_of, some_of, toggle

UPLOADER: Final = "tasks of readers"


def is_sample() -> bool:
    """Ask for the source of the tasks; True for the sample tasks."""
    if is_public():
        return True
    sources = {wording.SAMPLE: True, wording.OWN: False}
    return one_of(wording.SOURCE, sources, key="tasks from", help=wording.SOURCE_HELP)


def vector_settings() -> VectorSettings:
    pooling = one_of(wording.READ, wording.POOLINGS, key="vectors at", help=wording.READ_HELP)
    return VectorSettings(pooling=pooling, too_long=policy())


def tasks(sample: bool) -> tuple[TaskFile, ...]:
    """The tasks that can be probed; empty if the reader has to do something first, which the page says."""
    if sample:
        task_files = sample_tasks()
        if not task_files and may_begin(KINDS["sample-tasks"].folder(), wording.making, is_kept=False):
            st.info(wording.NO_SAMPLE)
            if st.button(wording.MAKE_SAMPLE, key="make sample tasks", icon=":material/account_tree:"):
                with errors_shown():
                    knowledge_runs.make_sample()
                    st.rerun()
        return tuple(task for task in task_files if not task.problem)
    # Collapsed once all files are in order, so that results show on the first screen.
    needs_a_look = any(task.problem for task in own_tasks()) or not own_tasks()
    with st.expander(wording.FILES, expanded=needs_a_look or bool(st.session_state.get(UPLOADER))):
        _upload()
        task_files = own_tasks()
        if task_files:
            _own_table(task_files)
    usable = tuple(task for task in task_files if not task.problem)
    if not usable:
        st.info(wording.NO_GOOD_TASKS if task_files else wording.NO_TASKS)
    return usable


def may_begin(folder: Path, say: Callable[[Progress], str], *, is_kept: bool) -> bool:
    """Whether a run may begin in a folder now: shows the one that is on, and why the last one failed.

    Args:
        is_kept: whether what a run found before it was stopped is kept.
    """
    if is_public():
        st.info(NOT_HERE)
        return False
    progress = runs.look(folder)
    if progress is None or not runs.is_recent(folder):
        return True
    if progress.state != "running":
        _show_outcome(progress, is_kept=is_kept)
        return True
    # The page shows nothing of it before its end.
    runs.panel(folder, folder.name, say, changes=lambda _: None)
    return False


def _upload() -> None:
    """Upload files of tasks; each is saved once and is available again on the next visit."""
    uploaded = st.file_uploader(
        wording.UPLOAD,
        type=["txt", "csv", "tsv", "gz"],
        key=UPLOADER,
        accept_multiple_files=True,
        max_upload_size=MAX_BYTES // 10**6,
        help=wording.UPLOAD_HELP,
    )
    st.caption(wording.STAYS)
    saved: set[str] = st.session_state.setdefault("task files taken", set())
    for file in uploaded:
        if file.file_id in saved:
            continue
        with errors_shown():
            keep_task(file.name, file.getvalue())
            saved.add(file.file_id)


def _own_table(task_files: tuple[TaskFile, ...]) -> None:
    rows = pd.DataFrame(
        {
            "task": [task.name for task in task_files],
            **{
                part: [task.n_rows[index] if task.n_rows else None for task in task_files]
                for index, part in enumerate(("training", "validation", "test"))
            },
            "classes": ["" if task.problem else str(task.n_classes or "numbers") for task in task_files],
            "note": [task.problem or " ".join(task.notes) for task in task_files],
        }
    )
    st.dataframe(rows, hide_index=True)
    for task in task_files:
        if task.header:
            _ask_for_columns(task)
    with st.popover(wording.DELETE):
        for task in task_files:
            st.button(
                f"{wording.DELETE_NOW} {plain(task.name)}",
                key=f"delete {task.path.parent.name}",
                icon=":material/delete:",
                on_click=forget,
                args=(task,),
            )


def _ask_for_columns(task: TaskFile) -> None:
    key, header = task.path.parent.name, list(task.header)
    with st.form(f"columns {key}"):
        st.markdown(f"**{plain(task.name)}**: {plain(task.problem)}")
        with st.container(horizontal=True):
            text = st.selectbox(wording.COLUMN_TEXT, header, key=f"text {key}")
            second_text = st.selectbox(wording.COLUMN_SECOND, [wording.NONE, *header], key=f"second text {key}")
            label = st.selectbox(wording.COLUMN_LABEL, header, index=len(header) - 1, key=f"label {key}")
            part = st.selectbox(wording.COLUMN_PART, [wording.NONE, *header], key=f"part {key}")
        if st.form_submit_button(wording.USE_COLUMNS):
            texts = [text, *([] if second_text == wording.NONE else [second_text])]
            columns = TableColumns(
                text_columns=",".join(texts), label_column=label, part_column=None if part == wording.NONE else part
            )
            with errors_shown():
                keep_columns(task.path, columns)
                st.rerun()


def chosen_tasks(task_files: tuple[TaskFile, ...], sample: bool) -> tuple[TaskFile, ...]:
    by_name = {task.name: task for task in task_files}
    key = "sample tasks to probe" if sample else "own tasks to probe"
    return tuple(by_name[name] for name in some_of(wording.TASKS, list(by_name), key=key, every=wording.EVERY_TASK))


def subjects(visit: Visit) -> tuple[Subject, ...]:
    """Ask which checkpoints to probe: the chosen one, the same one with random weights, and others.

    Those that cannot be found are left out with a message.
    """
    choice, saved_runs = visit.choice, runs_here()
    names = other_checkpoints(wording.WITH, choice, saved_runs, placeholder=wording.WITH_NONE, help=wording.WITH_HELP)
    buttons_of_steps(saved_runs)
    probed = [subject_of(visit.engine, shared_wording.model_name(visit.engine.files.name))]
    if not toggle(wording.WITHOUT_RANDOM, key="no random weights", help=wording.RANDOM_HELP):
        probed.append(subject_of(visit.engine, wording.RANDOM_LABEL, SEED_OF_WEIGHTS))
    for name in names:
        try:
            engine = controls.other_engine(choice, name)
        except AnalysisError as error:
            show_error(error)
            continue
        label = shared_wording.model_name(engine.files.name)
        is_taken = label in (subject.label for subject in probed)  # the last part of another path
        probed.append(subject_of(engine, engine.files.name if is_taken else label))
    return tuple(probed)


def run_panel(
    visit: Visit,
    subjects: Sequence[Subject],
    tasks: Sequence[TaskFile],
    settings: VectorSettings,
    stages: tuple[TrialStage, ...],
) -> None:
    if is_public():
        st.caption(NOT_HERE)
        return
    folder = KINDS["trials"].folder()
    progress = runs.look(folder)
    if progress is not None and progress.state == "running":
        runs.panel(folder, "probing", shared_wording.running)
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
    if progress is not None and knowledge_runs.was_about(unknown):
        _show_outcome(progress, is_kept=True)
    has_begun = any(result is not None for row in results for result in row)
    if has_begun:
        st.caption(wording.known_already(n_known, len(subjects) * len(tasks)))
    missing = [task for index, task in enumerate(tasks) if not all(_is_done(row[index], stages) for row in results)]
    label = wording.probe_button(len(missing), len(subjects), has_begun)
    missing.sort(key=before_others)  # the task that the page opens on comes first
    n_bytes = sum(task.path.stat().st_size for task in missing)
    n_texts = sum(sum(task.n_rows) for task in missing)
    reading = costs.of_passes(visit.engine.files, len(subjects) * n_texts, n_bytes / n_texts)
    st.caption(wording.probes_take(reading))
    if st.button(label, key="probe", icon=":material/play_arrow:", type="primary"):
        trials = [trial_of(subject, task, settings, visit) for subject in subjects for task in missing]
        with errors_shown():
            knowledge_runs.start(trials, stages, visit.choice.device, visit.engine.dtype)
            st.rerun()


def _is_done(result: TrialResult | None, stages: Sequence[TrialStage]) -> bool:
    return result is not None and set(stages) <= set(result.stages)


def _show_outcome(progress: Progress, *, is_kept: bool) -> None:
    if progress.failed:
        failed_trials = [(plain(failure.piece), plain(failure.why)) for failure in progress.failed]
        st.warning(wording.failures(failed_trials), icon=":material/warning:")
    elif progress.state == "failed":
        st.error(plain(progress.message), icon=":material/error:")
    elif progress.state in ("stopped", "left"):
        st.info(wording.ended(progress, is_kept=is_kept), icon=":material/pause_circle:")
