"""The roles over a corpus, or over a control of it, as a grid and a table; for the pages Roles and Inspect."""

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit


def number_columns() -> dict[str, ColumnConfig]:
    """How the numbers of a table of tests are shown."""
    strengths = ("p", "p_uniform", "p_role", "p_adjusted", "evidence")
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in strengths}
    return number | {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}


def grid_over(visit: Visit, tested: Corpus, label: str, shown: tuple[str, ...]) -> RoleGrid:
    """Grid of the mean scores over a corpus, with their reference values and the resulting roles.

    Args:
        shown: roles that get a corner of each cell.
    """
    choice, tests, evidence = visit.choice, tested.tests, tested.tests.evidence
    tau, scale = choice.criterion.tau, choice.scale
    by_test, by_evidence = shared_wording.filled_by_test(tau, scale), evidence_wording.filled_by_evidence(tau)
    uniform, greatest = tested.scored.mean_references()
    return RoleGrid(
        label=label,
        roles=tests.roles,
        scores=tests.mean,
        holds=tests.holds,
        tau=tau,
        shown=shown,
        off=choice.off,
        before=shared_wording.AGAINST,
        filled=by_test if evidence is None else by_evidence,
        scale=scale,
        uniform=uniform,
        greatest=greatest,
        p_values=tests.p_adjusted if evidence is None else evidence,
        p_name=f"p ({choice.correction})" if evidence is None else evidence_wording.NAME,
        odds=evidence is not None,
        stability=tested.stability(),
        n_shared=visit.engine.files.n_shared,
    )
