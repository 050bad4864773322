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
from attention_sieve.core.laboratory.outcomes import CopyScore
from attention_sieve.core.laboratory.sequences import VOCABULARY, is_copied
from attention_sieve.core.laboratory.settings import N_HEADS, N_LAYERS
from attention_sieve.core.passes.texts import TextAttention
from attention_sieve.dashboard import controls, drawer, state, trainings
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import WITHOUT_TEXT, GridOnText, frame_of, patterns_of
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.laboratory import NO_HEADS, formation
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.offers import laboratory_runs
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.public import NOT_HERE, is_public
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.laboratory.numbers import (
    ROLES,
    copies_at,
    drawn_steps,
    name_at,
    roles_at,
    strongest_heads,
    visit_at,
)
from attention_sieve.dashboard.views.laboratory.training import RUN, resume_or_delete, training
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle
from attention_sieve.dashboard.views.role_grid.grid import grid_over, show_role_grid

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
GRID: Final = "laboratory grid"
PATTERNS: Final = "patterns"
"""Key of whether cells show attention, as on Inspect."""
PAGE: Final = "laboratory"


def show() -> None:
    frame.page("Laboratory", wording.SEE, _laboratory, NOTES, settings=drawer.device_settings)


def _laboratory() -> None:
    top = st.container()
    runs = laboratory_runs()
    with st.container():  # what stands in it comes and goes above switches, whose place in the page must not change
        training(has_form=not runs or shows(PAGE, "training"))
    if not runs:
        if state.lesson_is_on(PAGE):
            lesson_panel(top, frame.without_corpus())
        if trainings.running() is None:
            st.info(f"{NOT_HERE} {wording.NONE_OFFERED}" if is_public() else wording.NO_RUN)
        return
    by_name = {run.name: run for run in runs}
    if st.session_state.get(RUN, runs[0].name) not in by_name:
        st.session_state[RUN] = runs[0].name
    if state.lesson_is_on(PAGE):
        _lesson(by_name[st.session_state.get(RUN, runs[0].name)], top)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        run = from_list(wording.RUN, by_name, key=RUN, width=240)
        probes = wording.KINDS["gaps drawn"]
        if shows(PAGE, "probes"):
            probes = one_of(wording.GAPS, wording.KINDS, key=state.TOY_PROBES, help=wording.GAPS_HELP)
        with_patterns = toggle(wording.PATTERNS, key=PATTERNS, help=wording.PATTERNS_HELP)
    step = _step(run.progress.saved)
    left, right = halves()
    with left:
        off = _heads_off(shows(PAGE, "switches"))
        visit = visit_at(run, step, probes, off)
        tested = roles_at(visit)
        if tested is None:
            return
        heads = _grid(visit, tested, _attention(visit) if with_patterns else None)
    if first_screen_is_drawn():
        _below(run, visit, tested, heads, (left, right))


def _lesson(run: SavedRun, top: DeltaGenerator) -> None:
    """The panel of a lesson, which is about the trained model, whichever step is shown; before what stands below it."""
    visit = visit_at(run, run.progress.saved[-1], "repeats")
    lesson_panel(top, visit, text_attention=_attention(visit))


def _attention(visit: Visit) -> TextAttention:
    text_attention, _ = visit.inference.look(visit.engine, visit.texts[0], visit.settings, too_long="truncate")
    return text_attention


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


def _below(
    run: SavedRun, visit: Visit, tested: Corpus, heads: list[Head], columns: tuple[DeltaGenerator, DeltaGenerator]
) -> None:
    """The figure of all steps beside the grid, and below it what each head does for the copied tokens."""
    left, right = columns
    in_lesson = state.lesson_is_on(PAGE)
    with left:
        if not in_lesson:
            _verdict(run, visit)
        copied = _copies(visit) if shows(PAGE, "switches") else None
    with right:
        if shows(PAGE, "formation") or shows(PAGE, "losses"):
            _formation(run, visit, tested)
        if copied is not None:
            show_head_map(
                _rises(visit, copied),
                head_selection("laboratory map", heads, (visit.engine.files.fingerprint, state.n_pushed())),
                file="laboratory loss",
                facts=without_command(corpora.facts(visit, tested)),
            )
    if not in_lesson:
        _what_next(run, visit)


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
    if text_attention is not None:
        text = text_attention.text.queries
        words = (
            f"**{plain(token)}**" if copied else plain(token) for token, copied in zip(text.tokens, is_copied(text.ids))
        )
        st.caption(f"The text (bold: could be known): {' '.join(words)}")
    return heads


