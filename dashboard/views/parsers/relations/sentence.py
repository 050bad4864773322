"""The predictions of the chosen head on one sentence, below the sentence's own tree."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool

from core.attention.settings import head_name
from core.relations.accuracy import DIRECTIONS
from core.texts.relations import Dependencies
from dashboard.components.drawing import drawing
from dashboard.figures.relations.directions import DIRECTION_NAMES
from dashboard.figures.relations.parse_arcs import parse_arcs_file, parse_arcs_svg
from dashboard.figures.relations.sentences import Sentence, sentence, sentences
from dashboard.figures.text.arcs_svg import visible
from dashboard.files import provenance
from dashboard.files.downloads import drawing_downloads
from dashboard.plain import plain
from dashboard.views.parsers.relations import wording
from dashboard.views.parsers.relations.results import Focus, is_case
from dashboard.views.pickers import toggle

SENTENCE: Final = "relation sentence"
SHORT: Final = 16
"""Words of the sentence that is drawn at first, at most: it should fit without scrolling."""
LONGEST_NAME: Final = 80
"""Characters of a sentence in the list of sentences."""


@dataclass(frozen=True)
class Place:
    """Where a sentence stands."""

    text: int
    """Position of its text among those with predictions."""
    words: tuple[int, int]
    """First and one-past-last word."""

    @property
    def n_words(self) -> int:
        """Words of the sentence."""
        return self.words[1] - self.words[0]


def head_on_a_sentence(focus: Focus) -> None:
    """Arcs of the head that was chosen last."""
    if not focus.heads:
        st.info(wording.ARCS_HINT)
        return
    layer, head = focus.heads[-1]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        place = _picked(focus)
        every_word = toggle(wording.EVERY_WORD, key="every guess")
    predictions = focus.results.predictions[place.text]
    trees = predictions.dependencies
    cases = _cases(focus, trees)
    drawn = sentence(
        trees.words.shown(focus.results.texts[place.text]),
        trees,
        predictions.predicted[DIRECTIONS.index(focus.direction), layer, head],
        np.ones(len(trees.heads), bool) if every_word else cases,
        place.words,
    )
    in_sentence = cases[slice(*place.words)]
    n_right = int((in_sentence & (drawn.predicted == drawn.heads)).sum())
    st.markdown(
        f"**{head_name(layer, head)}**, {DIRECTION_NAMES[focus.direction]}, {plain(focus.relation.relation)}: "
        f"{wording.n_right(n_right, int(in_sentence.sum()))} {wording.ARCS_READ}",
        help=wording.ARCS_ENDS,
    )
    _draw(focus, drawn, f"{head_name(layer, head)}, {DIRECTION_NAMES[focus.direction]}")


def _cases(focus: Focus, trees: Dependencies) -> Bool[np.ndarray, " word"]:
    """Words of a text that the relation is counted on."""
    return is_case(trees, focus.relation.relation, focus.settings.parsing.every_word)


def _picked(focus: Focus) -> Place:
    """The sentence that the reader picked, of those with the relation; at first a short one with most of its cases.

    The link is written by hand: a bound list writes the text that it shows, and uploaded text is no part of a link.
    """
    places, n_cases = dict[str, Place](), dict[str, int]()
    for text, predictions in enumerate(focus.results.predictions):
        cases = _cases(focus, predictions.dependencies)
        for number, words in enumerate(sentences(predictions.dependencies.heads), start=1):
            name = f"{focus.results.positions[text] + 1}.{number}"
            if n := int(cases[slice(*words)].sum()):
                places[name], n_cases[name] = Place(text, words), n
    short = [name for name, place in places.items() if place.n_words <= SHORT] or list(places)
    start = max(short, key=lambda name: n_cases[name])
    if SENTENCE not in st.session_state:
        st.session_state[SENTENCE] = st.query_params.get(SENTENCE)
    if st.session_state[SENTENCE] not in places:
        st.session_state[SENTENCE] = start
    name = st.selectbox(
        wording.SENTENCE,
        list(places),
        format_func=lambda name: f"{name}: {_beginning(focus, places[name])}",
        key=SENTENCE,
        persist_state="session",
    )
    if st.query_params.get(SENTENCE) != name:
        st.query_params[SENTENCE] = name
    return places[name]


def _beginning(focus: Focus, place: Place) -> str:
    """How a sentence begins."""
    words, (first, after) = focus.results.predictions[place.text].dependencies.words, place.words
    end = words.spans[after - 1, 1] if words.segments[first] == words.segments[after - 1] else None
    whole = visible(focus.results.texts[place.text].segments[words.segments[first]][words.spans[first, 0] : end])
    return whole if len(whole) <= LONGEST_NAME else whole[: LONGEST_NAME - 1] + "…"


def _draw(focus: Focus, drawn: Sentence, title: str) -> None:
    label = f"{title}, on the sentence: {' '.join(drawn.words)}"
    svg = parse_arcs_svg(drawn, attends=focus.direction, label=label)
    drawing(svg, key="relation arcs", label=f"{title}, on a sentence")
    facts = focus.facts | {"sentence": " ".join(drawn.words)}
    titled = provenance.titled(f"{title}: {focus.relation.relation}", facts)
    drawing_downloads(
        "arcs",
        titled,
        facts,
        lambda: parse_arcs_file(
            drawn,
            attends=focus.direction,
            title=titled,
            reading=wording.ARCS_LEGEND,
            caption=provenance.caption(focus.facts),
        ),
        paper=wording.ARCS_PAPER,
    )
