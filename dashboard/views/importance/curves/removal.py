"""Save a checkpoint without some heads: which heads, in which form, and how fast it is."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Final

import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.checkpoints.find import find_checkpoint, load_checkpoint
from attention_sieve.core.checkpoints.folders import checkpoints_folder
from attention_sieve.core.errors import AnalysisError, GrowsLarger
from attention_sieve.core.importance.pruning.orders import Pruning, Removed
from attention_sieve.core.importance.removal.exports import Export
from attention_sieve.dashboard import state
from attention_sieve.dashboard.controls import from_home
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.progress import in_its_place, let_leave
from attention_sieve.dashboard.public import check_not_public, is_public
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.importance.curves import wording
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import from_list, one_of
from attention_sieve.dashboard.views.training.folders import check_name, free_name

if TYPE_CHECKING:
    from attention_sieve.core.importance.passes.speed import Speed
    from attention_sieve.core.importance.removal.remove import Removal

EXPORTS: Final[dict[str, Export]] = {wording.REMOVED: "removed", wording.ZEROED: "zeroed"}
MADE: Final = "removed checkpoints"
"""Session-state key: by fingerprint, name and removal of each checkpoint made in this session."""
GROWS: Final = "larger checkpoint"
"""Session-state key: the removal that was refused last because the checkpoint would be larger, and the error."""
SPEEDS: Final = "speeds of removed checkpoints"
NAME: Final = "name of the checkpoint"
STEP_WIDTH: Final = 180
NAME_WIDTH: Final = 360


def removal(importance: Importance, pruning: Pruning, order: Removed | None, n_fine: int) -> None:
    """Let the reader save a checkpoint without some heads, by default the `n_fine` that can go at a small cost.

    Args:
        order: the chosen order; None while it is not found on all texts.
    """
    if is_public():
        return
    with st.expander(wording.REMOVE):
        st.markdown(wording.REMOVE_SEE)
        heads, export = _choose_heads(importance, pruning, order, n_fine)
        if heads:
            st.caption(f"{counted(len(heads), 'head')}: {head_names(sorted(heads))}")
            _make_checkpoint(importance.material.visit, heads, export)
        _made_checkpoints(importance)


def _choose_heads(
    importance: Importance, pruning: Pruning, order: Removed | None, n_fine: int
) -> tuple[list[Head], Export]:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        options = {wording.BY_ORDER: True, wording.CHOSEN: False}
        by_order = one_of(wording.WHICH, options, key="heads to remove", help=wording.WHICH_HELP)
        heads = importance.heads
        if by_order and order is not None:
            counts = pruning.counts(order).tolist()[1:]
            if len(order) == pruning.n_heads:
                counts = counts[:-1]  # the last head cannot be removed
            step_options = wording.steps(counts, pruning.n_heads)
            start = next((name for name, count in step_options.items() if count == n_fine), None)
            if step_options:
                count = from_list(
                    wording.HOW_MANY, step_options, key="how many to remove", start=start, width=STEP_WIDTH
                )
                heads = [(int(layer), int(head)) for layer, head in order[:count]]
            else:
                heads = []
        export = one_of(wording.EXPORT, EXPORTS, key="export", help=wording.EXPORT_HELP)
    if by_order and order is None:
        st.info(wording.NO_ORDER)
        return [], export
    if not heads:
        st.info(wording.NO_CHOICE)
    return heads, export


def _make_checkpoint(visit: Visit, heads: list[Head], export: Export) -> None:
    suggested = free_name(wording.suggested_name(visit.engine.files.name, len(heads)))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        state.follow(NAME, suggested)
        name = st.text_input(wording.NAME, suggested, key=NAME, width=NAME_WIDTH).strip()
        pressed = st.button(wording.MAKE, key="remove heads", icon=":material/content_cut:")
    request, may_grow = (name, tuple(heads), export), False
    refused_request, refusal = st.session_state.get(GROWS, (None, None))
    if refused_request == request and not pressed:
        show_error(refusal)
        may_grow = st.button(wording.MAY_GROW, key="may grow", help=wording.MAY_GROW_HELP)
    if not (pressed or may_grow):
        return
    try:
        check_name(name)
        result = _removed(visit, heads, export, name, may_grow=may_grow)
    except GrowsLarger as error:
        st.session_state[GROWS] = request, error
        st.rerun()  # with the button that saves it
    except AnalysisError as error:
        show_error(error)
        return
    st.session_state.pop(GROWS, None)
    st.session_state.setdefault(MADE, {}).setdefault(visit.engine.files.fingerprint, []).append((name, result))
    st.rerun()  # the sidebar is already drawn and has to offer it


@in_its_place
def _removed(visit: Visit, heads: list[Head], export: Export, name: str, *, may_grow: bool) -> "Removal":
    from attention_sieve.core.importance.removal.remove import remove

    check_not_public()
    folder, kind = checkpoints_folder() / name, visit.settings.kind
    with st.spinner(wording.REMOVING, show_time=True):
        return let_leave(lambda: remove(visit.engine.files, heads, folder, kind=kind, export=export, may_grow=may_grow))


def _made_checkpoints(importance: Importance) -> None:
    visit = importance.material.visit
    checkpoints = st.session_state.get(MADE, {}).get(visit.engine.files.fingerprint, [])
    pages = st.session_state["pages"]
    for name, result in reversed(checkpoints):
        with st.container(border=True):
            summary = wording.made(
                name, result.n_removed, result.n_heads, result.n_weights, result.difference, from_home(result.folder)
            )
            st.success(plain(summary), icon=":material/check_circle:")
            with st.container(horizontal=True, vertical_alignment="center"):
                st.page_link(
                    pages["inspect"],
                    label=wording.INSPECT,
                    icon=":material/search:",
                    query_params={"checkpoint": name},
                )
                if "compare" in pages:
                    st.page_link(
                        pages["compare"],
                        label=wording.COMPARE,
                        icon=":material/compare:",
                        query_params={"checkpoint": visit.engine.files.name, "with": name},
                    )
                pressed = st.button(
                    wording.SPEED, key=f"speed {name}", icon=":material/speed:", help=wording.SPEED_HELP
                )
            _speed(importance, name, pressed)


def _speed(importance: Importance, name: str, pressed: bool) -> None:
    speeds: dict[str, list[Speed]] = st.session_state.setdefault(SPEEDS, {})
    if pressed:
        with errors_shown():
            speeds[name] = _measure_speeds(importance.material.visit, name)
    if name not in speeds:
        return
    from attention_sieve.core.importance.passes.speed import N_TOKENS

    rows = pd.DataFrame([asdict(speed) for speed in speeds[name]])
    numbers = {
        column: st.column_config.NumberColumn(title, format="%.3g" if column in ("ratio", "low", "high") else "%.4g")
        for column, title in wording.SPEED_COLUMNS.items()
    }
    st.dataframe(rows, hide_index=True, column_config=numbers)
    st.caption(f"{wording.speed_note(N_TOKENS)} {wording.MICHEL_T4}")
    table_downloads(f"speed of {name}", rows, importance.facts | {"without heads": name})


@in_its_place
def _measure_speeds(visit: Visit, name: str) -> "list[Speed]":
    from attention_sieve.core.importance.passes.speed import BATCH_SIZES, speeds

    bar = st.progress(0.0, wording.MEASURING)
    original, pruned = (
        load_checkpoint(files, device=visit.engine.device, dtype=visit.engine.dtype)
        for files in (visit.engine.files, find_checkpoint(name))
    )
    measured = []
    for speed in speeds(original, pruned):
        measured.append(speed)
        bar.progress(len(measured) / len(BATCH_SIZES), wording.MEASURING)
    bar.empty()
    return measured
