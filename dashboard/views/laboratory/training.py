"""Runs of the laboratory on its page: the form of a new one, the active one, and what can be done with each."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import pairwise
from typing import Final

import streamlit as st

from attention_sieve.core.checkpoints.saved_runs import SavedRun, delete_run
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.finetuning.journal import read_record
from attention_sieve.core.laboratory.settings import LARGEST_SEED, LaboratorySettings
from attention_sieve.dashboard import runs, state, trainings
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.public import is_public
from attention_sieve.dashboard.views.laboratory import wording
from attention_sieve.dashboard.views.pickers import one_of
from attention_sieve.dashboard.views.training import wording as training_wording
from attention_sieve.dashboard.views.training.folders import free_name

RUN: Final = "model"
"""Key and query parameter of the run that is shown."""
BEGUN: Final = "laboratory run begun"
"""Key of the run that is shown once a step of it is saved."""
WATCHED: Final = "laboratory run watched"
"""Key of the run that this reader saw last."""
PLAYING: Final = "film is on"
"""Key of whether the saved steps are played."""
BEAT: Final = 1.0
"""Seconds that each is shown."""


def training(*, has_form: bool) -> None:
    """The active run, or else the form of a new one if it is wanted; on a public server neither."""
    if is_public():
        return
    active = trainings.running()
    if active is not None:
        st.session_state[WATCHED] = active
        runs.panel(
            trainings.folder(active),
            "laboratory",
            lambda progress: f"{active}: {training_wording.running(progress)}",
            changes=lambda progress: progress.saved,
        )
        return
    watched = st.session_state.get(WATCHED)
    if watched is not None and (progress := trainings.look(watched)) is not None:
        if progress.state == "failed":
            st.error(plain(progress.message), icon=":material/error:")
        elif progress.state == "left":
            st.error(plain(training_wording.left(progress)), icon=":material/error:")
    if has_form:
        with st.container(horizontal=True, vertical_alignment="bottom", key="laboratory form"):
            periods = one_of(wording.PERIODS, wording.OPTIONS, key="periods", help=wording.PERIODS_HELP)
            seed = st.number_input(
                wording.SEED, 0, LARGEST_SEED, 0, key="laboratory seed", help=wording.SEED_HELP, width=130
            )
            if st.button(wording.TRAIN, key="train", icon=":material/play_arrow:"):
                settings = LaboratorySettings(periods=periods, seed=int(seed))
                _begin(free_name(wording.named(periods, int(seed))), settings)


def _begin(name: str, settings: LaboratorySettings, *, resume: bool = False) -> None:
    try:
        values = {"output": trainings.folder(name), **asdict(settings)}
        trainings.start(name, ("laboratory", *runs.options_of(values), *(("--resume",) if resume else ())))
    except AnalysisError as error:
        show_error(error)
        return
    st.session_state[BEGUN] = name
    st.rerun()


def play(saved: Sequence[int], step: int) -> None:
    """A button that plays the saved steps one after the other, as a film, and stops it."""
    is_on = bool(st.session_state.get(PLAYING)) and step != saved[-1]
    st.session_state[PLAYING] = is_on
    st.button(
        wording.STOP_FILM if is_on else wording.PLAY,
        key="play",
        icon=":material/stop:" if is_on else ":material/play_arrow:",
        on_click=_begin_film,
        args=(saved, step, not is_on),
    )
    following = dict(pairwise(saved))
    is_drawn_anew = iter([True])

    @st.fragment(run_every=BEAT if is_on else None)
    def beat() -> None:
        if is_on and not next(is_drawn_anew, False):
            st.session_state[state.TOY_STEP] = str(following[step])
            st.rerun(scope="app")

    beat()


def _begin_film(saved: Sequence[int], step: int, is_wanted: bool) -> None:
    st.session_state[PLAYING] = is_wanted
    if is_wanted and step == saved[-1]:
        st.session_state[state.TOY_STEP] = str(saved[0])


def resume_or_delete(run: SavedRun) -> None:
    """What can be done with a run that is not active; nothing on a public server."""
    if is_public() or run.progress.state == "running":
        return
    if run.progress.state != "finished":
        _resume(run)
    _delete(run)


def _resume(run: SavedRun) -> None:
    progress = run.progress
    ended = {"stopped": training_wording.stopped, "left": training_wording.left}
    st.markdown(plain(ended[progress.state](progress) if progress.state in ended else progress.message))
    try:
        settings = LaboratorySettings(**read_record(run.folder)["settings"])
    except (KeyError, TypeError, AnalysisError):
        return  # written by another version: it cannot be resumed
    if st.button(training_wording.resume(run.name), key="resume laboratory", icon=":material/play_circle:"):
        _begin(run.name, settings, resume=True)


def _delete(run: SavedRun) -> None:
    with st.popover(training_wording.DELETE, icon=":material/delete:"):
        n_bytes = sum(path.stat().st_size for path in run.folder.rglob("*") if path.is_file())
        st.markdown(training_wording.about_to_delete(plain(run.name), n_bytes))
        if st.button(training_wording.delete(run.name), key="delete laboratory", type="primary"):
            with errors_shown():
                delete_run(run.name)
                st.rerun()
