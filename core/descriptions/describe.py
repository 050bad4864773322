"""Describes every head by facts, with what it mostly does first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.descriptions import accuracies
from attention_sieve.core.relations.cases import TextPredictions
from attention_sieve.core.roles.record import Keys
from attention_sieve.core.roles.roles import role_named
from attention_sieve.core.statistics.means import half_interval, moments
from attention_sieve.core.surface.per_text import PUNCTUATION, SHARES, TextSurface
from attention_sieve.core.surface.statistics import HeadStatistics, head_statistics

OTHERWISE: Final = 0.2
"""Share of a head's attention above which a target is also named."""
EVENLY: Final = 0.9
"""Share of the entropy of uniform attention above which attention has no focus."""
LEAST_TEXTS: Final = 10
"""Minimum number of texts in each half by length for shares to be told by halves."""
ON_TOKENS: Final[tuple[accuracies.Target, ...]] = ("self", "previous", "next", "cls", "sep", "punctuation")


@dataclass(frozen=True, eq=False, kw_only=True)
class Known:
    """Results of other analyses of the heads of a checkpoint over some texts."""

    surface: Sequence[TextSurface]
    """Of each text."""
    predictions: Sequence[TextPredictions] | None = None
    """Of each text, with its trees; None if they are not available."""
    mentions: accuracies.ReadMentions | None = None
    """Of other texts with gold mentions; None if there are none."""
    first_token: Float[np.ndarray, "text layer head"] | None = None
    """Share above chance of the first token of a causal model; NaN, or None, where it is not computed."""
    others: "Known | None" = None
    """Of texts of other kinds, on which all that is found on these is judged; None for none."""


def describe_heads(known: Known, alpha: float = 0.05) -> dict[Head, accuracies.HeadDescription]:
    """What each head mostly does, and what else it does.

    First come the targets of most of the head's attention (`is_mostly`), in shorter and in longer texts, if uniform
    attention would give them clearly less. Next comes the relation that it predicts, selected on one half of the texts,
    if it is mostly right on the other half, and significantly more often than a fixed offset; and, by the same rule,
    that it follows mentions, against two simple guesses. On both halves, the accuracy has to lie clearly above that of
    the best guess, and to be mostly right where this is wrong (`surpluses`). Then come other targets with more than
    OTHERWISE of its attention. Almost uniform attention is a fact only if there is none of these. Where there are other
    texts, what is a fact on the texts has to be one on them, too, and their numbers are told.

    Args:
        known: of one or more texts.
        alpha: level of the tests; intervals cover 1 - alpha.
    """
    judged = known.others or known
    others = () if known.others is None else judged.predictions or ()
    chosen, shares = _shares(known, alpha), _shares(judged, alpha)
    relations = {} if known.predictions is None else accuracies.best_relations(known.predictions, alpha, others)
    mentions = {} if known.mentions is None else accuracies.followed_mentions(known.mentions, alpha)
    spread, sight = _spread(judged.surface), _sight(judged.surface)
    counts = {"n_texts": len(known.surface), "n_others": 0 if known.others is None else len(judged.surface)}
    descriptions = {}
    for head in np.ndindex(spread.shape):
        targets = {facts_by_head[head].target for facts_by_head in chosen if _is_named(facts_by_head[head])}
        share_facts = sorted((facts_by_head[head] for facts_by_head in shares), key=lambda fact: -fact.share)
        share_facts = [fact for fact in share_facts if _is_named(fact) and fact.target in targets]
        accuracy_facts = [fact for fact in (relations.get(head), mentions.get(head)) if fact and is_told(fact, alpha)]
        mostly = [fact for fact in share_facts if is_mostly(fact)]
        partly = [fact for fact in share_facts if not is_mostly(fact)]
        facts: tuple[accuracies.Fact, ...] = (*mostly, *accuracy_facts, *partly)
        if not facts and spread[head] > EVENLY:
            facts = (accuracies.SpreadFact(ratio=float(spread[head])),)
        descriptions[head] = accuracies.HeadDescription(head=head, sight=sight, facts=facts, **counts)
    return descriptions


