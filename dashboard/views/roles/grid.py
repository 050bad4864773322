"""The roles over a corpus, or over a control of it, as a grid and a table, and how they are decided."""

import streamlit as st
from streamlit.elements.lib.column_types import ColumnConfig

from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.evidence import ledger
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit


def number_columns() -> dict[str, ColumnConfig]:
    strengths = ("p", "p_uniform", "p_role", "p_adjusted", "evidence")
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in strengths}
    return number | {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}


def grid_over(visit: Visit, tested: Corpus, label: str, shown: tuple[str, ...]) -> RoleGrid:
    """Grid of the mean scores over a corpus; `shown` are the roles that get a corner of each cell."""
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


def how_decided(visit: Visit, tested: Corpus) -> None:
    criterion = visit.choice.criterion
    if tested.bets is not None:
        st.markdown(evidence_wording.evidence(criterion.alpha))
        if len(set(visit.texts)) < len(visit.texts):
            st.markdown(evidence_wording.DUPLICATES)
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
