"""The form for training gates: penalties and settings."""

from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.gates.settings import GateSettings
from attention_sieve.dashboard import state
from attention_sieve.dashboard.plain import errors_shown, plain, show_error
from attention_sieve.dashboard.views.finetune.folders import keep_data
from attention_sieve.dashboard.views.finetune.labelled import Labelled
from attention_sieve.dashboard.views.importance.gates import runs, wording
from attention_sieve.dashboard.views.importance.gates.sweeps import PenaltySweep
from attention_sieve.dashboard.views.importance.material import Material
from attention_sieve.dashboard.views.pickers import numbers, toggle

NARROWEST: Final = 150
"""Minimum width of a setting, in pixels."""


def form(material: Material, table: Labelled) -> None:
    """Draw the form; its button starts the training."""
    default = ", ".join(f"{penalty:g}" for penalty in wording.DEFAULT_PENALTIES)
    try:
        text = st.text_input(
            wording.PENALTIES,
            default,
            key="penalties",
            help=wording.PENALTIES_HELP,
            bind="query-params",
            persist_state="session",
        )
        penalties = penalties_of(text)
        with_weights = toggle(wording.WITH_WEIGHTS, key="with weights", help=wording.WITH_WEIGHTS_HELP)
        grid = st.grid(3, min_column_width=NARROWEST)
        fields = {name: texts for name, texts in wording.SETTINGS.items() if with_weights or name != "learning_rate"}
        values = numbers(grid, fields, wording.DEFAULTS, prefix="gates ")
        settings = GateSettings(**values, with_weights=with_weights, kind=material.visit.settings.kind)
    except AnalysisError as error:
        show_error(error)
        return
    is_on = runs.running() is not None
    if is_on:
        st.info(wording.ONE_AT_A_TIME)
    pressed = st.button(wording.start(len(penalties)), key="train gates", icon=":material/play_arrow:", disabled=is_on)
    if pressed:
        begin(_new_sweep(material, table, settings, penalties))


def begin(sweep: PenaltySweep) -> None:
    """Start or continue a sweep and redraw the page; show an error if that fails."""
    with errors_shown():
        runs.start(sweep, state.choice().device)
        st.rerun(scope="app")


def penalties_of(text: str) -> tuple[float, ...]:
    """Parse penalties separated by commas; sorted, without duplicates.

    Raises: AnalysisError if they are not numbers, out of range, or too many.
    """
    try:
        # Rounded as in the name of the run's folder.
        penalties = sorted({float(f"{float(part):g}") for part in text.split(",") if part.strip()})
    except ValueError:
        penalties = []
    if not penalties:
        raise AnalysisError(wording.no_penalties(plain(text)))
    if len(penalties) > wording.MOST_PENALTIES:
        raise AnalysisError(wording.too_many(len(penalties)))
    for penalty in penalties:
        GateSettings(penalty=penalty)
    return tuple(penalties)


def _new_sweep(
    material: Material, table: Labelled, settings: GateSettings, penalties: tuple[float, ...]
) -> PenaltySweep:
    data, files = table.data, material.visit.engine.files
    path: Path = keep_data(data.name, table.content())
    return PenaltySweep(
        checkpoint=files.name,
        fingerprint=files.fingerprint,
        data=path,
        text_columns=data.text_columns,
        label_column=data.label_column,
        task="classes" if material.metric.n_classes else "regression",
        settings=settings,
        penalties=penalties,
    )
