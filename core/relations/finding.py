"""What predictions say of the heads: their accuracies at every relation, and which of them are syntactic by argmax."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final, Literal

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.relations.cases import (
    ALL,
    ParsedText,
    RelationAccuracy,
    TextPredictions,
    WordPredictions,
    beats_baseline,
    relation_accuracies,
)
from attention_sieve.core.relations.settings import (
    AS_IN_PAPER,
    DIRECTIONS,
    FARTHEST,
    USUAL_CASES,
    Direction,
    RelationSettings,
)
from attention_sieve.core.statistics.means import n_documents
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.texts.relations import RELATIONS, UNIVERSAL

MIN_CASES: Final = (200, USUAL_CASES, 50, 20, 10, 5, 1)
"""Minimum cases per relation among which one is chosen."""
FEWEST_RELATIONS: Final = 5
"""Relations to show where the texts have as many, or all of fewer, even with fewer than USUAL_CASES cases."""
LOOKS_BACK_WORDS: Final = 20
"""Over fewer words it may be chance that no head attends most to a later word."""
RULE_RELATIONS: Final = (*RELATIONS, *UNIVERSAL)
"""Relations of Voita's rule, under both of their names."""


@dataclass(frozen=True, eq=False)
class Evaluation:
    """Predictions, and how often they are right, computed when it is first read."""

    predictions: tuple[TextPredictions, ...]
    settings: RelationSettings

    @cached_property
    def accuracies(self) -> list[RelationAccuracy]:
        """At every relation with a case: ALL first, then by number of cases, largest first."""
        return relation_accuracies(self.predictions, self.settings)

    @cached_property
    def by_row(self) -> list[RelationAccuracy]:
        """The same, with the second direction read from the head's own row."""
        return relation_accuracies(self.predictions, replace(self.settings, reading="row"))


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

    n_heads: dict[str, int]
    """Number of these heads for each relation of the rule that has enough cases."""
    heads: Bool[np.ndarray, "layer head"]
    gain: Float[np.ndarray, "layer head"]
    """Largest accuracy minus its baseline over these relations and both directions."""
    best: tuple[tuple[BestRelation, ...], ...]
    """Where each head has that gain, by layer and head."""


