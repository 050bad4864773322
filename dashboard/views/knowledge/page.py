"""Knowledge: what can be predicted from each head's output alone, compared with controls."""

from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.core.knowledge.trials.result import TrialStage
from attention_sieve.dashboard import state
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.run_kinds import KINDS
from attention_sieve.dashboard.runs import is_on
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.knowledge import asked, wording
from attention_sieve.dashboard.views.knowledge.across_tasks import heads_together, tasks_side_by_side
from attention_sieve.dashboard.views.knowledge.each_head import (
    each_head,
    headline,
    heads_in_order,
    layers,
    roles_that_know,
)
from attention_sieve.dashboard.views.knowledge.erased import is_it_used
from attention_sieve.dashboard.views.knowledge.numbers import (
    Probing,
    Subject,
    VectorSettings,
    above_baselines,
    known_result,
    tasks_with_findings,
)
from attention_sieve.dashboard.views.knowledge.over_checkpoints import checkpoints
from attention_sieve.dashboard.views.knowledge.task_files import TaskFile, before_others
from attention_sieve.dashboard.views.pickers import from_list, one_of

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)
TASK_WIDTH: Final = 260


def show() -> None:
    frame.page(wording.TITLE, wording.SEE, _knowledge, NOTES)


def _knowledge() -> None:
    visit = frame.without_corpus()
    if visit.choice.off:
        st.info(wording.ALL_ON)
    places = frame.places()
    with places.controls:
        sample = asked.is_sample()
        settings = asked.vector_settings()
    with places.finding if sample else places.sections:
        task_files = asked.tasks(sample)
    if not task_files:
        return
    with places.controls:
        found = tasks_with_findings(task_files, settings, visit)
        first = min(task_files, key=lambda file: (file.name not in found, *before_others(file)))
        by_name = {file.name: file for file in task_files}
        key = "sample task" if sample else "own task"
        task = from_list(wording.TASK, by_name, key=key, start=first.name, width=TASK_WIDTH)
    with places.sections:
        chosen_tasks, subjects, stages = _what_is_probed(visit, task_files, task, sample, settings)
        asked.run_panel(visit, subjects, chosen_tasks, settings, stages)
    _results(places, visit, task_files, task, subjects, settings)


def _what_is_probed(
    visit: Visit, task_files: tuple[TaskFile, ...], task: TaskFile, sample: bool, settings: VectorSettings
) -> tuple[tuple[TaskFile, ...], tuple[Subject, ...], tuple[TrialStage, ...]]:
    with st.expander(wording.WHAT):
        left, right = st.columns(2)
        with left:
            chosen_tasks = asked.chosen_tasks(task_files, sample)
            stages = one_of(wording.DEPTH, wording.DEPTHS, key="how far", help=wording.DEPTH_HELP)
        with right:
            subjects = asked.subjects(visit)
        st.markdown(wording.about(plain(task.name), task.definition, task.n_rows, task.n_classes))
        if task.source:
            st.caption(plain(task.source))
        for note in task.notes:
            st.caption(plain(note))
    return chosen_tasks, subjects, stages


def _results(
    places: frame.Places,
    visit: Visit,
    task_files: tuple[TaskFile, ...],
    task: TaskFile,
    subjects: tuple[Subject, ...],
    settings: VectorSettings,
) -> None:
    results = {
        (subject.label, task_file.digest): result
        for subject in subjects
        for task_file in task_files
        if (result := known_result(subject, task_file, settings, visit)) is not None
    }
    shown_result = results.get((subjects[0].label, task.digest))
    if shown_result is None:
        with places.finding:
            st.info(wording.not_probed(plain(task.name), is_on(KINDS["trials"].folder())))
        return
    report, best = shown_result.report, shown_result.report.best_head
    n_layers, n_heads = above_baselines(report).shape
    probing = Probing(
        visit=visit,
        settings=settings,
        tasks=task_files,
        subjects=subjects,
        results=results,
        task=task,
        shown=shown_result,
        heads=state.chosen_heads(n_layers, n_heads, report.head_at(best)),
    )
    with places.finding:
        headline(probing)
    with places.picture:
        heads_in_order(probing)
    views = {
        wording.EACH: each_head,
        wording.LAYERS: layers,
        wording.SIDE_BY_SIDE: tasks_side_by_side,
        wording.TOGETHER: heads_together,
        wording.CHECKPOINTS: checkpoints,
        wording.ROLES: roles_that_know,
        wording.USED: is_it_used,
    }
    with places.sections:
        frame.tabs("knowledge details", {title: partial(draw, probing) for title, draw in views.items()})
        frame.link_to_inspect(probing.heads)
    state.put_in_link(probing.heads)
