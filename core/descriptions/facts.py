"""Facts about a head as numbers, without wording."""

from dataclasses import dataclass
from typing import Final, Literal

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.relations.settings import Direction
from attention_sieve.core.statistics.cases import KeyMatched

Target = Literal["self", "previous", "next", "cls", "sep", "punctuation", "first"]
"""Key attended to: at an offset from the query, or of a kind of token."""
RESTS: Final[tuple[Target, ...]] = ("cls", "sep", "punctuation", "first", "self")
"""Targets that links between words cannot show, and on which attention rests whatever the token that looks."""


Sight = Literal["around", "back", "across"]
"""Tokens that a token can attend to: on both sides, only itself and earlier ones, or those of another text."""


@dataclass(frozen=True, kw_only=True)
class ShareFact:
    """The share of a head's attention on one target."""

    target: Target
    share: float
    """Mean over the texts, 0 to 1; for the first token of a causal model, the share above chance."""
    low: float
    high: float
    """Interval of the mean; NaN for fewer than 2 texts."""
    even: float
    """Share of uniform attention, mean over the texts; NaN if not known; 0 for the first token, whose share is already
    above chance."""


@dataclass(frozen=True, kw_only=True)
class KeyControl:
    """The attention of a head to the right word, compared with the attention from other words to the same word, on the
    same cases."""

    to_right: float
    """Mean from the word that should look at it, 0 to 1; NaN where no case can be compared."""
    from_others: float
    """Mean from the text's other words."""
    p_value: float
    """For "the first is not above the second": one-sided, times the number of heads; NaN for one text or document."""
    beats: bool
    from_everywhere: bool
    """As in attention_sieve.core.statistics.cases.KeyMatched; both are False where there are too few cases to
    decide."""

    @classmethod
    def of(cls, control: KeyMatched, head: tuple[int, ...]) -> "KeyControl":
        """The control of one of many heads, by its index."""
        return cls(
            to_right=float(control.to_right[head]),
            from_others=float(control.from_others[head]),
            p_value=float(control.p_values[head]),
            beats=bool(control.beats[head]),
            from_everywhere=bool(control.from_everywhere[head]),
        )


@dataclass(frozen=True, kw_only=True)
class RelationFact:
    """The relation in which a head is furthest above any fixed offset, selected on one half of the texts, or on all of
    them where it is evaluated on others."""

    relation: str
    direction: Direction
    accuracy: float
    """Share of the cases that it was not selected on, 0 to 1."""
    low: float
    high: float
    """Its interval."""
    baseline: float
    """Accuracy on the same cases of the offset that is best on them."""
    offset: int
    """In words, from the dependent to its head."""
    least_gain: float
    """How far the accuracy lies above that of the best offset: on the cases of the selection, or on these, whichever is
    less."""
    n_cases: int
    """Number of these cases."""
    p_value: float
    """For "the head is no better than the offset that is best on the cases of the selection": one-sided, times the
    number of heads."""
    control: KeyControl
    on_others: bool = False
    """Whether the cases are from other texts, and not from the other half of the texts."""


@dataclass(frozen=True, kw_only=True)
class MentionFact:
    """How often a head selects a coreferent mention among the earlier ones, on texts with gold mentions."""

    of: str
    """Name of these texts."""
    accuracy: float
    """Share of the mentions that refer back in the documents on which the head was not selected, 0 to 1."""
    low: float
    high: float
    """Its interval, with documents as units."""
    nearest: float
    """Accuracy of always choosing the nearest mention, on the same cases."""
    same_word: float
    """Accuracy of choosing the nearest mention with the same head word, or else the nearest."""
    n_cases: int
    n_documents: int
    """Documents on which the head was not selected."""
    p_value: float
    """For "the head is no better than the better of the two": one-sided, times the number of heads; NaN for one
    document."""
    control: KeyControl


@dataclass(frozen=True, kw_only=True)
class SpreadFact:
    """How evenly a head spreads its attention."""

    ratio: float
    """Mean entropy as a share of that of uniform attention, 0 to 1."""


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
    """What it mostly does, then what else it does; empty if no pattern stands out."""
    n_others: int = 0
    """Number of other texts that the numbers are from; 0 for those of the texts."""
    sight: Sight = "around"
