"""The texts in which a head does most clearly what it is said to do, and the words that show it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.attention.settings import Head
from core.descriptions.facts import Fact, HeadDescription, RelationFact, ShareFact, Target
from core.relations.accuracy import DIRECTIONS, TextPredictions
from core.surface.per_text import SHARES, TextSurface

N_EXAMPLES: Final = 3
MOST_LINKS: Final = 3
"""Of an example: more would mark every word."""
OFFSETS: Final[dict[Target, int]] = {"previous": -1, "next": 1}
"""Targets that words can show, and where the word looked at stands."""


@dataclass(frozen=True, kw_only=True)
class Link:
    """A word and the word that it looks at."""

    query: int
    key: int


@dataclass(frozen=True, kw_only=True)
class Example:
    """A text in which a head does something clearly."""

    position: int
    """Place of the text among those given."""
    links: tuple[Link, ...]
    """Words that show it, by their place in the text's tree."""


def examples(
    description: HeadDescription, surface: Sequence[TextSurface], predictions: Sequence[TextPredictions]
) -> tuple[Fact | None, tuple[Example, ...]]:
    """The fact that words can show, and the texts that show it most clearly, the clearest first.

    A relation is shown by the texts in which most words with it are right, less those that are wrong; the previous or
    next token by the texts in which it gets the most attention. Only words whose most attended other word it is are
    linked. Of equally clear texts the shorter one comes first.

    Args:
        description: of the head.
        surface, predictions: of each text that it was described over.

    Returns: None and no example where no fact can be shown by words.
    """
    for fact in description.facts:
        if isinstance(fact, RelationFact):
            of_texts = [_relation_links(text, fact, description.head) for text in predictions]
        elif isinstance(fact, ShareFact) and fact.target in OFFSETS:
            of_texts = [
                _offset_links(text, of_text, fact.target, description.head)
                for text, of_text in zip(predictions, surface, strict=True)
            ]
        else:
            continue
        return fact, _clearest(of_texts, predictions)
    return None, ()


def _clearest(
    of_texts: Sequence[tuple[float, tuple[Link, ...]]], predictions: Sequence[TextPredictions]
) -> tuple[Example, ...]:
    order = sorted(range(len(of_texts)), key=lambda place: (-of_texts[place][0], len(predictions[place].has_tokens)))
    # Equal texts share one result, and one of them is enough.
    first = {id(predictions[place]): place for place in reversed(order) if of_texts[place][1]}
    chosen = sorted(first.values(), key=order.index)[:N_EXAMPLES]
    return tuple(Example(position=place, links=of_texts[place][1][:MOST_LINKS]) for place in chosen)


def _relation_links(text: TextPredictions, fact: RelationFact, head: Head) -> tuple[float, tuple[Link, ...]]:
    """Words with a relation that are right less those that are wrong, and the links of the right ones."""
    tree = text.dependencies
    dependents = np.flatnonzero(np.array([name == fact.relation for name in tree.relations], bool))
    predicted = text.predicted[DIRECTIONS.index(fact.direction)][*head][dependents]
    right = dependents[predicted == tree.heads[dependents]]
    pairs = np.stack([right, tree.heads[right]], axis=1)
    return 2.0 * len(right) - len(dependents), _links(pairs if fact.direction == DIRECTIONS[0] else pairs[:, ::-1])


def _offset_links(
    text: TextPredictions, surface: TextSurface, target: Target, head: Head
) -> tuple[float, tuple[Link, ...]]:
    """The attention to a neighbouring token, and the words whose most attended other word stands there."""
    attended = text.predicted[0][*head]
    words = np.arange(len(attended))
    at_offset = words[(attended >= 0) & (attended == words + OFFSETS[target])]
    share = _of(surface.shares, target, head)
    return share if np.isfinite(share) else 0.0, _links(np.stack([at_offset, attended[at_offset]], axis=1))


def _of(shares: Float[np.ndarray, "share layer head"], target: Target, head: Head) -> float:
    return float(shares[SHARES.index(target)][*head])


def _links(pairs: Int[np.ndarray, "link 2"]) -> tuple[Link, ...]:
    """Links that share no word, so that each marked word has one meaning."""
    links: list[Link] = []
    taken: set[int] = set()
    for query, key in pairs.tolist():
        if not taken & {query, key}:
            taken |= {query, key}
            links.append(Link(query=query, key=key))
    return tuple(links)
