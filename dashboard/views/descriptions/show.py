"""Draws the description of a head: its sentence, and the texts that show it most clearly, with marked words."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.cache.serving.requests import Report
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.descriptions.accuracies import ShareFact
from attention_sieve.core.descriptions.examples import HeadExample, examples, resting, rests, telling_texts
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.core.texts.tokens import Words, words_of
from attention_sieve.dashboard import costs
from attention_sieve.dashboard.components.marked_texts import DrawnText, Mark, marked_texts
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.corpus import Corpus
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.sentences import (
    Described,
    can_parse,
    passes_needed,
    request_descriptions,
    requested_descriptions,
)
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.text import stories

RESTS: Final = "rests shown"
"""Key of whether the reader wants to see where heads rest."""
BOLD: Final[Mark] = "strong"
LINED: Final[Mark] = "lined"


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    marked: DrawnText
    typed: str


def show_description(visit: Visit, tested: Corpus, head: Head, buttons: DeltaGenerator, in_text: str = "") -> None:
    """Show the description of a head with its evidence and examples, or a button to compute it.

    Args:
        in_text: a sentence on what the head does in the text on screen, which follows; escaped for Markdown.
    """
    described = requested_descriptions(visit, tested.tests)
    if described is not None:
        description = described.heads[head]
        does = plain(wording.does(description))
        sentence = f"{wording.over(description)} **{head_name(*head)}** {does} {in_text}"
        relations = trees_source(described.texts)
        st.markdown(sentence, help=plain(wording.evidence(description, relations)))
        _examples(visit, described, head, buttons)
    if described is None or (described.predictions is None and can_parse(visit)):
        buttons.button(
            wording.ASK if described is None else wording.ASK_RELATIONS,
            help=wording.ASK_HELP,
            key="describe heads",
            icon=":material/manage_search:",
            on_click=request_descriptions,
            args=(visit,),
        )
        with buttons:
            costs.say(visit.engine.files, *passes_needed(visit))


def _examples(visit: Visit, described: Described, head: Head, buttons: DeltaGenerator) -> None:
    """The clearest examples; a click puts one on screen."""
    _, clearest = examples(
        described.heads[head], described.texts, described.surface, described.predictions, described.mentions
    )
    if clearest:
        _draw(wording.EXAMPLES, _shown_links(clearest), head)
        return
    fact = resting(described.heads[head])
    if fact is None:
        return
    if not st.session_state.get(RESTS):
        show = partial(st.session_state.update, {RESTS: True})
        buttons.button(wording.SHOW_RESTS, key="show rests", icon=":material/short_text:", on_click=show)
        return
    _draw(wording.rest_examples(fact, described.heads[head].sight), _shown_rests(visit, described, fact, head), head)


def _draw(caption: str, texts: Sequence[Shown], head: Head) -> None:
    if not texts:
        return
    st.caption(caption)
    marked_texts(
        [text.marked for text in texts],
        key="clearest examples",
        label=f"Texts in which {head_name(*head)} does so most clearly",
        on_pick=lambda index: stories.put_on_screen(texts[index].typed),
    )


def _shown_links(examples: Sequence[HeadExample]) -> tuple[Shown, ...]:
    """Texts with links between words: bold words look at underlined ones."""
    texts = []
    for example in examples:
        words = example.words.shown(example.text)
        says = [f"{words[link.query]} looks at {words[link.key]}" for link in example.links]
        marks = {link.query: BOLD for link in example.links} | {link.key: LINED for link in example.links}
        texts.append(_marked(example.text, example.text, example.words, marks, ", ".join(says)))
    return _distinct(texts)


@in_its_place
def _shown_rests(visit: Visit, described: Described, fact: ShareFact, head: Head) -> tuple[Shown, ...]:
    """The texts in which a head rests most clearly, after a pass over them; none if the pass is stopped.

    Bold words give most of their attention to the resting target, underlined ones least.

    Raises: AnalysisError of any stage.
    """
    key = (visit.engine, visit.settings, described.texts, fact.target, head)

    def look(report: Report) -> tuple[Shown, ...]:
        positions = telling_texts(fact.target, head, described.surface, described.first_token)
        return _distinct([_resting_text(visit, described, fact, head, position, report) for position in positions])

    return memory().get_or_put("rests", key, lambda: with_progress(("rests", *key), look)) or ()


def _resting_text(
    visit: Visit, described: Described, fact: ShareFact, head: Head, position: int, report: Report
) -> Shown | None:
    text, query_text = described.whole[position], described.texts[position]
    words = (
        words_of(query_text) if described.predictions is None else described.predictions[position].dependencies.words
    )
    text_attention, _ = visit.inference.look(visit.engine, text, visit.settings, report=report)
    resting_words = rests(fact.target, head, text_attention, query_text, words)
    if resting_words is None:
        return None
    labels = words.shown(query_text)
    marks = dict.fromkeys(resting_words.most, BOLD) | dict.fromkeys(resting_words.least, LINED)
    says = [
        wording.gives(labels[word], fact, float(resting_words.shares[word]))
        for word in (*resting_words.most, *resting_words.least)
    ]
    return _marked(text, query_text, words, marks, ", ".join(says))


def _marked(text: Text, query_text: Text, words: Words, marks: Mapping[int, Mark], says: str) -> Shown | None:
    """A text split into marked words and the parts between them; None if it cannot be typed in one line."""
    try:
        typed = write_typed([text])
    except AnalysisError:
        return None
    parts: list[tuple[str, Mark]] = []
    for side, segment in enumerate(query_text.segments):
        cursor = 0
        for word in sorted(word for word in marks if words.segments[word] == side):
            start, end = words.spans[word].tolist()
            parts += [(segment[cursor:start], ""), (segment[start:end], marks[word])]
            cursor = end
        parts += [(segment[cursor:], ""), (wording.BETWEEN_SEGMENTS if side + 1 < len(query_text.segments) else "", "")]
    return Shown(marked=DrawnText(parts=tuple((words, mark) for words, mark in parts if words), says=says), typed=typed)


def _distinct(texts: Sequence[Shown | None]) -> tuple[Shown, ...]:
    return tuple({text.typed: text for text in texts if text is not None}.values())
