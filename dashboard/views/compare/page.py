"""Compare: two or more checkpoints on the same texts, and what changes from the reference to each other."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import streamlit as st

from cache.engine import Engine
from cache.inference import Inference
from core.checkpoints.saved_runs import SavedRun, list_runs
from core.comparison.transitions import busiest_layers, changed_heads
from core.errors import AnalysisError, EveryTextTooLong
from core.roles.roles import ROLES, shown_roles_of_all
from core.texts.text import Text
from dashboard import controls, state
from dashboard import wording as shared_wording
from dashboard.plain import plain, show_error
from dashboard.state import Choice
from dashboard.views import frame
from dashboard.views.asking import ask_about_long_texts
from dashboard.views.compare import wording
from dashboard.views.compare.both_texts import same_head_in_both
from dashboard.views.compare.changes import changes
from dashboard.views.compare.differences import grids
from dashboard.views.compare.numbers import (
    Compared,
    Focus,
    Scored,
    divergence_of_heads,
    n_other_tokens,
    on_common_texts,
    paired,
    scored,
    shift,
    tested,
)
from dashboard.views.compare.runs import over_checkpoints
from dashboard.views.compare.shapes import unlike_shapes
from dashboard.views.finetune import runs as training_runs
from dashboard.views.finetune.page import running_panel

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
STEP: Final = re.compile(r"(.+)/checkpoint-(\d+)")


def show() -> None:
    """Draw the page."""
    frame.page("Compare", wording.SEE, _compare, NOTES)


def _compare() -> None:
    chosen = state.choice()
    runs = list_runs()
    names = _names(chosen, runs)
    reference, inference = controls.engine(chosen), controls.inference()
    if chosen.off:
        st.info(wording.ALL_ON)
    if not names:
        _nothing_chosen(runs)
        return
    given = controls.corpus_texts(chosen)
    others = _engines(chosen, names)
    texts = given
    for engine in (reference, *others):
        texts = frame.readable(chosen, engine, texts)
    if not texts:
        frame.ask_for_texts(chosen, given)
        return
    pairs = _pairs(inference, chosen, reference, others, texts)
    if pairs:
        _draw(inference, chosen, pairs, runs)


def _names(chosen: Choice, runs: Sequence[SavedRun]) -> list[str]:
    """The compared checkpoints, in the order in which they were chosen."""
    made = [name for run in runs for name in reversed(run.checkpoints)]
    st.multiselect(
        wording.WITH,
        [name for name in (*made, *controls.SUGGESTED) if name != chosen.checkpoint],
        key=state.WITH,
        placeholder=wording.WITH_NONE,
        help=wording.WITH_HELP,
        accept_new_options=True,
        bind="query-params",
        persist_state="session",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(wording.reference(plain(chosen.checkpoint)))
        for run in runs:
            steps = [name for name in run.checkpoints if name != run.name]
            if len(steps) > 1:
                st.button(
                    wording.all_steps(plain(run.name), len(steps)),
                    key=f"all steps {run.name}",
                    help=wording.ALL_STEPS_HELP,
                    type="tertiary",
                    icon=":material/timeline:",
                    on_click=_choose,
                    args=(steps,),
                )
    return list(dict.fromkeys(name.strip() for name in st.session_state[state.WITH]))


def _choose(names: Sequence[str]) -> None:
    st.session_state[state.WITH] = list(names)


def _nothing_chosen(runs: Sequence[SavedRun]) -> None:
    """Say how to get a second checkpoint, and make one where the reader wants that."""
    running_panel()
    made = [run.name for run in runs if run.progress.state == "finished"]
    st.info(wording.NOTHING_CHOSEN if made else wording.NOTHING)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name in made:
            st.button(plain(name), key=f"with {name}", icon=":material/compare:", on_click=_choose, args=([name],))
        if not made and training_runs.running() is None:
            st.button(
                wording.MAKE_SAMPLE,
                key="make sample",
                icon=":material/download:",
                help=wording.MAKE_SAMPLE_HELP,
                on_click=_make_sample,
            )
        st.page_link(st.session_state["pages"]["finetune"], label=wording.FINETUNE, icon=":material/model_training:")


def _make_sample() -> None:
    try:
        training_runs.start_sample()
    except AnalysisError as error:
        show_error(error)


def _engines(chosen: Choice, names: Sequence[str]) -> list[Engine]:
    """Those that can be found; says what is wrong with the others."""
    engines = []
    for name in names:
        try:
            engines.append(controls.other_engine(chosen, name))
        except AnalysisError as error:
            show_error(error)
    return engines


def _pairs(
    inference: Inference, chosen: Choice, reference: Engine, others: Sequence[Engine], texts: tuple[Text, ...]
) -> list[Compared]:
    """Each checkpoint against the reference on the same texts; one that fails leaves the others as they are."""
    scores: list[Scored] = []
    for engine in others:
        try:
            one = scored(inference, (reference, engine), chosen, texts)
        except AnalysisError as error:
            show_error(error)
            if isinstance(error, EveryTextTooLong):
                ask_about_long_texts(error.texts, engine.files.name)
                break
            continue
        if one is None:
            break  # stopped: the bar says so and offers to go on
        scores.append(one)
    else:
        _say_too_long(scores)
    return [tested(one, chosen) for one in on_common_texts(scores)] if scores else []


def _say_too_long(scores: Sequence[Scored]) -> None:
    """Say which texts are left out of all comparisons or cut, and for whose sake."""
    places = [{place for place, _ in one.too_long} for one in scores]
    for_all = set.intersection(*places) if places else set()
    guilty = [one.engines[1].files.name for one, of_one in zip(scores, places) if of_one > for_all]
    lengths = dict(sorted(long_one for one in scores for long_one in one.too_long))
    ask_about_long_texts(tuple(lengths.items()), ", ".join(guilty))


def _draw(inference: Inference, chosen: Choice, pairs: Sequence[Compared], runs: Sequence[SavedRun]) -> None:
    pair = pairs[0] if len(pairs) == 1 else _picked(pairs)
    coarse, fine = shown_roles_of_all([tests.mean for tests in pair.tests])
    alike = [each for each in pairs if each.same_shape]
    focus = Focus(chosen=chosen, pair=pair, pairs=alike, coarse=coarse, fine=fine)
    if not pair.same_shape:
        unlike_shapes(focus)
        return
    if chosen.corpus == controls.TYPED and chosen.criterion.method == "test":
        st.info(wording.TYPED)
    _summary(focus)
    if len(alike) > 1:
        over_checkpoints(focus, steps_of([each.name for each in alike], focus.names[0], runs))
    grids(focus)
    changes(focus)
    same_head_in_both(inference, focus)


def _picked(pairs: Sequence[Compared]) -> Compared:
    """The one that is looked at; a scrubber along a training run."""
    names = [pair.name for pair in pairs]
    if st.session_state.get("focus", names[-1]) not in names:
        st.session_state["focus"] = names[-1]
    picked = st.select_slider(
        wording.FOCUS,
        names,
        names[-1],
        key="focus",
        help=wording.FOCUS_HELP,
        bind="query-params",
        persist_state="session",
    )
    return pairs[names.index(str(picked))]


def steps_of(names: Sequence[str], reference: str, runs: Sequence[SavedRun]) -> list[int] | None:
    """Training steps of saved checkpoints of one run that began at the reference; None for others, or another order."""
    matches = [STEP.fullmatch(name) for name in names]
    of_runs = {match[1] if match else "" for match in matches}
    begun = [run.name for run in runs if run.progress.checkpoint == reference and of_runs == {run.name}]
    steps = [int(match[2]) for match in matches if match]
    return steps if begun and steps == sorted(set(steps)) else None


def _summary(focus: Focus) -> None:
    pair, chosen, scale = focus.pair, focus.chosen, focus.chosen.scale
    tests_a, tests_b = pair.tests
    tests = paired(pair, chosen)
    changed = changed_heads(tests_a.holds, tests_b.holds, ROLES, focus.coarse)
    effects = np.abs(tests.effect[~np.isnan(tests.effect)])
    sentences = [
        wording.corpus(pair.n_texts, shared_wording.token_range(pair.scored.n_tokens)),
        wording.summary(
            int(changed.sum()),
            changed.size,
            shared_wording.at_tau(chosen.criterion.tau, scale),
            busiest_layers(changed),
        ),
        wording.n_differ(
            int(tests.differs.sum()),
            int((tests.texts >= 2).sum()),
            chosen.criterion.alpha,
            st.session_state["correction"],
            float(np.median(effects)) if effects.size else None,
            scale,
        ),
        *_shifts(focus),
    ]
    divergence = divergence_of_heads(pair)
    if divergence is not None and divergence.max() > 0:
        per_layer = divergence.mean(axis=1)
        sentences.append(wording.moved(float(divergence.mean()), int(per_layer.argmax())))
    st.markdown(" ".join(sentences))
    if pair.engines[0].files.fingerprint == pair.engines[1].files.fingerprint:
        st.info(wording.SAME)
    if n_other := n_other_tokens(pair):
        st.info(wording.other_tokens(n_other, pair.n_texts))


def _shifts(focus: Focus) -> Iterator[str]:
    """The coarse role that moved most, and what the paper speaks of: attention to [SEP]."""
    moved = {role: shift(focus.pair, focus.chosen, role) for role in focus.coarse}
    known = {role: of_role for role, of_role in moved.items() if not np.isnan(of_role.overall)}
    if known:
        most = max(known, key=lambda role: abs(known[role].overall))
        yield wording.shift(most, known[most].overall, known[most].p, known[most].texts)
    if "delimiter:sep" in focus.fine:
        of_sep = shift(focus.pair, focus.chosen, "delimiter:sep")
        yield wording.shift("delimiter:sep", of_sep.overall, of_sep.p, of_sep.texts)
