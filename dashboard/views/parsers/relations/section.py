"""Relations: which head finds which dependency relation, compared with the best fixed offset."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.relations.accuracy import (
    ALL,
    AS_IN_CODE,
    VOITA_MARGIN,
    Direction,
    Margin,
    ParsingSettings,
    RelationAccuracy,
)
from attention_sieve.core.statistics.documents import documents_fact, documents_note
from attention_sieve.core.texts.relations import parser_name, relations_source
from attention_sieve.core.texts.words import FromWord
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.relations.bars import relation_bars
from attention_sieve.dashboard.figures.relations.directions import DIRECTION_NAMES
from attention_sieve.dashboard.figures.relations.distance_histogram import distance_histogram, distances
from attention_sieve.dashboard.figures.relations.table import relation_table
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.parsers import wording as shared_wording
from attention_sieve.dashboard.views.parsers.relations import wording
from attention_sieve.dashboard.views.parsers.relations.heads import grid, two_rules
from attention_sieve.dashboard.views.parsers.relations.predictions import random_results, relation_results
from attention_sieve.dashboard.views.parsers.relations.results import (
    MIN_CASES,
    USUAL_CASES,
    ByArgmax,
    Focus,
    RelationResults,
    RelationSettings,
    Unit,
    by_argmax,
    largest_gain,
    marked,
    min_cases,
)
from attention_sieve.dashboard.views.parsers.relations.sentence import head_on_a_sentence
from attention_sieve.dashboard.views.parsers.relations.table import best_heads, picked
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
MARGINS: Final[dict[str, Margin]] = {wording.POINTS: "points", wording.RELATIVE: "relative"}


def show_section() -> None:
    """Draw the section."""
    frame.section(wording.SEE, _relations, NOTES)


def _relations() -> None:
    start = frame.without_corpus()
    if start.settings.kind == "cross":
        st.info(shared_wording.CROSS)
        return
    visit = frame.with_corpus(start)
    if visit is None:
        return
    results_slot, settings_slot = st.container(), st.container()
    with settings_slot:
        settings = _settings()
    with results_slot:
        results = relation_results(visit, settings)
        if results is None:
            return
        state.remember_off(visit.chosen)
        ask_about_long_texts(results.too_long)
        least = min_cases(results.accuracies, settings.min_cases)
        accuracies = [relation for relation in results.accuracies if relation.n_cases >= least]
        if accuracies:
            _accuracies(visit, settings, results, accuracies, least)
        else:
            st.info(wording.not_enough(least))
            _show_source(results, None)


def _accuracies(
    visit: Visit,
    settings: RelationSettings,
    results: RelationResults,
    accuracies: Sequence[RelationAccuracy],
    least: int,
) -> None:
    """Draw the accuracies of the heads for the relations that have enough cases."""
    random = random_results(visit, settings) if settings.random_weights else None
    of_random = None if random is None else random.accuracies
    facts = _facts(visit, results, settings, least)
    by_row = [relation for relation in results.by_row if relation.n_cases >= least]
    argmax = by_argmax(by_row, settings.margin)
    _headline(visit, accuracies, results.unit)
    left, right = halves()
    with left:
        picked_relation = picked(accuracies)
    focus = _focus(visit, settings, results, accuracies, by_row, argmax, facts, picked_relation)
    with left:
        grid(focus)
    with right:
        head_on_a_sentence(focus)
        frame.link_to_inspect(focus.heads)
        _show_source(results, least if settings.min_cases is None else None)
    state.put_in_link(focus.heads)
    name = "" if random is None else randomly_initialised(visit.engine.files).name
    frame.tabs(
        "relation details",
        {
            wording.TABLE: lambda: best_heads(focus, of_random),
            wording.BARS: lambda: _bars(focus, of_random, name),
            wording.DISTANCES: lambda: _distances(focus),
            wording.TWO_RULES: lambda: two_rules(focus),
        },
    )


def _focus(
    visit: Visit,
    settings: RelationSettings,
    results: RelationResults,
    accuracies: Sequence[RelationAccuracy],
    by_row: Sequence[RelationAccuracy],
    argmax: ByArgmax | None,
    facts: dict[str, str],
    selection: tuple[RelationAccuracy, Direction],
) -> Focus:
    """The relation that the reader picked, with the chosen heads, or else the relation's best head."""
    relation, direction = selection
    _, layer, head = relation.best
    _, n_layers, n_heads = relation.accuracy.shape
    return Focus(
        visit=visit,
        settings=settings,
        results=results,
        accuracies=accuracies,
        relation=relation,
        by_row=next(of_relation for of_relation in by_row if of_relation.relation == relation.relation),
        direction=direction,
        argmax=argmax,
        heads=state.chosen_heads(n_layers, n_heads, (layer, head)),
        facts=facts,
    )


