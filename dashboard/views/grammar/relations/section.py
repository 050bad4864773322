"""Relations: which head finds which dependency relation, compared with the best fixed offset; all heads on one
relation, and the heads that are syntactic by argmax next to those that are by the sieve."""

from dataclasses import replace
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.checkpoints.find import randomly_initialised
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL, beats_baseline
from attention_sieve.core.relations.finding import MIN_CASES, ByArgmax, RelationFinding
from attention_sieve.core.relations.settings import (
    AS_IN_CODE,
    DIRECTIONS,
    USUAL_CASES,
    Margin,
    RelationSettings,
)
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.statistics.by_role import overlap
from attention_sieve.core.texts.parsers import parser_names
from attention_sieve.core.wording import documents_note
from attention_sieve.dashboard import samples, state
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.head_map import Detail, HeadMap, intervals, percents, round_bound
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES, relation_bars
from attention_sieve.dashboard.figures.relations.distance_histogram import distance_histogram, distances
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import download_as_it_is
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, chosen_settings
from attention_sieve.dashboard.views.asking import ask_about_long_texts
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.frame import Places, Visit
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.grammar.relations.sentence import head_on_a_sentence
from attention_sieve.dashboard.views.grammar.relations.table import RelationFocus, best_heads, best_rows, marked, picked
from attention_sieve.dashboard.views.pickers import from_list, halves, one_of, toggle
from attention_sieve.dashboard.views.relations import relation_finding

SYNTACTIC: Final = ROLES.index("syntactic")


def grid(focus: RelationFocus) -> None:
    relation, direction = focus.relation, DIRECTIONS.index(focus.direction)
    points = 100 * (relation.accuracy - relation.baseline.share)[direction]
    baseline = f"{relation.baseline.share:.1%} ({relation.baseline.offset:+d})"
    details: list[Detail] = [
        ("right", percents(relation.accuracy[direction])),
        (
            "interval",
            intervals(relation.low[direction], relation.high[direction], ".1%", "none"),
        ),
        ("best fixed offset", np.full(points.shape, baseline).tolist()),
        ("cases", np.full(points.shape, f"{relation.n_cases:,}").tolist()),
        ("p, corrected", relation.p_values[direction]),
        *shared_wording.control_details(relation.key_matched, direction),
    ]
    if direction:
        details.insert(2, ("right, by the head's own row", percents(focus.by_row.accuracy[direction])))
    if off := focus.visit.choice.off:
        layers, heads = map(range, points.shape)
        details.append(
            ("switched off", [["yes" if (layer, head) in off else "no" for head in heads] for layer in layers])
        )
    title = f"{relation.relation}, {DIRECTION_NAMES[focus.direction]}: {wording.GRID_TITLE}"
    picture = HeadMap(
        title=title,
        label=_label(focus, title),
        values=points,
        bound=round_bound(float(np.abs(points).max())),
        signed=True,
        muted=True,
        low_label=wording.LOWER,
        high_label=wording.HIGHER,
        marked=beats_baseline(focus.by_row, margin=focus.finding.settings.margin)[direction],
        mark=wording.MARK_ROW if direction else wording.MARK,
        details=details,
    )
    _show(focus, "accuracies", picture)


def two_rules(focus: RelationFocus) -> None:
    from attention_sieve.dashboard.views.corpus import corpus  # which readers of the other tabs do without

    st.markdown(wording.TWO_RULES_SEE)
    argmax = focus.finding.by_argmax
    if argmax is None:
        st.info(wording.NO_RULE_RELATION)
        return
    tested = corpus(focus.visit)
    if tested is None:
        return
    by_sieve, score = tested.tests.holds[SYNTACTIC], tested.tests.mean[SYNTACTIC]
    rule = wording.POINTS if focus.finding.settings.margin == "points" else wording.RELATIVE
    n_all = argmax.heads.size - len(focus.visit.removed)
    n_heads = {plain(relation): n for relation, n in argmax.n_heads.items()}
    by_argmax = wording.n_syntactic(int(argmax.heads.sum()), n_all, n_heads, rule)
    both = overlap(np.stack([argmax.heads, by_sieve]), ("argmax", "sieve"), "argmax", "sieve")
    st.markdown(f"{by_argmax} {wording.both_rules(both, n_all)}")
    _maps_of_both(focus, argmax, by_sieve, score)
    st.caption(wording.TWO_RULES_PAPER)


