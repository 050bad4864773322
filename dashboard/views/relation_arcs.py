"""The guesses of the chosen head on one sentence, beneath the sentence's own tree."""

from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool

from core.parses import Dependencies
from core.parsing_heads import DIRECTIONS
from dashboard import parsing_wording as wording
from dashboard import provenance
from dashboard.components.drawing import drawing
from dashboard.downloads import drawing_downloads
from dashboard.figures.arcs_svg import head_name, visible
from dashboard.figures.grid_svg import DARK
from dashboard.figures.parse_arcs import parse_arcs_svg
from dashboard.figures.parsed_sentences import Sentence, sentence, sentences
from dashboard.figures.relation_bars import ARROWS
from dashboard.plain import plain
from dashboard.views.relation_results import Focus, is_case

SENTENCE: Final = "relation sentence"
SHORT: Final = 16
"""Words of the sentence that is drawn at first, at most: it should fit without scrolling."""
LONGEST_NAME: Final = 80
"""Characters of a sentence in the list of sentences."""


def head_on_a_sentence(focus: Focus) -> None:
    """Arcs of the head that was chosen last."""
    st.subheader(wording.ARCS)
    if not focus.heads:
        st.info(wording.ARCS_HINT)
        return
    layer, head = focus.heads[-1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = _picked(focus)
        every = st.toggle(wording.EVERY_WORD, key="every guess", bind="query-params", persist_state="session")
    text, stretch = place
    found = focus.found.predictions[text]
    trees = found.dependencies
    cases = _cases(focus, trees)
    judged = np.ones(len(trees.heads), bool) if every else cases
    predicted = found.predicted[DIRECTIONS.index(focus.direction), layer, head]
    shown = sentence(trees.words.shown(focus.found.texts[text]), trees, predicted, judged, stretch)
    of = cases[slice(*stretch)]
    st.markdown(
        f"**{head_name(layer, head)}**, {ARROWS[focus.direction]}, {plain(focus.relation.relation)}: "
        f"{wording.n_right(int((of & (shown.predicted == shown.heads)).sum()), int(of.sum()))} {wording.ARCS_READ}"
    )
    _draw(focus, shown, f"{head_name(layer, head)}, {ARROWS[focus.direction]}")


def _cases(focus: Focus, trees: Dependencies) -> Bool[np.ndarray, " word"]:
    """Words of a text that the relation is counted on."""
    return is_case(trees, focus.relation.relation, focus.asked.parsing.every_word)


def _picked(focus: Focus) -> tuple[int, tuple[int, int]]:
    """Text and stretch of the sentence that the reader picked, of those with the relation; at first with most of it.

    The link is written by hand: a bound list writes what it shows, and uploaded text is no part of a link.
    """
    places, n_cases = dict[str, tuple[int, tuple[int, int]]](), dict[str, int]()
    for text, found in enumerate(focus.found.predictions):
        cases = _cases(focus, found.dependencies)
        for number, stretch in enumerate(sentences(found.dependencies.heads), start=1):
            name = f"{focus.found.positions[text] + 1}.{number}"
            if n := int(cases[slice(*stretch)].sum()):
                places[name], n_cases[name] = (text, stretch), n
    short = [name for name, (_, (start, stop)) in places.items() if stop - start <= SHORT] or list(places)
    usual = max(short, key=lambda name: n_cases[name])
    if SENTENCE not in st.session_state:
        st.session_state[SENTENCE] = st.query_params.get(SENTENCE)
    if st.session_state[SENTENCE] not in places:
        st.session_state[SENTENCE] = usual
    picked = st.selectbox(
        wording.SENTENCE,
        list(places),
        format_func=lambda name: f"{name}: {_beginning(focus, *places[name])}",
        key=SENTENCE,
        persist_state="session",
    )
    if st.query_params.get(SENTENCE) != picked:
        st.query_params[SENTENCE] = picked
    return places[picked]


def _beginning(focus: Focus, text: int, stretch: tuple[int, int]) -> str:
    """How a sentence begins."""
    words, (first, after) = focus.found.predictions[text].dependencies.words, stretch
    end = words.spans[after - 1, 1] if words.segments[first] == words.segments[after - 1] else None
    whole = visible(focus.found.texts[text].segments[words.segments[first]][words.spans[first, 0] : end])
    return whole if len(whole) <= LONGEST_NAME else whole[: LONGEST_NAME - 1] + "…"


def _draw(focus: Focus, shown: Sentence, title: str) -> None:
    said = f"{title}, on the sentence: {' '.join(shown.words)}"
    svg = parse_arcs_svg(shown, attends=focus.direction, label=said)
    drawing(svg, key="relation arcs", label=f"{title}, on a sentence")
    st.caption(wording.ARCS_PAPER)
    drawing_downloads(
        "arcs",
        lambda: parse_arcs_svg(
            shown,
            attends=focus.direction,
            title=f"{title}: {focus.relation.relation}",
            caption=[wording.ARCS_LEGEND, *provenance.caption(focus.facts)],
            label=said,
            ink=DARK,
        ),
    )
