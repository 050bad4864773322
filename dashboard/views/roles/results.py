"""Roles over a corpus of any size, from its statistics."""

from collections.abc import Mapping
from functools import partial

import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.corpus.statistics import EVERYTHING
from attention_sieve.core.roles.hypotheses import FEW, HeadTests, few_texts, n_holding, tested_roles
from attention_sieve.core.roles.roles import combinations, shown_roles
from attention_sieve.core.roles.tables import head_table
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import role_venn
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.distributions import Violins
from attention_sieve.dashboard.figures.roles.from_counts import density_violins
from attention_sieve.dashboard.figures.roles.parts import scores_by_part
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads, table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart, head_selection
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle
from attention_sieve.dashboard.views.results import chosen as choosing
from attention_sieve.dashboard.views.results import wording
from attention_sieve.dashboard.views.results.chosen import Opened, busiest, decided
from attention_sieve.dashboard.views.results.raw import highest_texts
from attention_sieve.dashboard.views.role_grid.grid import grid_of, role_and_layer, show_role_grid
from attention_sieve.dashboard.views.roles import details


def roles(results: Results) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="roles switches"):
        opened = choosing.opened(results)
        by_evidence = _by_evidence(opened)
        finer = toggle(shared_wording.FINER, key="roles finer")
    tests = decided(opened, by_evidence)
    coarse, fine = shown_roles(tests.mean, tests.roles)
    choosing.say_what(opened)
    _summary(opened, tests, coarse)
    left, right = halves()
    with left:
        heads = _grid(opened, tests, fine if finer else coarse)
        if reasons := {role: reason for role, reason in opened.part.untested(tests).items() if role in coarse}:
            st.info(evidence_wording.untested(reasons))
    with right:
        _details(opened, tests, coarse, heads[0] if heads else busiest(tests))


def _by_evidence(opened: Opened) -> bool:
    if opened.results.settings.scale != "score":
        return False
    options = {wording.TEST: False, wording.EVIDENCE: True}
    return one_of(wording.DECIDED_BY, options, key="decided by", help=wording.DECIDED_HELP)


def _summary(opened: Opened, tests: HeadTests, coarse: tuple[str, ...]) -> None:
    n_any = int(tests.holds[[tests.roles.index(role) for role in coarse]].any(axis=0).sum())
    sentence = wording.summary(n_any, tests.holds[0].size, n_holding(tests, coarse), tests.settings.tau)
    note = few_texts(opened.part.n_texts) if tests.evidence is None else None
    st.markdown(f"{sentence} {note or ''}")
    n_short = opened.part.out_of_reach(tests.settings.tau)
    if n_short is None:
        return
    if short := {role: n for role, n in zip(tests.roles, n_short.tolist()) if role in coarse and n}:
        st.markdown(shared_wording.out_of_reach(short, opened.part.n_texts, tests.settings.tau))


def _grid(opened: Opened, tests: HeadTests, grid_roles: tuple[str, ...]) -> list[Head]:
    label, scale = f"Roles of the heads of {opened.results.checkpoint}", opened.results.settings.scale
    grid = grid_of(tests, opened.part.references(), label, grid_roles, scale, tests.settings.correction)
    heads = show_role_grid(
        grid,
        head_selection("results grid", opened.heads(busiest(tests)), opened.reset),
        file="grid",
        facts=opened.facts,
    )
    state.put_in_link(heads)
    return heads


def _details(opened: Opened, tests: HeadTests, coarse: tuple[str, ...], head: Head) -> None:
    scale, facts = opened.results.settings.scale, opened.facts
    by_test = {"p-values": lambda: details.p_values(tests, coarse, scale, facts)}
    frame.tabs(
        "results details",
        {
            "Combinations": lambda: _venn(opened, tests, coarse),
            "Per layer": lambda: details.per_layer(tests, coarse, facts),
            **(by_test if tests.evidence is None else {}),
            "Score distributions": lambda: _densities(opened),
            wording.PARTS: lambda: _parts(opened, tests, coarse, head),
            wording.HIGHEST: lambda: _highest(opened, coarse, head),
            "Table": lambda: details.table(head_table(tests), facts),
        },
    )


def _venn(opened: Opened, tests: HeadTests, coarse: tuple[str, ...]) -> None:
    roles = tested_roles(tests, coarse)
    counts = {names: len(heads) for names, heads in combinations(tests.holds, tests.roles, roles).items()}
    overlaps = Overlaps(roles=roles, combinations=counts)
    role_venn(overlaps, Selection("results venn", None), shared_wording.OVERLAPS)
    drawing_downloads("overlap", shared_wording.OVERLAPS, opened.facts, partial(venn_svg, overlaps))


def _densities(opened: Opened) -> None:
    counts, settings = opened.part.role_counts, opened.results.settings
    role, layer = role_and_layer(settings.roles, counts.shape[1])
    index, (uniform, _) = settings.roles.index(role), opened.part.references()
    violins = Violins(role, layer, settings.scale)
    figure = density_violins(counts[index], opened.part.bins, violins, opened.choice.criterion.tau, uniform[index])
    chart("score distributions", figure, opened.facts)


def _parts(opened: Opened, tests: HeadTests, coarse: tuple[str, ...], head: Head) -> None:
    """Draw the strata side by side: number of heads with each role, and one head's mean scores with intervals."""
    parts = [choosing.part_of(opened.results, stratum) for stratum in opened.results.strata]
    if len(parts) < 2:
        st.info(wording.NO_PARTS)
        return
    tests_by_part = {part.stratum.title: part.tests(tests.settings) for part in parts}
    role = from_list("Role", {LOOKS[role_name].label: role_name for role_name in coarse}, key="part role")
    figure = scores_by_part(tests_by_part, role, head, opened.results.settings.scale)
    chart("parts", figure, without_command(opened.facts))
    rows = [
        {"texts of": title, "n": part.n_texts, **_n_by_label(part_tests, coarse)}
        for part, (title, part_tests) in zip(parts, tests_by_part.items(), strict=True)
    ]
    table = pd.DataFrame(rows).astype({LOOKS[name].label: "Int64" for name in coarse})
    st.dataframe(table, hide_index=True, placeholder=shared_wording.NOT_TESTED)
    if few := {part.stratum.title: part.n_texts for part in parts if part.n_texts < FEW}:
        st.markdown(plain(wording.few_in_parts(few)))
    table_downloads("parts", table, without_command(opened.facts))


def _n_by_label(tests: HeadTests, coarse: tuple[str, ...]) -> Mapping[str, int | None]:
    return {LOOKS[role].label: n_heads for role, n_heads in n_holding(tests, coarse).items()}


def _highest(opened: Opened, coarse: tuple[str, ...], head: Head) -> None:
    if opened.part.stratum != EVERYTHING:
        st.info(plain(f"The highest texts are those of all texts, not of {opened.part.stratum.title} alone."))
    role = from_list("Role", {LOOKS[role_name].label: role_name for role_name in coarse}, key="highest role")
    highest_texts(opened, role, head)
