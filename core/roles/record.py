"""The record of a role: its sieve, in one of three forms, and the keys and pairs that built-in sieves are made of."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Int

from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.relations import TokenPair, Wanted
from attention_sieve.core.texts.tokens import SPECIAL, TokenizedText

LOCAL_RADIUS: Final = 2
DIRECTIONS: Final = ("dependent-to-head", "head-to-dependent")
"""Which word of a relation attends to which."""
LACKS: Final = "no text contains what it looks for"
NOTHING: Final = Wanted(relations=())
KeySet = Callable[[PassText], Bool[np.ndarray, " key"]]


@dataclass(frozen=True)
class Keys:
    """A sieve of keys that do not depend on where the query stands."""

    sets: tuple[KeySet, ...]
    """Disjoint sets of keys. Each is a function with a name of its own, so that roles can share it."""
    side: Callable[[PassText], Int[np.ndarray, " query"]] | None = None
    """Which one of the sets is the sieve of each query; None if their union is the sieve of all queries."""


@dataclass(frozen=True)
class Band:
    """A sieve of the keys at some distances from the query."""

    first: int
    """Offset of the first key from the query; -1 for the token before it."""
    last: int

    def keys(self, n_tokens: int, causal: bool = False) -> Int[np.ndarray, "query 2"]:
        """First and one-past-last key of each query.

        Returns: key positions, clipped to the text: [0, n_tokens]; in a causal model without later keys.
        Source: Pande et al. 2021, local sieve. Their notebook counts keys past the last token; here the band ends at
        the end of the text.
        """
        query = np.arange(n_tokens)
        start = np.minimum(np.maximum(query + self.first, 0), n_tokens)
        end = np.maximum(np.minimum(query + self.last, query if causal else n_tokens - 1) + 1, 0)
        return np.stack([start, end], axis=1)


@dataclass(frozen=True)
class Pairs:
    """A sieve of pairs found in the text: of an attending word and an attended one, each of one or more tokens."""

    find: Callable[[PassText], Sequence[TokenPair]]
    """The pairs of a text, for all roles that share them."""
    name: str | None = None
    """Name of the pairs of this role; None for all of them."""

    def of(self, text: PassText) -> list[TokenPair]:
        """The pairs of this role in a text."""
        return [pair for pair in self.find(text) if self.name in (None, pair.name)]


@dataclass(frozen=True, kw_only=True)
class Role:
    """Everything that is particular to one role."""

    name: str
    """In files, links and tables."""
    expects: str
    """What a head with this role looks at, to complete "looks at ...". Of a finer role: which part of it."""
    meaning: str = ""
    """Explanation for the glossary and legends, a sentence; empty for a finer role, which the coarser one explains."""
    sieve: Keys | Band | Pairs
    applies: Callable[[PassText, bool], bool]
    """Whether the role can apply to a text, prepared for a pass, of a model that is causal or not."""
    weight: Literal["none", "entropy"] = "none"
    """What each query's ratio is multiplied with in the score: with "entropy", its row's entropy in nats."""
    part_of: str | None = None
    """The coarser role of a finer one."""
    directions: tuple[str, ...] = ()
    """Of DIRECTIONS, where a pair can be read both ways."""
    lacks: str = LACKS
    """Why it could not be tested where it applies to no text."""
    is_usual: bool = True
    """Whether it is scored without being asked for."""
    version: int = 1
    """Part of the key of stored scores; increase it when the sieve changes."""
    wanted: Wanted = NOTHING
    """What a parser has to find in texts."""
    is_noted: bool = False
    """Whether it needs notes on the queries."""
    reads_marks: bool = False
    """Whether it depends on the pairs that a file marks in a text."""
    rule: str = ""
    """Of a role that a reader has written, its rule in one form, by which its stored scores are known."""

    @property
    def key(self) -> str:
        """What its stored scores are known by, with its version."""
        return self.rule or self.name


def is_cls(text: PassText) -> Bool[np.ndarray, " key"]:
    """The token before a text, such as [CLS]."""
    return text.keys.is_cls


def is_sep(text: PassText) -> Bool[np.ndarray, " key"]:
    """The tokens between and after segments, such as [SEP]."""
    return text.keys.is_sep


def in_first_segment(text: PassText) -> Bool[np.ndarray, " key"]:
    """The tokens of the first segment, without special ones."""
    return text.keys.segments == 0


def in_second_segment(text: PassText) -> Bool[np.ndarray, " key"]:
    """The tokens of the second segment, without special ones."""
    return text.keys.segments == 1


def is_first(text: PassText) -> Bool[np.ndarray, " key"]:
    """The first token."""
    return np.arange(len(text.keys.ids)) == 0


def template_mask(text: TokenizedText) -> Bool[np.ndarray, " key"]:
    """The tokens that a chat template put around the turns of a chat; none in any other text."""
    is_own = np.full(len(text.ids), text.given is None or text.given.turns is None)
    for first, end in (text.given and text.given.turns) or ():
        is_own[first:end] = True
    return ~is_own


def in_template(text: PassText) -> Bool[np.ndarray, " key"]:
    """The tokens of the chat template."""
    return template_mask(text.keys)


def in_template_after_first(text: PassText) -> Bool[np.ndarray, " key"]:
    """The tokens of the chat template without the first token, which attracts attention in any text."""
    return in_template(text) & ~is_first(text)


def query_sides(text: PassText) -> Int[np.ndarray, " query"]:
    """Segment that is each query's block sieve: 0 up to the last token of the first segment, then 1.

    Special tokens are included: [CLS] to the first segment, the separators to the second.
    """
    first = np.flatnonzero(text.queries.segments == 0)
    return (np.arange(len(text.queries.ids)) > (first[-1] if len(first) else -1)).astype(np.int64)


def relation_pairs(text: PassText) -> Sequence[TokenPair]:
    """The grammatical relations of a text."""
    return text.pairs


def earlier_copies(text: PassText) -> list[TokenPair]:
    """Every token that has occurred before, with all of its earlier copies; special tokens are left out."""
    ids = np.where(text.queries.segments == SPECIAL, -1, text.queries.ids)
    order = np.argsort(ids, kind="stable")
    runs = np.split(order, np.flatnonzero(np.diff(ids[order])) + 1)
    pairs = [
        TokenPair("", run[index : index + 1], run[:index])
        for run in runs
        if len(run) > 1 and ids[run[0]] >= 0
        for index in range(1, len(run))
    ]
    return sorted(pairs, key=lambda pair: int(pair.dependent[0]))


def after_earlier_copies(text: PassText) -> list[TokenPair]:
    """Every token that has occurred before, with the tokens right after its earlier copies, itself excepted; special
    tokens are left out.

    Source: Olsson et al. 2022, prefix matching, as corrected in 2022-09: the tokens that follow earlier copies.
    """
    is_special = text.queries.segments == SPECIAL
    copies = earlier_copies(text)
    after = [(pair.head + 1)[pair.head + 1 < pair.dependent] for pair in copies]
    pairs = [TokenPair("", pair.dependent, keys[~is_special[keys]]) for pair, keys in zip(copies, after, strict=True)]
    return [pair for pair in pairs if len(pair.head)]


def copied_from_needle(text: PassText) -> list[TokenPair]:
    """Every token after which one of the answer comes, with the tokens of the needle that this one is a copy of.

    Source: Wu et al. 2024, retrieval score; they let the model write the answer, and count the steps at which the token
    that is written has most attention. Here the answer is given, and its attention counts.
    """
    queries = text.queries
    if queries.given is None or queries.given.needle is None or queries.given.answer is None:
        return []
    needle, answer = (np.arange(*span) for span in (queries.given.needle, queries.given.answer))
    copies = [
        TokenPair("", np.array([position - 1]), needle[queries.ids[needle] == queries.ids[position]])
        for position in answer[answer < len(queries.ids)].tolist()
    ]
    return [pair for pair in copies if len(pair.head)]


def anywhere(text: PassText, causal: bool) -> bool:
    """Every text, also in cross-attention."""
    return True


def within_a_text(text: PassText, causal: bool) -> bool:
    """Texts whose queries are also their keys."""
    return text.queries is text.keys


def within_pairs(text: PassText, causal: bool) -> bool:
    """Texts of two segments whose queries are also their keys."""
    return text.queries is text.keys and text.queries.n_segments == 2


def in_causal_models(text: PassText, causal: bool) -> bool:
    """Texts of models in which tokens cannot attend to later ones."""
    return causal


def in_chats(text: PassText, causal: bool) -> bool:
    """Texts in which a chat template put tokens around turns."""
    return bool(in_template_after_first(text).any())
