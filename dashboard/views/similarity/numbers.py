"""Data of the page Similar heads: distances over the chosen texts, and their layouts."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.similarity.distances import Distances, HeadDistances
from attention_sieve.dashboard.controls import memory

if TYPE_CHECKING:
    from attention_sieve.core.similarity.layout import HeadPlane, HeadTree
    from attention_sieve.dashboard.figures.similarity.head_kinds import HeadKinds
    from attention_sieve.dashboard.views.descriptions.sentences import Sentences

HOW_FAR_KEY: Final = "similarity distance"
MEAN_UNIT: Final = "nats"
SUM_UNIT: Final = "summed nats"


@dataclass(frozen=True, eq=False, kw_only=True)
class Arranged:
    divergences: HeadDistances
    distances: Distances
    """The distances that are shown."""
    plane: "HeadPlane"
    tree: "HeadTree"


@dataclass(frozen=True, eq=False, kw_only=True)
class Similar:
    engine: Engine
    arranged: Arranged
    unit: str
    kinds: "HeadKinds"
    heads: list[Head]
    """The chosen heads; the others are compared with the last one."""
    facts: dict[str, str]
    sentences: "Sentences | None"
    """What each head mostly does over the corpus; None if unknown."""
    patterns: list[list[str]] | None
    """The mark of each head on the map, by layer: its pattern in one sentence; None where it cannot read one alone."""


def arranged(measured: HeadDistances, *, smoothed: bool) -> Arranged:
    """Distances of two heads or more, and their layouts, cached between clicks; of smoothed rows the authors' sum."""
    from attention_sieve.core.similarity.layout import head_plane, head_tree  # which the card of a head does without

    distances = measured.sum if smoothed else measured.mean

    def laid_out() -> Arranged:
        plane, tree = head_plane(distances), head_tree(distances)
        return Arranged(divergences=measured, distances=distances, plane=plane, tree=tree)

    return memory().get_or_put("arranged", measured, laid_out)
