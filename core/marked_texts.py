"""Texts as files mark them: mentions by words or characters, with head words and types where a file leaves them out."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final

import numpy as np

from core.errors import TextError
from core.json_texts import kind_of
from core.mentions import TYPES, Mention, MentionText, MentionType, Span, unwatched
from core.parses import ROOT, Dependencies, dependencies
from core.texts import Text, text_of
from core.words import words_of

PRONOUNS: Final = frozenset(
    (
        *("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"),
        *("you", "your", "yours", "yourself", "yourselves"),
        *("he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself"),
        *("they", "them", "their", "theirs", "themselves", "themself", "one", "oneself"),
        *("who", "whom", "whose"),
    )
)
"""What Penn tags as PRP, PRP$ or WP: demonstratives such as "this" are nominal."""

ATTACHED: Final = ("det", "predet", "poss", "case", "cc", "punct")
"""Relations of words that no mention is about, wherever a parser that errs attaches them."""
MAX_MENTIONS: Final = 3_000
"""Of a text: pairs of them are compared. The longest documents that are usually marked have some hundreds."""
_WORD: Final = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
_END_OF_SENTENCE: Final = frozenset(".!?…")
_CLOSING: Final = frozenset("\"'”’)]")
_BREAKS: Final = str.maketrans("\r\n\t", "   ")


@dataclass(frozen=True)
class Marked:
    """A mention as a file marks it, which may leave its head word and its type to be found."""

    start: int
    end: int
    entity: str
    head: int | None = None
    type: MentionType | None = None


@dataclass(frozen=True, eq=False)
class MarkedText:
    """A text as a file brings it."""

    name: str
    text: Text
    spans: tuple[Span, ...]
    mentions: tuple[Marked, ...]
    sentence_ends: tuple[int, ...]
    is_excerpt: bool = False


def type_named(value: Any, where: str) -> MentionType:
    """One of TYPES.

    Raises: TextError that begins with where it stands.
    """
    if value not in TYPES:
        raise TextError(f"{where}: the type of a mention is {value!r}. Write one of: {', '.join(TYPES)}.")
    return value


def marked_words(
    name: str,
    words: Sequence[Any],
    mentions: Sequence[Marked],
    where: str,
    *,
    sentence_ends: tuple[int, ...] | None = None,
    is_excerpt: bool = False,
) -> MarkedText:
    """A text whose words, and mentions by words, a file gives.

    Args:
        name: of the text.
        words: as JSON holds them.
        mentions: by its words.
        where: the text stands in the file, for messages.
        sentence_ends: None where they are to be guessed.
        is_excerpt: see MentionText.

    Raises: TextError.
    """
    for position, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise TextError(f"{where}: word {position:,} is {kind_of(word)}. Write a string.")
    whole = tuple(text_of([word], f"{where}, word {place:,}").segments[0] for place, word in enumerate(words, start=1))
    segment = text_of([" ".join(whole)], where).segments[0]
    _check_inside(mentions, len(whole), "words", where)
    text = Text((segment,), (whole,))
    spans = tuple((start, end) for start, end in words_of(text).spans.tolist())
    ends = sentence_ends or guessed_sentence_ends(segment, spans)
    return MarkedText(name, text, spans, tuple(mentions), ends, is_excerpt)


def marked_characters(
    name: str, given: str, mentions: Sequence[Marked], where: str, *, is_excerpt: bool = False
) -> MarkedText:
    """A running text with mentions by characters; its words are made so that none lies half inside a mention.

    Args:
        name: of the text.
        given: the text as the file has it.
        mentions: by its characters.
        where: the text stands in the file, for messages.
        is_excerpt: see MentionText.

    Raises: TextError.
    """
    _check_inside(mentions, len(given), "characters", where)
    line = given.translate(_BREAKS)
    segment = text_of([line], where).segments[0]
    shift = line.index(segment)
    spans = _words_around(segment, sorted({end - shift for one in mentions for end in (one.start, one.end)}))
    starts, word_ends = ([span[side] + shift for span in spans] for side in (0, 1))
    on_words = []
    for one in mentions:
        first, last = bisect_left(starts, one.start), bisect_right(word_ends, one.end)
        if first >= last:
            raise TextError(
                f"{where}: the mention [{one.start}, {one.end}] is {given[one.start : one.end]!r}, which holds no "
                "word. Correct its characters."
            )
        on_words.append(replace(one, start=first, end=last))
    ends = guessed_sentence_ends(segment, spans)
    return MarkedText(name, Text((segment,)), spans, tuple(on_words), ends, is_excerpt)


def _check_inside(mentions: Sequence[Marked], n_units: int, units: str, where: str) -> None:
    if len(mentions) > MAX_MENTIONS:
        raise TextError(
            f"{where} has {len(mentions):,} mentions and at most {MAX_MENTIONS:,} of a text are read. Split the text."
        )
    for one in mentions:
        if not one.start < one.end <= n_units:
            raise TextError(
                f"{where}: a mention is [{one.start}, {one.end}] and the text has {n_units:,} {units}. The first is 0, "
                "and the end is one past the last."
            )


def _words_around(segment: str, borders: Sequence[int]) -> tuple[Span, ...]:
    """Words and signs of running text, cut at borders of mentions, which are in order."""
    found: list[Span] = []
    for match in _WORD.finditer(segment):
        inner = borders[bisect_right(borders, match.start()) : bisect_left(borders, match.end())]
        found += zip([match.start(), *inner], [*inner, match.end()])
    return tuple(found)


def guessed_sentence_ends(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """One past the last word of each sentence: after . ! ? and what they close, before a blank and no small letter."""
    ends = []
    for place, ((_, end), (start, _)) in enumerate(pairwise(spans), start=1):
        last = place - 1
        while last > 0 and text[spans[last][0] : spans[last][1]] in _CLOSING:
            last -= 1
        if text[slice(*spans[last])] in _END_OF_SENTENCE and end < start and not text[start].islower():
            ends.append(place)
    return (*ends, len(spans))


def with_heads(
    texts: Sequence[MarkedText], watched: Callable[[Iterable[Dependencies], int], Iterable[Dependencies]] = unwatched
) -> tuple[MentionText, ...]:
    """Texts with a head word and a type for every mention.

    What the file says stands. Otherwise the head word is the first word of the mention whose syntactic head, by spaCy,
    is outside it and whose relation to it is none of ATTACHED, or the mention's last word where there is none. The type
    is read off the head word: a PRONOUN, else proper where it has a capital inside a sentence, there or anywhere in the
    text, else nominal. On the mentions of UD GUM that refer back this rule agrees with their gold tags in 97 of 100
    cases. Of several mentions with one head word the longest stays, as in `gum_antecedent_windows`. What is parsed, and
    how many texts that will be, is handed to `watched`, which hands it on.

    Raises: AnalysisError where a text has to be parsed and no parser is installed.
    """
    unknown = [text for text in texts if any(_needs_parse(mention) for mention in text.mentions)]
    trees = list(watched(dependencies([text.text for text in unknown]), len(unknown)))
    parsed = dict(zip(map(id, unknown), trees))
    return tuple(_completed(text, parsed.get(id(text))) for text in texts)


def _needs_parse(mention: Marked) -> bool:
    return mention.head is None and mention.end - mention.start > 1


def _completed(text: MarkedText, tree: Dependencies | None) -> MentionText:
    shown = [text.text.segments[0][start:end] for start, end in text.spans]
    begins = {0, *text.sentence_ends}
    capital = {word for place, word in enumerate(shown) if place not in begins and word[0].isupper()}
    by_head: dict[int, Mention] = {}
    for marked in sorted(text.mentions, key=lambda mention: mention.start - mention.end):
        head = marked.head
        if head is None:
            head = marked.end - 1 if tree is None else _head_word(text, marked, tree)
        kind = marked.type or _type_of(shown[head], capital)
        by_head.setdefault(head, Mention(marked.start, marked.end, head, kind, marked.entity))
    inner = {place for one in text.mentions for place in range(one.start + 1, one.end)}
    return MentionText(
        name=text.name,
        text=text.text,
        spans=text.spans,
        mentions=tuple(by_head[head] for head in sorted(by_head)),
        sentence_ends=tuple(end for end in text.sentence_ends if end not in inner),
        is_excerpt=text.is_excerpt,
    )


def _head_word(text: MarkedText, mention: Marked, tree: Dependencies) -> int:
    """The first word of a mention whose head is outside it, but for ATTACHED; its last word where there is none."""
    first, last = text.spans[mention.start][0], text.spans[mention.end - 1][1]
    starts = tree.words.spans[:, 0]
    for place in np.flatnonzero((starts >= first) & (starts < last)):
        head = tree.heads[place]
        is_led = head == ROOT or not first <= starts[head] < last
        if is_led and tree.relations[place] not in ATTACHED:
            own = np.searchsorted([start for start, _ in text.spans], starts[place], side="right") - 1
            return int(np.clip(own, mention.start, mention.end - 1))
    return mention.end - 1


def _type_of(word: str, capital: set[str]) -> MentionType:
    if word.lower() in PRONOUNS:
        return "pronoun"
    return "proper" if word in capital else "nominal"
