"""Relations: which head finds which dependency relation, compared with the best fixed offset."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import pandas as pd
import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.command_lines import given_options
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL
from attention_sieve.core.relations.finding import MIN_CASES, RelationFinding
from attention_sieve.core.relations.settings import AS_IN_CODE, AS_IN_PAPER, USUAL_CASES, Margin, RelationSettings
from attention_sieve.core.statistics.means import documents_note
from attention_sieve.core.texts.parsers import parser_names
from attention_sieve.dashboard import samples, state
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES, relation_bars
from attention_sieve.dashboard.figures.relations.distance_histogram import distance_histogram, distances
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.commands import command, without_command
from attention_sieve.dashboard.files.downloads import download_as_it_is
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts, policy
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.grammar.relations.focus import RelationFocus, marked, relation_finding
from attention_sieve.dashboard.views.grammar.relations.heads import grid, two_rules
from attention_sieve.dashboard.views.grammar.relations.sentence import head_on_a_sentence
from attention_sieve.dashboard.views.grammar.relations.table import best_heads, best_rows, picked
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
MARGINS: Final[dict[str, Margin]] = {wording.POINTS: "points", wording.RELATIVE: "relative"}


def draw() -> None:
    start = frame.without_corpus()
    if start.settings.kind == "cross":
        st.info(shared_wording.CROSS)
        return
    visit = frame.with_corpus(start)
    if visit is None:
        return
    results_slot, settings_slot = st.container(), st.container()
    with settings_slot:
        settings, is_controlled = _settings(visit.choice.criterion.alpha)
    with results_slot:
        corpus_finding = relation_finding(visit, settings)
        if corpus_finding is None:
            return
        state.remember_off(visit.choice)
        ask_about_long_texts(corpus_finding.too_long)
        if corpus_finding.finding.accuracies:
            _accuracies(visit, corpus_finding, is_controlled=is_controlled)
        else:
            st.info(corpus_finding.finding.why_empty)
            _show_source(corpus_finding.finding)


def _accuracies(visit: Visit, corpus_finding: CorpusFinding[RelationFinding], *, is_controlled: bool) -> None:
    finding = corpus_finding.finding
    random = _of_random_weights(visit, finding) if is_controlled else None
    _headline(visit, finding)
    left, right = halves()
    with left:
        relation, direction = picked(finding)
    _, layer, head = relation.best
    _, n_layers, n_heads = relation.accuracy.shape
    focus = RelationFocus(
        visit=visit,
        found=corpus_finding,
        relation=relation,
        direction=direction,
        heads=state.chosen_heads(n_layers, n_heads, (layer, head)),
        facts={
            **provenance.corpus_facts(visit.choice, visit.engine, len(finding.items)),
            **RELATION_ANALYSIS.facts(finding, finding.settings),
            **command(
                "relations",
                visit.choice,
                visit.engine,
                visit.texts,
                *given_options(replace(finding.settings, least_cases=finding.least_cases), AS_IN_PAPER),
                too_long=policy(),
            ),
        },
    )
    with left:
        grid(focus)
    with right:
        head_on_a_sentence(focus)
        frame.link_to_inspect(focus.heads)
        _show_source(finding)
    state.put_in_link(focus.heads)
    table = best_rows(finding, random)
    frame.tabs(
        "relation details",
        {
            wording.TABLE: lambda: best_heads(focus, table),
            wording.BARS: lambda: _bars(focus, table),
            wording.DISTANCES: lambda: _distances(focus),
            wording.TWO_RULES: lambda: two_rules(focus),
        },
    )


def _of_random_weights(visit: Visit, finding: RelationFinding) -> RelationFinding | None:
    """The same of a checkpoint of the same shape with random weights and all heads on."""
    random = replace(visit.engine, files=randomly_initialised(visit.engine.files))
    control = replace(visit, engine=random, choice=replace(visit.choice, off=()))
    corpus_finding = relation_finding(control, replace(finding.settings, least_cases=1))
    return None if corpus_finding is None else corpus_finding.finding


def _bars(focus: RelationFocus, table: pd.DataFrame) -> None:
    if not table["held_out"].notna().any():
        st.info(wording.no_bars(focus.finding.unit))
        return
    best_of_halves = [relation.best_of_halves for relation in focus.finding.accuracies]
    random_name = randomly_initialised(focus.visit.engine.files).name if "random" in table else ""
    bars = relation_bars(table, best_of_halves, focus.visit.choice.criterion.alpha, random_name)
    chart("relation bars", bars, focus.facts, wording.BARS_PAPER)


def _settings(alpha: float) -> tuple[RelationSettings, bool]:
    with st.expander(wording.SETTINGS), st.container(horizontal=True, vertical_alignment="bottom"):
        reading = _reading()
        least = from_list(
            wording.MIN_CASES,
            {wording.AUTOMATIC: None, **{str(number): number for number in MIN_CASES}},
            key="least cases",
            help=wording.MIN_CASES_HELP,
            width=220,
        )
        margin = one_of(wording.RULE, MARGINS, key="rule", help=wording.RULE_HELP)
        is_controlled = toggle(shared_wording.RANDOM_WEIGHTS, key="random", help=wording.RANDOM_WEIGHTS_HELP)
    return replace(reading, alpha=alpha, least_cases=least, margin=margin), is_controlled


def _reading() -> RelationSettings:
    if toggle(wording.AS_IN_CODE, key="as in code", help=wording.AS_IN_CODE_HELP):
        return AS_IN_CODE
    from_word = one_of(
        shared_wording.FROM_WORD, shared_wording.FROM_WORDS, key="from word", help=shared_wording.FROM_WORD_HELP
    )
    return RelationSettings(from_word=from_word, at_clitic=toggle(wording.POSS, key="poss", help=wording.POSS_HELP))


def _show_source(finding: RelationFinding) -> None:
    parsers = parser_names(item.text for item in finding.items if item.text.pairs is None)
    notes = [wording.source(finding.n_gold, len(finding.items), plain(parsers)), documents_note(finding.n_documents)]
    notes += [wording.PAIRED, plain(finding.left_out_note)] if finding.n_paired else [wording.OWN_PAIRS]
    st.caption(" ".join(filter(None, notes)))
    if not finding.n_paired:
        download_as_it_is(wording.PAIRS_EXAMPLE, samples.MARKED_PAIRS, "application/jsonl", "download pairs example")
    is_automatic = finding.settings.least_cases is None
    if is_automatic and finding.accuracies and finding.least_cases < USUAL_CASES:
        st.info(wording.fewer_cases(finding.least_cases, USUAL_CASES))
    if finding.looks_back:
        st.info(wording.LOOKS_BACK)


def _headline(visit: Visit, finding: RelationFinding) -> None:
    off = [wording.OFF_STILL_ATTENDS] if visit.choice.off else []
    st.markdown(" ".join([_best(visit, finding), *off]))


def _best(visit: Visit, finding: RelationFinding) -> str:
    """The heads, chosen on one half, that are furthest above the baseline on the other; or that none is above it."""
    best = finding.largest_gain
    if not best.best_of_halves:
        return wording.no_halves(finding.unit)
    heads = [
        f"**{marked(layer, head, visit.choice.off)}** ({DIRECTION_NAMES[direction]})"
        for direction, layer, head in dict.fromkeys(best.best_of_halves)
    ]
    said = wording.best_head(plain(best.relation), heads, best.best_accuracy, best.baseline)
    if finding.n_paired:
        said = f"{said} {wording.among_right_words(best.nearest, best.random_choice)}"
    return f"{said} {shared_wording.beside(best.best_key_matched, 'The right word gets')}".rstrip()


def _distances(focus: RelationFocus) -> None:
    counts = distances(of_text.dependencies for of_text in focus.finding.predictions)
    relations = [relation.relation for relation in focus.finding.accuracies if relation.relation != ALL]
    chart(
        "relation distances",
        distance_histogram(counts, relations),
        without_command(focus.facts),
        wording.DISTANCES_PAPER,
    )
