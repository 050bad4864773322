"""Draws what a head mostly does: its sentence, and the texts that show it most clearly."""

import streamlit as st

from core.attention.settings import Head, head_name
from core.descriptions.examples import Example, examples
from core.errors import AnalysisError
from core.relations.accuracy import TextPredictions
from core.texts.text import Text, write_typed
from dashboard.components.marked_texts import Mark, MarkedText, marked_texts
from dashboard.plain import plain
from dashboard.views.corpus import Corpus
from dashboard.views.descriptions import wording
from dashboard.views.descriptions.known import Described, ask_for_them, asked_descriptions, can_parse
from dashboard.views.frame import Visit
from dashboard.views.inspect import stories


def show_description(visit: Visit, tested: Corpus, head: Head) -> None:
    """Say what a head does, what that stands on, and where it shows; or offer to find it out."""
    described = asked_descriptions(visit, tested)
    if described is not None:
        description = described.heads[head]
        said = f"**{head_name(*head)}** {plain(wording.does(description))}"
        st.markdown(said, help=plain(wording.evidence(description)))
        _examples(described, head)
    if described is None or (described.predictions is None and can_parse(visit)):
        st.button(
            wording.ASK if described is None else wording.ASK_RELATIONS,
            help=wording.ASK_HELP,
            key="describe heads",
            icon=":material/manage_search:",
            on_click=ask_for_them,
            args=(visit,),
        )


def _examples(described: Described, head: Head) -> None:
    """The texts that show it most clearly; a click puts one on screen."""
    if described.predictions is None:
        return
    _, clearest = examples(described.heads[head], described.surface, described.predictions)
    shown = {typed: example for example in clearest if (typed := _typed(described.texts[example.position])) is not None}
    if not shown:
        return
    st.caption(wording.EXAMPLES)
    marked_texts(
        [
            _marked(described.texts[example.position], described.predictions[example.position], example)
            for example in shown.values()
        ],
        key="examples",
        label=wording.examples_of(head_name(*head)),
        on_pick=lambda place: stories.put_on_screen(list(shown)[place]),
    )


def _marked(text: Text, predictions: TextPredictions, example: Example) -> MarkedText:
    """A text cut into its marked words and what stands between them."""
    words = predictions.dependencies.words
    marks: dict[int, Mark] = {link.query: "query" for link in example.links}
    marks |= {link.key: "key" for link in example.links}
    parts: list[tuple[str, Mark]] = []
    for side, segment in enumerate(text.segments):
        at = 0
        for place in sorted(place for place in marks if words.segments[place] == side):
            start, end = words.spans[place].tolist()
            parts += [(segment[at:start], ""), (segment[start:end], marks[place])]
            at = end
        parts += [(segment[at:], ""), (wording.BETWEEN_SEGMENTS if side + 1 < len(text.segments) else "", "")]
    shown = words.shown(text)
    return MarkedText(
        parts=tuple((words, mark) for words, mark in parts if words),
        links=tuple((shown[link.query], shown[link.key]) for link in example.links),
    )


def _typed(text: Text) -> str | None:
    """A text as a reader would type it; None where it holds what no line can hold."""
    try:
        return write_typed([text])
    except AnalysisError:
        return None
