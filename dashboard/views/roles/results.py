"""Roles over a corpus of any size, from its statistics."""

from collections.abc import Mapping

import pandas as pd
import streamlit as st

from core.attention.settings import Head
from core.corpus.strata import EVERYTHING
from core.roles.hypotheses import HeadTests, untested
from core.roles.roles import ROLES, combinations, shown_roles
from core.roles.tables import head_table
from dashboard import state
from dashboard import wording as shared_wording
from dashboard.components.venn import role_venn
from dashboard.figures.appearance import LOOKS
from dashboard.figures.roles.from_counts import densities_per_head, densities_per_layer
from dashboard.figures.roles.grid import RoleGrid
from dashboard.figures.roles.layers import heads_per_layer
from dashboard.figures.roles.p_values import p_value_against_score
from dashboard.figures.roles.parts import scores_by_part
from dashboard.figures.roles.venn_svg import venn_svg
from dashboard.files import provenance
from dashboard.files.downloads import drawing_downloads, table_downloads
from dashboard.plain import plain
from dashboard.views import frame
from dashboard.views.charts import chart
from dashboard.views.evidence import wording as evidence_wording
from dashboard.views.layout import halves
from dashboard.views.maps import show_role_grid
from dashboard.views.pickers import from_list, one_of, toggle
from dashboard.views.results import chosen as choosing
from dashboard.views.results import wording
from dashboard.views.results.chosen import Opened, busiest, decided
from dashboard.views.results.raw import highest_texts
from dashboard.views.roles import wording as role_wording


def roles() -> None:
    """Draw the body of the page Roles."""
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        of = choosing.opened()
        if of is None:
            return
        by_evidence = _by_evidence(of)
        finer = toggle(shared_wording.FINER, key="roles finer")
    tests = decided(of, by_evidence)
    coarse, fine = shown_roles(tests.mean)
    choosing.say_what(of)
    _summary(of, tests, coarse)
    left, right = halves()
    with left:
        heads = _grid(of, tests, fine if finer else coarse, by_evidence)
        if reasons := {role: why for role, why in untested(tests).items() if role in coarse}:
            st.info(role_wording.untested(reasons))
    with right:
        _details(of, tests, coarse, heads[0] if heads else busiest(tests))


def _by_evidence(of: Opened) -> bool:
    if of.results.settings.scale != "score":
        return False
    options = {wording.TEST: False, wording.EVIDENCE: True}
    return one_of(wording.DECIDED_BY, options, key="decided by", help=wording.DECIDED_HELP)


def _summary(of: Opened, tests: HeadTests, coarse: tuple[str, ...]) -> None:
    counts = {role: int(tests.holds[ROLES.index(role)].sum()) for role in coarse}
    held = combinations(tests.holds, tests.roles, coarse)
    n_any = sum(len(heads) for names, heads in held.items() if names)
    st.markdown(wording.summary(n_any, tests.holds[0].size, counts, tests.settings.tau))
    n_short = of.part.out_of_reach(tests.settings.tau)
    if n_short is None:
        return
    if short := {role: n for role, n in zip(ROLES, n_short.tolist()) if role in coarse and n}:
        st.markdown(shared_wording.out_of_reach(short, of.part.n_texts, tests.settings.tau))


def _grid(of: Opened, tests: HeadTests, shown: tuple[str, ...], by_evidence: bool) -> list[Head]:
    uniform, greatest = of.part.references()
    tau, scale = tests.settings.tau, of.results.settings.scale
    by_test = shared_wording.filled_by_test(tau, scale)
    grid = RoleGrid(
        label=f"Roles of the heads of {of.results.checkpoint}",
        scores=tests.mean,
        holds=tests.holds,
        tau=tau,
        shown=shown,
        filled=evidence_wording.filled_by_evidence(tau) if by_evidence else by_test,
        scale=scale,
        uniform=uniform,
        greatest=greatest,
        p_values=tests.evidence if tests.evidence is not None else tests.p_adjusted,
        p_name=evidence_wording.NAME if by_evidence else f"p ({tests.settings.correction})",
        odds=by_evidence,
    )
    heads = show_role_grid(
        grid, key="results grid", file="grid", heads=of.heads(busiest(tests)), reset=of.reset, facts=of.facts
    )
    state.put_in_link(heads)
    return heads


