"""Where the roles on the page come from: the texts of the sidebar, or the statistics of a corpus of any size."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.corpus.statistics import EVERYTHING
from attention_sieve.core.roles.hypotheses import FEW, n_holding, untested
from attention_sieve.core.roles.sinks import SINK_ANALYSIS, sink_table
from attention_sieve.core.roles.tables import head_table
from attention_sieve.core.roles.uncertainty.sensitivity import LEAST_TEXTS, counts_by_tau, counts_by_texts
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import Figure
from attention_sieve.dashboard.figures.roles.distributions import Violins, score_violins
from attention_sieve.dashboard.figures.roles.from_counts import density_violins
from attention_sieve.dashboard.figures.roles.grid import RoleGrid
from attention_sieve.dashboard.figures.roles.parts import scores_by_part
from attention_sieve.dashboard.figures.roles.sensitivity import heads_by_tau, heads_by_texts
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views import corpus as corpora
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import analysed, chosen_settings
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import Corpus, kept_matches
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.evidence import wording as evidence_wording
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle
from attention_sieve.dashboard.views.results import wording as results_wording
from attention_sieve.dashboard.views.results.chosen import Opened, busiest, parts_of
from attention_sieve.dashboard.views.results.raw import highest_texts
from attention_sieve.dashboard.views.role_grid.evidence import evidence_chart
from attention_sieve.dashboard.views.role_grid.grid import grid_of, grid_over, how_decided
from attention_sieve.dashboard.views.roles import chance, copying_wording, wording, written
from attention_sieve.dashboard.views.roles.copying import copying
from attention_sieve.dashboard.views.roles.details import TestedRoles
from attention_sieve.dashboard.views.saving import save_heads


def of_texts(visit: Visit, tested: Corpus, all_on: Corpus | None = None) -> TestedRoles:
    """Roles over the texts of the sidebar.

    Args:
        all_on: the same with all heads on, for comparison where some are off.
    """
    tests, scored, files = tested.tests, tested.scored, visit.engine.files
    _, n_layers, n_heads = tests.mean.shape
    heads = state.chosen_heads(n_layers, n_heads, busiest(tests))

    def grid() -> RoleGrid:
        matched = kept_matches(visit)
        return replace(
            grid_over(visit, tested, f"Roles of the heads of {files.name}"),
            held_before=None if all_on is None else all_on.tests.holds,
            sentences=kept_sentences(visit, tests),
            positional=None if matched is None else matched.positional(tests),
        )

    def distribution(violins: Violins) -> Figure:
        index, (uniform, _) = scored.roles.index(violins.role), scored.mean_references()
        return score_violins(scored.scores[:, index], violins, tests.settings.tau, uniform[index])

    def offer(heads: list[Head], links: DeltaGenerator) -> None:
        save_heads(visit, tested, heads)
        with links:
            frame.link_to_inspect(heads)

    views: dict[str, Callable[[TestedRoles], None]] = {
        **({} if tested.bets is None else {"Evidence": partial(_evidence, tested)}),
        "Sensitivity": partial(_sensitivity, tested),
        **({copying_wording.TITLE: lambda _: copying(visit, heads)} if files.is_decoder else {}),
        wording.WRITTEN: lambda _: written.written_roles(visit, heads),
    }
    return TestedRoles(
        tests=tests,
        scale=scored.scale,
        n_texts=len(tested.scores),
        lengths=shared_wording.token_range(tested.found.n_tokens),
        n_short=scored.out_of_reach(tests.settings.tau),
        untested=untested(tests),
        heads=heads,
        reset=(files.name, files.fingerprint, state.n_pushed()),
        facts=corpora.facts(visit, tested),
        random=partial(chance.of_random_weights, visit, tested),
        control=partial(chance.controlled, visit, tested),
        control_facts=corpora.facts(visit, tested, "controls"),
        grid=grid,
        distribution=distribution,
        rows=partial(_rows, visit, tested),
        tabs="details",
        views=views,
        note=tested.finding.note,
        removed=visit.removed,
        remarks=partial(_remarks, visit, tested),
        offer=offer,
    )


def _rows(visit: Visit, tested: Corpus) -> pd.DataFrame:
    table = with_sentences(head_table(tested.with_intervals()), kept_sentences(visit, tested.tests))
    if (stability := tested.stability()) is not None:
        table["stability"] = stability.ravel()
    if (matched := kept_matches(visit)) is not None:
        table["positional"] = matched.positional(tested.tests).ravel()
    if tested.finding.rests_on_first is not None:
        table["rests_on_first"] = tested.finding.rests_on_first.ravel()
    return table


def _remarks(visit: Visit, tested: Corpus, shown: TestedRoles) -> None:
    tests, (coarse, fine) = shown.tests, shown.coarse_and_fine
    how_decided(visit, tested)
    if (rests := tested.finding.rests_on_first) is not None:
        n_resting = {role: int(rests[tests.roles.index(role)].sum()) for role in coarse}
        if sentence := wording.rests_on_first(n_resting, n_holding(tests, coarse)):
            st.markdown(sentence)
    if "sink" in coarse + fine:
        st.markdown(wording.looks_back(visit.choice.score_settings.direction))
        _sinks(visit)
    if (matched := kept_matches(visit)) is not None:
        chance.say_positional(tested, matched)


def _sinks(visit: Visit) -> None:
    if not toggle("Share of attention sinks, as published", key="sink share", help=wording.SINKS_HELP):
        return
    settings = chosen_settings(SINK_ANALYSIS.settings, "sinks")
    with errors_shown():
        if (found := analysed(visit, SINK_ANALYSIS, settings, asks=False)) is not None:
            st.markdown(wording.sink_share(found.finding))
            table_downloads("sinks", sink_table(found.finding), found.facts())


def _evidence(tested: Corpus, shown: TestedRoles) -> None:
    if not shown.heads:
        st.info(evidence_wording.NO_HEAD)
    roles = shown.coarse_and_fine[toggle(shared_wording.FINER, key="evidence finer")]
    for head in shown.heads:
        evidence_chart(tested, head, roles, shown.facts)


def _sensitivity(tested: Corpus, shown: TestedRoles) -> None:
    st.markdown(wording.SENSITIVITY)
    coarse, settings, facts = shown.coarse, shown.tests.settings, without_command(shown.facts)
    n_heads, by_evidence = shown.n_heads, tested.bets is not None
    left, right = halves()
    with left:
        by_tau = counts_by_tau(tested.bets or tested.scored, coarse, settings, by_evidence=by_evidence)
        chart("roles by tau", heads_by_tau(by_tau, coarse, settings.tau, n_heads, shown.scale), facts)
    with right:
        if by_evidence:
            st.info(evidence_wording.BY_TEXTS)
        elif shown.n_texts < LEAST_TEXTS:
            st.info(wording.TOO_FEW_TO_DRAW)
        else:
            by_texts = counts_by_texts(tested.scored, coarse, settings)
            chart("roles by texts", heads_by_texts(by_texts, coarse, n_heads), facts)


def of_corpus(opened: Opened) -> TestedRoles:
    """Roles by the statistics of a results folder, after the reader has chosen what decides on them."""
    part, settings, criterion = opened.part, opened.results.settings, opened.choice.criterion
    options = {results_wording.TEST: part.tests, results_wording.EVIDENCE: part.by_evidence}
    decide = part.tests
    if settings.scale == "score":
        decide = one_of(results_wording.DECIDED_BY, options, key="decided by", help=results_wording.DECIDED_HELP)
    tests, (uniform, greatest) = decide(criterion), part.references()

    def distribution(violins: Violins) -> Figure:
        index = settings.roles.index(violins.role)
        return density_violins(part.role_counts[index], part.bins, violins, criterion.tau, uniform[index])

    least, most = part.n_tokens
    label = f"Roles of the heads of {opened.results.checkpoint}"
    return TestedRoles(
        tests=tests,
        scale=settings.scale,
        n_texts=part.n_texts,
        lengths=f"{least:,} to {most:,}",
        n_short=part.out_of_reach(criterion.tau),
        untested=part.untested(tests),
        heads=opened.heads(busiest(tests)),
        reset=opened.reset,
        facts=opened.facts,
        control_facts=without_command(opened.facts),
        grid=lambda: grid_of(tests, (uniform, greatest), label, settings.scale, opened.choice.correction),
        distribution=distribution,
        rows=lambda: head_table(tests),
        tabs="results details",
        views={results_wording.PARTS: partial(_parts, opened), results_wording.HIGHEST: partial(_highest, opened)},
    )


def _parts(opened: Opened, shown: TestedRoles) -> None:
    """Draw the strata side by side: number of heads with each role, and one head's mean scores with intervals."""
    parts = parts_of(opened)
    if not parts:
        return
    coarse, settings = shown.coarse, shown.tests.settings
    tests_by_part = {part.stratum.title: part.tests(settings) for part in parts}
    role = from_list("Role", {LOOKS[name].label: name for name in coarse}, key="part role")
    head = shown.heads[0] if shown.heads else busiest(shown.tests)
    chart("parts", scores_by_part(tests_by_part, role, head, shown.scale), without_command(shown.facts))
    rows = [
        {
            "texts of": part.stratum.title,
            "n": part.n_texts,
            **{LOOKS[name].label: n for name, n in n_holding(tests_by_part[part.stratum.title], coarse).items()},
        }
        for part in parts
    ]
    table = pd.DataFrame(rows).astype({LOOKS[name].label: "Int64" for name in coarse})
    st.dataframe(table, hide_index=True, placeholder=shared_wording.NOT_TESTED)
    if few := {part.stratum.title: part.n_texts for part in parts if part.n_texts < FEW}:
        st.markdown(plain(results_wording.few_in_parts(few)))
    table_downloads("parts", table, without_command(shown.facts))


def _highest(opened: Opened, shown: TestedRoles) -> None:
    if opened.part.stratum != EVERYTHING:
        st.info(plain(f"The highest texts are those of all texts, not of {opened.part.stratum.title} alone."))
    role = from_list("Role", {LOOKS[name].label: name for name in shown.coarse}, key="highest role")
    highest_texts(opened, role, shown.heads[0] if shown.heads else busiest(shown.tests))
