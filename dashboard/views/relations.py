"""Relations: which head finds which dependency relation, against the best that a fixed offset does."""

from collections.abc import Callable, Sequence
from typing import Final

import streamlit as st

from cache.inference import Engine, Inference
from core.checkpoints import randomly_initialised
from core.errors import AnalysisError
from core.parses import parser_name
from core.parsing_heads import ALL, AS_IN_CODE, Margin, ParsingSettings, RelationAccuracy
from core.words import FromWord
from dashboard import controls, provenance, state
from dashboard import parsing_wording as wording
from dashboard import wording as shared_wording
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.distance_histogram import distance_histogram, distances
from dashboard.figures.figure import Figure
from dashboard.figures.relation_bars import ARROWS, relation_bars
from dashboard.plain import plain, show_error
from dashboard.state import Choice
from dashboard.views.charts import chart
from dashboard.views.corpus import ask_about_long_texts, ask_for_texts, readable
from dashboard.views.layout import halves
from dashboard.views.relation_arcs import head_on_a_sentence
from dashboard.views.relation_choice import best_heads, picked
from dashboard.views.relation_heads import grid, two_rules
from dashboard.views.relation_pass import control_of, relations_of
from dashboard.views.relation_results import (
    LEAST_CASES,
    USUAL_CASES,
    Asked,
    ByArgmax,
    Focus,
    Relations,
    by_argmax,
    enough_cases,
    marked,
    most_gain,
)

FROM_WORDS: Final[dict[str, FromWord]] = {wording.FROM_MEAN: "mean", wording.FROM_FIRST: "first"}
MARGINS: Final[dict[str, Margin]] = {wording.POINTS: "points", wording.RELATIVE: "relative"}


