"""Roles: where each head looks, tested over a corpus."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from itertools import combinations as pairs_of
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.hypotheses import HeadTests, n_holding, untested
from attention_sieve.core.roles.matched_pairs import MatchedTests
from attention_sieve.core.roles.roles import combinations, roles_per_layer, shown_roles
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.roles.uncertainty.sensitivity import LEAST_TEXTS, counts_by_tau, counts_by_texts
from attention_sieve.core.roles.uncertainty.stability import few_texts
from attention_sieve.core.statistics.overlap import overlap
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.selection import Selection
from attention_sieve.dashboard.components.venn import role_venn
from attention_sieve.dashboard.figures.roles.combinations import NO_ROLE as NO_HELD
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.distributions import scores_per_head, scores_per_layer
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.roles.layers import heads_per_layer
from attention_sieve.dashboard.figures.roles.p_values import p_value_against_score, p_value_scatter
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import drawing_downloads, table_downloads
from attention_sieve.dashboard.state import Choice
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import Corpus, corpus, kept_matches
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import say_role_changes, with_all_on
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.maps import head_selection, show_role_grid
from attention_sieve.dashboard.views.pickers import from_list, one_of, some_of, toggle
from attention_sieve.dashboard.views.results.chosen import busiest, is_chosen
from attention_sieve.dashboard.views.roles import chance, results, wording
from attention_sieve.dashboard.views.roles.chance import Controlled
from attention_sieve.dashboard.views.roles.evidence_chart import evidence_chart
from attention_sieve.dashboard.views.roles.grid import grid_over
from attention_sieve.dashboard.views.roles.how_decided import how_decided
from attention_sieve.dashboard.views.roles.notes import NOTES

REGION: Final = "region"
"""Session-state key and query parameter of the roles selected in the Venn diagram."""
VENN_ROLES: Final = "venn roles"
"""Key and query parameter of the roles of the Venn diagram."""
MOST_VENN: Final = 4
"""Number of roles that the Venn diagram holds at most."""
NO_ROLE: Final = "none"
"""Value in the link for heads without a role."""


def show() -> None:
    """Draw the page."""
    frame.page("Roles", wording.SEE, results.roles if is_chosen() else _roles, NOTES)


def _roles() -> None:
    top = st.container()
    visit = frame.visit()
    if visit is None:
        return
    if visit.settings.kind == "cross":
        st.info(shared_wording.ACROSS)
    tested = corpus(visit)
    if tested is None:
        return
    if state.lesson_is_on("roles"):
        lesson_panel(top, visit, tested=tested)
        _in_lesson(visit, tested)
        return
    state.remember_off(visit.chosen)
    all_on = with_all_on(visit)
    facts = corpora.facts(visit, tested)
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    # Varies in length; the container keeps what follows at its index, so that it is not drawn again.
    with st.container():
        ask_about_long_texts(tested.found.too_long)
        switches = st.container(horizontal=True, gap="medium", vertical_alignment="center")
        with switches:
            _summary(visit, tested, coarse)
            finer = toggle(shared_wording.FINER, key="roles finer")
        controls = chance.controlled(visit, tested, switches)
        matched = kept_matches(visit)
        grid_roles = fine if finer else coarse
        if controls:
            chance.counts(tested, controls, grid_roles, facts)
    left, right = halves()
    with left:
        grid_and_notes = st.container(key="roles left")
        grid_and_notes.empty()  # without an element the container would take up no space
    with right:
        _details(visit, tested, matched, coarse, facts)
        region = _selected(_counts(tested.tests, _venn_roles(coarse), visit.removed))
    with grid_and_notes:
        _grid(visit, tested, all_on, matched, controls, grid_roles, region, facts)
        _caveats(visit, tested, all_on, coarse, fine)
        if matched is not None:
            chance.say_positional(tested, matched)


def _in_lesson(visit: Visit, tested: Corpus) -> None:
    """The grid alone, for a lesson: with the counts under controls where the lesson speaks of them."""
    facts = corpora.facts(visit, tested)
    coarse, _ = shown_roles(tested.tests.mean, tested.tests.roles)
    controls: tuple[Controlled, ...] = ()
    if shows("roles", "chance"):
        controls = chance.controlled(visit, tested, st.container(horizontal=True))
    if controls:
        chance.counts(tested, controls, coarse, facts)
    _grid(visit, tested, None, None, controls, coarse, None, facts)


def _caveats(
    visit: Visit, tested: Corpus, all_on: Corpus | None, coarse: tuple[str, ...], fine: tuple[str, ...]
) -> None:
    """Say how roles were decided, and which ones could not be tested."""
    n_texts, tau = len(tested.scores), tested.tests.settings.tau
    n_short = dict(zip(tested.tests.roles, tested.scored.out_of_reach(tau).tolist()))
    if short := {role: n_short[role] for role in coarse if n_short[role]}:
        st.markdown(shared_wording.out_of_reach(short, n_texts, tau))
    how_decided(visit, tested)
    if all_on is not None:
        say_role_changes(tested.tests, all_on.tests, coarse)
    if reasons := {role: reason for role, reason in untested(tested.tests).items() if role != "sink" or role in fine}:
        st.info(wording.untested(reasons))
    if "sink" in coarse + fine:
        st.markdown(wording.looks_back(visit.chosen.score_settings.direction))


def _summary(visit: Visit, tested: Corpus, coarse: tuple[str, ...]) -> None:
    """Say how many heads hold each role."""
    tests, n_texts = tested.tests, len(tested.scores)
    heads_by_roles = combinations(tests.holds, tests.roles, coarse)
    n_any = sum(len(heads) for roles, heads in heads_by_roles.items() if roles)
    n_heads = tests.holds[0].size - len(visit.removed)
    lengths = shared_wording.token_range(tested.found.n_tokens)
    at_tau = shared_wording.at_tau(tests.settings.tau, visit.chosen.scale)
    sentence = wording.summary(n_any, n_heads, n_holding(tests, coarse), n_texts, lengths, at_tau)
    note = few_texts(n_texts) if tested.bets is None else None
    st.markdown(f"{sentence} {note or ''}", width="stretch")


def _counts(tests: HeadTests, coarse: tuple[str, ...], removed: Collection[Head]) -> dict[frozenset[str], int]:
    """Number of heads for each exact combination of roles."""
    heads_by_roles = combinations(tests.holds, tests.roles, coarse).items()
    counts = {roles: len(set(heads) - set(removed)) for roles, heads in heads_by_roles}
    return {roles: n_heads for roles, n_heads in counts.items() if n_heads}


def _venn_roles(coarse: tuple[str, ...]) -> tuple[str, ...]:
    """The roles of the Venn diagram: those that the reader has picked, if they are two or more, else the first four."""
    picked = tuple(role for role in coarse if role in st.session_state.get(VENN_ROLES, ()))
    return picked if len(picked) > 1 else coarse[:MOST_VENN]


def _venn(tests: HeadTests, coarse: tuple[str, ...], removed: Collection[Head], facts: dict[str, str]) -> None:
    """Draw the overlaps; the selected combination is stored in the session and in the link."""
    diagram = st.container()
    st.multiselect(
        wording.VENN_ROLES,
        coarse,
        key=VENN_ROLES,
        max_selections=MOST_VENN,
        placeholder=wording.VENN_ALL,
        bind="query-params",
        persist_state="session",
    )
    roles = _venn_roles(coarse)
    overlaps = Overlaps(
        roles=roles,
        combinations=_counts(tests, roles, removed),
        untested=untested(tests),
        none=NO_HELD if roles == coarse else wording.NONE_OF_THESE,
    )
    with diagram:
        region = role_venn(
            overlaps, Selection("venn", _selected(overlaps.combinations), roles), shared_wording.OVERLAPS
        )
    st.session_state[REGION] = region
    link.put([REGION], {} if region is None else {REGION: ",".join(region) or NO_ROLE})
    title, caption = provenance.titled(shared_wording.OVERLAPS, facts), provenance.caption(facts)
    drawing_downloads("overlap", title, facts, lambda: venn_svg(overlaps, title=title, caption=caption))


def _selected(counts: Mapping[frozenset[str], int]) -> tuple[str, ...] | None:
    """The combination of roles in the link on a first visit, else the one that was selected last."""
    if (requested := link.take(REGION)) is not None:
        roles = () if requested == NO_ROLE else tuple(requested.split(","))
        st.session_state[REGION] = roles if frozenset(roles) in counts else None
        if frozenset(roles) not in counts:
            link.say(wording.no_such_region(link.quoted(requested)))
    return st.session_state.get(REGION)


def _grid(
    visit: Visit,
    tested: Corpus,
    all_on: Corpus | None,
    matched: MatchedTests | None,
    controls: tuple[Controlled, ...],
    grid_roles: tuple[str, ...],
    region: tuple[str, ...] | None,
    facts: dict[str, str],
) -> None:
    """Draw the grid of the checkpoint, or that of a control instead."""
    tests = tested.tests
    coarse, _ = shown_roles(tests.mean, tests.roles)
    venn_roles = _venn_roles(coarse)
    control, label = chance.choose_grid(controls), f"Roles of the heads of {visit.engine.files.name}"
    if control is None:
        heads_by_roles = combinations(tests.holds, tests.roles, venn_roles)
        highlight = None if region is None else heads_by_roles.get(frozenset(region), ())
        before = None if all_on is None else all_on.tests.holds
        grid = replace(
            grid_over(visit, tested, label, grid_roles),
            held_before=before,
            sentences=kept_sentences(visit, tested.tests),
            positional=None if matched is None else matched.positional(tests),
        )
        _show(visit, replace(grid, highlight=highlight), tests, "grid", facts)
    else:
        name = control.control_pass.name
        label = f"Control, {name}: roles of the heads of {visit.engine.files.name}"
        grid = grid_over(visit, control.tested, label, grid_roles)
        grid = replace(grid, title=f"Roles of the heads under a control, {name}")
        _show(visit, grid, tests, f"grid, {name}", {**facts, "control": name})


def _show(visit: Visit, grid: RoleGrid, tests: HeadTests, file: str, facts: dict[str, str]) -> None:
    """Draw a grid, with links to the chosen heads."""
    files = visit.engine.files
    n_layers, n_heads = tests.mean.shape[1:]
    picture, links = st.container(), st.container(horizontal=True, gap="xsmall", vertical_alignment="center")
    heads = state.chosen_heads(n_layers, n_heads, busiest(tests))
    reset = (files.name, files.fingerprint, state.n_pushed())
    with picture:
        heads = show_role_grid(grid, head_selection("roles grid", heads, reset), file=file, facts=facts, files=links)
    state.put_in_link(heads)
    with links:
        frame.link_to_inspect(heads)


def _details(
    visit: Visit,
    tested: Corpus,
    matched: MatchedTests | None,
    coarse: tuple[str, ...],
    facts: dict[str, str],
) -> None:
    """Draw the tabs next to the grid, one view of the roles each."""
    choice = visit.chosen
    by_test = {"p-values": lambda: _p_values(choice, tested.tests, coarse, facts)}
    by_evidence = {"Evidence": lambda: _evidence(tested, facts)}
    strength = by_test if tested.bets is None else by_evidence
    frame.tabs(
        "details",
        {
            "Combinations": lambda: _venn(tested.tests, coarse, visit.removed, facts),
            "Per layer": lambda: _per_layer(tested, coarse, facts),
            **strength,
            "Score distributions": lambda: _distributions(choice, tested, facts),
            "Sensitivity": lambda: _sensitivity(visit, tested, coarse, facts),
            "Overlaps": lambda: _overlaps(tested.tests, coarse, facts),
            "Table": lambda: _table(visit, tested, matched, facts),
        },
    )


def _per_layer(tested: Corpus, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    tests = tested.tests
    n_present = (~np.isnan(tests.mean)).any(axis=0).sum(axis=1)
    n_holding = roles_per_layer(tests.holds)
    majority_layers = {
        role: np.flatnonzero(2 * n_holding[tests.roles.index(role)] > n_present).tolist() for role in coarse
    }
    st.markdown(wording.most_of_layers({role: layers for role, layers in majority_layers.items() if layers}))
    chart("roles per layer", heads_per_layer(tests, coarse), facts)


def _p_values(choice: Choice, tests: HeadTests, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    figures = {"heads in order": p_value_scatter, "mean score": p_value_against_score}
    figure = one_of("Across", figures, key="p across")
    chart("p-values", figure(tests, coarse, choice.scale), facts)


def _evidence(tested: Corpus, facts: dict[str, str]) -> None:
    n_layers, n_heads = tested.tests.mean.shape[1:]
    heads = state.chosen_heads(n_layers, n_heads, busiest(tested.tests))
    if not heads:
        st.info(evidence_wording.NO_HEAD)
    coarse, fine = shown_roles(tested.tests.mean, tested.tests.roles)
    roles = fine if toggle(shared_wording.FINER, key="evidence finer") else coarse
    for head in heads:
        evidence_chart(tested, head, roles, facts)


def _distributions(choice: Choice, tested: Corpus, facts: dict[str, str]) -> None:
    layers = {"all": None, **{str(layer): layer for layer in range(tested.scores.shape[2])}}
    with st.container(horizontal=True):
        role = from_list("Role", {name: name for name in tested.tests.roles}, key="distribution role")
        layer = from_list("Layer", layers, key="distribution layer")
    (uniform, _), tau, scale = tested.scored.mean_references(), choice.criterion.tau, choice.scale
    if layer is None:
        figure = scores_per_layer(tested.scores, tested.tests.roles, role, tau, uniform, scale)
    else:
        figure = scores_per_head(tested.scores, tested.tests.roles, role, layer, tau, uniform, scale)
    chart("score distributions", figure, facts)


def _sensitivity(visit: Visit, tested: Corpus, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    st.markdown(wording.SENSITIVITY)
    settings, scale = visit.chosen.criterion, visit.chosen.scale
    n_heads = tested.tests.holds[0].size - len(visit.removed)
    left, right = halves()
    with left:
        by_evidence = tested.bets is not None
        by_tau = counts_by_tau(tested.bets or tested.scored, coarse, settings, scale, by_evidence=by_evidence)
        chart("roles by tau", heads_by_tau(by_tau, coarse, settings.tau, n_heads, scale), facts)
    with right:
        if tested.bets is not None:
            st.info(evidence_wording.BY_TEXTS)
        elif len(tested.scores) < LEAST_TEXTS:
            st.info(wording.TOO_FEW_TO_DRAW)
        else:
            by_texts = counts_by_texts(tested.scored, coarse, settings)
            chart("roles by texts", heads_by_texts(by_texts, coarse, n_heads), facts)


def _overlaps(tests: HeadTests, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    st.markdown(wording.OVERLAP)
    overlaps = [(*names, overlap(tests.holds, tests.roles, *names)) for names in pairs_of(coarse, 2)]
    table = pd.DataFrame(
        {
            "first": [first for first, _, _ in overlaps],
            "second": [second for _, second, _ in overlaps],
            "heads with both": [shared.both for *_, shared in overlaps],
            "of first": [shared.of_first for *_, shared in overlaps],
            "of second": [shared.of_second for *_, shared in overlaps],
            "of either": [shared.of_union for *_, shared in overlaps],
        }
    )
    share = st.column_config.NumberColumn(format="percent")
    columns = dict.fromkeys(("of first", "of second", "of either"), share)
    st.dataframe(table, hide_index=True, column_config=columns)
    table_downloads("overlaps", table, facts)


def _table(visit: Visit, tested: Corpus, matched: MatchedTests | None, facts: dict[str, str]) -> None:
    table = head_table(tested.with_intervals())
    table = with_sentences(table, kept_sentences(visit, tested.tests))
    if (stability := tested.stability()) is not None:
        table["stability"] = stability.ravel()
    if matched is not None:
        table["positional"] = matched.positional(tested.tests).ravel()
    with st.container(horizontal=True, vertical_alignment="bottom"):
        chosen_roles = some_of("Roles", tested.tests.roles, key="table roles", every="all roles")
        numbers = [str(layer) for layer in sorted(table["layer"].unique())]
        layers = some_of("Layers", numbers, key="table layers", every="all layers")
        only_held = toggle("Only roles that are held", key="table held")
    is_selected = table["role"].isin(chosen_roles) & table["layer"].isin(map(int, layers))
    table = table[is_selected & (table["holds"] | (not only_held))]
    strengths = ("p", "p_uniform", "p_role", "p_adjusted", "evidence")
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in strengths}
    score = {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}
    stability_column = {"stability": st.column_config.NumberColumn(format="percent", help=wording.STABILITY)}
    st.dataframe(table, hide_index=True, column_config={**number, **score, **stability_column})
    table_downloads("roles", table, facts)
