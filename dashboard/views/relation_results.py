"""What the section Relations shows, computed: guesses of every head, and what they come to for each relation."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from cache.inference import Engine
from core.parses import UNIVERSAL, Dependencies
from core.parsing_cases import NO_RELATION
from core.parsing_heads import (
    ALL,
    AS_IN_PAPER,
    DIRECTIONS,
    Direction,
    Margin,
    ParsingSettings,
    RelationAccuracy,
    TextPredictions,
    beats_baseline,
    syntactic_by_argmax,
)
from core.roles import RELATIONS
from core.texts import Text
from core.words import FromWord
from dashboard import state
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.relation_bars import ARROWS
from dashboard.state import Choice, Head

USUAL_CASES: Final = 100
LEAST_CASES: Final = (200, USUAL_CASES, 50, 20, 10, 5, 1)
FEWEST_RELATIONS: Final = 5
"""So many relations are shown where the texts have them, though they may have fewer than USUAL_CASES."""
LOOKS_BACK_WORDS: Final = 20
"""So many words without a guess ahead under any head tell an attention that looks back from one by chance."""
RULE_RELATIONS: Final = (*RELATIONS, *UNIVERSAL)
"""Relations of Voita's rule, by both names that they have."""


@dataclass(frozen=True)
class Asked:
    """What is asked of guesses and relations, besides the sidebar's settings."""

    from_word: FromWord
    least: int | None
    """Least cases of a relation; None for what suits the texts."""
    margin: Margin
    control: bool
    parsing: ParsingSettings = AS_IN_PAPER


@dataclass(frozen=True, eq=False, kw_only=True)
class Relations:
    """Guesses of every head, and how often they are right."""

    given: tuple[Text, ...]
    texts: tuple[Text, ...]
    """What the attention reads of those that were not left out."""
    positions: tuple[int, ...]
    """Place of each of them among those given."""
    predictions: tuple[TextPredictions, ...]
    accuracies: list[RelationAccuracy]
    """Of every relation, ALL first, then most cases first."""
    by_row: list[RelationAccuracy]
    """The same, where the second direction is read from the head's own row."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""

    @property
    def n_gold(self) -> int:
        """Texts that brought their relations."""
        return sum(text.heads is not None for text in self.texts)

    @property
    def looks_back(self) -> bool:
        """Whether no head attends most to a later word, over enough words that have one."""
        own = [found.predicted[0] for found in self.predictions]
        # Words beyond a cut have no guess, and the last of the others has no later word.
        n_words = sum(max(int((of_text >= 0).any(axis=(0, 1)).sum()) - 1, 0) for of_text in own)
        return n_words >= LOOKS_BACK_WORDS and all(
            bool((of_text <= np.arange(of_text.shape[-1])).all()) for of_text in own
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class ByArgmax:
    """Heads that are syntactic by Voita's rule."""

    margin: Margin
    n_heads: dict[str, int]
    """How many heads follow it for each relation of the rule that has enough cases."""
    heads: Bool[np.ndarray, "layer head"]
    gain: Float[np.ndarray, "layer head"]
    """Largest accuracy less its baseline over these relations and both directions."""
    named: list[list[str]]
    """Relation, direction and accuracy of that gain, in words."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Focus:
    """What the reader looks at."""

    chosen: Choice
    engine: Engine
    found: Relations
    shown: list[RelationAccuracy]
    """Those with enough cases."""
    relation: RelationAccuracy
    by_row: RelationAccuracy
    """The same relation, the second direction read from the head's own row."""
    direction: Direction
    argmax: ByArgmax | None
    asked: Asked
    heads: list[Head]
    control_name: str
    """Of the checkpoint with random weights; empty without one."""
    facts: dict[str, str]

    @property
    def reset(self) -> Hashable:
        """Changes where the views are to take the chosen heads anew."""
        return (self.engine.files.fingerprint, state.n_pushed())


def enough_cases(accuracies: Sequence[RelationAccuracy], asked: int | None) -> int:
    """Least number of cases of the relations that are shown.

    Args:
        accuracies: of every relation.
        asked: what the reader asks for; None for USUAL_CASES, or less where fewer than FEWEST_RELATIONS have them.
    """
    if asked is not None:
        return asked
    n_cases = [one.n_cases for one in accuracies if one.relation != ALL]
    usual = [least for least in LEAST_CASES if least <= USUAL_CASES]
    return next((least for least in usual if sum(n >= least for n in n_cases) >= FEWEST_RELATIONS), usual[-1])


def by_argmax(by_row: Sequence[RelationAccuracy], margin: Margin) -> ByArgmax | None:
    """Heads that follow Voita's rule; None where no relation of the rule has enough cases."""
    ruled = [one for one in by_row if one.relation in RULE_RELATIONS]
    heads = syntactic_by_argmax(ruled, margin=margin)
    if heads is None:
        return None
    names = [f"{one.relation}, {ARROWS[way]}" for one in ruled for way in DIRECTIONS]
    accuracy = np.concatenate([one.accuracy for one in ruled])
    gains = np.concatenate([one.accuracy - one.baseline.share for one in ruled])
    best = gains.argmax(axis=0)
    named = [
        [f"{names[place]}: {accuracy[place, layer, head]:.1%}" for head, place in enumerate(row)]
        for layer, row in enumerate(best.tolist())
    ]
    n_heads = {one.relation: int(beats_baseline(one, margin=margin).any(axis=0).sum()) for one in ruled}
    return ByArgmax(margin=margin, n_heads=n_heads, heads=heads, gain=gains.max(axis=0), named=named)


def is_case(trees: Dependencies, relation: str, every_word: bool = False) -> Bool[np.ndarray, " word"]:
    """Words that have a relation to a head; ALL is each but punct and root, or every word, roots too."""
    if relation == ALL and every_word:
        return np.ones(len(trees.heads), bool)
    wanted = [name not in NO_RELATION if relation == ALL else name == relation for name in trees.relations]
    return np.array(wanted, bool) & (trees.heads >= 0)


def most_gain(shown: Sequence[RelationAccuracy]) -> RelationAccuracy:
    """The relation whose best head is furthest above the baseline; ALL only where it stands alone."""
    return max(named(shown), key=lambda one: np.nan_to_num(one.best_accuracy - one.baseline.share, nan=-1))


def named(shown: Sequence[RelationAccuracy]) -> Sequence[RelationAccuracy]:
    """All but ALL, unless it stands alone."""
    return [one for one in shown if one.relation != ALL] or shown


def marked(layer: int, head: int, off: Sequence[Head]) -> str:
    """A head's name, marked where it is switched off."""
    return f"{head_name(layer, head)} (off)" if (layer, head) in off else head_name(layer, head)
