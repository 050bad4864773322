"""Texts with mentions, their entities and head words: as files mark them by words or characters, with missing head
words and types added, and split into windows; does not import torch."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, Final, Literal, TypeVar, get_args

import numpy as np
from jaxtyping import Bool

from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError, TextError, panics_caught
from attention_sieve.core.json_values import kind_of
from attention_sieve.core.pauses import pause
from attention_sieve.core.texts.relations import ROOT, Dependencies, dependencies
from attention_sieve.core.texts.text import BREAKS, Text, text_of
from attention_sieve.core.texts.tokens import Words, words_of

MentionType = Literal["pronoun", "proper", "nominal"]
TYPES: Final[tuple[MentionType, ...]] = get_args(MentionType)
WINDOW: Final = 128
"""Maximum length of a window in tokens, special tokens included."""
SMALLEST_WINDOW: Final = 16

Span = tuple[int, int]
"""First and one-past-last, of words or of characters."""
Piece = TypeVar("Piece")


def unwatched(work: Iterable[Piece], n_parts: int) -> Iterable[Piece]:
    """Default for progress reports: returns the work unchanged."""
    return work


@dataclass(frozen=True)
class Mention:
    """A span of words that refers to an entity."""

    start: int
    """First word."""
    end: int
    """One past the last word."""
    head: int
    """Head word."""
    type: MentionType
    entity: str
    """Entity that it refers to; mentions of the same entity in a text corefer."""


@dataclass(frozen=True)
class MentionText:
    """A text of one segment with its mentions; hashable, so that it can be a cache key."""

    name: str
    text: Text
    spans: tuple[Span, ...]
    """Characters of each word."""
    mentions: tuple[Mention, ...]
    """In the order of their head words, which all differ."""
    sentence_ends: tuple[int, ...]
    """One past the last word of each sentence; the text may be split there."""
    is_excerpt: bool = False
    """Whether it is an excerpt of a longer text; excerpts are split only if longer than the checkpoint accepts."""
    cut_from: str | None = None
    """Name of the text of which it is a window; None for a whole text."""

    @property
    def document(self) -> str:
        """Name of its document; texts with the same name belong to the same document."""
        return self.name if self.cut_from is None else self.cut_from

    @property
    def words(self) -> Words:
        """Its words, for a pass."""
        return Words(segments=np.zeros(len(self.spans), int), spans=np.array(self.spans, int).reshape(-1, 2))

    @property
    def shown(self) -> tuple[str, ...]:
        """The words as strings."""
        return tuple(self.text.segments[0][start:end] for start, end in self.spans)

    @cached_property
    def antecedents(self) -> tuple[tuple[int, ...], ...]:
        """For each mention, the indices of the earlier mentions of the same entity."""
        before = defaultdict[str, tuple[int, ...]](tuple)
        earlier = []
        for index, mention in enumerate(self.mentions):
            earlier.append(before[mention.entity])
            before[mention.entity] += (index,)
        return tuple(earlier)

    @property
    def is_antecedent(self) -> Bool[np.ndarray, "mention earlier"]:
        """Whether each mention is an antecedent (last axis) of each mention."""
        _, entity = np.unique([mention.entity for mention in self.mentions], return_inverse=True)
        return np.tril(entity[:, None] == entity, -1)

    @property
    def n_referring_back(self) -> int:
        """Number of mentions with an antecedent; counted without listing the antecedents, which may be very many."""
        return len(self.mentions) - len({mention.entity for mention in self.mentions})


@dataclass(frozen=True, eq=False, kw_only=True)
class Windows:
    """Texts short enough for a pass."""

    texts: tuple[MentionText, ...]
    """Windows with at least one mention that has an antecedent."""
    n_without: int
    """Number of windows without one, which are left out."""
    n_apart: int
    """Number of mentions whose antecedents are all in earlier windows."""


def windows(
    checkpoint: Checkpoint,
    texts: Sequence[MentionText],
    window: int = WINDOW,
    watched: Callable[[Iterable[MentionText], int], Iterable[MentionText]] = unwatched,
) -> Windows:
    """Split texts at sentence ends into windows of at most `window` tokens.

    Excerpts are split only if longer than the checkpoint accepts. A sentence longer than a window is a window of its
    own; if longer than the checkpoint accepts, it is truncated, and its last mentions are ignored. `watched` wraps the
    iteration over the texts, to report progress.
    Source: Clark et al. 2019, section 4.3, who cut documents to 128 tokens and ignore the rest; here it is read too.
    """
    if window < SMALLEST_WINDOW:
        raise AnalysisError(f"A window of {window} tokens is too short. Choose at least {SMALLEST_WINDOW}.")
    tokenizer, parts = checkpoint.tokenizer, list[MentionText]()
    n_special = tokenizer.num_special_tokens_to_add()
    for text in watched(texts, len(texts)):
        limit = checkpoint.max_tokens if text.is_excerpt else min(window, checkpoint.max_tokens)
        ends = list(_window_ends(tokenizer, text, limit - n_special))
        parts += [_part(text, start, end) for start, end in zip([0, *ends], ends)] if len(ends) > 1 else [text]
    with_antecedents = tuple(text for text in parts if text.n_referring_back)
    if not with_antecedents:
        raise AnalysisError(
            f"None of the {sum(len(text.mentions) for text in texts):,} mentions refers back to another one in its "
            "text. Give longer texts or windows, or mark more mentions of the same entity."
        )
    n_before, n_after = (sum(text.n_referring_back for text in group) for group in (texts, with_antecedents))
    return Windows(texts=with_antecedents, n_without=len(parts) - len(with_antecedents), n_apart=n_before - n_after)


def _window_ends(tokenizer: Any, text: MentionText, limit: int) -> Iterator[int]:
    segment = text.text.segments[0]
    if _n_tokens(tokenizer, segment) > limit:
        n_so_far = 0
        for start, end in zip((0, *text.sentence_ends), text.sentence_ends):
            n_tokens = _n_tokens(tokenizer, segment[text.spans[start][0] : text.spans[end - 1][1]])
            if n_so_far and n_so_far + n_tokens > limit:
                yield start
                n_so_far = 0
            n_so_far += n_tokens
    yield len(text.spans)


def _n_tokens(tokenizer: Any, segment: str) -> int:
    pause()
    with panics_caught():
        return len(tokenizer(segment, add_special_tokens=False, split_special_tokens=True, verbose=False)["input_ids"])


def _part(text: MentionText, start: int, end: int) -> MentionText:
    """A range of words as a text of its own, with the mentions inside it."""
    first, last = text.spans[start][0], text.spans[end - 1][1]
    words = None if text.text.words is None else (text.text.words[0][start:end],)
    return replace(
        text,
        name=f"{text.name}, from word {start + 1:,}",
        cut_from=text.document,
        text=Text((text.text.segments[0][first:last],), words),
        spans=tuple((span[0] - first, span[1] - first) for span in text.spans[start:end]),
        mentions=tuple(
            replace(mention, start=mention.start - start, end=mention.end - start, head=mention.head - start)
            for mention in text.mentions
            if start <= mention.start and mention.end <= end
        ),
        sentence_ends=tuple(sentence_end - start for sentence_end in text.sentence_ends if start < sentence_end <= end),
    )


PRONOUNS: Final = frozenset(
    (
        *("i", "me", "my", "mine", "myself", "we", "us", "our", "ours", "ourselves"),
        *("you", "your", "yours", "yourself", "yourselves"),
        *("he", "him", "his", "himself", "she", "her", "hers", "herself", "it", "its", "itself"),
        *("they", "them", "their", "theirs", "themselves", "themself", "one", "oneself"),
        *("who", "whom", "whose"),
    )
)
"""Words with the Penn tags PRP, PRP$ or WP; demonstratives such as "this" are nominal."""

ATTACHED: Final = ("det", "predet", "poss", "case", "cc", "punct")
"""Relations of words that are never head words, even if misparsed."""
MAX_MENTIONS: Final = 3_000
"""Maximum per text, because pairs are compared; long annotated documents usually have some hundreds."""
_WORD: Final = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
_END_OF_SENTENCE: Final = frozenset(".!?…")
_CLOSING: Final = frozenset("\"'”’)]")


@dataclass(frozen=True)
class Marked:
    """A mention as marked in a file; head word and type are optional."""

    start: int
    end: int
    entity: str
    head: int | None = None
    type: MentionType | None = None


@dataclass(frozen=True, eq=False)
class MarkedText:
    """A text as marked in a file."""

    name: str
    text: Text
    spans: tuple[Span, ...]
    mentions: tuple[Marked, ...]
    sentence_ends: tuple[int, ...]
    is_excerpt: bool = False


def type_named(value: Any, where: str) -> MentionType:
    """One of TYPES.

    Raises: TextError that begins with `where`.
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
    """Build a text from given words and mentions marked by words.

    Args:
        words: as parsed from JSON.
        where: location of the text in the file, for error messages.
        sentence_ends: None to guess them.

    Raises: TextError.
    """
    for position, word in enumerate(words, start=1):
        if not isinstance(word, str):
            raise TextError(f"{where}: word {position:,} is {kind_of(word)}. Write a string.")
    clean_words = tuple(
        text_of([word], f"{where}, word {position:,}").segments[0] for position, word in enumerate(words, start=1)
    )
    segment = text_of([" ".join(clean_words)], where).segments[0]
    _check_inside(mentions, len(clean_words), "words", where)
    text = Text((segment,), (clean_words,))
    spans = tuple((start, end) for start, end in words_of(text).spans.tolist())
    ends = sentence_ends or guessed_sentence_ends(segment, spans)
    return MarkedText(name, text, spans, tuple(mentions), ends, is_excerpt)


