"""Compare: two or more checkpoints on the same texts, and what changes from the reference to each other."""

import re
from collections.abc import Sequence
from typing import Final

import streamlit as st

from cache.inference import Engine, Inference
from core.errors import AnalysisError, EveryTextTooLong
from core.roles import ROLES, shown_roles
from core.texts import Text
from core.training import list_runs
from core.transitions import busiest_layers, changed_heads
from dashboard import compare_wording as wording
from dashboard import controls, state, training_runs
from dashboard import wording as shared_wording
from dashboard.plain import plain, show_error
from dashboard.state import Choice
from dashboard.views.both_texts import same_head_in_both
from dashboard.views.comparing import Compared, compared, divergence_of_heads, n_other_tokens, paired, shift
from dashboard.views.corpus import ask_about_long_texts, ask_for_texts, readable
from dashboard.views.differences import details, differences, grids
from dashboard.views.finetune import running_panel
from dashboard.views.runs import over_checkpoints, unlike_shapes

STEP: Final = re.compile(r"(.+)/checkpoint-(\d+)")


def show() -> None:
    """Draw the page."""
    st.title("Compare")
    st.markdown(wording.SEE)
    try:
        _compare()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        st.markdown(wording.METHOD)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(shared_wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _compare() -> None:
    chosen = state.choice()
    names = _names(chosen)
    reference, inference = controls.engine(chosen), controls.inference()
    if chosen.off:
        st.info(wording.ALL_ON)
    if not names:
        _nothing_chosen()
        return
    given = controls.corpus_texts(chosen)
    others = _found(chosen, names)
    texts = given
    for engine in (reference, *others):
        texts = readable(chosen, engine, texts)
    if not texts:
        ask_for_texts(chosen, given)
        return
    pairs = _pairs(inference, chosen, reference, others, texts)
    if pairs:
        _draw(inference, chosen, pairs, all_asked=len(pairs) == len(others))


def _names(chosen: Choice) -> list[str]:
    """The compared checkpoints, in the order in which they were chosen."""
    runs = list_runs()
    made = [run.name for run in runs if run.progress.state == "finished"]
    steps = {run.name: [f"{run.name}/checkpoint-{step}" for step in run.progress.saved] for run in runs}
    options = [*made, *(name for of_run in steps.values() for name in of_run), *controls.SUGGESTED]
    st.multiselect(
        wording.WITH,
        [name for name in dict.fromkeys(options) if name != chosen.checkpoint],
        key=state.WITH,
        placeholder=wording.WITH_NONE,
        help=wording.WITH_HELP,
        accept_new_options=True,
        bind="query-params",
        persist_state="session",
    )
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(wording.reference(plain(chosen.checkpoint)))
        for name, of_run in steps.items():
            if len(of_run) > 1:
                st.button(
                    wording.all_steps(plain(name), len(of_run)),
                    key=f"all steps {name}",
                    help=wording.ALL_STEPS_HELP,
                    type="tertiary",
                    icon=":material/timeline:",
                    on_click=_choose,
                    args=(of_run,),
                )
    return list(dict.fromkeys(name.strip() for name in st.session_state[state.WITH]))


def _choose(names: Sequence[str]) -> None:
    st.session_state[state.WITH] = list(names)


def _nothing_chosen() -> None:
    """Say how to get a second checkpoint, and make one where the reader wants that."""
    run = running_panel()
    made = [run.name for run in list_runs() if run.progress.state == "finished"]
    st.info(wording.NOTHING_CHOSEN if made else wording.NOTHING)
    with st.container(horizontal=True, vertical_alignment="center"):
        for name in made:
            st.button(plain(name), key=f"with {name}", icon=":material/compare:", on_click=_choose, args=([name],))
        if not made and (run is None or not run.is_on):
            st.button(
                wording.MAKE_SAMPLE,
                key="make sample",
                type="primary",
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


def _found(chosen: Choice, names: Sequence[str]) -> list[Engine]:
    """Those that can be found; says what is wrong with the others."""
    found = []
    for name in names:
        try:
            found.append(controls.other_engine(chosen, name))
        except AnalysisError as error:
            show_error(error)
    return found


def _pairs(
    inference: Inference, chosen: Choice, reference: Engine, others: Sequence[Engine], texts: tuple[Text, ...]
) -> list[Compared]:
    """Each checkpoint against the reference; one that fails leaves the others as they are."""
    pairs: list[Compared] = []
    too_long: tuple[tuple[int, int], ...] = ()
    for engine in others:
        try:
            pair = compared(inference, (reference, engine), chosen, texts)
        except EveryTextTooLong as error:
            too_long = error.texts
            show_error(error)
            continue
        except AnalysisError as error:
            show_error(error)
            continue
        if pair is None:
            break  # stopped: the bar says so and offers to go on
        pairs.append(pair)
        too_long = too_long or pair.corpus.too_long
    ask_about_long_texts(too_long)
    return pairs


def _draw(inference: Inference, chosen: Choice, pairs: Sequence[Compared], *, all_asked: bool) -> None:
    pair = pairs[0] if len(pairs) == 1 else _focus(pairs)
    coarse, fine = shown_roles(pair.tests[0].mean)
    for notice in (inference.notice(engine) for engine in pair.engines):
        if notice:
            st.warning(plain(notice))
    if not pair.same_shape:
        st.info(wording.other_shape(pair.tests[0].mean.shape[1:], pair.tests[1].mean.shape[1:]))
        unlike_shapes(chosen, pair, coarse)
        return
    _summary(chosen, pair, coarse, fine)
    if len(pairs) > 1 and all_asked:
        over_checkpoints(chosen, pairs, pair, coarse, steps_of([each.name for each in pairs]))
    heads = grids(chosen, pair, coarse, fine)
    differences(chosen, pair, coarse, fine)
    same_head_in_both(inference, chosen, pair, heads)
    details(chosen, pair, coarse, fine)


def _focus(pairs: Sequence[Compared]) -> Compared:
    """The one that is looked at; a scrubber along a training run."""
    names = [pair.name for pair in pairs]
    if st.session_state.get("focus") not in names:
        st.session_state["focus"] = names[-1]
    picked = st.select_slider(wording.FOCUS, names, key="focus", help=wording.FOCUS_HELP, persist_state="session")
    return pairs[names.index(str(picked))]


def steps_of(names: Sequence[str]) -> list[int] | None:
    """Training steps of the saved checkpoints of one run, where all are such and stand in order; else None.

    The run's own folder holds its last step, so it may stand at the end.
    """
    found = [STEP.fullmatch(name) for name in names]
    if not all(found):
        return None
    runs = {match[1] for match in found if match}
    steps = [int(match[2]) for match in found if match]
    return steps if len(runs) == 1 and steps == sorted(set(steps)) else None


def _summary(chosen: Choice, pair: Compared, coarse: tuple[str, ...], fine: tuple[str, ...]) -> None:
    tests_a, tests_b = pair.tests
    found = paired(pair, chosen)
    changed = changed_heads(tests_a.holds, tests_b.holds, ROLES, coarse)
    sentences = [
        wording.summary(
            int(changed.sum()),
            changed.size,
            chosen.criterion.tau,
            busiest_layers(changed),
            int(found.differs.sum()),
            int((found.texts >= 2).sum()),
        )
    ]
    role = "delimiter:sep" if "delimiter:sep" in fine else coarse[2]
    moved = shift(pair, chosen, role)
    sentences.append(wording.shift(role, moved.overall, moved.p, moved.texts))
    divergence = divergence_of_heads(pair.corpus)
    if divergence is not None:
        per_layer = divergence.mean(axis=1)
        if per_layer.max() > 0:
            sentences.append(wording.moved(float(divergence.mean()), f"layer {int(per_layer.argmax())}"))
    st.markdown(" ".join(sentences))
    if pair.engines[0].files.fingerprint == pair.engines[1].files.fingerprint:
        st.info(wording.SAME)
    if n_other := n_other_tokens(pair.corpus):
        st.info(wording.other_tokens(n_other, len(pair.corpus.positions)))
