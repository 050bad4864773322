"""The texts in which a head does most clearly what it is said to do, and the links between words that show it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from core.attention.settings import Head
from core.descriptions.facts import Fact, HeadDescription, MentionFact, RelationFact, ShareFact, Target
from core.descriptions.mentions import ReadMentions
from core.relations.accuracy import DIRECTIONS, TextPredictions
from core.surface.per_text import SHARES, TextSurface
from core.texts.text import Text
from core.texts.words import Words

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


@dataclass(frozen=True, eq=False, kw_only=True)
class Example:
    """A text in which a head does something clearly."""

    text: Text
    words: Words
    links: tuple[Link, ...]
    """Words that show it."""


def examples(
    description: HeadDescription,
    texts: Sequence[Text],
    surface: Sequence[TextSurface],
    predictions: Sequence[TextPredictions] | None,
    mentions: ReadMentions | None = None,
) -> tuple[Fact | None, tuple[Example, ...]]:
    """The fact that links between words can show, and the texts that show it most clearly, the clearest first.

    A relation, and what a mention refers to, are shown by the texts in which most words with it are right, less those
    that are wrong; the previous or next token by the texts in which it gets the most attention. Only words whose most
    attended other word (for mentions: earlier mention) it is are linked. Of equally clear texts the shorter one comes
    first.

    Args:
        description: of the head.
        texts, surface: that it was described over.
        predictions: of each of these texts; None where they are not known.
        mentions: that it was described over besides.

    Returns: None and no example where no fact can be shown by links.
    """
    for fact in description.facts:
        if isinstance(fact, MentionFact) and mentions is not None:
            return fact, _clearest(_mention_examples(mentions, description.head))
        if predictions is None:
            continue
        if isinstance(fact, RelationFact):
            of_texts = [_relation_links(text, fact, description.head) for text in predictions]
        elif isinstance(fact, ShareFact) and fact.target in OFFSETS:
            of_texts = [
                _offset_links(text, of_text, fact.target, description.head)
                for text, of_text in zip(predictions, surface, strict=True)
            ]
        else:
            continue
        words = [of_text.dependencies.words for of_text in predictions]
        return fact, _clearest(
            [
                (clearness, Example(text=text, words=own, links=links))
                for text, own, (clearness, links) in zip(texts, words, of_texts, strict=True)
            ]
        )
    return None, ()


def _clearest(of_texts: Sequence[tuple[float, Example]]) -> tuple[Example, ...]:
    in_order = sorted(of_texts, key=lambda one: (-one[0], len(one[1].words.segments)))
    # Of equal texts one is enough.
    once = {example.text.segments: example for _, example in reversed(in_order) if example.links}
    chosen = [example for _, example in in_order if once.get(example.text.segments) is example][:N_EXAMPLES]
    return tuple(replace(example, links=example.links[:MOST_LINKS]) for example in chosen)


def _mention_examples(mentions: ReadMentions, head: Head) -> list[tuple[float, Example]]:
    """Mentions whose choice is right less those whose is wrong, and the links of the right ones, nearest first."""
    found = []
    for text, choices in zip(mentions.texts, mentions.choices, strict=True):
        cases = [
            (mention.head, int(choices.mentions[*head, place]), [text.mentions[before].head for before in antecedents])
            for place, (mention, antecedents) in enumerate(zip(text.mentions, text.antecedents))
            if antecedents and choices.is_read[place]
        ]
        right = sorted(
            ((query, chosen) for query, chosen, antecedents in cases if chosen in antecedents),
            key=lambda pair: pair[0] - pair[1],
        )
        links = _links(np.array(right, int).reshape(-1, 2))
        found.append((2.0 * len(right) - len(cases), Example(text=text.text, words=text.words, links=links)))
    return found


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
