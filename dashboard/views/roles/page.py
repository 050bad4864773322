"""Roles: where each head looks, tested over a corpus."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.corpus.results import Results
from attention_sieve.core.roles.hypotheses import few_texts, n_holding, tested_roles
from attention_sieve.core.roles.roles import combinations, role_title
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.into_view import mark_place
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import role_venn
from attention_sieve.dashboard.figures.roles.combinations import NO_ROLE as NO_HELD
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import head_selection
from attention_sieve.dashboard.views.corpus import Corpus, corpus
from attention_sieve.dashboard.views.decoder_notes import decoder_notes
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import with_all_on
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.pickers import halves, toggle
from attention_sieve.dashboard.views.results.chosen import opened_results, say_what, texts_or_results
from attention_sieve.dashboard.views.role_grid.grid import show_role_grid
from attention_sieve.dashboard.views.role_grid.notes import NOTES
from attention_sieve.dashboard.views.roles import chance, details, sources, wording, written
from attention_sieve.dashboard.views.roles.chance import Controlled
from attention_sieve.dashboard.views.roles.details import TestedRoles

REGION: Final = "region"
VENN_ROLES: Final = "venn roles"
MOST_VENN: Final = 4
NO_ROLE: Final = "none"
"""Value in the link for heads without a role."""


def show() -> None:
    frame.page("Roles", wording.SEE, texts_or_results(_over_texts, _over_corpus), NOTES)


def _over_texts() -> None:
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
    state.remember_off(visit.choice)
    shown = sources.of_texts(visit, tested, with_all_on(visit))
    # Varies in length; the container keeps what follows at its index, so that it is not drawn again.
    with st.container():
        ask_about_long_texts(tested.found.too_long)
        switches, roles = _summary(shown)
        controls = chance.controlled(visit, tested, switches)
        if controls:
            chance.counts(tested, controls, roles, corpora.facts(visit, tested, "controls"))
        decoder_notes(visit.choice)
    _draw(shown, roles, controls)


def _over_corpus(results: Results) -> None:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom"):
        opened = opened_results(results)
        shown = sources.of_corpus(opened)
    say_what(opened)
    _draw(shown, _summary(shown)[1])


def _in_lesson(visit: Visit, tested: Corpus) -> None:
    """The grid alone, for a lesson: with the counts under controls where the lesson speaks of them."""
    shown, controls = sources.of_texts(visit, tested), tuple[Controlled, ...]()
    if shows("roles", "chance"):
        controls = chance.controlled(visit, tested, st.container(horizontal=True))
    if controls:
        chance.counts(tested, controls, shown.coarse, corpora.facts(visit, tested, "controls"))
    _grid(shown, shown.coarse, None, controls)


def _summary(shown: TestedRoles) -> tuple[DeltaGenerator, tuple[str, ...]]:
    """How many heads hold which roles, with a switch for the finer ones.

    Returns: the row of switches, and the roles that the reader wants to see.
    """
    tests, coarse = shown.tests, shown.coarse
    n_any = int(tests.holds[[tests.roles.index(role) for role in coarse]].any(axis=0).sum())
    at_tau = shared_wording.at_tau(tests.settings.tau, shown.scale)
    counts = n_holding(tests, coarse)
    sentence = shared_wording.roles_summary(n_any, shown.n_heads, counts, shown.n_texts, shown.lengths, at_tau)
    few = few_texts(shown.n_texts) if tests.evidence is None else None
    switches = st.container(horizontal=True, gap="medium", vertical_alignment="center", key="roles switches")
    with switches:
        st.markdown(" ".join(filter(None, (sentence, shown.note, few))), width="stretch")
        finer = toggle(shared_wording.FINER, key="roles finer")
    return switches, shown.coarse_and_fine[finer]


def _draw(shown: TestedRoles, roles: tuple[str, ...], controls: tuple[Controlled, ...] = ()) -> None:
    """Draw the grid of some roles beside the tabs, and below it what limits them."""
    left, right = halves()
    with left:
        grid_and_notes = st.container(key="roles left")
        grid_and_notes.empty()  # without an element the container would take up no space
    with right:
        frame.tabs(shown.tabs, {title: partial(draw, shown) for title, draw in _tabs(shown).items()})
        region = _selected(_counts(shown, _venn_roles(shown)))
    with grid_and_notes:
        _grid(shown, roles, region, controls)
        _caveats(shown)


def _tabs(shown: TestedRoles) -> dict[str, Callable[[TestedRoles], None]]:
    return {
        "Combinations": _venn,
        "Per layer": details.per_layer,
        **({"p-values": details.p_values} if shown.tests.evidence is None else {}),
        "Score distributions": details.distributions,
        "Overlaps": details.overlaps,
        **shown.views,
        "Table": details.table,
    }


def _caveats(shown: TestedRoles) -> None:
    (coarse, fine), tests = shown.coarse_and_fine, shown.tests
    n_short = {} if shown.n_short is None else dict(zip(tests.roles, shown.n_short.tolist(), strict=True))
    if short := {role: n_short[role] for role in coarse if n_short.get(role)}:
        st.markdown(shared_wording.out_of_reach(short, shown.n_texts, tests.settings.tau))
    if reasons := {role: why for role, why in shown.untested.items() if role != "sink" or role in fine}:
        st.info(evidence_wording.untested(reasons))
    shown.remarks(shown)


def _counts(shown: TestedRoles, roles: tuple[str, ...]) -> dict[frozenset[str], int]:
    heads_by_roles = combinations(shown.tests.holds, shown.tests.roles, roles).items()
    counts = {held: len(set(heads) - set(shown.removed)) for held, heads in heads_by_roles}
    return {held: n_heads for held, n_heads in counts.items() if n_heads}


def _venn_roles(shown: TestedRoles) -> tuple[str, ...]:
    """The roles of the Venn diagram: those that the reader has picked, if they are two or more, else the first four."""
    tested = tested_roles(shown.tests, shown.coarse)
    picked = tuple(role for role in tested if role in st.session_state.get(VENN_ROLES, ()))
    return picked if len(picked) > 1 else tested[:MOST_VENN]


def _venn(shown: TestedRoles) -> None:
    """Draw the overlaps; the selected combination is stored in the session and in the link."""
    tested, diagram = tested_roles(shown.tests, shown.coarse), st.container()
    st.multiselect(
        "Roles in the diagram",
        tested,
        format_func=role_title,
        key=VENN_ROLES,
        max_selections=MOST_VENN,
        placeholder="the first four; pick two to four",
        bind="query-params",
        persist_state="session",
    )
    roles = _venn_roles(shown)
    none = NO_HELD if roles == tested else "none of these"
    overlaps = Overlaps(roles=roles, combinations=_counts(shown, roles), none=none)
    with diagram:
        region = role_venn(
            overlaps, Selection("venn", _selected(overlaps.combinations), roles), shared_wording.OVERLAPS
        )
    st.session_state[REGION] = region
    link.put([REGION], {} if region is None else {REGION: ",".join(region) or NO_ROLE})
    drawing_downloads("overlap", shared_wording.OVERLAPS, shown.facts, partial(venn_svg, overlaps))


def _selected(counts: Mapping[frozenset[str], int]) -> tuple[str, ...] | None:
    """The combination of roles in the link on a first visit, else the one that was selected last."""
    if (requested := link.take(REGION)) is not None:
        roles = () if requested == NO_ROLE else tuple(requested.split(","))
        st.session_state[REGION] = roles if frozenset(roles) in counts else None
        if frozenset(roles) not in counts:
            link.say(wording.no_such_region(link.quoted(requested)))
    return st.session_state.get(REGION)


def _grid(
    shown: TestedRoles, roles: tuple[str, ...], region: tuple[str, ...] | None, controls: tuple[Controlled, ...]
) -> None:
    """Draw the grid of the checkpoint, where heads with the roles of a region stay bright, or that of a control."""
    control, facts, file = chance.choose_grid(controls), shown.facts, "grid"
    if control is None:
        grid = shown.grid()
        if region is not None:
            heads_by_roles = combinations(shown.tests.holds, shown.tests.roles, _venn_roles(shown))
            grid = replace(grid, highlight=heads_by_roles.get(frozenset(region), ()))
    else:
        grid, name = control.grid, control.control_pass.name
        facts, file = without_command(facts) | {"control": name}, f"{file}, {name}"
    picture, links = st.container(), st.container(horizontal=True, gap="xsmall", vertical_alignment="center")
    selection = head_selection(written.GRID, shown.heads, shown.reset)
    with picture:
        mark_place(written.GRID)
        heads = show_role_grid(replace(grid, shown=roles), selection, file=file, facts=facts, files=links)
    state.put_in_link(heads)
    shown.offer(heads, links)