def marked_characters(
    name: str, text: str, mentions: Sequence[Marked], where: str, *, is_excerpt: bool = False
) -> MarkedText:
    """Build a text from a string and mentions marked by characters; words are split at the borders of mentions.

    Raises: TextError that begins with `where`.
    """
    _check_inside(mentions, len(text), "characters", where)
    line = text.translate(BREAKS)
    segment = text_of([line], where).segments[0]
    shift = line.index(segment)
    spans = _words_around(
        segment, sorted({end - shift for mention in mentions for end in (mention.start, mention.end)})
    )
    starts, word_ends = ([span[side] + shift for span in spans] for side in (0, 1))
    on_words = []
    for mention in mentions:
        first, last = bisect_left(starts, mention.start), bisect_right(word_ends, mention.end)
        if first >= last:
            raise TextError(
                f"{where}: the mention [{mention.start}, {mention.end}] is {text[mention.start : mention.end]!r}, "
                "which holds no word. Correct its characters."
            )
        head = None if mention.head is None else bisect_right(starts, mention.head) - 1
        on_words.append(replace(mention, start=first, end=last, head=head))
    ends = guessed_sentence_ends(segment, spans)
    return MarkedText(name, Text((segment,)), spans, tuple(on_words), ends, is_excerpt)


def _check_inside(mentions: Sequence[Marked], n_units: int, units: str, where: str) -> None:
    if len(mentions) > MAX_MENTIONS:
        raise TextError(
            f"{where} has {len(mentions):,} mentions and at most {MAX_MENTIONS:,} of a text are read. Split the text."
        )
    for mention in mentions:
        if not mention.start < mention.end <= n_units:
            raise TextError(
                f"{where}: a mention is [{mention.start}, {mention.end}] and the text has {n_units:,} {units}. The "
                "first is 0, and the end is one past the last."
            )
        if mention.head is not None and not mention.start <= mention.head < mention.end:
            raise TextError(
                f"{where}: the mention [{mention.start}, {mention.end}] has its head word at {mention.head}, outside "
                "of it. Correct one of them."
            )


