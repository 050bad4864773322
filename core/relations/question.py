"""Question: which word each word of a text attends to most, and how much it attends along the text's trees."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cache
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.question import Arrays, Question
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.relations.cases import WordPredictions
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text, text_fields
from attention_sieve.core.texts.tokens import FromWord, Words

STORED: Final = tuple(field.name for field in fields(WordPredictions))
"""Arrays of an answer, which are part of its key."""


@dataclass(frozen=True)
class ParsedText:
    """A text with the tree of what its queries are, by content, so that it can be hashed."""

    text: Text
    segments: tuple[int, ...]
    spans: tuple[tuple[int, int], ...]
    """As in attention_sieve.core.texts.tokens.Words, of what the queries of the attention read
    (attention_sieve.core.passes.texts.queries_text)."""
    heads: tuple[int, ...]
    relations: tuple[str, ...]
    """As in attention_sieve.core.texts.relations.Dependencies."""

    @classmethod
    def of(cls, text: Text, tree: Dependencies) -> "ParsedText":
        """A text with its parse, or the tree of its file."""
        spans = tuple((start, end) for start, end in tree.words.spans.tolist())
        return cls(text, tuple(tree.words.segments.tolist()), spans, tuple(tree.heads.tolist()), tree.relations)

    @property
    def tree(self) -> Dependencies:
        """The tree as arrays."""
        words = Words(segments=np.array(self.segments, int), spans=np.array(self.spans, int).reshape(-1, 2))
        return Dependencies(words=words, heads=np.array(self.heads, int), relations=self.relations)


@cache
def prediction_question(from_word: FromWord) -> Question[ParsedText, WordPredictions]:
    """The predictions of every head for each word of each text."""

    def compute(
        checkpoint: Checkpoint, items: Sequence[ParsedText], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, WordPredictions]]]:
        from attention_sieve.core.relations.observer import predictions

        return predictions(checkpoint, prepared, [item.tree for item in items], settings, from_word=from_word)

    def depends_on(item: ParsedText) -> Mapping[str, object]:
        """Words and heads; the names of relations do not matter. The stored arrays are named because older entries had
        fewer."""
        text = text_fields(replace(item.text, heads=None, relations=None, spans=None))
        tree = {"segments": item.segments, "spans": item.spans, "heads": item.heads}
        return {"text": text, **tree, "from word": from_word, "kept": STORED}

    return Question(
        name="predictions",
        text_of=lambda item: item.text,
        depends_on=depends_on,
        compute=compute,
        pack=_pack,
        unpack=lambda arrays: WordPredictions(**{name: arrays[name] for name in STORED}),
        kinds=(*ONE_STACK, "encoder", "decoder"),
        why_not="Cross-attention is between two texts, but a parse tree is of one. Choose encoder or decoder "
        "attention.",
    )


def _pack(result: WordPredictions) -> Arrays:
    """Indices of words in the fewest bytes, mostly two."""
    small = np.int16 if len(result.has_tokens) <= np.iinfo(np.int16).max else np.int32
    arrays = {name: getattr(result, name) for name in STORED}
    return arrays | {"predicted": result.predicted.astype(small)}
