"""Roles: where each head looks, tested over a corpus."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.corpus.results import Results
from attention_sieve.core.roles.hypotheses import few_texts, n_holding
from attention_sieve.core.roles.roles import combinations
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.into_view import mark_place
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import head_selection
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.decoder_notes import decoder_notes
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Places
from attention_sieve.dashboard.views.heads_off import say_role_changes, with_all_on
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.pickers import halves, toggle
from attention_sieve.dashboard.views.results.chosen import opened_results, say_what, texts_or_results
from attention_sieve.dashboard.views.role_grid.grid import show_role_grid
from attention_sieve.dashboard.views.role_grid.notes import NOTES
from attention_sieve.dashboard.views.roles import chance, chance_wording, details, sources, wording, written
from attention_sieve.dashboard.views.roles.chance import Controlled
from attention_sieve.dashboard.views.roles.details import TestedRoles


def show() -> None:
    frame.page("Roles", wording.SEE, texts_or_results(_over_texts, _over_corpus), NOTES)


def _over_texts() -> None:
    top = st.container()
    visit = frame.visit()
    if visit is None:
        return
    tested = corpus(visit)
    if tested is None:
        return
    places = frame.places()
    if state.lesson_is_on("roles"):
        lesson_panel(top, visit, tested=tested)
        shown = sources.of_texts(visit, tested)
    else:
        state.remember_off(visit.choice)
        all_on = with_all_on(visit)
        shown = sources.of_texts(visit, tested, all_on)
        with places.finding:
            if visit.settings.kind == "cross":
                st.info(shared_wording.ACROSS)
            ask_about_long_texts(tested.found.too_long)
            decoder_notes(visit.choice)
            _say(shown)
            if all_on is not None:
                say_role_changes(shown.tests, all_on.tests, shown.coarse)
    _draw(shown, places)


def _over_corpus(results: Results) -> None:
    places = frame.places()
    with places.controls:
        opened = opened_results(results)
        shown = sources.of_corpus(opened)
    with places.finding:
        _say(shown)
    with places.sections:
        say_what(opened)
    _draw(shown, places)


def _say(shown: TestedRoles) -> None:
    """Say how many heads hold which roles."""
    tests, coarse = shown.tests, shown.coarse
    n_any = int(tests.holds[[tests.roles.index(role) for role in coarse]].any(axis=0).sum())
    counts = n_holding(tests, coarse)
    at_tau = shared_wording.at_tau(tests.settings.tau, shown.scale)
    numbers = shared_wording.role_numbers(counts, shown.n_texts, at_tau)
    few = few_texts(shown.n_texts) if tests.evidence is None else None
    finding = wording.finding(n_any, shown.n_heads, counts)
    frame.say_finding(finding, " ".join(filter(None, (numbers, shown.note, few))))


def _draw(shown: TestedRoles, places: Places) -> None:
    """Draw the grid beside what chance gives, and below it all else; in a lesson, what its step speaks of."""
    is_lesson, controls = state.lesson_is_on("roles"), tuple[Controlled, ...]()
    has_random = is_lesson and shows("roles", "random grid")
    with places.controls:
        finer = not is_lesson and toggle(shared_wording.FINER, key="roles finer")
    roles = shown.coarse_and_fine[finer]
    with places.picture:
        has_right = has_random or shows("roles", "chance")
        left, right = halves() if has_right else 2 * (st.container(),)
    with left:
        if has_random:
            st.caption(wording.LEARNT)
        grid = st.container(key="roles left")
        grid.empty()  # without an element the container would take up no space
    region = None if is_lesson else details.selected_region(shown)
    with places.controls:
        choice = st.container(width="content")
        links = st.container(horizontal=True, gap="xsmall", vertical_alignment="center")
    if comes_first := chance.grid_comes_first():  # who moves tau looks at it
        with grid:
            _grid(shown, roles, region, None, links)
    with right:
        if has_random:
            _random_grid(shown, roles)
        elif has_right:
            controls = shown.control()
            chance.strip(shown.tests, controls, roles, shown.control_facts)
    with choice:
        control = chance.choose_grid(controls)
    if not comes_first:
        with grid:
            _grid(shown, roles, region, control, links)
    with places.sections:
        if not is_lesson:
            frame.tabs(shown.tabs, {title: partial(draw, shown) for title, draw in _tabs(shown).items()})
        if controls:
            with st.expander(chance_wording.WHAT_CHANCE_GIVES):
                chance.counts(shown.tests, controls, roles, shown.control_facts)
        if not is_lesson:
            with st.expander(wording.LIMITS):
                _caveats(shown)


def _random_grid(shown: TestedRoles, roles: tuple[str, ...]) -> None:
    """The heads of random weights, of which a lesson speaks."""
    if (random := shown.random()) is None:
        return
    st.caption(wording.RANDOM)
    facts = without_command(shown.facts) | {"control": random.control_pass.name}
    show_role_grid(
        replace(random.grid, shown=roles),
        head_selection("grid of random weights", [], shown.reset),
        file=f"grid, {random.control_pass.name}",
        facts=facts,
    )


def _tabs(shown: TestedRoles) -> dict[str, Callable[[TestedRoles], None]]:
    return {
        "Combinations": details.combined,
        "Per layer": details.per_layer,
        **({"p-values": details.p_values} if shown.tests.evidence is None else {}),
        "Score distributions": details.distributions,
        "Overlaps": details.overlaps,
        **shown.views,
        "Table": details.table,
    }


def _caveats(shown: TestedRoles) -> None:
    (coarse, fine), tests = shown.coarse_and_fine, shown.tests
    st.markdown(shared_wording.tokens_per_text(shown.lengths))
    n_short = {} if shown.n_short is None else dict(zip(tests.roles, shown.n_short.tolist(), strict=True))
    if short := {role: n_short[role] for role in coarse if n_short.get(role)}:
        st.markdown(shared_wording.out_of_reach(short, shown.n_texts, tests.settings.tau))
    if reasons := {role: why for role, why in shown.untested.items() if role != "sink" or role in fine}:
        st.info(evidence_wording.untested(reasons))
    shown.remarks(shown)


def _grid(
    shown: TestedRoles,
    roles: tuple[str, ...],
    region: tuple[str, ...] | None,
    control: Controlled | None,
    links: DeltaGenerator,
) -> None:
    """Draw the grid of the checkpoint, where heads with the roles of a region stay bright, or that of a control."""
    facts, file = shown.facts, "grid"
    if control is None:
        grid = shown.grid()
        if region is not None:
            heads_by_roles = combinations(shown.tests.holds, shown.tests.roles, details.venn_roles(shown))
            grid = replace(grid, highlight=heads_by_roles.get(frozenset(region), ()))
    else:
        chance.say_control(control)
        grid, name = control.grid, control.control_pass.name
        facts, file = without_command(facts) | {"control": name}, f"{file}, {name}"
    selection = head_selection(written.GRID, shown.heads, shown.reset)
    mark_place(written.GRID)
    heads = show_role_grid(replace(grid, shown=roles), selection, file=file, facts=facts, files=links)
    state.put_in_link(heads)
    shown.offer(heads, links)
