"""Compare: two or more checkpoints on the same texts, and what changes from the reference to each other."""

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from cache.engine import Engine
from cache.inference import Inference
from core.checkpoints.saved_runs import SavedRun
from core.errors import AnalysisError, EveryTextTooLong
from core.finetuning.command import SAMPLE
from core.roles.roles import shown_roles_of_all
from core.texts.text import Text, read_typed, write_typed
from dashboard import controls, state
from dashboard import wording as shared_wording
from dashboard.components.first_screen import first_screen_is_drawn
from dashboard.offers.checkpoints import runs_here
from dashboard.plain import plain, show_error
from dashboard.public import is_public
from dashboard.samples import REVIEW
from dashboard.state import Choice
from dashboard.views import frame
from dashboard.views.asking import ask_about_long_texts
from dashboard.views.compare import results, wording
from dashboard.views.compare.both_texts import same_head_in_both
from dashboard.views.compare.numbers import Compared, Focus, Scored, on_common_texts, scored, tested
from dashboard.views.compare.summary import summary
from dashboard.views.descriptions.sentences import Sentences, kept_sentences
from dashboard.views.finetune import runs as training_runs
from dashboard.views.finetune.page import running_panel
from dashboard.views.frame import Visit
from dashboard.views.layout import halves
from dashboard.views.leading import lesson_panel
from dashboard.views.other_checkpoints import buttons_of_steps, choose_others, other_checkpoints
from dashboard.views.results.chosen import is_chosen
from dashboard.views.text.typed import EXAMPLE_TYPED, text_on_screen

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
STEP: Final = re.compile(r"(.+)/checkpoint-(\d{1,15})")
REVIEW_TYPED: Final = write_typed([REVIEW])


def show() -> None:
    """Draw the page."""
    frame.page("Compare", wording.SEE, results.compare if is_chosen() else _compare, NOTES)


def _compare() -> None:
    chosen = state.choice()
    runs = runs_here()
    top = st.container()
    left, right = halves()
    with left:
        names = _names(chosen, runs)
    text = None
    if names:
        with right:
            text = _typed([chosen.checkpoint, *names])
    reference, inference = controls.engine(chosen), controls.inference()
    if chosen.off:
        st.info(wording.ALL_ON)
    others = _engines(chosen, names)
    if state.lesson_is_on("compare"):
        visit = Visit(chosen=chosen, engine=reference, inference=inference, texts=())
        lesson_panel(top, visit, others=tuple(others), typed="" if text is None else write_typed([text]))
    if not names:
        _nothing_chosen(runs)
        return
    given = controls.corpus_texts(chosen)
    texts = given
    for engine in (reference, *others):
        texts = frame.readable(chosen, engine, texts)
    if not texts:
        frame.ask_for_texts(chosen, given)
        return
    pairs = _pairs(inference, chosen, reference, others, texts)
    if pairs:
        _draw(inference, chosen, pairs, runs, text, texts)


def _names(chosen: Choice, runs: Sequence[SavedRun]) -> list[str]:
    """The compared checkpoints, in the order in which they were chosen."""
    names = other_checkpoints(wording.WITH, chosen, runs, placeholder=wording.WITH_NONE, help=wording.WITH_HELP)
    with st.container(horizontal=True, vertical_alignment="center", key="reference"):
        st.markdown(wording.reference(plain(chosen.checkpoint)))
        buttons_of_steps(runs)
    return names


def _typed(names: Sequence[str]) -> Text | None:
    """The typed text on screen, at first a movie review where one of the checkpoints has learnt from reviews."""
    of_reviews = SAMPLE in {step[1] if (step := STEP.fullmatch(name)) else name for name in names}
    start = REVIEW_TYPED if of_reviews else EXAMPLE_TYPED
    typed = controls.typed_texts(shared_wording.YOUR_TEXTS, "text", start, height=80)
    try:
        return text_on_screen(read_typed(typed))
    except AnalysisError as error:
        show_error(error)
        return None


def _nothing_chosen(runs: Sequence[SavedRun]) -> None:
    """Say how to get a second checkpoint, and make one where the reader wants that."""
    if is_public():
        st.info(wording.CHOOSE_SECOND)
        return
    running_panel()
    made = [run.name for run in runs if run.progress.state == "finished"]
    st.info(wording.NOTHING_CHOSEN if made else wording.NOTHING)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name in made:
            st.button(
                plain(name), key=f"with {name}", icon=":material/compare:", on_click=choose_others, args=([name],)
            )
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


def _sentences(
    inference: Inference, focus: Focus, texts: tuple[Text, ...]
) -> tuple[Sentences | None, Sentences | None]:
    """What each head mostly does under both, as far as that needs no pass; all heads are on."""
    chosen = replace(focus.chosen, off=())
    a, b = (
        kept_sentences(Visit(chosen=chosen, engine=engine, inference=inference, texts=texts), tests)
        for engine, tests in zip(focus.pair.engines, focus.pair.tests, strict=True)
    )
    return a, b


def _draw(
    inference: Inference,
    chosen: Choice,
    pairs: Sequence[Compared],
    runs: Sequence[SavedRun],
    text: Text | None,
    texts: tuple[Text, ...],
) -> None:
    pair = pairs[0] if len(pairs) == 1 else _picked(pairs)
    coarse, fine = shown_roles_of_all([tests.mean for tests in pair.tests])
    alike = [each for each in pairs if each.same_shape]
    training = training_of(pair.name, pair.engines[0].files.name, runs)
    focus = Focus(chosen=chosen, pair=pair, pairs=alike, coarse=coarse, fine=fine, training=training)
    if pair.same_shape:
        summary(focus)
        if text is not None:
            same_head_in_both(inference, focus, text)
        state.put_in_link(focus.heads)
    if not first_screen_is_drawn():
        return
    # Charts and tables bring pandas, which the first pictures do not wait for.
    from dashboard.views.compare.changes import changes
    from dashboard.views.compare.shapes import unlike_shapes

    if pair.same_shape:
        focus = replace(focus, sentences=_sentences(inference, focus, texts))
        changes(focus, steps_of([each.name for each in alike], focus.names[0], runs))
    else:
        unlike_shapes(focus)


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


def training_of(name: str, reference: str, runs: Sequence[SavedRun]) -> str:
    """The training that made one checkpoint out of another, as a sentence begins with it; empty where none is known."""
    step = STEP.fullmatch(name)
    run_name = step[1] if step else name
    if not any(run.name == run_name and run.progress.checkpoint == reference for run in runs):
        return ""
    return wording.training(int(step[2]) if step else None)
