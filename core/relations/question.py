"""Questions: which word each word of a text attends to most, with and without the text's trees."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from core.attention.settings import ONE_STACK, PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.passes.arrays import Arrays, array_to_text, text_to_array
from core.passes.prepare import trees
from core.passes.question import Question, text_alone, text_itself
from core.passes.texts import PassText
from core.relations.accuracy import TextPredictions, WordPredictions
from core.texts.relations import Dependencies, parser_name
from core.texts.text import Text, text_fields
from core.texts.words import FromWord, Words

KINDS: Final = (*ONE_STACK, "encoder", "decoder")
WHY_NOT: Final = (
    "Cross-attention is between two texts, but a parse tree is of one. Choose encoder or decoder attention."
)


@dataclass(frozen=True)
class ParsedText:
    """A text, and the words for which a syntactic head is predicted."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in core.texts.words.Words, of what the queries of the attention read (core.passes.prepare.queries_text)."""

    @classmethod
    def of(cls, text: Text, words: Words) -> "ParsedText":
        """A text with the words of its parse, or of its file."""
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
        """Only the words of a tree matter. The stored arrays are named because older entries had only "predicted"."""
        text, stored = text_fields(Text(item.text.segments, item.text.words)), ("predicted", "has_tokens")
        return {"text": text, "segments": item.segments, "spans": item.spans, "from word": from_word, "kept": stored}

    return Question(
        name="predictions",
        text_of=lambda item: item.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: WordPredictions(predicted=arrays["predicted"], has_tokens=arrays["has_tokens"]),
        kinds=KINDS,
        why_not=WHY_NOT,
    )


def _pack(result: WordPredictions) -> Arrays:
    """Indices of words in the fewest bytes, mostly two."""
    small = np.int16 if len(result.has_tokens) <= np.iinfo(np.int16).max else np.int32
    return {"predicted": result.predicted.astype(small), "has_tokens": result.has_tokens}


def _compute_parsed(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextPredictions]]]:
    from core.relations.observer import predictions

    parsed = [
        tree
        for segments_and_trees in trees(prepared, texts)
        if segments_and_trees is not None
        for tree in segments_and_trees[1:]
    ]
    for batch in predictions(checkpoint, prepared, [tree.words for tree in parsed], settings):
        yield [(index, TextPredictions.of(parsed[index], result)) for index, result in batch]


def _pack_parsed(result: TextPredictions) -> Arrays:
    tree = result.dependencies
    return {
        **_pack(result),
        "segments": tree.words.segments.astype(np.int8),
        "spans": tree.words.spans.astype(np.int32),
        "heads": tree.heads.astype(np.int32),
        "relations": text_to_array(json.dumps(tree.relations)),
    }


def _unpack_parsed(arrays: Arrays) -> TextPredictions:
    words = Words(segments=arrays["segments"], spans=arrays["spans"])
    relations = tuple(json.loads(array_to_text(arrays["relations"])))
    tree = Dependencies(words=words, heads=arrays["heads"], relations=relations)
    return TextPredictions(dependencies=tree, predicted=arrays["predicted"], has_tokens=arrays["has_tokens"])


PARSED_PREDICTIONS: Final[Question[Text, TextPredictions]] = Question(
    name="predictions with trees",
    text_of=text_itself,
    depends_on=lambda text: {**text_alone(text), "parser": parser_name()},
    compute=_compute_parsed,
    pack=_pack_parsed,
    unpack=_unpack_parsed,
    kinds=KINDS,
    why_not=WHY_NOT,
)
"""The predictions of every head for the words of a tree, and the tree, so that neither has to be computed again; the
document of a text is not part of the answer."""