def with_roles(
    descriptions: Mapping[Head, accuracies.HeadDescription],
    holds: Bool[np.ndarray, "role layer head"],
    names: tuple[str, ...],
) -> dict[Head, accuracies.HeadDescription]:
    """Add the roles of each head that does nothing mostly; they replace the fact that its attention is almost uniform.

    A head that mostly rests, on a special token or the like, has those roles that say where it looks from each token.

    Args:
        descriptions: of every head.
        holds: which head holds which role.
        names: along the role axis.
    """
    updated = {}
    for head, description in descriptions.items():
        held = [name for name, is_held in zip(names, holds[:, *head], strict=True) if is_held]
        mostly = [fact for fact in description.facts if is_mostly(fact)]
        if mostly:
            rests = all(isinstance(fact, accuracies.ShareFact) and fact.target in accuracies.RESTS for fact in mostly)
            held = [name for name in held if rests and not isinstance(role_named(name).sieve, Keys)]
        if roles := [accuracies.RoleFact(role=name) for name in held]:
            facts = [fact for fact in description.facts if not isinstance(fact, accuracies.SpreadFact)]
            description = replace(description, facts=(*facts, *roles))
        updated[head] = description
    return updated


def is_mostly(fact: accuracies.Fact) -> bool:
    """Whether the interval of a share or accuracy is above MOSTLY; without an interval, whether the share is."""
    match fact:
        case accuracies.ShareFact():
            return (fact.share if np.isnan(fact.low) else fact.low) > accuracies.MOSTLY
        case accuracies.RelationFact() | accuracies.MentionFact():
            return fact.low > accuracies.MOSTLY
        case _:
            return False


def is_told(fact: accuracies.RelationFact | accuracies.MentionFact, alpha: float) -> bool:
    """Whether a sentence tells how often a head is right; alpha is the level of its test."""
    return fact.surplus > 0 and is_mostly(fact) and fact.p_value < alpha


def _is_named(fact: accuracies.ShareFact) -> bool:
    """Whether a share is large, and its interval, or with one text the share, is above that of uniform attention."""
    lower = fact.share if np.isnan(fact.low) else fact.low
    return fact.share > OTHERWISE and bool(np.isnan(fact.even) or lower > fact.even)


def _sight(texts: Sequence[TextSurface]) -> accuracies.Sight:
    if not any(text.has_offsets for text in texts):
        return "across"
    sees_next = any(np.isfinite(text.shares[SHARES.index("next")]).any() for text in texts)
    return "around" if sees_next else "back"


def _shares(known: Known, alpha: float) -> list[dict[Head, accuracies.ShareFact]]:
    """By target and head; targets that no text has are left out.

    Shares change with the length of texts, those of [CLS] by a third between 20 and 40 tokens. So with enough texts the
    share of each head is that over the shorter half of them or over the longer one, whichever is less.
    """
    by_length = np.argsort([len(text.key_words) for text in known.surface], kind="stable")
    n_half = len(by_length) // 2
    if n_half < LEAST_TEXTS:
        return _shares_over(known, alpha)
    halves = [_shares_over(_part(known, half), alpha) for half in (by_length[:n_half], by_length[n_half:])]
    by_target: dict[accuracies.Target, dict[Head, accuracies.ShareFact]] = {}
    for fact in (fact for half in halves for facts_by_head in half for fact in facts_by_head.items()):
        head, share = fact
        shares = by_target.setdefault(share.target, {})
        other = shares.get(head, share)
        lesser = other if other.share <= share.share else share
        shares[head] = replace(lesser, corrected_low=min(other.corrected_low, share.corrected_low))
    return list(by_target.values())


def _part(known: Known, places: Int[np.ndarray, " _"]) -> Known:
    """The shares of attention of some of the texts."""
    surface = [known.surface[place] for place in places.tolist()]
    return Known(surface=surface, first_token=None if known.first_token is None else known.first_token[places])


