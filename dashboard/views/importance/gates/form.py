"""What is asked before gates are trained."""

from pathlib import Path
from typing import Any, Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from core.errors import AnalysisError
from core.importance.gates.settings import GateSettings
from dashboard import state
from dashboard.plain import plain, show_error
from dashboard.views.finetune.folders import keep_data
from dashboard.views.finetune.labelled import Labelled
from dashboard.views.importance.gates import runs, wording
from dashboard.views.importance.gates.sweeps import Sweep
from dashboard.views.importance.material import Material
from dashboard.views.pickers import toggle

NARROWEST: Final = 150
"""Pixels of a setting."""


def form(material: Material, table: Labelled) -> None:
    """Ask for penalties and settings, and begin."""
    written = ", ".join(f"{penalty:g}" for penalty in wording.DEFAULT_PENALTIES)
    try:
        asked = st.text_input(
            wording.PENALTIES,
            written,
            key="penalties",
            help=wording.PENALTIES_HELP,
            bind="query-params",
            persist_state="session",
        )
        penalties = penalties_of(asked)
        with_weights = toggle(wording.WITH_WEIGHTS, key="with weights", help=wording.WITH_WEIGHTS_HELP)
        settings = _settings(material, with_weights)
    except AnalysisError as error:
        show_error(error)
        return
    is_on = runs.running() is not None
    if is_on:
        st.info(wording.ONE_AT_A_TIME)
    pressed = st.button(wording.start(len(penalties)), key="train gates", icon=":material/play_arrow:", disabled=is_on)
    if pressed:
        begin(_asked(material, table, settings, penalties))


def begin(sweep: Sweep) -> None:
    """Start or go on with a sweep, and show it; say here why it cannot."""
    try:
        runs.start(sweep, state.choice().device)
    except AnalysisError as error:
        show_error(error)
    else:
        st.rerun(scope="app")


def penalties_of(written: str) -> tuple[float, ...]:
    """Penalties as they are written with commas between, in order, each once.

    Raises: AnalysisError where they are no numbers, out of range, or too many.
    """
    try:
        # As in the name of the run's folder.
        found = sorted({float(f"{float(part):g}") for part in written.split(",") if part.strip()})
    except ValueError:
        found = []
    if not found:
        raise AnalysisError(wording.no_penalties(plain(written)))
    if len(found) > wording.MOST_PENALTIES:
        raise AnalysisError(wording.too_many(len(found)))
    for penalty in found:
        GateSettings(penalty=penalty)
    return tuple(found)


def _settings(material: Material, with_weights: bool) -> GateSettings:
    grid = st.grid(3, min_column_width=NARROWEST)
    names = [name for name in wording.SETTINGS if with_weights or name != "learning_rate"]
    asked = {name: _number(grid.cell(), name) for name in names}
    return GateSettings(**asked, with_weights=with_weights, kind=material.visit.settings.kind)


def _number(place: DeltaGenerator, name: str) -> Any:
    label, explained, step = wording.SETTINGS[name]
    return place.number_input(
        label,
        value=getattr(wording.DEFAULTS, name),
        step=step,
        format="%d" if isinstance(step, int) else "%g",
        key=f"gates {name}",
        help=explained,
        bind="query-params",
        persist_state="session",
    )


def _asked(material: Material, table: Labelled, settings: GateSettings, penalties: tuple[float, ...]) -> Sweep:
    data, files = table.data, material.visit.engine.files
    path: Path = keep_data(data.name, table.content())
    return Sweep(
        checkpoint=files.name,
        fingerprint=files.fingerprint,
        data=path,
        text_columns=data.text_columns,
        label_column=data.label_column,
        task="classes" if material.n_classes else "regression",
        settings=settings,
        penalties=penalties,
    )
