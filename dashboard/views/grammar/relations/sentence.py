"""The predictions of the chosen head on one sentence, below the sentence's own tree."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.passes.texts import queries_text
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.components.drawing import drawing
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES
from attention_sieve.dashboard.figures.relations.parse_arcs import (
    PredictedSentence,
    parse_arcs_file,
    parse_arcs_svg,
    sentence,
    sentences,
)
from attention_sieve.dashboard.figures.sheet import Size
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.downloads import drawing_downloads
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.grammar.relations.table import RelationFocus, is_case
from attention_sieve.dashboard.views.pickers import toggle

SENTENCE: Final = "relation sentence"
SHORT: Final = 16
"""Maximum number of words of the default sentence: it should fit without scrolling."""
LONGEST_NAME: Final = 80
"""Maximum number of characters of a sentence in the list of sentences."""


@dataclass(frozen=True)
class SentencePosition:
    text: int
    """Position of its text among those with predictions."""
    words: tuple[int, int]
    """First and one-past-last word."""


def head_on_a_sentence(focus: RelationFocus, controls: DeltaGenerator) -> None:
    """Draw the predictions of the head that was chosen last; which sentence, is chosen in `controls`."""
    if not focus.heads:
        st.info(wording.ARCS_HINT)
        return
    layer, head = focus.heads[-1]
    with controls, st.popover(wording.SENTENCE, icon=":material/notes:"):
        position = _picked(focus)
        every_word = toggle(wording.EVERY_WORD, key="every guess")
    predictions = focus.finding.predictions[position.text]
    trees = predictions.dependencies
    cases = _cases(focus, trees)
    parsed = sentence(
        trees.words.shown(_text(focus, position)),
        trees,
        predictions.predicted[DIRECTIONS.index(focus.direction), layer, head],
        np.ones(len(trees.heads), bool) if every_word else cases,
        position.words,
        is_paired=(is_paired := focus.finding.items[position.text].text.pairs is not None),
    )
    in_sentence = cases[slice(*position.words)]
    n_right = int((in_sentence & (parsed.predicted == parsed.heads)).sum())
    st.markdown(
        f"**{head_name(layer, head)}**, {DIRECTION_NAMES[focus.direction]}, {plain(focus.relation.relation)}: "
        f"{wording.n_right(n_right, int(in_sentence.sum()))}",
        help=f"{wording.arcs_read(is_paired=is_paired)} {wording.ARCS_ENDS}",
    )
    _draw(focus, parsed, f"{head_name(layer, head)}, {DIRECTION_NAMES[focus.direction]}")


def _cases(focus: RelationFocus, trees: Dependencies) -> Bool[np.ndarray, " word"]:
    return is_case(trees, focus.relation.relation, focus.finding.settings.every_word)


def _picked(focus: RelationFocus) -> SentencePosition:
    """The sentence that the reader picked, of those with the relation; by default a short one with most of its cases.

    The link is written by hand: a bound list would write its displayed text, and uploaded text must not be in a link.
    """
    positions, n_cases = dict[str, SentencePosition](), dict[str, int]()
    for text, predictions in enumerate(focus.finding.predictions):
        cases = _cases(focus, predictions.dependencies)
        for number, words in enumerate(sentences(predictions.dependencies.heads), start=1):
            name = f"{focus.found.positions[text] + 1}.{number}"
            if n := int(cases[slice(*words)].sum()):
                positions[name], n_cases[name] = SentencePosition(text, words), n
    n_words = {name: position.words[1] - position.words[0] for name, position in positions.items()}
    short = [name for name in positions if n_words[name] <= SHORT] or list(positions)
    start = max(short, key=lambda name: n_cases[name])
    if SENTENCE not in st.session_state:
        st.session_state[SENTENCE] = st.query_params.get(SENTENCE)
    if st.session_state[SENTENCE] not in positions:
        st.session_state[SENTENCE] = start
    name = st.selectbox(
        wording.SENTENCE,
        list(positions),
        format_func=lambda name: f"{name}: {_beginning(focus, positions[name])}",
        key=SENTENCE,
        persist_state="session",
    )
    if st.query_params.get(SENTENCE) != name:
        st.query_params[SENTENCE] = name
    return positions[name]


def _beginning(focus: RelationFocus, position: SentencePosition) -> str:
    words, (start, stop) = focus.finding.predictions[position.text].dependencies.words, position.words
    end = words.spans[stop - 1, 1] if words.segments[start] == words.segments[stop - 1] else None
    text = visible(_text(focus, position).segments[words.segments[start]][words.spans[start, 0] : end])
    return text if len(text) <= LONGEST_NAME else text[: LONGEST_NAME - 1] + "…"


def _text(focus: RelationFocus, position: SentencePosition) -> Text:
    return queries_text(focus.finding.items[position.text].text, focus.visit.settings.kind)


def _draw(focus: RelationFocus, parsed: PredictedSentence, title: str) -> None:
    label = f"{title}, on the sentence: {' '.join(parsed.words)}"
    svg = parse_arcs_svg(parsed, attends=focus.direction, label=label)
    drawing(svg, key="relation arcs", label=f"{title}, on a sentence")
    facts = without_command(focus.facts) | {"sentence": " ".join(parsed.words)}
    reading = wording.PAIRED_LEGEND if parsed.is_paired else wording.ARCS_LEGEND
    file = partial(parse_arcs_file, parsed, attends=focus.direction, reading=reading)

    def picture(title: str, caption: Sequence[str], size: Size) -> str:
        # The sentence stands in the picture, and need not stand below it.
        return file(title=title, caption=provenance.caption(focus.facts), size=size)

    drawing_downloads("arcs", f"{title}: {focus.relation.relation}", facts, picture, paper=wording.ARCS_PAPER)