def _maps_of_both(
    focus: RelationFocus,
    argmax: ByArgmax,
    by_sieve: Bool[np.ndarray, "layer head"],
    score: Float[np.ndarray, "layer head"],
) -> None:
    scale, points = focus.visit.choice.scale, 100 * argmax.gain
    best = [[wording.best_at(at) for at in of_layer] for of_layer in argmax.best]
    left, right = halves()
    with left:
        title = f"{wording.ARGMAX_GRID}: {wording.ARGMAX_TITLE}"
        picture = HeadMap(
            title=title,
            label=_label(focus, title),
            values=points,
            bound=round_bound(float(np.abs(points).max())),
            signed=True,
            muted=True,
            low_label=wording.LOWER,
            high_label=wording.HIGHER,
            marked=argmax.heads,
            mark=wording.MARK,
            details=[("best at", best), (f"mean {WORDS[scale].noun} by the sieve", score)],
        )
        _show(focus, "syntactic by argmax", picture)
    with right:
        title = f"{wording.SIEVE_GRID}: its pooled syntactic role, {WORDS[scale].title('mean ')}"
        picture = HeadMap(
            title=title,
            label=_label(focus, title),
            values=score,
            bound=round_bound(float(np.nanmax(np.abs(score), initial=0))),
            signed=scale == "share",
            marked=by_sieve,
            mark=wording.SIEVE_MARK,
            details=[("by argmax", np.where(argmax.heads, best, "no").tolist())],
        )
        _show(focus, "syntactic by the sieve", picture)


def _label(focus: RelationFocus, title: str) -> str:
    return f"{title}, heads of {focus.visit.engine.files.name}"


def _show(focus: RelationFocus, name: str, picture: HeadMap, paper: str = "") -> None:
    show_head_map(
        picture,
        head_selection(f"relations {name}", focus.heads, focus.reset),
        file=f"map of {name}",
        facts=focus.facts,
        paper=paper,
    )


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
    places = frame.places()
    with places.sections:
        details = st.container(key="relation sections")
        details.empty()  # without an element the container would take up no space
        settings, is_controlled = _settings(visit.choice.criterion.alpha)
    with places.finding:
        corpus_finding = relation_finding(visit, settings)
        if corpus_finding is None:
            return
        state.remember_off(visit.choice)
        ask_about_long_texts(corpus_finding.too_long)
        if not corpus_finding.finding.accuracies:
            st.info(corpus_finding.finding.why_empty)
            _show_source(corpus_finding.finding)
            return
        random = _of_random_weights(visit, corpus_finding.finding) if is_controlled else None
        _headline(visit, corpus_finding.finding)
    _accuracies(visit, corpus_finding, random, replace(places, sections=details))


def _accuracies(
    visit: Visit, corpus_finding: CorpusFinding[RelationFinding], random: RelationFinding | None, places: Places
) -> None:
    finding = corpus_finding.finding
    with places.controls:
        relation, direction = picked(finding)
    _, layer, head = relation.best
    in_force = replace(finding.settings, least_cases=finding.least_cases)
    analysed = Analysed(visit=visit, analysis=RELATION_ANALYSIS, settings=in_force, found=corpus_finding)
    _, n_layers, n_heads = relation.accuracy.shape
    focus = RelationFocus(
        visit=visit,
        found=corpus_finding,
        relation=relation,
        direction=direction,
        heads=state.chosen_heads(n_layers, n_heads, (layer, head)),
        facts=provenance.corpus_facts(visit.choice, visit.engine, len(finding.items)) | analysed.facts(),
    )
    with places.picture:
        left, right = halves()
    with left, st.container(key="relation map"):
        grid(focus)
    with right:
        head_on_a_sentence(focus, places.controls)
    with places.controls:
        frame.link_to_inspect(focus.heads)
    state.put_in_link(focus.heads)
    table = best_rows(finding, random)
    with places.sections:
        frame.tabs(
            "relation details",
            {
                wording.TABLE: lambda: best_heads(focus, table),
                wording.BARS: lambda: _bars(focus, table),
                wording.DISTANCES: lambda: _distances(focus),
                wording.TWO_RULES: lambda: two_rules(focus),
            },
        )
        with st.expander(wording.HOW_CHOSEN):
            st.markdown(_best(visit, finding))
            st.caption(wording.GRID_PAPER)
            _show_source(finding)


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
    folded = st.expander(wording.SETTINGS)
    with folded, st.container(horizontal=True, vertical_alignment="bottom"):
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
    chosen = replace(reading, alpha=alpha, least_cases=least, margin=margin)
    return chosen_settings(chosen, "relations", folded, wording.FURTHER), is_controlled


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
    best = finding.largest_gain
    heads = [f"**{marked(layer, head, visit.choice.off)}**" for _, layer, head in dict.fromkeys(best.best_of_halves)]
    if heads:
        frame.say_finding(
            wording.finding(plain(best.relation), heads, best.best_accuracy, best.baseline),
            wording.where_wrong(best.best_where_wrong) if best.best_accuracy > best.baseline.share else "",
        )
    else:
        frame.say_finding(wording.no_halves(finding.unit))
    if visit.choice.off:
        st.markdown(wording.OFF_STILL_ATTENDS)


def _best(visit: Visit, finding: RelationFinding) -> str:
    """The heads, chosen on one half, that are furthest above the baseline on the other; or that none is above it."""
    best = finding.largest_gain
    if not best.best_of_halves:
        return wording.no_halves(finding.unit)
    heads = [
        f"**{marked(layer, head, visit.choice.off)}** ({DIRECTION_NAMES[direction]})"
        for direction, layer, head in dict.fromkeys(best.best_of_halves)
    ]
    said = wording.best_head(plain(best.relation), heads, best.best_accuracy, best.best_where_wrong, best.baseline)
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
