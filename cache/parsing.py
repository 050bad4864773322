"""Heads as parsers as a question: which word each word of a text attends to most."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cache.keys import text_ingredients
from cache.packing import Arrays
from cache.questions import Answers, Question
from core.checkpoints import Checkpoint
from core.parses import Dependencies
from core.parsing_heads import TextPredictions, WordPredictions
from core.passes import PassSettings, PassText
from core.texts import Text
from core.words import FromWord, Words


@dataclass(frozen=True)
class ParsedText:
    """A text, and the words that heads are predicted for."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in core.words.Words, of what the queries of the attention read (core.analysis.queries_text)."""
    from_word: FromWord = "mean"

    @classmethod
    def of(cls, text: Text, words: Words, from_word: FromWord = "mean") -> "ParsedText":
        """A text with words that a parser found, or its file brought."""
        spans = tuple((start, end) for start, end in words.spans.tolist())
        return cls(text, tuple(words.segments.tolist()), spans, from_word)

    @property
    def words(self) -> Words:
        """The words as arrays."""
        return Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))


def _answer(
    checkpoint: Checkpoint, items: Sequence[ParsedText], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Arrays]]]:
    from core.parsing_observer import predictions

    for from_word in dict.fromkeys(item.from_word for item in items):
        places = [place for place, item in enumerate(items) if item.from_word == from_word]
        texts, words = [prepared[place] for place in places], [items[place].words for place in places]
        for batch in predictions(checkpoint, texts, words, settings, from_word=from_word):
            yield [(places[row], _packed(found)) for row, found in batch]


def _packed(found: WordPredictions) -> Arrays:
    """Places of words in the fewest bytes, mostly two."""
    small = np.int16 if len(found.has_tokens) <= np.iinfo(np.int16).max else np.int32
    return {"predicted": found.predicted.astype(small), "has_tokens": found.has_tokens}


def _ingredients(item: ParsedText) -> Mapping[str, object]:
    """What predictions depend on: of the tree only its words. And what is kept: once it was "predicted" alone."""
    text = text_ingredients(Text(item.text.segments, item.text.words))
    kept = ("predicted", "has_tokens")
    return {"text": text, "segments": item.segments, "spans": item.spans, "from word": item.from_word, "kept": kept}


PREDICTIONS: Final[Question[ParsedText]] = Question(
    kind="predictions", text_of=lambda item: item.text, ingredients=_ingredients, answer=_answer
)
"""The predictions of every head for each of many texts."""


def found_predictions(answers: Answers, dependencies: Sequence[Dependencies]) -> list[TextPredictions]:
    """The answers of many texts as `core.parsing_heads.relation_accuracies` takes them, in order.

    Args:
        answers: to PREDICTIONS.
        dependencies: of all texts that were asked about; those left out as too long are skipped.
    """
    return [
        TextPredictions(dependencies=dependencies[place], predicted=found["predicted"], has_tokens=found["has_tokens"])
        for place, found in zip(answers.positions, answers.results, strict=True)
    ]
