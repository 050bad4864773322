"""Roles: where each head looks, tested over a corpus."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations as pairs_of
from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.roles.card import role_card
from attention_sieve.core.roles.hypotheses import HeadTests, few_texts, n_holding, tested_roles, untested
from attention_sieve.core.roles.matched_pairs import MatchedTests
from attention_sieve.core.roles.roles import combinations, role_title, shown_roles
from attention_sieve.core.roles.sinks import SINK_ANALYSIS, sink_table
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.roles.uncertainty.sensitivity import LEAST_TEXTS, counts_by_tau, counts_by_texts
from attention_sieve.core.statistics.by_role import overlap
from attention_sieve.dashboard import link, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.into_view import mark_place
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import role_venn
from attention_sieve.dashboard.figures.roles.combinations import NO_ROLE as NO_HELD
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.distributions import Violins, score_violins
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads, table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import errors_shown
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, chosen_settings
from attention_sieve.dashboard.views.asking import ask_about_long_texts, find
from attention_sieve.dashboard.views.charts import chart, head_selection
from attention_sieve.dashboard.views.corpus import Corpus, corpus, kept_matches
from attention_sieve.dashboard.views.decoder_notes import decoder_notes
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.heads_off import say_role_changes, with_all_on
from attention_sieve.dashboard.views.leading import lesson_panel, shows
from attention_sieve.dashboard.views.pickers import halves, toggle
from attention_sieve.dashboard.views.results.chosen import busiest, texts_or_results
from attention_sieve.dashboard.views.role_grid.evidence import evidence_chart
from attention_sieve.dashboard.views.role_grid.grid import (
    grid_over,
    how_decided,
    role_and_layer,
    show_role_grid,
)
from attention_sieve.dashboard.views.role_grid.notes import NOTES
from attention_sieve.dashboard.views.roles import chance, copying_wording, details, results, wording, written
from attention_sieve.dashboard.views.roles.chance import Controlled
from attention_sieve.dashboard.views.roles.copying import copying
from attention_sieve.dashboard.views.saving import save_heads

REGION: Final = "region"
VENN_ROLES: Final = "venn roles"
MOST_VENN: Final = 4
NO_ROLE: Final = "none"
"""Value in the link for heads without a role."""


def show() -> None:
    frame.page("Roles", wording.SEE, texts_or_results(_roles, results.roles), NOTES)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Shown:
    visit: Visit
    tested: Corpus
    all_on: Corpus | None = None
    """The same with all heads on, for comparison where some are off."""
    matched: MatchedTests | None = None
    """Syntactic scores against pairs of words at the same distance."""
    controls: tuple[Controlled, ...] = ()
    finer: bool = False

    @cached_property
    def facts(self) -> dict[str, str]:
        return corpora.facts(self.visit, self.tested)

    @property
    def tests(self) -> HeadTests:
        return self.tested.tests

    @cached_property
    def coarse_and_fine(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        return shown_roles(self.tests.mean, self.tests.roles)

    @property
    def coarse(self) -> tuple[str, ...]:
        return self.coarse_and_fine[0]

    @property
    def heads(self) -> list[Head]:
        """The chosen heads; at first the one with the most roles."""
        n_layers, n_heads = self.tests.mean.shape[1:]
        return state.chosen_heads(n_layers, n_heads, busiest(self.tests))

    @property
    def grid_roles(self) -> tuple[str, ...]:
        return self.coarse_and_fine[self.finer]


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
        _in_lesson(_Shown(visit=visit, tested=tested))
        return
    state.remember_off(visit.choice)
    shown = _Shown(visit=visit, tested=tested, all_on=with_all_on(visit))
    # Varies in length; the container keeps what follows at its index, so that it is not drawn again.
    with st.container():
        ask_about_long_texts(tested.found.too_long)
        switches = st.container(horizontal=True, gap="medium", vertical_alignment="center", key="roles switches")
        with switches:
            _summary(shown)
            finer = toggle(shared_wording.FINER, key="roles finer")
        controls = chance.controlled(visit, tested, switches)
        shown = replace(shown, controls=controls, matched=kept_matches(visit), finer=finer)
        if controls:
            chance.counts(tested, controls, shown.grid_roles, corpora.facts(visit, tested, "controls"))
        decoder_notes(visit.choice)
    left, right = halves()
    with left:
        grid_and_notes = st.container(key="roles left")
        grid_and_notes.empty()  # without an element the container would take up no space
    with right:
        _details(shown)
        region = _selected(_counts(tested.tests, _venn_roles(tested_roles(tested.tests, shown.coarse)), visit.removed))
    with grid_and_notes:
        _grid(shown, region)
        _caveats(shown)
        if shown.matched is not None:
            chance.say_positional(tested, shown.matched)


def _in_lesson(shown: _Shown) -> None:
    """The grid alone, for a lesson: with the counts under controls where the lesson speaks of them."""
    if shows("roles", "chance"):
        switches = st.container(horizontal=True)
        shown = replace(shown, controls=chance.controlled(shown.visit, shown.tested, switches))
    if shown.controls:
        chance.counts(shown.tested, shown.controls, shown.coarse, corpora.facts(shown.visit, shown.tested, "controls"))
    _grid(shown, None)


def _caveats(shown: _Shown) -> None:
    tested, (coarse, fine) = shown.tested, shown.coarse_and_fine
    n_texts, tau = len(tested.scores), shown.tests.settings.tau
    n_short = dict(zip(shown.tests.roles, tested.scored.out_of_reach(tau).tolist()))
    if short := {role: n_short[role] for role in coarse if n_short[role]}:
        st.markdown(shared_wording.out_of_reach(short, n_texts, tau))
    how_decided(shown.visit, tested)
    if shown.all_on is not None:
        say_role_changes(shown.tests, shown.all_on.tests, coarse)
    if reasons := {role: reason for role, reason in untested(shown.tests).items() if role != "sink" or role in fine}:
        st.info(evidence_wording.untested(reasons))
    if (rests := tested.finding.rests_on_first) is not None:
        n_resting = {role: int(rests[shown.tests.roles.index(role)].sum()) for role in coarse}
        if sentence := wording.rests_on_first(n_resting, n_holding(shown.tests, coarse)):
            st.markdown(sentence)
    if "sink" in coarse + fine:
        st.markdown(wording.looks_back(shown.visit.choice.score_settings.direction))
        _sinks(shown.visit)


def _sinks(visit: Visit) -> None:
    if not toggle("Share of attention sinks, as published", key="sink share", help=wording.SINKS_HELP):
        return
    settings = chosen_settings(SINK_ANALYSIS.settings, "sinks")
    with errors_shown():
        if (found := find(visit, SINK_ANALYSIS, settings)) is not None:
            st.markdown(wording.sink_share(found.finding))
            sinks = Analysed(visit=visit, analysis=SINK_ANALYSIS, settings=settings, found=found)
            table_downloads("sinks", sink_table(found.finding), sinks.facts())


def _summary(shown: _Shown) -> None:
    tested, tests, coarse = shown.tested, shown.tests, shown.coarse
    n_texts = len(tested.scores)
    n_any = int(tests.holds[[tests.roles.index(role) for role in coarse]].any(axis=0).sum())
    n_heads = tests.holds[0].size - len(shown.visit.removed)
    lengths = shared_wording.token_range(tested.found.n_tokens)
    at_tau = shared_wording.at_tau(tests.settings.tau, shown.visit.choice.scale)
    sentence = shared_wording.roles_summary(n_any, n_heads, n_holding(tests, coarse), n_texts, lengths, at_tau)
    note = few_texts(n_texts) if tested.bets is None else None
    st.markdown(" ".join(filter(None, (sentence, tested.finding.note, note))), width="stretch")


def _counts(tests: HeadTests, coarse: tuple[str, ...], removed: Collection[Head]) -> dict[frozenset[str], int]:
    heads_by_roles = combinations(tests.holds, tests.roles, coarse).items()
    counts = {roles: len(set(heads) - set(removed)) for roles, heads in heads_by_roles}
    return {roles: n_heads for roles, n_heads in counts.items() if n_heads}


def _venn_roles(coarse: tuple[str, ...]) -> tuple[str, ...]:
    """The roles of the Venn diagram: those that the reader has picked, if they are two or more, else the first four."""
    picked = tuple(role for role in coarse if role in st.session_state.get(VENN_ROLES, ()))
    return picked if len(picked) > 1 else coarse[:MOST_VENN]


def _venn(shown: _Shown) -> None:
    """Draw the overlaps; the selected combination is stored in the session and in the link."""
    tests, coarse, facts, diagram = shown.tests, tested_roles(shown.tests, shown.coarse), shown.facts, st.container()
    st.multiselect(
        "Roles in the diagram",
        coarse,
        format_func=role_title,
        key=VENN_ROLES,
        max_selections=MOST_VENN,
        placeholder="the first four; pick two to four",
        bind="query-params",
        persist_state="session",
    )
    roles = _venn_roles(coarse)
    overlaps = Overlaps(
        roles=roles,
        combinations=_counts(tests, roles, shown.visit.removed),
        none=NO_HELD if roles == coarse else "none of these",
    )
    with diagram:
        region = role_venn(
            overlaps, Selection("venn", _selected(overlaps.combinations), roles), shared_wording.OVERLAPS
        )
    st.session_state[REGION] = region
    link.put([REGION], {} if region is None else {REGION: ",".join(region) or NO_ROLE})
    drawing_downloads("overlap", shared_wording.OVERLAPS, facts, partial(venn_svg, overlaps))


def _selected(counts: Mapping[frozenset[str], int]) -> tuple[str, ...] | None:
    """The combination of roles in the link on a first visit, else the one that was selected last."""
    if (requested := link.take(REGION)) is not None:
        roles = () if requested == NO_ROLE else tuple(requested.split(","))
        st.session_state[REGION] = roles if frozenset(roles) in counts else None
        if frozenset(roles) not in counts:
            link.say(wording.no_such_region(link.quoted(requested)))
    return st.session_state.get(REGION)


def _grid(shown: _Shown, region: tuple[str, ...] | None) -> None:
    """Draw the grid of the checkpoint, where heads with the roles of a region stay bright, or that of a control."""
    visit, tests, files = shown.visit, shown.tests, shown.visit.engine.files
    control, facts, file = chance.choose_grid(shown.controls), shown.facts, "grid"
    if control is None:
        heads_by_roles = combinations(tests.holds, tests.roles, _venn_roles(tested_roles(tests, shown.coarse)))
        grid = replace(
            grid_over(visit, shown.tested, f"Roles of the heads of {files.name}", shown.grid_roles),
            held_before=None if shown.all_on is None else shown.all_on.tests.holds,
            sentences=kept_sentences(visit, tests),
            highlight=None if region is None else heads_by_roles.get(frozenset(region), ()),
            positional=None if shown.matched is None else shown.matched.positional(tests),
        )
    else:
        name = control.control_pass.name
        label = f"Control, {name}: roles of the heads of {files.name}"
        grid = replace(
            grid_over(visit, control.tested, label, shown.grid_roles),
            title=f"Roles of the heads under a control, {name}",
        )
        facts, file = without_command(facts) | {"control": name}, f"{file}, {name}"
    picture, links = st.container(), st.container(horizontal=True, gap="xsmall", vertical_alignment="center")
    selection = head_selection(written.GRID, shown.heads, (files.name, files.fingerprint, state.n_pushed()))
    with picture:
        mark_place(written.GRID)
        heads = show_role_grid(grid, selection, file=file, facts=facts, files=links)
    state.put_in_link(heads)
    save_heads(visit, shown.tested, heads)
    with links:
        frame.link_to_inspect(heads)


def _details(shown: _Shown) -> None:
    writes = {copying_wording.TITLE: lambda: copying(shown.visit, shown.heads)}
    scale = shown.visit.choice.scale
    by_test = {"p-values": lambda: details.p_values(shown.tests, shown.coarse, scale, shown.facts)}
    by_evidence = {"Evidence": lambda: _evidence(shown)}
    frame.tabs(
        "details",
        {
            "Combinations": lambda: _venn(shown),
            "Per layer": lambda: details.per_layer(shown.tests, shown.coarse, shown.facts),
            **(by_test if shown.tested.bets is None else by_evidence),
            "Score distributions": lambda: _distributions(shown),
            "Sensitivity": lambda: _sensitivity(shown),
            "Overlaps": lambda: _overlaps(shown),
            **(writes if shown.visit.engine.files.is_decoder else {}),
            "Table": lambda: _table(shown),
            wording.WRITTEN: lambda: written.written_roles(shown.visit, shown.heads),
        },
    )


def _evidence(shown: _Shown) -> None:
    heads = shown.heads
    if not heads:
        st.info(evidence_wording.NO_HEAD)
    roles = shown.coarse_and_fine[toggle(shared_wording.FINER, key="evidence finer")]
    for head in heads:
        evidence_chart(shown.tested, head, roles, shown.facts)


def _distributions(shown: _Shown) -> None:
    scored = shown.tested.scored
    role, layer = role_and_layer(scored.roles, scored.scores.shape[2])
    index, (uniform, _) = scored.roles.index(role), scored.mean_references()
    violins = Violins(role, layer, scored.scale)
    figure = score_violins(scored.scores[:, index], violins, shown.tests.settings.tau, uniform[index])
    chart("score distributions", figure, shown.facts)


def _sensitivity(shown: _Shown) -> None:
    st.markdown(wording.SENSITIVITY)
    tested, coarse, settings, facts = shown.tested, shown.coarse, shown.tests.settings, without_command(shown.facts)
    scale, n_heads = tested.scored.scale, shown.tests.holds[0].size - len(shown.visit.removed)
    left, right = halves()
    with left:
        by_evidence = tested.bets is not None
        by_tau = counts_by_tau(tested.bets or tested.scored, coarse, settings, by_evidence=by_evidence)
        chart("roles by tau", heads_by_tau(by_tau, coarse, settings.tau, n_heads, scale), facts)
    with right:
        if tested.bets is not None:
            st.info(evidence_wording.BY_TEXTS)
        elif len(tested.scores) < LEAST_TEXTS:
            st.info(wording.TOO_FEW_TO_DRAW)
        else:
            by_texts = counts_by_texts(tested.scored, coarse, settings)
            chart("roles by texts", heads_by_texts(by_texts, coarse, n_heads), facts)


def _overlaps(shown: _Shown) -> None:
    st.markdown(wording.OVERLAP)
    overlaps = [(*names, overlap(shown.tests.holds, shown.tests.roles, *names)) for names in pairs_of(shown.coarse, 2)]
    table = pd.DataFrame(
        {
            "first": [role_title(first) for first, _, _ in overlaps],
            "second": [role_title(second) for _, second, _ in overlaps],
            "heads with both": [shared.both for *_, shared in overlaps],
            "of first": [shared.share_first for *_, shared in overlaps],
            "of second": [shared.share_second for *_, shared in overlaps],
            "of either": [shared.share_union for *_, shared in overlaps],
        }
    )
    share = st.column_config.NumberColumn(format="percent")
    columns = dict.fromkeys(("of first", "of second", "of either"), share)
    st.dataframe(table, hide_index=True, column_config=columns)
    table_downloads("overlaps", table, shown.facts)


def _table(shown: _Shown) -> None:
    tested, tests = shown.tested, shown.tests
    table = with_sentences(head_table(tested.with_intervals()), kept_sentences(shown.visit, tests))
    if (stability := tested.stability()) is not None:
        table["stability"] = stability.ravel()
    if shown.matched is not None:
        table["positional"] = shown.matched.positional(tests).ravel()
    if tested.finding.rests_on_first is not None:
        table["rests_on_first"] = tested.finding.rests_on_first.ravel()
    details.table(table, shown.facts, partial(role_card, head_table(tests)))