def _shares_over(known: Known, alpha: float) -> list[dict[Head, accuracies.ShareFact]]:
    statistics, even = head_statistics(known.surface, alpha), _even_shares(known.surface)
    different = list({id(text): place for place, text in enumerate(known.surface)}.values())  # equal texts share one
    n_heads = int(np.isfinite(statistics.mean).any(axis=0).sum())
    corrected = alpha / max(1, n_heads * (len(ON_TOKENS) + (known.first_token is not None)))
    of_different = statistics
    if len(different) < len(known.surface):
        of_different = head_statistics([known.surface[place] for place in different], alpha)
    sure = _low(of_different, alpha, corrected)
    shares = []
    for target in ON_TOKENS:
        index = statistics.names.index(target)
        low, high = np.maximum(statistics.low[index], 0), np.minimum(statistics.high[index], 1)
        shares.append(_facts(target, statistics.mean[index], (low, high, sure[index]), even[target]))
    # The first token of some causal models is [CLS] or its equivalent.
    if known.first_token is not None and not shares[ON_TOKENS.index("cls")]:
        n_texts, mean, squares = moments(known.first_token)
        margin = half_interval(n_texts, squares, alpha)
        n_different, different_mean, different_squares = moments(known.first_token[different])
        sure_of_first = different_mean - half_interval(n_different, different_squares, corrected)
        ends = (mean - margin, np.minimum(mean + margin, 1), sure_of_first)
        shares.append(_facts("first", mean, ends, np.zeros(len(mean))))
    return [facts_of_target for facts_of_target in shares if facts_of_target]


def _low(statistics: HeadStatistics, alpha: float, corrected: float) -> Float[np.ndarray, "statistic layer head"]:
    """Lower ends of intervals at a corrected level, from those at alpha: computing all again would take most of the
    time of the descriptions."""
    from scipy.special import stdtrit  # takes a quarter of a second

    freedom = statistics.n_texts - 1
    wider = stdtrit(freedom, corrected / 2) / stdtrit(freedom, alpha / 2)
    return np.asarray(statistics.mean - wider[:, None, None] * (statistics.mean - statistics.low))


def _facts(
    target: accuracies.Target,
    mean: Float[np.ndarray, "layer head"],
    ends: tuple[Float[np.ndarray, "layer head"], ...],
    even: Float[np.ndarray, " layer"],
) -> dict[Head, accuracies.ShareFact]:
    """Facts about one target; `ends` are the two of the interval, and the lower one of the corrected interval."""
    if np.isnan(mean).all():
        return {}
    return {
        (layer, head): accuracies.ShareFact(
            target=target,
            share=float(mean[layer, head]),
            low=float(ends[0][layer, head]),
            high=float(ends[1][layer, head]),
            even=float(even[layer]),
            corrected_low=float(ends[2][layer, head]),
        )
        for layer, head in np.ndindex(mean.shape)
    }


def _even_shares(texts: Sequence[TextSurface]) -> dict[accuracies.Target, Float[np.ndarray, " layer"]]:
    """Share of uniform attention on each target, mean over the texts; NaN for a layer in which it is not known.

    It is known where every token sees all others, and, for targets at a fixed position, where it sees the earlier ones.
    """
    shares = [_even_shares_of(text) for text in texts if len(text.key_words) > 1]
    unknown = np.full(len(texts[0].uniform_entropy), np.nan)
    return {
        target: np.mean([text_shares[target] for text_shares in shares], axis=0) if shares else unknown
        for target in ON_TOKENS
    }


def _even_shares_of(text: TextSurface) -> dict[accuracies.Target, Float[np.ndarray, " layer"]]:
    n_keys, n_seen = len(text.key_words), np.arange(1, len(text.key_words) + 1)
    sees_all = np.isclose(text.uniform_entropy, np.log(n_keys))
    sees_back = np.isclose(text.uniform_entropy, np.log(n_seen).mean())
    has_cls = np.isfinite(text.shares[SHARES.index("cls")]).any()
    n_targets = {
        "sep": max(0, text.key_words.count("") - int(has_cls)),
        "punctuation": sum(word in PUNCTUATION for word in text.key_words),
    }
    back = {"self": (1 / n_seen).mean(), "cls": (1 / n_seen).mean(), "previous": (1 / n_seen[1:]).mean()}
    return {
        target: np.where(
            sees_all, n_targets.get(target, 1) / n_keys, np.where(sees_back, back.get(target, np.nan), np.nan)
        )
        for target in ON_TOKENS
    }


def _spread(texts: Sequence[TextSurface]) -> Float[np.ndarray, "layer head"]:
    """Mean entropy as a share of that of uniform attention; NaN where that is 0."""
    entropy = np.mean([text.entropy for text in texts], axis=0)
    uniform = np.mean([text.uniform_entropy for text in texts], axis=0)[:, None]
    return np.divide(entropy, uniform, out=np.full(entropy.shape, np.nan), where=uniform > 0)
