"""With which checkpoints the reference is compared, and how to get one."""

from collections.abc import Sequence

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.checkpoints.saved_runs import SavedRun
from attention_sieve.dashboard import controls, runs, trainings
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views.comparison import wording
from attention_sieve.dashboard.views.other_checkpoints import buttons_of_steps, other_checkpoints
from attention_sieve.dashboard.views.training import wording as training_wording
from attention_sieve.dashboard.views.training.panel import WATCHED


def chosen_names(choice: Choice, saved_runs: Sequence[SavedRun], instead: str | None) -> list[str]:
    """The compared checkpoints, in the order in which they were chosen; `instead` until there is one."""
    shown_instead = wording.WITH_NONE if instead is None else f"{instead}, until you choose another"
    names = other_checkpoints(wording.WITH, choice, saved_runs, placeholder=shown_instead, help=wording.WITH_HELP)
    buttons_of_steps(saved_runs)
    return names or ([] if instead is None else [instead])


def engines_of(choice: Choice, names: Sequence[str]) -> list[Engine]:
    """The compared checkpoints that can be found; shows the errors of the others."""
    engines = []
    for name in names:
        with errors_shown():
            engines.append(controls.other_engine(choice, name))
    return engines


def how_to_get_another(sentence: str) -> None:
    """Say that a fine-tuned checkpoint is being made, or how to make one."""
    if is_public():
        st.markdown(sentence)
        return
    if (active := trainings.running()) is not None:
        st.session_state[WATCHED] = active
        runs.panel(
            trainings.folder(active),
            "compare run",
            lambda progress: wording.being_made(active, training_wording.running(progress), sentence),
            changes=lambda progress: progress.state,
        )
        return
    watched = st.session_state.get(WATCHED)
    if watched is not None and (ended := trainings.look(watched)) is not None and ended.state == "failed":
        st.error(plain(ended.message), icon=":material/error:")
    with st.container(horizontal=True, vertical_alignment="center", key="make another"):
        st.markdown(sentence, width="content")
        st.button(
            wording.MAKE_SAMPLE,
            key="make sample",
            icon=":material/download:",
            help=wording.MAKE_SAMPLE_HELP,
            on_click=_make_sample,
        )
        st.page_link(st.session_state["pages"]["finetune"], label=wording.FINETUNE, icon=":material/model_training:")


def _make_sample() -> None:
    with errors_shown():
        st.session_state[WATCHED] = trainings.start_sample()