@dataclass(frozen=True, eq=False)
class RelationFinding:
    """How often every head predicts the syntactic head of a word, by relation, against a fixed offset."""

    items: tuple[ParsedText, ...]
    evaluation: Evaluation
    settings: RelationSettings
    """Where they differ from those of the evaluation, in the least number of cases, in the margin, and for marked pairs
    in the offsets only."""

    @property
    def predictions(self) -> tuple[TextPredictions, ...]:
        """Of each text."""
        return self.evaluation.predictions

    @property
    def least_cases(self) -> int:
        """Minimum cases of the relations below."""
        if self.settings.least_cases is not None:
            return self.settings.least_cases
        n_cases = self._n_cases.values()
        candidates = [number for number in MIN_CASES if number <= USUAL_CASES]
        fewest = min(FEWEST_RELATIONS, max(len(n_cases), 1))
        return next((number for number in candidates if sum(n >= number for n in n_cases) >= fewest), candidates[-1])

    @property
    def _n_cases(self) -> dict[str, int]:
        return {
            accuracy.relation: accuracy.n_cases for accuracy in self.evaluation.accuracies if accuracy.relation != ALL
        }

    @property
    def accuracies(self) -> list[RelationAccuracy]:
        """At every relation with enough cases: ALL first, then by number of cases, largest first."""
        return self._shown(self.evaluation.accuracies)

    @property
    def by_row(self) -> list[RelationAccuracy]:
        """The same, with the second direction read from the head's own row."""
        return self._shown(self.evaluation.by_row)

    def _shown(self, accuracies: list[RelationAccuracy]) -> list[RelationAccuracy]:
        # Where a file marks pairs of one kind alone, all of them are these.
        first = int(len(accuracies) == 2 and 0 < self.n_paired == len(self.items))
        return [accuracy for accuracy in accuracies[first:] if accuracy.n_cases >= self.least_cases]

    @property
    def largest_gain(self) -> RelationAccuracy:
        """The relation whose best head is furthest above the baseline; ALL only where there is no other."""
        named = [accuracy for accuracy in self.accuracies if accuracy.relation != ALL] or self.accuracies
        return max(named, key=lambda accuracy: np.nan_to_num(accuracy.best_accuracy - accuracy.baseline.share, nan=-1))

    @property
    def n_gold(self) -> int:
        """Texts whose file brought their relations, as trees or as pairs."""
        return self.n_paired + sum(item.text.heads is not None for item in self.items)

    @property
    def n_paired(self) -> int:
        """Texts whose file marks pairs."""
        return sum(item.text.pairs is not None for item in self.items)

    @property
    def n_documents(self) -> int | None:
        """Documents of the texts; None if no document is known."""
        return n_documents([item.text.document for item in self.items])

    @property
    def unit(self) -> Literal["document", "text"]:
        """What is drawn into halves: a document, or a text if no document is known."""
        return "text" if self.n_documents is None else "document"

    @property
    def looks_back(self) -> bool:
        """Whether no head attends most to a later word, over enough words that have one."""
        from_dependents = [predictions.predicted[0] for predictions in self.predictions]
        # Words beyond a cut have no prediction, and the last of the others has no later word.
        n_words = sum(max(int((heads >= 0).any(axis=(0, 1)).sum()) - 1, 0) for heads in from_dependents)
        return n_words >= LOOKS_BACK_WORDS and all(
            bool((heads <= np.arange(heads.shape[-1])).all()) for heads in from_dependents
        )

    @property
    def why_empty(self) -> str:
        """Why no relation has enough cases, and what to do."""
        n_cases = self._n_cases if self.n_paired else {}
        if self.least_cases > 1 and (n_cases or not self.n_paired):
            counts = f" ({', '.join(f'{name}: {n:,}' for name, n in n_cases.items())})" if n_cases else ""
            return (
                f"No relation has {self.least_cases:,} cases in these texts{counts}. Give more texts, or lower the "
                "minimum number of cases."
            )
        if self.n_paired:
            return (
                "No pair of these texts joins two spans that both have a token of their own. Mark spans that begin "
                "where tokens of this checkpoint do."
            )
        return "No word of these texts has a relation to another word, punctuation aside. Give texts with sentences."

    @property
    def left_out_note(self) -> str:
        """Which pairs of a file are not counted, and why; empty if all are, and for trees."""
        if not self.n_paired:
            return ""
        few = [f"{name} ({n:,})" for name, n in self._n_cases.items() if n < self.least_cases]
        n_without = max((accuracy.n_left_out for accuracy in self.evaluation.accuracies), default=0)  # that of ALL
        sentences = (
            [f"Relations left out, with fewer than {self.least_cases:,} cases: {', '.join(few)}."] if few else []
        )
        if n_without:
            sentences.append(
                "Pairs left out, because a span has no token of its own (it lies beyond the end of a cut text, or "
                f"begins inside a token): {n_without:,}."
            )
        return " ".join(sentences)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        source = trees_source(item.text for item in self.items if item.text.pairs is None)
        marked = f"; pairs of the file for {self.n_paired} texts" if 0 < self.n_paired < len(self.items) else ""
        return {
            "documents known": "none" if self.n_documents is None else str(self.n_documents),
            "relations": source + marked,
            **self.settings.facts,
            "offsets": self.evaluation.settings.facts["offsets"],
            "least cases": str(self.least_cases),
        }

    @cached_property
    def by_argmax(self) -> ByArgmax | None:
        """Heads that follow Voita's rule for one of its relations in any direction; None where none of these relations
        has enough cases.

        Source: Voita et al. 2019, section 5.2: nsubj, dobj, amod, advmod; Universal Dependencies call dobj obj.
        """
        accuracies = [accuracy for accuracy in self.by_row if accuracy.relation in RULE_RELATIONS]
        if not accuracies:
            return None
        beats = {
            accuracy.relation: beats_baseline(accuracy, by=self.settings.by, margin=self.settings.margin).any(axis=0)
            for accuracy in accuracies
        }
        gains = np.stack([accuracy.accuracy - accuracy.baseline.share for accuracy in accuracies])
        n_layers, n_heads = gains.shape[-2:]
        return ByArgmax(
            n_heads={relation: int(heads.sum()) for relation, heads in beats.items()},
            heads=np.any(list(beats.values()), axis=0),
            gain=gains.max(axis=(0, 1)),
            best=tuple(
                tuple(_best(accuracies, gains[..., layer, head], (layer, head)) for head in range(n_heads))
                for layer in range(n_layers)
            ),
        )


def _best(
    accuracies: Sequence[RelationAccuracy], gains: Float[np.ndarray, "relation direction"], head: Head
) -> BestRelation:
    """The relation and direction in which a head's gain is largest."""
    relation, direction = divmod(int(gains.argmax()), len(DIRECTIONS))
    best = accuracies[relation]
    return BestRelation(best.relation, DIRECTIONS[direction], float(best.accuracy[direction, *head]))


def relation_finding(
    items: Sequence[ParsedText], answers: Sequence[WordPredictions], settings: RelationSettings
) -> RelationFinding:
    """The finding of some texts, from their predictions.

    Marked pairs may be far apart: the baseline's usual range of offsets is FARTHEST where a file marks any.
    """
    predictions = tuple(
        TextPredictions.of(item.tree, answer, item.text.document) for item, answer in zip(items, answers, strict=True)
    )
    is_wider = settings.offsets == AS_IN_PAPER.offsets and any(item.text.pairs is not None for item in items)
    evaluated = replace(settings, offsets=(-FARTHEST, FARTHEST)) if is_wider else settings
    return RelationFinding(tuple(items), Evaluation(predictions, evaluated), settings)