def _verdict(run: SavedRun, visit: Visit) -> None:
    """Say whether heads that look at copies find them at any distance, or only look back a fixed one."""
    holds = {}
    for kind in wording.KINDS.values():
        found = roles_at(visit_at(run, _step_of(visit), kind, visit.choice.off))
        if found is None:
            return
        holds[kind] = found.tests.holds[ROLES.index("induction")]
    n_drawn, n_rulers = int(holds["repeats"].sum()), int((holds["fixed-repeats"] & ~holds["repeats"]).sum())
    st.markdown(wording.verdict(n_drawn, n_rulers) if n_drawn or n_rulers else wording.NO_COPIES)


def _step_of(visit: Visit) -> int:
    return int(visit.choice.checkpoint.rpartition("-")[2])


def _formation(run: SavedRun, visit: Visit, tested: Corpus) -> None:
    probes = controls.PROBES[visit.choice.corpus]
    steps = drawn_steps(run.progress.saved) if shows(PAGE, "formation") else []
    strongest = strongest_heads({step: visit_at(run, step, probes) for step in steps}) if steps else NO_HEADS
    if strongest is None:
        return
    progress = run.progress
    figure = formation(
        progress.held_out, strongest, _step_of(visit), max(1, progress.steps, progress.step), len(VOCABULARY)
    )
    chart("heads in formation", figure, without_command(corpora.facts(visit, tested)) | {"checkpoint": run.name})
    if 0 < len(steps) < len(progress.saved):
        st.caption(f"{len(steps):,} of {counted(len(progress.saved), 'saved step')} are drawn.")


def _copies(visit: Visit) -> CopyScore | None:
    """How well the model continues repetitions, with all heads on and without those that are off; None where the reader
    has stopped the work."""
    now = copies_at(visit)
    all_on = copies_at(replace(visit, choice=replace(visit.choice, off=()))) if visit.choice.off else now
    if now is None or all_on is None:
        return None
    with st.container(horizontal=True):
        is_changed = bool(visit.choice.off)
        st.metric(
            wording.COPIED,
            f"{now.loss:.2f}",
            f"{now.loss - all_on.loss:+.2f}" if is_changed else None,
            delta_color="inverse",
            help=wording.COPIED_HELP,
            border=True,
        )
        st.metric(
            wording.PREDICTED,
            f"{now.accuracy:.0%}",
            f"{100 * (now.accuracy - all_on.accuracy):+.0f} points" if is_changed else None,
            help=wording.PREDICTED_HELP,
            border=True,
        )
    return now


def _rises(visit: Visit, now: CopyScore) -> HeadMap:
    rises = now.loss_without - now.loss
    return HeadMap(
        title=wording.RISE,
        label=f"Heads of {visit.engine.files.name}: {wording.RISE}",
        values=rises,
        bound=round_bound(float(np.abs(rises).max())),
        signed=True,
        low_label=wording.BETTER,
        high_label=wording.WORSE,
    )


def _what_next(run: SavedRun, visit: Visit) -> None:
    pages, name = st.session_state["pages"], visit.choice.checkpoint
    with st.container(horizontal=True, vertical_alignment="center", key="laboratory next"):
        for label, page, icon, link in (
            (wording.IN_INSPECT, "inspect", ":material/search:", {"checkpoint": name, "corpus": visit.choice.corpus}),
            (
                wording.IN_COMPARE,
                "compare",
                ":material/compare:",
                {"checkpoint": name_at(run, run.progress.saved[0]), "with": name, "corpus": visit.choice.corpus},
            ),
        ):
            st.page_link(pages[page], label=label, icon=icon, query_params=link)
        resume_or_delete(run)
