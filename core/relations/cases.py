"""Texts with their trees, what every head predicts for their words, and these words as cases."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.answering import REMOVED
from attention_sieve.core.relations.settings import Reading
from attention_sieve.core.statistics.cases import Joined
from attention_sieve.core.statistics.documents import document_numbers
from attention_sieve.core.texts.relations import ROOT, ROOT_RELATION, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import Words

NO_RELATION: Final = ("punct", ROOT_RELATION)
"""Relations that are not evaluated."""
POSSESSORS: Final = ("poss", "nmod:poss")
CLITICS: Final = ("possessive", "case")
NONE: Final = -1
"""Stands for no prediction."""


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


@dataclass(frozen=True, eq=False, kw_only=True)
class WordPredictions:
    """Predictions of every head for the words of one text."""

    predicted: Int[np.ndarray, "direction layer head word"]
    """Index of the predicted head of each word, never the word itself. -1 for a word without tokens, or without
    attention to, or from, another word, such as the first word in a causal model or a single word. REMOVED for a head
    that was removed from the checkpoint."""
    has_tokens: Bool[np.ndarray, " word"]
    """As in attention_sieve.core.texts.tokens.WordMap: False for truncated words, and for words of characters unknown
    to the tokenizer."""
    to_head: Float[np.ndarray, "layer head word"]
    """Attention from each word to its syntactic head, 0 to 1; NaN for a root, where one of the two has no tokens, where
    the word cannot see its head, and for a head that was removed."""
    from_head: Float[np.ndarray, "layer head word"]
    """Attention to each word from its syntactic head; NaN as for `to_head`."""
    from_others: Float[np.ndarray, "layer head word"]
    """Mean attention to each word from the other words that can see it, punctuation included, except those that a
    relation joins to it (its dependents and its syntactic head); NaN where there are none. Special tokens are not
    words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class TextPredictions(WordPredictions):
    """Predictions together with the text's relations."""

    dependencies: Dependencies
    document: str | None = None
    """As in attention_sieve.core.texts.text.Text."""

    @classmethod
    def of(
        cls, dependencies: Dependencies, predictions: WordPredictions, document: str | None = None
    ) -> "TextPredictions":
        """Combine predictions with the tree of a text, and its document."""
        return cls(
            dependencies=dependencies,
            document=document,
            **{field.name: getattr(predictions, field.name) for field in fields(WordPredictions)},
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationCases:
    """Every word of some texts, numbered consecutively through all texts."""

    names: tuple[str, ...]
    """Relations."""
    codes: Int[np.ndarray, " case"]
    """Relation of each case, as an index into `names`."""
    text: Int[np.ndarray, " case"]
    heads: Int[np.ndarray, " case"]
    """ROOT for a root."""
    distances: Int[np.ndarray, " case"]
    """Distance in words to the head, from the word or from the clitic at which the prediction is read, or from the same
    place in the head's segment where that is another; the head of a root counts as before the first word of its
    segment."""
    rooms: Int[np.ndarray, "2 case"]
    """Number of words before and after it in its segment, or in that of its head."""
    right: Bool[np.ndarray, "direction layer head case"]
    """Whether each head is right in each case."""
    absent: Bool[np.ndarray, "direction layer head"]
    """Attention heads that were removed from the checkpoint."""
    is_known: Bool[np.ndarray, " case"]
    """Whether the word, the word at which its prediction is read, and its head have tokens. Even then there may be no
    prediction, for example for a sentence of one word."""

    joined: Joined
    """Attention to the right word of every case, in both directions, and what other words give to the same word; not of
    a case that is read at a clitic. Its units are also those of halves."""
    by_document: bool
    """Whether documents are known, so that they are the units of all tests and of intervals."""


def cases_of(
    texts: Sequence[TextPredictions], *, at_clitic: bool = False, reading: Reading = "column"
) -> RelationCases:
    """The words of one or more texts as cases, from predictions under one checkpoint.

    Args:
        at_clitic: whether a possessor's prediction is read at the 's that follows it.
        reading: how head-to-dependent is read.
    """
    trees = [text.dependencies for text in texts]
    sizes = [len(tree.heads) for tree in trees]
    of_text = np.repeat(np.arange(len(texts)), sizes)
    firsts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    heads = _global_indices(np.concatenate([tree.heads for tree in trees]), firsts)
    names, codes = _coded(list(chain.from_iterable(tree.relations for tree in trees)))
    guesses = _global_indices(np.concatenate([text.predicted for text in texts], axis=-1), firsts)
    is_tokenized = np.concatenate([text.has_tokens for text in texts])
    starts, ends = np.concatenate([_segment_ends(tree) for tree in trees], axis=1) + firsts
    words = np.arange(len(heads))
    # A pair may join two segments: the distance is then counted from the same place in the segment of its head.
    first_of_head, end_of_head = (np.where(heads == ROOT, own, own[heads]) for own in (starts, ends))
    read_at = words + (_has_clitic(names, codes, heads) if at_clitic else 0)
    predicted = guesses[..., read_at]
    right = (predicted == heads) & (heads != ROOT)
    if reading == "row":
        right = np.stack([right[0], np.where(heads == ROOT, NONE, guesses[0][..., heads]) == words])
    documents = document_numbers([text.document for text in texts])
    # A root has no right word (`to_right` is NaN), and its index, ROOT, reads any other word.
    to_right = np.concatenate([np.stack([text.to_head, text.from_head]) for text in texts], axis=-1)
    to_word = np.concatenate([text.from_others for text in texts], axis=-1)
    return RelationCases(
        names=names,
        codes=codes,
        text=of_text,
        heads=heads,
        distances=np.where(heads == ROOT, starts - 1, heads) - first_of_head - (read_at - starts),
        rooms=np.stack([read_at - starts, end_of_head - 1 - first_of_head - (read_at - starts)]),
        right=right,
        absent=(predicted == REMOVED).any(axis=-1),
        is_known=is_tokenized & is_tokenized[read_at] & ((heads == ROOT) | is_tokenized[heads]),
        joined=Joined(
            to_right=np.where(read_at != words, np.nan, to_right),
            from_others=np.stack([to_word[..., heads], to_word]),
            unit=of_text if documents is None else documents[of_text],
        ),
        by_document=documents is not None,
    )


def _global_indices(
    indices: Int[np.ndarray, "*shape word"], firsts: Int[np.ndarray, " word"]
) -> Int[np.ndarray, "*shape word"]:
    """Convert indices within each text to indices in all texts; NONE and REMOVED stay as they are."""
    return np.where(indices >= 0, indices + firsts, indices).astype(np.int32)


def _coded(relations: Sequence[str]) -> tuple[tuple[str, ...], Int[np.ndarray, " word"]]:
    codes = {name: code for code, name in enumerate(dict.fromkeys(relations))}
    return tuple(codes), np.array([codes[name] for name in relations], int)


def _segment_ends(text: Dependencies) -> Int[np.ndarray, "end word"]:
    """First and one past the last word of each word's segment."""
    segments = text.words.segments
    return np.stack([np.searchsorted(segments, segments), np.searchsorted(segments, segments, side="right")])


def _has_clitic(
    names: Sequence[str], codes: Int[np.ndarray, " word"], heads: Int[np.ndarray, " word"]
) -> Bool[np.ndarray, " word"]:
    """Possessors whose next word depends on them as a clitic."""
    relation = np.array([1 if name in POSSESSORS else 2 if name in CLITICS else 0 for name in names])[codes]
    followed = np.zeros(len(codes), bool)
    followed[:-1] = (relation[1:] == 2) & (heads[1:] == np.arange(len(heads) - 1))
    return followed & (relation == 1)
