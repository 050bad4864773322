"""The words of many texts as cases: their heads, and the head predicted by each attention head."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.passes.arrays import REMOVED
from attention_sieve.core.texts.relations import ROOT, ROOT_RELATION, Dependencies

NO_RELATION: Final = ("punct", ROOT_RELATION)
"""Relations that are not evaluated."""
POSSESSORS: Final = ("poss", "nmod:poss")
CLITICS: Final = ("possessive", "case")
NONE: Final = -1
"""Stands for no prediction."""


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
    predicted: Int[np.ndarray, "direction layer head case"]
    """Head predicted for each word; NONE for none, REMOVED if the attention head was removed."""
    predicted_from_heads: Int[np.ndarray, "layer head case"]
    """Word that the head of each word attends to most; NONE for none, and for a root."""
    is_known: Bool[np.ndarray, " case"]
    """Whether the word, the word at which its prediction is read, and its head have tokens. Even then there may be no
    prediction, for example for a sentence of one word."""

    is_at_clitic: Bool[np.ndarray, " case"]
    """Whether the prediction is read at the clitic that follows the word."""

    @property
    def absent(self) -> Bool[np.ndarray, "direction layer head"]:
        """Attention heads that were removed from the checkpoint."""
        return (self.predicted == REMOVED).any(axis=-1)


def cases_of(
    texts: Sequence[Dependencies],
    predicted: Sequence[Int[np.ndarray, "direction layer head _"]],
    has_tokens: Sequence[Bool[np.ndarray, "_"]],
    at_clitic: bool = False,
) -> RelationCases:
    """The words of one or more texts as cases.

    Args:
        texts: trees of the texts.
        predicted: index of the head predicted for each word; -1 for none.
        has_tokens: whether each of their words has tokens.
        at_clitic: whether a possessor's prediction is read at the 's that follows it.
    """
    sizes = [len(text.heads) for text in texts]
    firsts = np.repeat(np.cumsum([0, *sizes[:-1]]), sizes)
    heads = _global_indices(np.concatenate([text.heads for text in texts]), firsts)
    names, codes = _coded(list(chain.from_iterable(text.relations for text in texts)))
    predictions = _global_indices(np.concatenate(predicted, axis=-1), firsts)
    is_tokenized = np.concatenate(has_tokens)
    starts, ends = np.concatenate([_segment_ends(text) for text in texts], axis=1) + firsts
    words = np.arange(len(heads))
    # A pair may join two segments: the distance is then counted from the same place in the segment of its head.
    first_of_head, end_of_head = (np.where(heads == ROOT, own, own[heads]) for own in (starts, ends))
    read_at = words + (_has_clitic(names, codes, heads) if at_clitic else 0)
    return RelationCases(
        names=names,
        codes=codes,
        text=np.repeat(np.arange(len(texts)), sizes),
        heads=heads,
        distances=np.where(heads == ROOT, starts - 1, heads) - first_of_head - (read_at - starts),
        rooms=np.stack([read_at - starts, end_of_head - 1 - first_of_head - (read_at - starts)]),
        predicted=predictions[..., read_at],
        predicted_from_heads=np.where(heads == ROOT, NONE, predictions[0][..., heads]),
        is_at_clitic=read_at != words,
        is_known=is_tokenized & is_tokenized[read_at] & ((heads == ROOT) | is_tokenized[heads]),
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
