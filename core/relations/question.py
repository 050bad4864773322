"""Heads as parsers as a question: which word each word of a text attends to most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from core.attention.settings import ONE_STACK, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.arrays import Arrays
from core.passes.question import Question
from core.passes.texts import PassText
from core.relations.accuracy import WordPredictions
from core.texts.text import Text, text_fields
from core.texts.words import FromWord, Words


@dataclass(frozen=True)
class ParsedText:
    """A text, and the words for which a syntactic head is predicted."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in core.texts.words.Words, of what the queries of the attention read (core.passes.prepare.queries_text)."""

    @classmethod
    def of(cls, text: Text, words: Words) -> "ParsedText":
        """A text with the words that a parser found, or that its file has."""
        spans = tuple((start, end) for start, end in words.spans.tolist())
        return cls(text, tuple(words.segments.tolist()), spans)

    @property
    def words(self) -> Words:
        """The words as arrays."""
        return Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))


@cache
def prediction_question(from_word: FromWord) -> Question[ParsedText, WordPredictions]:
    """The predictions of every head for each word of each text."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[ParsedText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, WordPredictions]]]:
        from core.relations.observer import predictions

        return predictions(checkpoint, prepared, [item.words for item in items], settings, from_word=from_word)

    def depends_on(item: ParsedText) -> Mapping[str, object]:
        """Of a tree only the words count. What is stored is named, since it was once "predicted" alone."""
        text, stored = text_fields(Text(item.text.segments, item.text.words)), ("predicted", "has_tokens")
        return {"text": text, "segments": item.segments, "spans": item.spans, "from word": from_word, "kept": stored}

    return Question(
        name="predictions",
        text_of=lambda item: item.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: WordPredictions(predicted=arrays["predicted"], has_tokens=arrays["has_tokens"]),
        kinds=(*ONE_STACK, "encoder", "decoder"),
        why_not="Cross-attention is between two texts, but a parse tree is of one. Choose encoder or decoder "
        "attention.",
    )


def _pack(result: WordPredictions) -> Arrays:
    """Indices of words in the fewest bytes, mostly two."""
    small = np.int16 if len(result.has_tokens) <= np.iinfo(np.int16).max else np.int32
    return {"predicted": result.predicted.astype(small), "has_tokens": result.has_tokens}
