"""Roles: what every head is for, tested over a corpus."""

from collections.abc import Callable
from itertools import combinations as pairs_of

import numpy as np
import pandas as pd
import streamlit as st

from cache.inference import Engine
from core.errors import AnalysisError
from core.frames import head_table
from core.hypotheses import HeadTests, untested
from core.roles import ROLES, combinations, overlap, shown_roles
from dashboard import controls, provenance, state, wording
from dashboard.components.grid import role_grid
from dashboard.components.venn import role_venn
from dashboard.downloads import drawing_downloads, table_downloads
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.distributions import scores_per_head, scores_per_layer
from dashboard.figures.grid_svg import grid_svg
from dashboard.figures.layers import heads_per_layer
from dashboard.figures.p_values import p_value_against_score, p_value_scatter
from dashboard.figures.venn_svg import venn_svg
from dashboard.plain import show_error
from dashboard.state import Choice, Head
from dashboard.views.charts import chart
from dashboard.views.corpus import Corpus, ask_about_long_texts, ask_for_texts, corpus, readable
from dashboard.views.layout import halves
from dashboard.views.switching import say_role_changes, with_all_on


def show() -> None:
    """Draw the page."""
    st.title("Roles")
    st.markdown(wording.ROLES_SEE)
    try:
        _roles()
    except AnalysisError as error:
        show_error(error)
    with st.expander(wording.HOW):
        st.markdown(wording.FORMULA)
        st.markdown(wording.NOT_EXPLANATION)
    with st.expander(wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _roles() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    if chosen.pass_settings(engine).kind == "cross":
        st.info(wording.ACROSS)
    given = controls.corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    if not texts:
        ask_for_texts(chosen, given)
        return
    tested = corpus(inference, engine, chosen, texts)
    if tested is None:
        return
    state.remember_off(chosen)
    all_on = with_all_on(inference, engine, chosen, texts)
    facts = provenance.corpus_facts(chosen, engine, len(tested.scores))
    ask_about_long_texts(tested.too_long)
    coarse, fine = shown_roles(tested.tests.mean)
    _summary(tested.tests, coarse, len(tested.scores))
    if all_on is not None:
        say_role_changes(tested.tests, all_on.tests, coarse)
    if reasons := {role: why for role, why in untested(tested.tests).items() if role != "sink" or role in fine}:
        st.info(wording.untested(reasons))
    left, right = halves()
    with right:
        region = _venn(tested.tests, coarse, facts)
    with left:
        _grid(engine, chosen, tested.tests, all_on, region, facts)
    _details(chosen, tested, coarse, facts)


def _summary(tests: HeadTests, coarse: tuple[str, ...], n_texts: int) -> None:
    counts = {role: int(tests.holds[tests.roles.index(role)].sum()) for role in coarse}
    n_any = tests.holds[0].size - len(combinations(tests.holds, tests.roles, coarse).get(frozenset(), ()))
    st.markdown(wording.roles_summary(n_any, tests.holds[0].size, counts, n_texts, tests.settings.tau))


def _venn(tests: HeadTests, coarse: tuple[str, ...], facts: dict[str, str]) -> tuple[str, ...] | None:
    counts = {held: len(heads) for held, heads in combinations(tests.holds, tests.roles, coarse).items()}
    region = role_venn(key="venn", roles=coarse, combinations=counts, label="Heads by the roles they hold")
    drawing_downloads(
        "overlap",
        lambda: venn_svg(
            roles=coarse, combinations=counts, title="Heads by the roles they hold", caption=provenance.caption(facts)
        ),
    )
    return region


def _grid(
    engine: Engine,
    chosen: Choice,
    tests: HeadTests,
    all_on: Corpus | None,
    region: tuple[str, ...] | None,
    facts: dict[str, str],
) -> None:
    finer = st.toggle(wording.FINER, key="roles finer", bind="query-params", persist_state="session")
    coarse, fine = shown_roles(tests.mean)
    shown = fine if finer else coarse
    n_layers, n_heads = tests.mean.shape[1:]
    highlight = None if region is None else combinations(tests.holds, tests.roles, coarse).get(frozenset(region), ())
    heads = role_grid(
        key="roles grid",
        roles=ROLES,
        scores=tests.mean,
        holds=tests.holds,
        held_before=None if all_on is None else all_on.tests.holds,
        before=wording.AGAINST,
        off=chosen.off,
        p_values=tests.p_adjusted,
        p_name=f"p ({st.session_state['correction']})",
        shown=shown,
        tau=chosen.criterion.tau,
        filled=wording.filled_by_test(chosen.criterion.tau),
        label=f"Roles of the heads of {engine.files.name}",
        chosen=state.chosen_heads(n_layers, n_heads, _busiest(tests)),
        reset=(engine.files.name, engine.files.fingerprint, state.n_pushed()),
        highlight=highlight,
        on_change=state.choose_heads,
    )
    state.put_in_link(heads)
    drawing_downloads(
        "grid",
        lambda: grid_svg(
            roles=ROLES,
            scores=tests.mean,
            holds=tests.holds,
            off=chosen.off,
            shown=shown,
            tau=chosen.criterion.tau,
            title=f"Roles of the heads of {engine.files.name}",
            caption=provenance.caption(facts),
        ),
    )
    if heads:
        names = ", ".join(head_name(*head) for head in heads)
        st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")


def _busiest(tests: HeadTests) -> Head:
    """The head with most roles: something to look at before one is chosen."""
    n_held = tests.holds.sum(axis=0)
    layer, head = np.unravel_index(n_held.argmax(), n_held.shape)
    return int(layer), int(head)


def _details(chosen: Choice, tested: Corpus, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    views: dict[str, Callable[[], None]] = {
        "Per layer": lambda: chart("roles per layer", heads_per_layer(tested.tests, coarse), facts),
        "p-values": lambda: _p_values(tested.tests, coarse, facts),
        "Score distributions": lambda: _distributions(chosen, tested, facts),
        "Overlaps": lambda: _overlaps(tested.tests, coarse, facts),
        "Table": lambda: _table(tested.tests, facts),
    }
    for tab, draw in zip(st.tabs(list(views), key="details", on_change="rerun", bind="query-params"), views.values()):
        if tab.open:
            with tab:
                draw()


def _p_values(tests: HeadTests, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    against = st.segmented_control(
        "Across",
        ("heads in order", "mean score"),
        default="heads in order",
        key="p across",
        required=True,
        bind="query-params",
        persist_state="session",
    )
    figure = p_value_scatter if against == "heads in order" else p_value_against_score
    chart("p-values", figure(tests, coarse), facts)


def _distributions(chosen: Choice, tested: Corpus, facts: dict[str, str]) -> None:
    n_layers = tested.scores.shape[2]
    with st.container(horizontal=True):
        role = st.selectbox("Role", ROLES, key="distribution role", bind="query-params", persist_state="session")
        layer = st.selectbox(
            "Layer",
            ("all", *map(str, range(n_layers))),
            key="distribution layer",
            bind="query-params",
            persist_state="session",
        )
    if layer == "all":
        figure = scores_per_layer(tested.scores, ROLES, role, chosen.criterion.tau)
    else:
        figure = scores_per_head(tested.scores, ROLES, role, int(layer), chosen.criterion.tau)
    chart("score distributions", figure, facts)


def _overlaps(tests: HeadTests, coarse: tuple[str, ...], facts: dict[str, str]) -> None:
    st.markdown(wording.OVERLAP)
    found = [(*names, overlap(tests.holds, tests.roles, *names)) for names in pairs_of(coarse, 2)]
    table = pd.DataFrame(
        {
            "first": [first for first, _, _ in found],
            "second": [second for _, second, _ in found],
            "heads with both": [shared.both for *_, shared in found],
            "of first": [shared.of_first for *_, shared in found],
            "of second": [shared.of_second for *_, shared in found],
            "of either": [shared.of_union for *_, shared in found],
        }
    )
    share = st.column_config.NumberColumn(format="percent")
    columns = dict.fromkeys(("of first", "of second", "of either"), share)
    st.dataframe(table, hide_index=True, column_config=columns)
    table_downloads("overlaps", table, facts)


def _table(tests: HeadTests, facts: dict[str, str]) -> None:
    table = head_table(tests)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        shown = st.multiselect(
            "Roles", ROLES, key="table roles", placeholder="all roles", bind="query-params", persist_state="session"
        )
        all_layers = [str(layer) for layer in sorted(table["layer"].unique())]
        layers = st.multiselect(
            "Layers",
            all_layers,
            key="table layers",
            placeholder="all layers",
            bind="query-params",
            persist_state="session",
        )
        held = st.toggle("Only roles that are held", key="table held", bind="query-params", persist_state="session")
    wanted = table["role"].isin(shown or ROLES) & table["layer"].isin(map(int, layers or all_layers))
    table = table[wanted & (table["holds"] | (not held))]
    number = {name: st.column_config.NumberColumn(format="%.3g") for name in ("p", "p_adjusted")}
    score = {name: st.column_config.NumberColumn(format="%.3f") for name in ("mean", "std", "low", "high", "t")}
    st.dataframe(table, hide_index=True, column_config={**number, **score})
    table_downloads("roles", table, facts)