def _words_around(segment: str, borders: Sequence[int]) -> tuple[Span, ...]:
    """Words and punctuation of a text, split at the sorted borders of mentions."""
    words: list[Span] = []
    for match in _WORD.finditer(segment):
        inner = borders[bisect_right(borders, match.start()) : bisect_left(borders, match.end())]
        words += zip([match.start(), *inner], [*inner, match.end()])
    return tuple(words)


def guessed_sentence_ends(text: str, spans: Sequence[Span]) -> tuple[int, ...]:
    """One past the last word of each sentence.

    A sentence ends with . ! ? or … and closing quotes or brackets after it, if a space and no lower-case letter follow.
    """
    ends = []
    last = 0  # last word that is not a closing quote or bracket
    for position, ((_, end), (start, _)) in enumerate(pairwise(spans), start=1):
        if text[slice(*spans[position - 1])] not in _CLOSING:
            last = position - 1
        if text[slice(*spans[last])] in _END_OF_SENTENCE and end < start and not text[start].islower():
            ends.append(position)
    return (*ends, len(spans))


def with_heads(
    texts: Sequence[MarkedText], watched: Callable[[Iterable[Dependencies], int], Iterable[Dependencies]] = unwatched
) -> tuple[MentionText, ...]:
    """Complete every mention with a head word and a type.

    Values given in the file are kept. Otherwise the head word is the first word of the mention whose syntactic head, by
    spaCy, is outside it and whose relation to it is none of ATTACHED, or the mention's last word where there is none.
    The type is derived from the head word: a PRONOUN, else proper where it has a capital inside a sentence, there or
    anywhere in the text, else nominal. On the mentions of UD GUM that refer back this rule agrees with their gold tags
    in 97 of 100 cases. What the parser reads as one word, such as "U.S.", is one word where it is the head word of a
    mention and none begins or ends in it. Of several mentions with the same head word, the longest is kept. `watched`
    wraps the iteration over the parsed texts, to report progress.

    Raises: AnalysisError if a text has to be parsed and no parser is installed.
    """
    unknown = [
        text
        for text in texts
        if any(mention.head is None and mention.end - mention.start > 1 for mention in text.mentions)
    ]
    trees = list(watched(dependencies([text.text for text in unknown]), len(unknown)))
    parsed = dict(zip(map(id, unknown), trees))
    return tuple(_completed(*_with_whole_head_words(text, parsed.get(id(text)))) for text in texts)


