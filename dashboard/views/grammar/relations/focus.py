"""What is found over the corpus, and what the reader has selected of it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Bool

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.relations.analysis import RELATION_ANALYSIS
from attention_sieve.core.relations.cases import ALL, NO_RELATION, RelationAccuracy
from attention_sieve.core.relations.finding import RelationFinding
from attention_sieve.core.relations.settings import Direction, RelationSettings
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.dashboard import state
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.frame import Visit


@dataclass(frozen=True, eq=False, kw_only=True)
class RelationFocus:
    visit: Visit
    found: CorpusFinding[RelationFinding]
    relation: RelationAccuracy
    """The chosen relation."""
    direction: Direction
    heads: list[Head]
    facts: dict[str, str]

    @property
    def finding(self) -> RelationFinding:
        """Over the texts of the corpus that were not left out."""
        return self.found.finding

    @property
    def by_row(self) -> RelationAccuracy:
        """The chosen relation, with the second direction read from the head's own row."""
        return next(relation for relation in self.finding.by_row if relation.relation == self.relation.relation)

    @property
    def reset(self) -> Hashable:
        """Changes whenever the components have to take over the chosen heads."""
        return (self.visit.engine.files.fingerprint, state.n_pushed())


def relation_finding(visit: Visit, settings: RelationSettings) -> CorpusFinding[RelationFinding] | None:
    """How well the heads find relations in the corpus; None where the reader has to do something first.

    The least number of cases and the margin select among accuracies, which a click on them need not compute again.

    Raises: AnalysisError of any stage.
    """
    usual = RELATION_ANALYSIS.settings
    found = find(visit, RELATION_ANALYSIS, replace(settings, least_cases=usual.least_cases, margin=usual.margin))
    return found and replace(found, finding=replace(found.finding, settings=settings))


def is_case(trees: Dependencies, relation: str, every_word: bool = False) -> Bool[np.ndarray, " word"]:
    """Words that have a relation to a head; ALL is each but punct and root, or every word, roots too."""
    if relation == ALL and every_word:
        return np.ones(len(trees.heads), bool)
    has_relation = [name not in NO_RELATION if relation == ALL else name == relation for name in trees.relations]
    return np.array(has_relation, bool) & (trees.heads >= 0)


def marked(layer: int, head: int, off: Sequence[Head]) -> str:
    """A head's name, marked where it is switched off."""
    return f"{head_name(layer, head)} (off)" if (layer, head) in off else head_name(layer, head)
