"""Questions: which word each word of a text attends to most, with and without the text's trees."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cache
from typing import Final

import numpy as np
from jaxtyping import Int

from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.arrays import Arrays, array_to_text, text_to_array
from attention_sieve.core.passes.prepare import trees
from attention_sieve.core.passes.question import Question, text_alone, text_itself
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.relations.accuracy import TextPredictions, WordPredictions
from attention_sieve.core.texts.relations import Dependencies, parser_name
from attention_sieve.core.texts.text import Text, text_fields
from attention_sieve.core.texts.words import FromWord, Words

KINDS: Final = (*ONE_STACK, "encoder", "decoder")
WHY_NOT: Final = (
    "Cross-attention is between two texts, but a parse tree is of one. Choose encoder or decoder attention."
)
STORED: Final = tuple(field.name for field in fields(WordPredictions))
"""Arrays of an answer, which are part of its key."""


@dataclass(frozen=True)
class ParsedText:
    """A text, and the words for which a syntactic head is predicted, with the head that each has."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in attention_sieve.core.texts.words.Words, of what the queries of the attention read
    (attention_sieve.core.passes.prepare.queries_text)."""
    head_of_word: tuple[int, ...]
    """As in attention_sieve.core.texts.relations.Dependencies.heads."""

    @classmethod
    def of(cls, text: Text, tree: Dependencies) -> "ParsedText":
        """A text with the words and heads of its parse, or of its file."""
        spans = tuple((start, end) for start, end in tree.words.spans.tolist())
        return cls(text, tuple(tree.words.segments.tolist()), spans, tuple(tree.heads.tolist()))

    @property
    def words(self) -> Words:
        """The words as arrays."""
        return Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))

    @property
    def heads(self) -> Int[np.ndarray, " word"]:
        """The syntactic heads as an array."""
        return np.array(self.head_of_word, int)


@cache
def prediction_question(from_word: FromWord) -> Question[ParsedText, WordPredictions]:
    """The predictions of every head for each word of each text."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[ParsedText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, WordPredictions]]]:
        from attention_sieve.core.relations.observer import predictions

        return predictions(checkpoint, prepared, items, settings, from_word=from_word)

    def depends_on(item: ParsedText) -> Mapping[str, object]:
        """Words and heads; the names of relations do not matter. The stored arrays are named because older entries had
        fewer."""
        text = text_fields(Text(item.text.segments, item.text.words))
        tree = {"segments": item.segments, "spans": item.spans, "heads": item.head_of_word}
        return {"text": text, **tree, "from word": from_word, "kept": STORED}

    return Question(
        name="predictions",
        text_of=lambda item: item.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=_unpack,
        kinds=KINDS,
        why_not=WHY_NOT,
    )


def _pack(result: WordPredictions) -> Arrays:
    """Indices of words in the fewest bytes, mostly two."""
    small = np.int16 if len(result.has_tokens) <= np.iinfo(np.int16).max else np.int32
    arrays = {name: getattr(result, name) for name in STORED}
    return arrays | {"predicted": result.predicted.astype(small)}


def _unpack(arrays: Arrays) -> WordPredictions:
    return WordPredictions(**{name: arrays[name] for name in STORED})


def _compute_parsed(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextPredictions]]]:
    from attention_sieve.core.relations.observer import predictions

    parsed = [
        tree
        for segments_and_trees in trees(prepared, texts)
        if segments_and_trees is not None
        for tree in segments_and_trees[1:]
    ]
    for batch in predictions(checkpoint, prepared, parsed, settings):
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
    return TextPredictions.of(tree, _unpack(arrays))


PARSED_PREDICTIONS: Final[Question[Text, TextPredictions]] = Question(
    name="predictions with trees",
    text_of=text_itself,
    depends_on=lambda text: {**text_alone(text), "parser": parser_name(), "kept": STORED},
    compute=_compute_parsed,
    pack=_pack_parsed,
    unpack=_unpack_parsed,
    kinds=KINDS,
    why_not=WHY_NOT,
)
"""The predictions of every head for the words of a tree, and the tree, so that neither has to be computed again; the
document of a text is not part of the answer."""
