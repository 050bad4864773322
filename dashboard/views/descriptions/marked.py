"""Texts of the corpus with marked words that show the behaviour of a head."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from attention_sieve.cache.serving.requests import Report
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions.examples import HeadExample
from attention_sieve.core.descriptions.facts import ShareFact
from attention_sieve.core.descriptions.rests import rests, telling_texts
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.text import Text, write_typed
from attention_sieve.core.texts.tokens import Words, words_of
from attention_sieve.dashboard.components.marked_texts import DrawnText, Mark
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.progress import in_its_place, with_progress
from attention_sieve.dashboard.views.descriptions import wording
from attention_sieve.dashboard.views.descriptions.known import Described
from attention_sieve.dashboard.views.frame import Visit

BOLD: Final[Mark] = "strong"
LINED: Final[Mark] = "lined"


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """A text with marks, and as typed text."""

    marked: DrawnText
    typed: str


def shown_links(examples: Sequence[HeadExample]) -> tuple[Shown, ...]:
    """Texts with links between words: bold words look at underlined ones."""
    texts = []
    for example in examples:
        words = example.words.shown(example.text)
        says = [wording.looks_at(words[link.query], words[link.key]) for link in example.links]
        marks = {link.query: BOLD for link in example.links} | {link.key: LINED for link in example.links}
        texts.append(_marked(example.text, example.text, example.words, marks, ", ".join(says)))
    return _distinct(texts)


@in_its_place
def shown_rests(visit: Visit, described: Described, fact: ShareFact, head: Head) -> tuple[Shown, ...]:
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
    """Texts without None and duplicates."""
    return tuple({text.typed: text for text in texts if text is not None}.values())