def _with_whole_head_words(text: MarkedText, tree: Dependencies | None) -> tuple[MarkedText, Dependencies | None]:
    if tree is None:
        return text, tree
    borders = {border for mention in text.mentions for border in (mention.start, mention.end)}
    head_word, is_first = _HeadWords(text, tree), np.ones(len(text.spans) + 1, bool)
    for mention in text.mentions:
        if mention.head is None and mention.end - mention.start > 1:
            word = head_word.of(mention)
            end, word = head_word.end_of(word), word + 1
            while word not in borders and is_first[word] and text.spans[word][1] <= end:
                is_first[word], word = False, word + 1
    number, firsts = (np.cumsum(is_first) - 1).tolist(), np.flatnonzero(is_first).tolist()
    joined = replace(
        text,
        spans=tuple((text.spans[first][0], text.spans[after - 1][1]) for first, after in pairwise(firsts)),
        mentions=tuple(
            replace(
                mention,
                start=number[mention.start],
                end=number[mention.end],
                head=mention.head and number[mention.head],
            )
            for mention in text.mentions
        ),
        sentence_ends=tuple(number[end] for end in text.sentence_ends if is_first[end]),
    )
    return joined, tree


def _completed(text: MarkedText, tree: Dependencies | None) -> MentionText:
    shown = [text.text.segments[0][start:end] for start, end in text.spans]
    begins = {0, *text.sentence_ends}
    capitalised = {word for position, word in enumerate(shown) if position not in begins and word[0].isupper()}
    head_word = _HeadWords(text, tree)
    by_head: dict[int, Mention] = {}
    for marked in sorted(text.mentions, key=lambda mention: mention.start - mention.end):
        head = head_word.of(marked) if marked.head is None else marked.head
        kind = marked.type or _type_of(shown[head], capitalised)
        by_head.setdefault(head, Mention(marked.start, marked.end, head, kind, marked.entity))
    is_inside = _inside(text.mentions, len(text.spans))
    return MentionText(
        name=text.name,
        text=text.text,
        spans=text.spans,
        mentions=tuple(by_head[head] for head in sorted(by_head)),
        sentence_ends=tuple(end for end in text.sentence_ends if not is_inside[end]),
        is_excerpt=text.is_excerpt,
    )


def _inside(mentions: Sequence[Marked], n_words: int) -> Bool[np.ndarray, " border"]:
    """Whether each border before a word, or after the last one, lies inside one or more mentions."""
    changes = np.zeros(n_words + 2, int)
    np.add.at(changes, [mention.start + 1 for mention in mentions], 1)
    np.add.at(changes, [mention.end for mention in mentions], -1)
    return np.cumsum(changes)[:-1] > 0


class _HeadWords:
    def __init__(self, text: MarkedText, tree: Dependencies | None) -> None:
        self._text, self._tree = text, tree
        self._starts = [start for start, _ in text.spans]
        self._is_free = np.array(
            [] if tree is None else [relation not in ATTACHED for relation in tree.relations], bool
        )

    def of(self, mention: Marked) -> int:
        """The first word of a mention whose head is outside it, except words that are ATTACHED; else its last word."""
        if self._tree is None:
            return mention.end - 1
        first, last = self._text.spans[mention.start][0], self._text.spans[mention.end - 1][1]
        starts = self._tree.words.spans[:, 0]
        within = np.flatnonzero((starts >= first) & (starts < last))
        heads = self._tree.heads[within]
        has_outer_head = (heads == ROOT) | (starts[heads] < first) | (starts[heads] >= last)
        candidates = within[has_outer_head & self._is_free[within]]
        start = starts[candidates[0]] if len(candidates) else self._parsed_at(self._starts[mention.end - 1])[0]
        return int(np.clip(bisect_right(self._starts, start) - 1, mention.start, mention.end - 1))

    def end_of(self, word: int) -> int:
        """One past the last character of the word that the parser reads where a word begins."""
        return self._parsed_at(self._starts[word])[1]

    def _parsed_at(self, character: int) -> Span:
        if self._tree is None:
            return character, character
        spans = self._tree.words.spans
        start, end = spans[max(0, int(np.searchsorted(spans[:, 0], character, side="right")) - 1)].tolist()
        return start, end


def _type_of(word: str, capitalised: set[str]) -> MentionType:
    if word.lower() in PRONOUNS:
        return "pronoun"
    return "proper" if word in capitalised else "nominal"
