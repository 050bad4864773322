"""Heads that stand in for one another: sets of heads that look at the same, ablated together. Imports no torch.

Ablated alone, none of several heads that do the same matters, and a head whose backup takes over does not either. Which
sets are ablated is chosen by attention, never by what an ablation changes, so that each test is of a set that was fixed
before.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.importance.finding import metric_facts
from attention_sieve.core.importance.measures import damage
from attention_sieve.core.importance.metrics import Score, TextOutcomes
from attention_sieve.core.importance.per_text import LabelledText
from attention_sieve.core.importance.settings import AblationSettings
from attention_sieve.core.importance.unreliable import LEAST_DAMAGE, ROUNDING
from attention_sieve.core.importance.verdicts import ALPHA, Changes, changes, verdicts
from attention_sieve.core.importance.wording import verdict_facts, without_verdict
from attention_sieve.core.statistics.means import adjusted

Heads = tuple[Head, ...]
SAME: Final = 0.1
"""Jensen-Shannon divergence in nats up to which two heads look at the same; it is at most ln 2."""
PAIRS_PER_HEAD: Final = 2
"""Pairs that are ablated, the nearest ones, as a multiple of the number of heads."""
MOST_IN_SET: Final = 6
"""Most heads that are ablated together; of more that look at the same, pairs alone are."""
MOST_IDLE: Final = 2
"""Heads of a group that may look at the same and do nothing: it is also ablated without one or two of its heads."""
HIDDEN: Final = 0.5
"""Share of the damage together that no head alone does, from which on heads stand in for one another."""


def sets_of_alike(
    distances: Float[np.ndarray, "layer head other_layer other_head"], writes: Bool[np.ndarray, "layer head"]
) -> tuple[Heads, ...]:
    """Sets of heads that look at the same: the nearest pairs, groups, and each group without one or two heads.

    Args:
        distances: of where each other head looks, while a head is off, from where it looks; NaN for removed heads.
        writes: heads that write anything to speak of; of each set, one does.
    """
    n_heads, n_all = distances.shape[1], writes.size
    square = np.nan_to_num(nearer_way(distances).reshape(n_all, n_all), nan=np.inf)
    either = square[np.triu_indices(n_all, k=1)]
    rows, columns = np.triu_indices(n_all, k=1)
    may_matter = (writes.ravel()[rows] | writes.ravel()[columns]) & (either <= SAME)
    nearest = [pair for pair in np.argsort(either, kind="stable") if may_matter[pair]][: PAIRS_PER_HEAD * n_all]
    sets: list[tuple[int, ...]] = [(int(rows[pair]), int(columns[pair])) for pair in nearest]
    for group in _groups(either, writes.ravel()):
        for size in range(max(3, len(group) - MOST_IDLE), len(group) + 1):
            sets += combinations(group, size)
    return tuple(tuple(divmod(head, n_heads) for head in heads) for heads in sets)


def nearer_way(
    distances: Float[np.ndarray, "layer head other_layer other_head"],
) -> Float[np.ndarray, "layer head other_layer other_head"]:
    """The smaller distance of two heads: with the one ablated, or with the other."""
    return np.minimum(distances, distances.transpose(2, 3, 0, 1))


def _groups(either: Float[np.ndarray, " pair"], writes: Bool[np.ndarray, " head"]) -> list[tuple[int, ...]]:
    """Three or more heads of which any two look at the same; of too many, those that write."""
    from scipy.cluster.hierarchy import fcluster, linkage  # takes half a second

    if len(writes) < 3:
        return []
    numbers = fcluster(linkage(np.minimum(either, 2 * SAME), "complete"), SAME, "distance")
    groups = []
    for number in np.unique(numbers):
        group = np.flatnonzero(numbers == number)
        group = group if len(group) <= MOST_IN_SET else group[writes[group]]
        if 3 <= len(group) <= MOST_IN_SET and writes[group].any():
            groups.append(tuple(group.tolist()))
    return groups


@dataclass(frozen=True, eq=False, kw_only=True)
class BackupAnswers:
    """What the finding is judged by."""

    sets: tuple[Heads, ...]
    distances: Float[np.ndarray, "layer head other_layer other_head"]
    """As of `sets_of_alike`."""
    alone: tuple[TextOutcomes, ...]
    """Of each text, with each head ablated in turn."""
    together: Float[np.ndarray, "text set part"]
    """Outcome of each text with all heads of each set ablated."""


@dataclass(frozen=True, eq=False, kw_only=True)
class JointEffects:
    """Damage by each set of heads; larger is worse."""

    together: Float[np.ndarray, " set"]
    """With all its heads ablated."""
    most_alone: Float[np.ndarray, " set"]
    """With one of its heads ablated, the one that does most damage."""
    beyond: Float[np.ndarray, " set"]
    """Together, minus the sum of what each does alone."""
    low: Float[np.ndarray, " set"]
    high: Float[np.ndarray, " set"]
    p: Float[np.ndarray, " set"]
    """95% interval and p-value of beyond, as of `verdicts`."""
    p_adjusted: Float[np.ndarray, " set"]
    """Corrected over the sets."""


@dataclass(frozen=True, eq=False)
class BackupFinding:
    """Which heads stand in for one another."""

    items: tuple[LabelledText, ...]
    answers: BackupAnswers
    settings: AblationSettings

    @property
    def sets(self) -> tuple[Heads, ...]:
        """The sets of heads that were ablated together, chosen by what they look at."""
        return self.answers.sets

    @cached_property
    def score(self) -> Score:
        """How the outcomes of the texts are scored."""
        return self.settings.metric_settings.score_of(self.items)

    @property
    def documents(self) -> list[str | None]:
        """Document of each text; None where it is unknown."""
        return [item.text.document for item in self.items]

    @cached_property
    def alone(self) -> Float[np.ndarray, "layer head"]:
        """Damage by each head alone."""
        return damage(self.answers.alone, self.score).values(len(self.items))

    @cached_property
    def effects(self) -> JointEffects:
        """Damage by each set, and the test of what goes beyond that of its heads alone."""
        full, alone = (np.stack([getattr(text, name) for text in self.answers.alone]) for name in ("full", "without"))
        joint = changes(self.score, full, self.answers.together, self.documents)
        single = changes(self.score, full, alone, self.documents)
        is_in = self._is_in.reshape(len(self.sets), self.alone.size)
        by_unit, differs = (values.reshape(len(values), -1) for values in (single.by_unit, single.differs))
        beyond = Changes(
            delta=joint.delta - is_in @ np.nan_to_num(single.delta).ravel(),
            by_unit=joint.by_unit - np.nan_to_num(by_unit) @ is_in.T,
            differs=joint.differs | (differs @ is_in.T > 0),
        )
        tested, is_worse = verdicts(beyond, self.settings.resamples), self.score.sign > 0
        return JointEffects(
            together=self.score.sign * joint.delta,
            most_alone=np.where(self._is_in > 0, self.alone, -np.inf).max(axis=(1, 2)),
            beyond=self.score.sign * beyond.delta,
            low=tested.low if is_worse else -tested.high,
            high=tested.high if is_worse else -tested.low,
            p=tested.p,
            p_adjusted=adjusted(tested.p, self.settings.correction),
        )

    @property
    def distances(self) -> Float[np.ndarray, " set"]:
        """How differently the heads of each set attend: of three or more, the two that differ most."""
        between = nearer_way(self.answers.distances)
        return np.array([max(between[a][b] for a, b in combinations(heads, 2)) for heads in self.sets], float)

    @property
    def _is_in(self) -> Float[np.ndarray, "set layer head"]:
        """1 for the heads of each set."""
        return 1 - gates_of(self.sets, self.alone.shape)

    @cached_property
    def is_redundant(self) -> Bool[np.ndarray, " set"]:
        """Sets whose heads stand in for one another: at least half of the damage that they do together, which is clear,
        goes beyond what they do alone, and no set within one does as much."""
        found = self.effects
        greatest = max(np.nanmax(np.abs(self.alone)), found.together.max(initial=ROUNDING))
        is_clear = (found.together >= LEAST_DAMAGE * greatest) & (found.beyond >= HIDDEN * found.together)
        is_clear &= ~(found.p_adjusted >= ALPHA)  # where there is a test
        clear = [set(heads) for heads, holds in zip(self.sets, is_clear, strict=True) if holds]
        return is_clear & np.array([not any(smaller < set(heads) for smaller in clear) for heads in self.sets], bool)

    @property
    def redundant(self) -> list[int]:
        """Indices of these sets, the one that does most damage first."""
        return sorted(np.flatnonzero(self.is_redundant).tolist(), key=lambda index: -self.effects.together[index])

    @property
    def without_verdict(self) -> str:
        """How many sets have no interval and no p-value, and why; empty if all have them."""
        return without_verdict(self.effects.beyond, self.effects.p, self.documents)

    @property
    def facts(self) -> dict[str, str]:
        """Metadata of files."""
        return {
            **metric_facts(self.settings),
            "correction": self.settings.correction,
            **verdict_facts(self.effects.beyond, self.effects.p, self.documents, self.settings.resamples),
        }


def gates_of(sets: Sequence[Heads], shape: tuple[int, ...]) -> Float[np.ndarray, "set layer head"]:
    """Gates that switch the heads of one set off, of each set in turn."""
    gates = np.ones((len(sets), *shape))
    for row, heads in zip(gates, sets, strict=True):
        row[tuple(np.transpose(heads))] = 0
    return gates
