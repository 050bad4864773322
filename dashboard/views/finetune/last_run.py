"""The run that ended last: what it came to, its curve, and the heads at the start and at each saved step."""

from dataclasses import replace
from typing import Final

import streamlit as st

from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.roles import COARSE_ROLES
from attention_sieve.core.running import PROGRESS
from attention_sieve.dashboard import controls, state, trainings
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.figures.finetune import training_curve
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.charts import head_selection
from attention_sieve.dashboard.views.finetune import wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import halves
from attention_sieve.dashboard.views.role_grid.grid import grid_over, show_role_grid
from attention_sieve.dashboard.views.training import wording as training_wording
from attention_sieve.dashboard.views.training.folders import RunSummary, made_here

STEP: Final = "trained until"
"""Key of the step whose heads are shown."""


def last_run() -> None:
    """Nothing where no run has been measured."""
    measured = [summary for summary in made_here() if summary.progress.held_out]
    if not measured:
        return
    last = max(measured, key=lambda summary: (trainings.folder(summary.name) / PROGRESS).stat().st_mtime)
    places, figure = frame.places(), training_curve(last.progress)
    start = plain(training_wording.short(last.checkpoint))
    with places.finding:
        found = wording.last_run(plain(last.name), start, last.progress.held_out[-1].step)
        result = plain(training_wording.result(last.progress))
        frame.say_finding(found, f"{result[:1].upper()}{result[1:]}.")
    with places.picture, st.container(key="last run and heads"):
        left, right = halves()
        with right:
            st.vega_lite_chart(figure.marks(), figure.spec, width="stretch", alt=figure.description, key="last run")
    if not (last.progress.saved and first_screen_is_drawn()):
        return
    with places.controls:
        step = _step(last)
    with errors_shown():
        # The progress of scoring stands below the picture, which it then does not move.
        with places.controls:
            visit = _visit(last, step)
            tested = None if visit is None else _tested(visit)
        if visit is not None and tested is not None:
            with left:
                _grid(visit, tested)


def _step(run: RunSummary) -> int:
    """The step on the slider: the last one that is saved until the reader moves it; 0 is the start."""
    steps = (0, *run.progress.saved)
    if st.session_state.get(STEP) not in steps:
        st.session_state[STEP] = steps[-1]
    return int(st.select_slider(wording.AT, steps, key=STEP, help=wording.AT_HELP, width=320))


def _visit(run: RunSummary, step: int) -> Visit | None:
    """The chosen texts under a step of a run; None where there are none."""
    name = f"{run.name}/checkpoint-{step}" if step else run.checkpoint
    choice = replace(state.choice(), off=())
    texts, engine = controls.corpus_texts(choice), controls.other_engine(choice, name)
    choice = replace(choice, checkpoint=name)
    texts = frame.readable(choice, engine, texts)
    return Visit(choice=choice, engine=engine, inference=controls.inference(), texts=texts) if texts else None


def _tested(visit: Visit) -> corpora.Corpus | None:
    found = find(visit, ROLE_ANALYSIS, RoleSettings(visit.choice.score_settings))
    return None if found is None else corpora.judged(found, visit.choice)


def _grid(visit: Visit, tested: corpora.Corpus) -> None:
    label = f"Heads of {visit.engine.files.name}: roles over {visit.choice.corpus}"
    n_layers, n_heads = tested.tests.mean.shape[1:]
    heads = state.chosen_heads(n_layers, n_heads, (0, 0))
    selection = head_selection("heads of the run", heads, (visit.engine.files.fingerprint, state.n_pushed()))
    grid = replace(grid_over(visit, tested, label), shown=[role for role in COARSE_ROLES if role in tested.tests.roles])
    show_role_grid(grid, selection, file="heads of the run", facts=corpora.facts(visit, tested))
