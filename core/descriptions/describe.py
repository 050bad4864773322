"""Describes every head by its facts, the one that it mostly does first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float

from core.attention.settings import Head
from core.descriptions.best_relations import best_relations
from core.descriptions.facts import Fact, HeadDescription, RelationFact, RoleFact, ShareFact, SpreadFact, Target
from core.relations.accuracy import TextPredictions
from core.roles.roles import COARSE_ROLES
from core.statistics.means import half_interval, moments
from core.surface.per_text import TextSurface
from core.surface.statistics import head_statistics

MOSTLY: Final = 0.5
"""Of a head's attention, or of the cases of a relation: what it does mostly."""
OTHERWISE: Final = 0.2
"""Of a head's attention: what is worth naming beside that."""
EVENLY: Final = 0.9
"""Of the entropy of evenly spread attention: attention without a focus."""
ON_TOKENS: Final[tuple[Target, ...]] = ("self", "previous", "next", "cls", "sep", "punctuation")
ONE_KEY: Final = ("self", "previous", "next", "cls")
"""Targets of a single key."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """What other analyses know of the heads of a checkpoint over some texts."""

    surface: Sequence[TextSurface]
    """Of each text."""
    predictions: Sequence[TextPredictions] | None = None
    """Of each text, with its trees; None where they are not known."""
    first_token: Float[np.ndarray, "text layer head"] | None = None
    """Share above chance of the first token of a causal model; NaN, or None, where that is not asked."""


def describe_heads(known: Known, alpha: float = 0.05) -> dict[Head, HeadDescription]:
    """What each head mostly does, and what otherwise.

    What a head gives more than MOSTLY of its attention to comes first. Next comes the relation that it finds, chosen on
    one half of the texts, if it is right in more than MOSTLY of the cases of the other half, and significantly more
    often than a fixed offset. Then follow the other targets with more than OTHERWISE of its attention. Only where there
    is none of these, it counts that attention is spread almost evenly.

    Args:
        known: of one or more texts.
        alpha: level of the tests; intervals cover 1 - alpha.
    """
    shares = _shares(known, alpha)
    relations = {} if known.predictions is None else best_relations(known.predictions, alpha)
    spread = _spread(known.surface)
    n_texts = len(known.surface)
    descriptions = {}
    for head in np.ndindex(spread.shape):
        of_head = sorted((of_target[head] for of_target in shares), key=lambda fact: -fact.share)
        found = relations.get(head)
        most = [fact for fact in of_head if fact.share > MOSTLY]
        some = [fact for fact in of_head if OTHERWISE < fact.share <= MOSTLY]
        relation = [] if found is None or not _is_found(found, alpha) else [found]
        facts: tuple[Fact, ...] = (*most, *relation, *some)
        if not facts and spread[head] > EVENLY:
            facts = (SpreadFact(ratio=float(spread[head])),)
        descriptions[head] = HeadDescription(head=head, n_texts=n_texts, facts=facts)
    return descriptions


def with_roles(
    descriptions: Mapping[Head, HeadDescription], holds: Bool[np.ndarray, "role layer head"]
) -> dict[Head, HeadDescription]:
    """The same, with the roles of each head that does nothing mostly; where it has one, even attention does not count.

    Args:
        descriptions: of every head.
        holds: which head holds which of COARSE_ROLES.
    """
    told = {}
    for head, description in descriptions.items():
        roles = [RoleFact(role=role) for role, held in zip(COARSE_ROLES, holds[:, *head], strict=True) if held]
        if roles and not any(_is_mostly(fact) for fact in description.facts):
            facts = [fact for fact in description.facts if not isinstance(fact, SpreadFact)]
            description = replace(description, facts=(*facts, *roles))
        told[head] = description
    return told


def _is_mostly(fact: Fact) -> bool:
    return isinstance(fact, RelationFact) or (isinstance(fact, ShareFact) and fact.share > MOSTLY)


def _is_found(fact: RelationFact, alpha: float) -> bool:
    return fact.accuracy > MOSTLY and fact.p_value < alpha


def _shares(known: Known, alpha: float) -> list[dict[Head, ShareFact]]:
    """By target and head; targets that no text has are left out."""
    statistics, even = head_statistics(known.surface, alpha), _even_share(known.surface)
    shares = []
    for target in ON_TOKENS:
        place = statistics.names.index(target)
        ends = (statistics.mean[place], statistics.low[place], statistics.high[place])
        shares.append(_facts(target, *ends, even if target in ONE_KEY else np.full(len(even), np.nan)))
    # The first token of some causal models is [CLS], or what stands for it.
    if known.first_token is not None and not shares[ON_TOKENS.index("cls")]:
        n_texts, mean, squares = moments(known.first_token)
        margin = half_interval(n_texts, squares, alpha)
        shares.append(_facts("first", mean, mean - margin, mean + margin, np.zeros(len(even))))
    return [of_target for of_target in shares if of_target]


def _facts(
    target: Target,
    mean: Float[np.ndarray, "layer head"],
    low: Float[np.ndarray, "layer head"],
    high: Float[np.ndarray, "layer head"],
    even: Float[np.ndarray, " layer"],
) -> dict[Head, ShareFact]:
    if np.isnan(mean).all():
        return {}
    return {
        (layer, head): ShareFact(
            target=target,
            share=float(mean[layer, head]),
            low=float(low[layer, head]),
            high=float(high[layer, head]),
            even=float(even[layer]),
        )
        for layer, head in np.ndindex(mean.shape)
    }


def _even_share(texts: Sequence[TextSurface]) -> Float[np.ndarray, " layer"]:
    """What evenly spread attention gives to one key: mean over the texts; NaN for a layer where a query sees a part."""
    n_keys = np.array([len(text.key_words) for text in texts])
    entropy = np.stack([text.uniform_entropy for text in texts])
    sees_all = np.isclose(entropy, np.log(n_keys)[:, None]).all(axis=0)
    return np.where(sees_all, (1 / n_keys).mean(), np.nan)


def _spread(texts: Sequence[TextSurface]) -> Float[np.ndarray, "layer head"]:
    """Mean entropy as a share of that of evenly spread attention; NaN where that is 0."""
    entropy = np.mean([text.entropy for text in texts], axis=0)
    uniform = np.mean([text.uniform_entropy for text in texts], axis=0)[:, None]
    return np.divide(entropy, uniform, out=np.full(entropy.shape, np.nan), where=uniform > 0)