def _bars(focus: Focus, random: Sequence[RelationAccuracy] | None, random_name: str) -> None:
    """The best heads and their baselines as bars; `random_name` is empty without a control of random weights."""
    table = relation_table(focus.accuracies, random)
    if not table["held_out"].notna().any():
        st.info(wording.no_bars(focus.results.unit))
        return
    best_of_halves = [relation.best_of_halves for relation in focus.accuracies]
    bars = relation_bars(table, best_of_halves, focus.visit.chosen.criterion.alpha, random_name)
    chart("relation bars", bars, focus.facts, wording.BARS_PAPER)


def _facts(visit: Visit, results: RelationResults, settings: RelationSettings, least: int) -> dict[str, str]:
    """Provenance that is written into downloaded files."""
    return {
        **provenance.corpus_facts(visit.chosen, visit.engine, len(results.texts)),
        "documents known": documents_fact(results.n_documents),
        "relations": relations_source(results.n_gold, len(results.texts)),
        "from word": settings.from_word,
        "least cases": str(least),
        **settings.parsing.facts,
        "beats baseline by": f"{VOITA_MARGIN} ({settings.margin})",
    }


def _settings() -> RelationSettings:
    """The settings that the reader chose."""
    with st.expander(wording.SETTINGS), st.container(horizontal=True, vertical_alignment="bottom"):
        from_word, parsing = _reading()
        least = from_list(
            wording.MIN_CASES,
            {wording.AUTOMATIC: None, **{str(number): number for number in MIN_CASES}},
            key="least cases",
            help=wording.MIN_CASES_HELP,
            width=220,
        )
        margin = one_of(wording.RULE, MARGINS, key="rule", help=wording.RULE_HELP)
        random = toggle(shared_wording.RANDOM_WEIGHTS, key="random", help=wording.RANDOM_WEIGHTS_HELP)
    return RelationSettings(from_word=from_word, min_cases=least, margin=margin, parsing=parsing, random_weights=random)


def _reading() -> tuple[FromWord, ParsingSettings]:
    """How predictions are read and counted: as in the authors' code, or by the individual settings."""
    if toggle(wording.AS_IN_CODE, key="as in code", help=wording.AS_IN_CODE_HELP):
        return "first", AS_IN_CODE
    from_word = one_of(
        shared_wording.FROM_WORD, shared_wording.FROM_WORDS, key="from word", help=shared_wording.FROM_WORD_HELP
    )
    return from_word, ParsingSettings(at_clitic=toggle(wording.POSS, key="poss", help=wording.POSS_HELP))


def _show_source(results: RelationResults, automatic: int | None) -> None:
    """Show the source of the relations and the number of documents; and if the minimum number of cases was chosen
    automatically, why it is low.
    """
    source = wording.source(results.n_gold, len(results.texts), plain(parser_name()))
    st.caption(f"{source} {documents_note(results.n_documents)}")
    if automatic is not None and automatic < USUAL_CASES:
        st.info(wording.fewer_cases(automatic, USUAL_CASES))
    if results.looks_back:
        st.info(wording.LOOKS_BACK)


def _headline(visit: Visit, accuracies: Sequence[RelationAccuracy], unit: Unit) -> None:
    off = [wording.OFF_STILL_ATTENDS] if visit.chosen.off else []
    st.markdown(" ".join([_best(visit, accuracies, unit), *off]))


def _best(visit: Visit, accuracies: Sequence[RelationAccuracy], unit: Unit) -> str:
    """The heads, chosen on one half, that are furthest above the baseline on the other; or that none is above it."""
    best = largest_gain(accuracies)
    if not best.best_of_halves:
        return wording.no_halves(unit)
    sentence = wording.best_head if best.best_accuracy > best.baseline.share else wording.none_above
    heads = [
        f"**{marked(layer, head, visit.chosen.off)}** ({DIRECTION_NAMES[direction]})"
        for direction, layer, head in dict.fromkeys(best.best_of_halves)
    ]
    found = sentence(plain(best.relation), heads, best.best_accuracy, best.baseline)
    return f"{found} {shared_wording.beside(best.best_key_matched, 'The right word gets')}".rstrip()


def _distances(focus: Focus) -> None:
    counts = distances(of_text.dependencies for of_text in focus.results.predictions)
    relations = [relation.relation for relation in focus.accuracies if relation.relation != ALL]
    chart("relation distances", distance_histogram(counts, relations), focus.facts, wording.DISTANCES_PAPER)
