"""Predictions of every head, their accuracies for each relation, and what the reader has selected."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.relations.accuracy import (
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
from attention_sieve.core.relations.cases import NO_RELATION
from attention_sieve.core.statistics.documents import n_documents
from attention_sieve.core.texts.relations import RELATIONS, UNIVERSAL, Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.words import FromWord
from attention_sieve.dashboard import state
from attention_sieve.dashboard.views.frame import Visit

Unit = Literal["document", "text"]
"""What is split into halves."""
USUAL_CASES: Final = 100
MIN_CASES: Final = (200, USUAL_CASES, 50, 20, 10, 5, 1)
"""Minimum cases per relation that the reader may choose."""
FEWEST_RELATIONS: Final = 5
"""Relations to show where the texts have as many, even if they have fewer than USUAL_CASES cases."""
LOOKS_BACK_WORDS: Final = 20
"""Over fewer words it may be chance that no head attends most to a later word."""
RULE_RELATIONS: Final = (*RELATIONS, *UNIVERSAL)
"""Relations of Voita's rule, under both of their names."""


@dataclass(frozen=True, kw_only=True)
class RelationSettings:
    """Settings of the section, besides those that pages share."""

    from_word: FromWord = "mean"
    min_cases: int | None = None
    """Minimum cases per relation; None for a number that suits the texts."""
    margin: Margin = "points"
    random_weights: bool = False
    """Whether to compare with random weights."""
    parsing: ParsingSettings = AS_IN_PAPER


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationResults:
    """Predictions of every head, and how often they are right."""

    texts: tuple[Text, ...]
    """What the attention reads of the texts that were not left out."""
    positions: tuple[int, ...]
    """Position of each of them in the corpus."""
    predictions: tuple[TextPredictions, ...]
    accuracies: list[RelationAccuracy]
    """For every relation: ALL first, then by number of cases, largest first."""
    by_row: list[RelationAccuracy]
    """The same, with the second direction read from the head's own row."""
    too_long: tuple[tuple[int, int], ...]
    """Position and number of tokens of each text that was left out or cut."""

    @property
    def n_gold(self) -> int:
        """Texts whose file brought their relations."""
        return sum(text.heads is not None for text in self.texts)

    @property
    def n_documents(self) -> int | None:
        """Documents of the texts; None if no document is known."""
        return n_documents([text.document for text in self.texts])

    @property
    def unit(self) -> Unit:
        """What is drawn into halves: a document, or a text if no document is known."""
        return "text" if self.n_documents is None else "document"

    @property
    def looks_back(self) -> bool:
        """Whether no head attends most to a later word, over enough words that have one."""
        from_dependents = [of_text.predicted[0] for of_text in self.predictions]
        # Words beyond a cut have no prediction, and the last of the others has no later word.
        n_words = sum(max(int((heads >= 0).any(axis=(0, 1)).sum()) - 1, 0) for heads in from_dependents)
        return n_words >= LOOKS_BACK_WORDS and all(
            bool((heads <= np.arange(heads.shape[-1])).all()) for heads in from_dependents
        )


@dataclass(frozen=True)
class BestRelation:
    """The relation and direction in which a head is furthest above the baseline."""

    relation: str
    direction: Direction
    accuracy: float
    """Share of the cases, 0 to 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ByArgmax:
    """Heads that are syntactic by Voita's rule."""

    margin: Margin
    n_heads: dict[str, int]
    """Number of these heads for each relation of the rule that has enough cases."""
    heads: Bool[np.ndarray, "layer head"]
    gain: Float[np.ndarray, "layer head"]
    """Largest accuracy minus its baseline over these relations and both directions."""
    best: tuple[tuple[BestRelation, ...], ...]
    """Where each head has that gain, by layer and head."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Focus:
    """What the reader has selected."""

    visit: Visit
    settings: RelationSettings
    results: RelationResults
    accuracies: Sequence[RelationAccuracy]
    """Accuracies at the relations with enough cases."""
    relation: RelationAccuracy
    """The chosen relation."""
    by_row: RelationAccuracy
    """The same, with the second direction read from the head's own row."""
    direction: Direction
    argmax: ByArgmax | None
    """None where no relation of the rule has enough cases."""
    heads: list[Head]
    facts: dict[str, str]

    @property
    def reset(self) -> Hashable:
        """Changes whenever the components have to take over the chosen heads."""
        return (self.visit.engine.files.fingerprint, state.n_pushed())


def min_cases(accuracies: Sequence[RelationAccuracy], requested: int | None) -> int:
    """Minimum cases of the relations that are shown.

    Args:
        accuracies: of every relation.
        requested: by the reader; None for USUAL_CASES, or less where fewer than FEWEST_RELATIONS have them.
    """
    if requested is not None:
        return requested
    n_cases = [accuracy.n_cases for accuracy in accuracies if accuracy.relation != ALL]
    candidates = [number for number in MIN_CASES if number <= USUAL_CASES]
    return next(
        (number for number in candidates if sum(n >= number for n in n_cases) >= FEWEST_RELATIONS), candidates[-1]
    )


def by_argmax(by_row: Sequence[RelationAccuracy], margin: Margin) -> ByArgmax | None:
    """Heads that follow Voita's rule; None where no relation of the rule has enough cases."""
    accuracies = [accuracy for accuracy in by_row if accuracy.relation in RULE_RELATIONS]
    heads = syntactic_by_argmax(accuracies, margin=margin)
    if heads is None:
        return None
    gains = np.stack([accuracy.accuracy - accuracy.baseline.share for accuracy in accuracies])
    n_layers, n_heads = heads.shape
    best = tuple(
        tuple(_best_relation(accuracies, gains[..., layer, head], (layer, head)) for head in range(n_heads))
        for layer in range(n_layers)
    )
    by_relation = {
        accuracy.relation: int(beats_baseline(accuracy, margin=margin).any(axis=0).sum()) for accuracy in accuracies
    }
    return ByArgmax(margin=margin, n_heads=by_relation, heads=heads, gain=gains.max(axis=(0, 1)), best=best)


def _best_relation(
    accuracies: Sequence[RelationAccuracy], gains: Float[np.ndarray, "relation direction"], head: Head
) -> BestRelation:
    """The relation and direction in which a head's gain is largest."""
    relation, direction = divmod(int(gains.argmax()), len(DIRECTIONS))
    best = accuracies[relation]
    return BestRelation(best.relation, DIRECTIONS[direction], float(best.accuracy[direction, *head]))


def is_case(trees: Dependencies, relation: str, every_word: bool = False) -> Bool[np.ndarray, " word"]:
    """Words that have a relation to a head; ALL is each but punct and root, or every word, roots too."""
    if relation == ALL and every_word:
        return np.ones(len(trees.heads), bool)
    has_relation = [name not in NO_RELATION if relation == ALL else name == relation for name in trees.relations]
    return np.array(has_relation, bool) & (trees.heads >= 0)


def largest_gain(accuracies: Sequence[RelationAccuracy]) -> RelationAccuracy:
    """The relation whose best head is furthest above the baseline; ALL only where there is no other."""
    relations = [relation for relation in accuracies if relation.relation != ALL] or accuracies
    return max(relations, key=lambda relation: np.nan_to_num(relation.best_accuracy - relation.baseline.share, nan=-1))


def marked(layer: int, head: int, off: Sequence[Head]) -> str:
    """A head's name, marked where it is switched off."""
    return f"{head_name(layer, head)} (off)" if (layer, head) in off else head_name(layer, head)