def show_section() -> None:
    """Draw the section."""
    st.markdown(wording.RELATIONS_SEE)
    try:
        _relations()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        st.markdown(wording.METHOD)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(shared_wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _relations() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    if chosen.pass_settings(engine).kind == "cross":
        st.info(wording.CROSS)
        return
    given = controls.corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    if not texts:
        ask_for_texts(chosen, given)
        return
    asked = _settings()
    found = relations_of(inference, engine, chosen, texts, asked)
    if found is None:
        return
    state.remember_off(chosen)
    ask_about_long_texts(found.too_long)
    least = enough_cases(found.accuracies, asked.least)
    shown = [one for one in found.accuracies if one.n_cases >= least]
    _say_source(found, None if asked.least else least)
    if not shown:
        st.info(wording.not_enough(least))
        return
    control = control_of(inference, engine, chosen, texts, asked) if asked.control else None
    facts = _facts(chosen, engine, found, asked, least)
    by_row = [one for one in found.by_row if one.n_cases >= least]
    argmax = by_argmax(by_row, asked.margin)
    _headline(shown, argmax, chosen)
    table = best_heads(shown, None if control is None else control.accuracies, chosen.off, facts)
    relation, direction = picked(shown)
    _, layer, head = relation.best
    _, n_layers, n_heads = relation.accuracy.shape
    focus = Focus(
        chosen=chosen,
        engine=engine,
        found=found,
        shown=shown,
        relation=relation,
        by_row=next(one for one in by_row if one.relation == relation.relation),
        direction=direction,
        argmax=argmax,
        asked=asked,
        heads=state.chosen_heads(n_layers, n_heads, (layer, head)),
        control_name="" if control is None else randomly_initialised(engine.files).name,
        facts=facts,
    )
    left, right = halves()
    with left:
        grid(focus)
    with right:
        st.subheader(wording.BARS)
        if table["held_out"].notna().any():
            bars = relation_bars(table, chosen.criterion.alpha, focus.control_name)
            chart("relation bars", bars, focus.facts, wording.BARS_PAPER)
        else:
            st.info(wording.NO_BARS)
    head_on_a_sentence(focus)
    _details(inference, focus)
    state.put_in_link(focus.heads)
    if focus.heads:
        names = ", ".join(head_name(*head) for head in focus.heads)
        st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")


def _facts(chosen: Choice, engine: Engine, found: Relations, asked: Asked, least: int) -> dict[str, str]:
    """What a file says about where it comes from."""
    kinds = {0: "spaCy", len(found.texts): "gold of the file"}
    return {
        **provenance.corpus_facts(chosen, engine, len(found.texts)),
        "relations": kinds.get(found.n_gold, f"gold of the file for {found.n_gold} texts, else spaCy"),
        "from word": asked.from_word,
        "least cases": str(least),
        "poss at clitic": "yes" if asked.parsing.at_clitic else "no",
        "all counts": "every word" if asked.parsing.every_word else "all but punct and root",
        "offsets": f"{asked.parsing.offsets[0]} to {asked.parsing.offsets[-1]}",
        "rule": f"baseline and 10 % ({asked.margin})",
    }


def _settings() -> Asked:
    """What is asked of guesses and relations, besides the sidebar's settings."""
    with st.expander(wording.SETTINGS), st.container(horizontal=True, vertical_alignment="bottom"):
        from_word, parsing = _guesses()
        least = st.selectbox(
            wording.LEAST,
            (wording.AUTOMATIC, *map(str, LEAST_CASES)),
            key="least cases",
            help=wording.LEAST_HELP,
            bind="query-params",
            persist_state="session",
            width=220,
        )
        margin = _one_of(wording.RULE, tuple(MARGINS), "rule", wording.RULE_HELP)
        control = _toggle(wording.CONTROL, "random", wording.CONTROL_HELP)
    return Asked(
        from_word=from_word,
        least=None if least == wording.AUTOMATIC else int(least),
        margin=MARGINS[margin],
        parsing=parsing,
        control=control,
    )


def _guesses() -> tuple[FromWord, ParsingSettings]:
    """How guesses are read and counted: as the authors' code does, or as each setting says."""
    if _toggle(wording.AS_IN_CODE, "as in code", wording.AS_IN_CODE_HELP):
        return "first", AS_IN_CODE
    from_word = _one_of(wording.FROM_WORD, tuple(FROM_WORDS), "from word", wording.FROM_WORD_HELP)
    return FROM_WORDS[from_word], ParsingSettings(at_clitic=_toggle(wording.POSS, "poss", wording.POSS_HELP))


def _one_of(label: str, options: tuple[str, ...], key: str, about: str) -> str:
    picked = st.segmented_control(
        label,
        options,
        default=options[0],
        key=key,
        help=about,
        required=True,
        bind="query-params",
        persist_state="session",
    )
    return str(picked)


def _toggle(label: str, key: str, about: str) -> bool:
    return st.toggle(label, key=key, help=about, bind="query-params", persist_state="session")


def _say_source(found: Relations, least: int | None) -> None:
    st.markdown(wording.source(found.n_gold, len(found.texts), plain(parser_name())))
    if least is not None and least < USUAL_CASES:
        st.info(wording.fewer_cases(least, USUAL_CASES))
    if found.looks_back:
        st.info(wording.LOOKS_BACK)


def _headline(shown: Sequence[RelationAccuracy], argmax: ByArgmax | None, chosen: Choice) -> None:
    sentences = [_best(shown, chosen)]
    if found := [one for one in shown if one.relation != ALL]:
        held_out = [one for one in found if one.best_of_halves]
        n_above = sum(one.best_accuracy > one.baseline.share for one in held_out)
        alpha = chosen.criterion.alpha
        n_beat = sum(one.p_value < alpha for one in found)
        sentences.append(wording.against_baseline(n_above, len(held_out), n_beat, len(found), alpha))
    if argmax is not None:
        rule = wording.POINTS if argmax.margin == "points" else wording.RELATIVE
        n_heads = {plain(relation): n for relation, n in argmax.n_heads.items()}
        sentences.append(wording.n_syntactic(int(argmax.heads.sum()), argmax.heads.size, n_heads, rule))
    sentences += [wording.OFF_STILL_ATTENDS] if chosen.off else []
    st.markdown(" ".join(sentences))


def _best(shown: Sequence[RelationAccuracy], chosen: Choice) -> str:
    """The heads of the halves that are furthest above the baseline on the other half, or that none is above it."""
    best = most_gain(shown)
    if not best.best_of_halves:
        return wording.NO_HALVES
    say = wording.best_found if best.best_accuracy > best.baseline.share else wording.none_above
    heads = [
        f"**{marked(layer, head, chosen.off)}** ({ARROWS[way]})"
        for way, layer, head in dict.fromkeys(best.best_of_halves)
    ]
    return say(plain(best.relation), heads, best.best_accuracy, best.baseline.share)


def _details(inference: Inference, focus: Focus) -> None:
    """One view at a time."""
    views: dict[str, Callable[[], None]] = {
        wording.DISTANCES: lambda: chart("relation distances", _distances(focus), focus.facts, wording.DISTANCES_PAPER),
        wording.TWO_RULES: lambda: two_rules(inference, focus),
    }
    tabs = st.tabs(list(views), key="relation details", on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, views.values()):
        if tab.open:
            with tab:
                draw()


def _distances(focus: Focus) -> Figure:
    found = distances(of_text.dependencies for of_text in focus.found.predictions)
    return distance_histogram(found, [one.relation for one in focus.shown if one.relation != ALL])
