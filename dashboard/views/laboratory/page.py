"""Laboratory: train a small model on this machine, and move through its saved steps."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head, head_name, highest_head
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.core.laboratory.settings import N_HEADS, N_LAYERS
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard import drawer, state, trainings
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import WITHOUT_TEXT, GridOnText, frame_of, patterns_of
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import head_selection
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.laboratory.details import (
    PAGE,
    another_model,
    figure_of_steps,
    film_download,
    text_of_patterns,
    what_heads_do,
)
from attention_sieve.dashboard.views.laboratory.numbers import copies_at, roles_at
from attention_sieve.dashboard.views.laboratory.training import BEGUN, RUN, play, training
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle
from attention_sieve.dashboard.views.role_grid.grid import grid_over, show_role_grid
from attention_sieve.dashboard.views.toy import ROLES, patterns_at, visit_at

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
GRID: Final = "laboratory grid"
PATTERNS: Final = "patterns"
"""Key of whether cells show attention, as on Inspect."""


def show() -> None:
    frame.page("Laboratory", wording.SEE, _laboratory, NOTES, about="", settings=drawer.device_settings)


def _laboratory() -> None:
    is_in_lesson, runs = state.lesson_is_on(PAGE), laboratory_runs()
    # What a step of a lesson speaks of stands above the picture.
    top, above = st.container(), st.container()
    if not runs:
        if is_in_lesson:
            lesson_panel(top, frame.without_corpus())
        with above:
            if trainings.running() is None:
                st.info(f"{NOT_HERE} {wording.NONE_OFFERED}" if is_public() else wording.NO_RUN)
            training(has_form=True)
        return
    places = frame.places()
    by_name = {run.name: run for run in runs}
    if st.session_state.get(BEGUN) in by_name:
        st.session_state[RUN] = st.session_state.pop(BEGUN)
        st.session_state.pop(state.TOY_STEP, None)
    elif st.session_state.get(RUN, runs[0].name) not in by_name:
        st.session_state[RUN] = runs[0].name
    if is_in_lesson:
        _lesson(by_name[st.session_state.get(RUN, runs[0].name)], top)
        with above.container():  # what stands in it comes and goes above switches, whose place must not change
            training(has_form=shows(PAGE, "training"))
    with above.container(horizontal=True, vertical_alignment="bottom") if is_in_lesson else places.controls:
        film = st.container(width="content")
        step = _step(by_name[st.session_state.get(RUN, runs[0].name)].progress.saved)
        run = from_list(wording.RUN, by_name, key=RUN, width=200)
        probes = wording.KINDS["gaps drawn"]
        if shows(PAGE, "probes"):
            probes = one_of(wording.GAPS, wording.KINDS, key=state.TOY_PROBES, help=wording.GAPS_HELP)
        with_patterns = toggle(wording.PATTERNS, key=PATTERNS, start=True, help=wording.PATTERNS_HELP)
    with places.sections:
        all_steps, switches = st.container(), st.container()
    with above if is_in_lesson else switches:
        off = _heads_off(shows(PAGE, "switches"))
    visit = visit_at(run, step, probes, off)
    with places.finding:
        tested = roles_at(visit)
        if tested is None:
            return
        if not is_in_lesson:
            _say(run, step)
    with film:
        if not is_in_lesson and len(run.progress.saved) > 1:
            play(run.progress.saved, step)
    text_attention = patterns_at(visit) if with_patterns else None
    with places.picture:
        left, right = halves()
        with left, st.container(key="film"):
            heads = _grid(visit, tested, text_attention)
    if not first_screen_is_drawn():
        return
    with right:
        if not is_in_lesson or shows(PAGE, "losses") or shows(PAGE, "formation"):
            figure_of_steps(run, visit, tested, with_heads=is_in_lesson and shows(PAGE, "formation"))
    if not is_in_lesson:
        with all_steps:
            figure_of_steps(run, visit, tested, with_heads=True)
            film_download(run, visit, tested)
    with places.sections:
        if text_attention is not None:
            text_of_patterns(text_attention)
        what_heads_do(run, visit, tested, heads)
        if not is_in_lesson:
            another_model()


def _lesson(run: SavedRun, top: DeltaGenerator) -> None:
    """The panel of a lesson, which is about the trained model, whichever step is shown; before what stands below it."""
    visit = visit_at(run, run.progress.saved[-1], "repeats")
    lesson_panel(top, visit, text_attention=patterns_at(visit))


def _step(saved: Sequence[int]) -> int:
    """The saved step on the slider: the last one until the reader moves it."""
    steps = [str(step) for step in saved]
    state.follow(state.TOY_STEP, steps[-1])
    if st.session_state.get(state.TOY_STEP, steps[-1]) not in steps:
        st.session_state[state.TOY_STEP] = steps[-1]
    if len(steps) == 1:
        return saved[0]  # a slider needs two ends
    return int(
        st.select_slider(
            wording.AT,
            steps,
            steps[-1],
            key=state.TOY_STEP,
            help=wording.AT_HELP,
            bind="query-params",
            persist_state="session",
        )
    )


def _heads_off(is_asked: bool) -> tuple[Head, ...]:
    if not is_asked:
        return ()
    heads = {head_name(layer, head): (layer, head) for layer in range(N_LAYERS) for head in range(N_HEADS)}
    picked = st.pills(
        wording.OFF,
        list(heads),
        selection_mode="multi",
        wrap=True,
        key=state.TOY_OFF,
        help=wording.OFF_HELP,
        bind="query-params",
        persist_state="session",
    )
    return tuple(sorted(heads[name] for name in picked))


def _say(run: SavedRun, step: int) -> None:
    """What copies rest on where gaps are drawn, with all heads on: the finding of the page."""
    visit = visit_at(run, step, "repeats")
    found, copied = roles_at(visit), copies_at(visit)
    if found is None or copied is None:
        return
    holds = found.tests.holds[ROLES.index("induction")]
    copying = tuple((layer, head) for layer, head in np.argwhere(holds).tolist())
    together = copies_at(visit_at(run, step, "repeats", copying)) if copying else copied
    if together is not None:
        one = float(np.max(copied.loss_without[holds], initial=copied.loss))
        losses = (copied.loss, one, together.loss)
        frame.say_finding(wording.finding(len(copying), losses), wording.losses(len(copying), losses))


def _grid(visit: Visit, tested: Corpus, text_attention: TextAttention | None) -> list[Head]:
    label = f"Heads of {visit.engine.files.name}: roles over {visit.choice.corpus}"
    on_text = WITHOUT_TEXT
    if text_attention is not None:
        on_text = GridOnText(frame=frame_of(text_attention), patterns=patterns_of(text_attention))
    most = (0, 0) if state.lesson_is_on(PAGE) else highest_head(tested.tests.mean[ROLES.index("induction")])
    n_layers, n_heads = tested.tests.mean.shape[1:]
    heads = state.chosen_heads(n_layers, n_heads, most, follow=True)
    selection = head_selection(GRID, heads, (visit.engine.files.fingerprint, state.n_pushed()))
    heads = show_role_grid(
        replace(grid_over(visit, tested, label), shown=ROLES),
        selection,
        file="laboratory grid",
        facts=corpora.facts(visit, tested),
        on_text=on_text,
    )
    state.put_in_link(heads)
    return heads
