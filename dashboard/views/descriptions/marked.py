"""Texts of the corpus with the words marked that show what a head does."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from cache.serving.requests import Report
from cache.store.recent import Recent
from core.attention.settings import Head
from core.descriptions.examples import Example
from core.descriptions.facts import ShareFact
from core.descriptions.rests import rests, telling_texts
from core.errors import AnalysisError
from core.texts.text import Text, write_typed
from core.texts.words import Words, words_of
from dashboard.components.marked_texts import Mark, MarkedText
from dashboard.progress import in_its_place, with_progress
from dashboard.views.descriptions import wording
from dashboard.views.descriptions.known import Described
from dashboard.views.frame import Visit

BOLD: Final[Mark] = "strong"
LINED: Final[Mark] = "lined"
HELD: Final = 64
"""Heads whose texts stay in memory."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """A text as it is drawn, and as a reader would type it."""

    marked: MarkedText
    typed: str


_recent: Final[Recent[Hashable, tuple[Shown, ...]]] = Recent(HELD)


def shown_links(examples: Sequence[Example]) -> tuple[Shown, ...]:
    """Texts in which words look at others; bold words look at underlined ones."""
    shown = []
    for example in examples:
        words = example.words.shown(example.text)
        says = [wording.looks_at(words[link.query], words[link.key]) for link in example.links]
        marks = {link.query: BOLD for link in example.links} | {link.key: LINED for link in example.links}
        shown.append(_shown(example.text, example.text, example.words, marks, ", ".join(says)))
    return _once(shown)


@in_its_place
def shown_rests(visit: Visit, described: Described, fact: ShareFact, head: Head) -> tuple[Shown, ...]:
    """Texts in which a head gives most to what it rests on, after a pass over these few; none where that is stopped.

    Bold words give it most, underlined ones least.

    Raises: AnalysisError of any stage.
    """
    key = (visit.engine, visit.settings, described.texts, fact.target, head)
    if (found := _recent.get(key)) is not None:
        return found
    places = telling_texts(fact.target, head, described.surface, described.first_token)

    def look(report: Report) -> tuple[Shown, ...]:
        return _once([_rest(visit, described, fact, head, place, report) for place in places])

    found = with_progress(("rests", *key), look)
    if found is None:
        return ()
    _recent.put(key, found)
    return found


def _rest(visit: Visit, described: Described, fact: ShareFact, head: Head, place: int, report: Report) -> Shown | None:
    whole, read = described.whole[place], described.texts[place]
    words = words_of(read) if described.predictions is None else described.predictions[place].dependencies.words
    looked, _ = visit.inference.look(visit.engine, whole, visit.settings, report=report)
    found = rests(fact.target, head, looked, read, words)
    if found is None:
        return None
    named = words.shown(read)
    marks = dict.fromkeys(found.most, BOLD) | dict.fromkeys(found.least, LINED)
    says = [wording.gives(named[word], fact, float(found.shares[word])) for word in (*found.most, *found.least)]
    return _shown(whole, read, words, marks, ", ".join(says))


def _shown(whole: Text, read: Text, words: Words, marks: Mapping[int, Mark], says: str) -> Shown | None:
    """A text cut into its marked words and what stands between them; None for one that no line can hold."""
    try:
        typed = write_typed([whole])
    except AnalysisError:
        return None
    parts: list[tuple[str, Mark]] = []
    for side, segment in enumerate(read.segments):
        at = 0
        for place in sorted(place for place in marks if words.segments[place] == side):
            start, end = words.spans[place].tolist()
            parts += [(segment[at:start], ""), (segment[start:end], marks[place])]
            at = end
        parts += [(segment[at:], ""), (wording.BETWEEN_SEGMENTS if side + 1 < len(read.segments) else "", "")]
    return Shown(
        marked=MarkedText(parts=tuple((words, mark) for words, mark in parts if words), says=says), typed=typed
    )


def _once(shown: Sequence[Shown | None]) -> tuple[Shown, ...]:
    """Of texts that are typed alike one."""
    return tuple({each.typed: each for each in shown if each is not None}.values())
