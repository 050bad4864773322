"""The roles over a corpus, or over a control of it, as a grid with its files and a table, and how they are decided."""

from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st
from jaxtyping import Float
from streamlit.delta_generator import DeltaGenerator
from streamlit.elements.lib.column_types import ColumnConfig

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.first_screen import first_screen_is_drawn
from attention_sieve.dashboard.components.grid import WITHOUT_TEXT, GridOnText, role_grid
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.figures.figure import counted
from attention_sieve.dashboard.figures.roles.grid import RoleGrid, grid_svg
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import drawing_downloads
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.charts import SMALL_NUMBER
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.evidence import ledger
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit

References = tuple[Float[np.ndarray, "role layer"], Float[np.ndarray, "role layer"]]


def number_columns() -> dict[str, ColumnConfig]:
    strengths = ("p", "p_uniform", "p_role", "p_adjusted", "evidence")
    number = dict.fromkeys(strengths, SMALL_NUMBER)
    return number | {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}


def grid_of(tests: HeadTests, references: References, label: str, scale: Scale, correction: str) -> RoleGrid:
    """Grid of mean scores with those of uniform and of the best attention."""
    tau, is_tested = tests.settings.tau, tests.evidence is None
    uniform, greatest = references
    return RoleGrid(
        label=label,
        roles=tests.roles,
        scores=tests.mean,
        holds=tests.holds,
        tau=tau,
        filled=shared_wording.filled_by_test(tau, scale) if is_tested else evidence_wording.filled_by_evidence(tau),
        scale=scale,
        uniform=uniform,
        greatest=greatest,
        p_values=tests.p_adjusted if is_tested else tests.evidence,
        p_name=f"p ({correction})" if is_tested else evidence_wording.NAME,
        odds=not is_tested,
    )


def grid_over(visit: Visit, tested: Corpus, label: str) -> RoleGrid:
    """The same over a corpus, where heads can be off and labels have a stability."""
    choice, references = visit.choice, tested.scored.mean_references()
    return replace(
        grid_of(tested.tests, references, label, choice.scale, choice.correction),
        off=choice.off,
        before=shared_wording.AGAINST,
        stability=tested.stability(),
        n_shared=visit.engine.files.n_shared,
    )


def show_role_grid(
    grid: RoleGrid,
    selection: Selection[list[Head]],
    *,
    file: str,
    facts: Mapping[str, str],
    on_text: GridOnText = WITHOUT_TEXT,
    files: DeltaGenerator | None = None,
) -> list[Head]:
    """Draw the grid of roles, with its files.

    Args:
        files: container for the files; below the grid by default.

    Returns: the heads that are chosen now.
    """
    grid = replace(grid, layers_across=state.layers_across())
    heads = role_grid(grid, selection, on_text)
    if first_screen_is_drawn():
        if grid.shown is not None:
            facts = {**facts, "shown roles": ", ".join(grid.shown)}
        title = grid.title or f"Roles of {counted(int((~grid.removed).sum()), 'head')}"
        with files or nullcontext():
            drawing_downloads(file, title, facts, partial(grid_svg, grid))
    return heads


def how_decided(visit: Visit, tested: Corpus) -> None:
    criterion = visit.choice.criterion
    if tested.bets is not None:
        st.markdown(evidence_wording.evidence(criterion.alpha))
        _taken_out(ledger.taken_out(visit), ledger.counted(visit), tested)
    elif criterion.method == "mean":
        if ledger.is_typed(visit.choice):
            st.markdown(evidence_wording.BY_MEAN)
    else:
        st.markdown(evidence_wording.BY_SHARE if ledger.is_typed(visit.choice) else evidence_wording.VALID_ONCE)


def _taken_out(removed: tuple[Text, ...], counted: tuple[Text, ...], tested: Corpus) -> None:
    """List the texts that count although they were taken out, with a button to start over."""
    if not removed:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="taken out"):
        st.markdown(evidence_wording.taken_out(len(removed)))
        st.button(
            evidence_wording.START_OVER,
            key="start over",
            icon=":material/restart_alt:",
            help=evidence_wording.START_OVER_HELP,
            on_click=ledger.start_over,
        )
    with st.expander(evidence_wording.WHICH):
        st.markdown(evidence_wording.WHY_COUNTED)
        st.markdown("\n".join(f"- {plain(provenance.shortened(write_typed([text])))}" for text in removed))
        unread = sum(text not in tested.bets_on for text in removed)
        if unread:
            st.markdown(evidence_wording.left_out(unread))
