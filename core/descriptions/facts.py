"""Facts about a head, each with its numbers; the words for them are the reader's business."""

from dataclasses import dataclass
from typing import Literal

from core.attention.settings import Head
from core.relations.accuracy import Direction

Target = Literal["self", "previous", "next", "cls", "sep", "punctuation", "first"]
"""What is attended to, relative to the query or as a kind of token."""


Sight = Literal["around", "back", "across"]
"""Whether a token sees those on both sides, itself and earlier ones alone, or those of another text."""


@dataclass(frozen=True, kw_only=True)
class ShareFact:
    """The share of its attention that a head gives to something."""

    target: Target
    share: float
    """Mean over the texts, 0 to 1; of the first token in a causal model the share above chance."""
    low: float
    high: float
    """Interval of the mean; NaN for fewer than 2 texts."""
    even: float
    """What evenly spread attention would give, mean over the texts; NaN where that is not known; 0 of the first token,
    whose share is above chance already."""


@dataclass(frozen=True, kw_only=True)
class RelationFact:
    """The relation that a head finds better than any fixed offset, chosen on one half of the texts."""

    relation: str
    direction: Direction
    accuracy: float
    """Share of the cases of the other half, 0 to 1."""
    low: float
    high: float
    """Its interval."""
    baseline: float
    """What the offset that was best on the first half gets on the same cases."""
    offset: int
    """In words, from the dependent to its head."""
    n_cases: int
    """Of the other half."""
    p_value: float
    """That the head is no better than the offset: one-sided, times the number of heads."""


@dataclass(frozen=True, kw_only=True)
class MentionFact:
    """How often a head chooses, of the earlier mentions, one of the same thing, on texts with gold mentions."""

    of: str
    """What these texts are called."""
    accuracy: float
    """Share of the mentions that refer back in the documents on which the head was not chosen, 0 to 1."""
    low: float
    high: float
    """Its interval, with documents as units."""
    nearest: float
    """What always choosing the nearest mention gets in the same cases."""
    same_word: float
    """What choosing the nearest mention with the same head word gets, or else the nearest."""
    n_cases: int
    n_documents: int
    """Of those on which the head was not chosen."""
    p_value: float
    """That the head is no better than the better of the two: one-sided, times the number of heads; NaN for one
    document."""


@dataclass(frozen=True, kw_only=True)
class SpreadFact:
    """How evenly a head spreads its attention."""

    ratio: float
    """Mean entropy as a share of that of evenly spread attention, 0 to 1."""


@dataclass(frozen=True, kw_only=True)
class RoleFact:
    """A role that a head holds."""

    role: str


Fact = ShareFact | RelationFact | MentionFact | SpreadFact | RoleFact


@dataclass(frozen=True, kw_only=True)
class HeadDescription:
    """What a head mostly does over some texts."""

    head: Head
    n_texts: int
    facts: tuple[Fact, ...]
    """What it mostly does, then what it does otherwise; empty where no pattern stands out."""
    sight: Sight = "around"