def _details(of: Opened, tests: HeadTests, coarse: tuple[str, ...], head: Head) -> None:
    strength = {} if tests.evidence is not None else {"p-values": lambda: _p_values(of, tests, coarse)}
    frame.tabs(
        "results details",
        {
            "Combinations": lambda: _venn(of, tests, coarse),
            "Per layer": lambda: chart("roles per layer", heads_per_layer(tests, coarse), of.facts),
            **strength,
            "Score distributions": lambda: _densities(of),
            wording.PARTS: lambda: _parts(of, tests, coarse, head),
            wording.HIGHEST: lambda: _highest(of, coarse, head),
            "Table": lambda: _table(of, tests),
        },
    )


def _venn(of: Opened, tests: HeadTests, coarse: tuple[str, ...]) -> None:
    counts = {names: len(heads) for names, heads in combinations(tests.holds, tests.roles, coarse).items()}
    role_venn(key="results venn", roles=coarse, combinations=counts, label="Heads by the roles they hold")
    title, caption = provenance.titled("Heads by the roles they hold", of.facts), provenance.caption(of.facts)
    drawing_downloads(
        "overlap", title, of.facts, lambda: venn_svg(roles=coarse, combinations=counts, title=title, caption=caption)
    )


def _p_values(of: Opened, tests: HeadTests, coarse: tuple[str, ...]) -> None:
    chart("p-values", p_value_against_score(tests, coarse, of.results.settings.scale), of.facts)


def _densities(of: Opened) -> None:
    counts, scale = of.part.role_counts, of.results.settings.scale
    layers = {"all": None, **{str(layer): layer for layer in range(counts.shape[1])}}
    with st.container(horizontal=True):
        role = from_list("Role", dict(zip(ROLES, ROLES)), key="distribution role")
        layer = from_list("Layer", layers, key="distribution layer")
    uniform = of.part.references()[0][ROLES.index(role)]
    of_role, tau = counts[ROLES.index(role)], of.chosen.criterion.tau
    if layer is None:
        figure = densities_per_layer(of_role, of.part.bins, role, tau, float(uniform.mean()), scale)
    else:
        figure = densities_per_head(of_role[layer], of.part.bins, role, layer, tau, float(uniform[layer]), scale)
    chart("score distributions", figure, of.facts)


def _parts(of: Opened, tests: HeadTests, coarse: tuple[str, ...], head: Head) -> None:
    """Strata side by side: how many heads hold each role, and one head's mean scores with their intervals."""
    parts = [choosing.part_of(of.results, stratum) for stratum in of.results.strata]
    if len(parts) < 2:
        st.info(wording.NO_PARTS)
        return
    of_parts = {part.stratum.title: part.tests(tests.settings) for part in parts}
    role = from_list("Role", {LOOKS[each].label: each for each in coarse}, key="part role")
    chart("parts", scores_by_part(of_parts, role, head, of.results.settings.scale), of.facts)
    rows = [
        {"texts of": title, "n": part.n_texts, **_held(of_part, coarse)}
        for part, (title, of_part) in zip(parts, of_parts.items(), strict=True)
    ]
    table = pd.DataFrame(rows)
    st.dataframe(table, hide_index=True)
    table_downloads("parts", table, of.facts)


def _held(tests: HeadTests, coarse: tuple[str, ...]) -> Mapping[str, int]:
    return {LOOKS[role].label: int(tests.holds[ROLES.index(role)].sum()) for role in coarse}


def _highest(of: Opened, coarse: tuple[str, ...], head: Head) -> None:
    if of.part.stratum != EVERYTHING:
        st.info(plain(f"The highest texts are those of all texts, not of {of.part.stratum.title} alone."))
    role = from_list("Role", {LOOKS[each].label: each for each in coarse}, key="highest role")
    highest_texts(of, role, head)


def _table(of: Opened, tests: HeadTests) -> None:
    table = head_table(tests)
    strengths = ("p", "p_uniform", "p_role", "p_adjusted", "evidence")
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in strengths}
    score = {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}
    st.dataframe(table, hide_index=True, column_config={**number, **score})
    table_downloads("roles", table, of.facts)
