"""Surface statistics of every head and layer: means over texts, with confidence intervals, and labels of heads by them:
positional, to rare words, and others; does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float, Int

from attention_sieve.core.statistics.means import half_interval, moments, ratio
from attention_sieve.core.surface.per_text import KEY_KINDS, SHARES, SPREAD, TextGradients, TextSurface

RARE: Final = ("on rarest", "on two rarest", "column rarest")
"""Statistics that need ranks of words."""
RADIUS: Final = 5
"""Largest offset that is distinguished, on each side."""
OFFSETS: Final = tuple(range(-RADIUS, RADIUS + 1))
"""Most attended key minus query; -1 is the previous token."""
NEAR: Final = {-1: "top previous", 0: "top self", 1: "top next"}
"""Offset -> name of the statistic that is its share."""
POSITIONAL_SHARE: Final = 0.90
"""Voita et al. 2019, section 5.1."""
RARE_SHARE: Final = 0.5
"""Voita et al. 2019, section 5.3, report heads that point to one of the two rarest tokens in more than half of the
cases; they give no rule."""
RARE_OVER_CHANCE: Final = 2.0
"""Required ratio to a head that attends to random tokens: in a text of four words, half of its choices are among the
two rarest."""
FREQUENT: Final = 500
"""A text has rare words if any word is not among this many most frequent ones."""


@dataclass(frozen=True, eq=False, kw_only=True)
class PositionalHeads:
    """Heads that attend to one position relative to the query."""

    holds: Bool[np.ndarray, "layer head"]
    offset: Int[np.ndarray, "layer head"]
    """The most frequent offset of each head, positional or not; -1 is the previous token. Meaningless where share is
    NaN."""
    share: Float[np.ndarray, "layer head"]
    """Share of the tokens with a key at that offset whose most attended key it is; NaN without such a token."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RareShares:
    """How often heads attend most to the rarest words: means over the texts with a rare word."""

    rarest: Float[np.ndarray, "layer head"]
    """Share of queries whose most attended key is part of the text's rarest word; NaN without such texts."""
    two_rarest: Float[np.ndarray, "layer head"]
    """The same of one of the two rarest words."""
    column: Float[np.ndarray, "layer head"]
    """Share of texts in which the key that gets most attention of all queries together is part of the rarest word."""
    chance: float
    """Expected `two_rarest` of a head that attends to random tokens; NaN without such texts."""
    n_texts: int
    """Number of texts with a rare word."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadLabels:
    """Labels of every head by its most attended keys."""

    positional: PositionalHeads
    rare: Bool[np.ndarray, "layer head"]


def offset_shares(texts: Sequence[TextSurface]) -> Float[np.ndarray, "offset layer head"]:
    """How often each head attends most to the key at an offset.

    Keys and queries that are special tokens are left out, as Voita et al. leave out their end mark. All tokens of all
    texts count alike.

    Returns: by OFFSETS the share of the tokens that have a key there (the first token of a segment has no previous
        one), then the share of all tokens whose most attended key is further away; NaN where no token counts.
    Source: Voita et al. 2019, section 5.1. They do not state how tokens at the edge are treated; here a head that
        always attends to the previous token has a share of 1 in short texts, too.
    """
    counts, possible = _pooled_counts(texts)
    return np.where(counts.any(axis=0), ratio(counts, np.broadcast_to(possible[:, None, None], counts.shape)), np.nan)


def positional(texts: Sequence[TextSurface]) -> PositionalHeads:
    """Heads whose most attended key is at one offset for at least POSITIONAL_SHARE of the tokens.

    The offset must exist for more than half of the tokens, so that no head is positional because of the ends of texts.
    Source: Voita et al. 2019, section 5.1.
    """
    return positional_of_counts(*_pooled_counts(texts))


def positional_of_counts(
    counts: Int[np.ndarray, "offset layer head"], possible: Int[np.ndarray, " offset"]
) -> PositionalHeads:
    """Positional heads, as `positional`, from the sums of `offset_counts` over texts."""
    counts_at_offsets, possible_at_offsets = counts[:-1], possible[:-1]
    offset = counts_at_offsets.argmax(axis=0)
    n_tokens = possible_at_offsets[RADIUS]  # every token has a key at offset 0
    share = np.where(counts.any(axis=0), ratio(counts_at_offsets.max(axis=0), possible_at_offsets[offset]), np.nan)
    holds = (share >= POSITIONAL_SHARE) & (2 * possible_at_offsets[offset] > n_tokens)
    return PositionalHeads(holds=holds, offset=offset - RADIUS, share=share)


def _pooled_counts(
    texts: Sequence[TextSurface],
) -> tuple[Int[np.ndarray, "offset layer head"], Int[np.ndarray, " offset"]]:
    counts = [offset_counts(text) for text in texts]
    return sum(text_counts for text_counts, _ in counts), sum(text_possible for _, text_possible in counts)  # type: ignore[return-value]


def offset_counts(text: TextSurface) -> tuple[Int[np.ndarray, "offset layer head"], Int[np.ndarray, " offset"]]:
    """Tokens whose most attended key is at each of OFFSETS or further away, and the tokens that have such a key.

    A text of a single token does not count: it has nothing else to attend to. A head that was removed has no tokens.
    """
    is_counted = text.top_key[0, 0] >= 0
    if not text.has_offsets or is_counted.sum() < 2:
        n_offsets = len(OFFSETS) + 1
        return np.zeros((n_offsets, *text.top_column.shape), dtype=int), np.zeros(n_offsets, dtype=int)
    tokens = np.flatnonzero(is_counted)
    offsets = text.top_key[..., tokens] - tokens
    counts_at_offsets = np.stack([(offsets == offset).sum(-1) for offset in OFFSETS])
    possible = [np.isin(tokens + offset, tokens).sum() for offset in OFFSETS]
    counts = np.concatenate([counts_at_offsets, [len(tokens) - counts_at_offsets.sum(0)]]) * ~np.isnan(text.confidence)
    return counts, np.array([*possible, len(tokens)])


def rare_shares(texts: Sequence[TextSurface], ranks: Sequence[Int[np.ndarray, "_"]]) -> RareShares:
    """How often each head attends most to a text's rarest words.

    Args:
        texts: only those with a word of a higher rank than FREQUENT count.
        ranks: of the word that each key of each text is part of, 1 for the most frequent; 0 for a key of no word.

    Source: Voita et al. 2019, section 5.3. They do not state whether they use the most attended key of every token or
        of the whole text; both are computed. Equally rare words count as one, and so do the pieces of a word.
    """
    by_text = [rare_values(text, text_ranks) for text, text_ranks in zip(texts, ranks, strict=True)]
    chances = np.array([chance for text_ranks in ranks if not np.isnan(chance := rare_chance(text_ranks))])
    rarest, two_rarest, column = (moments(np.stack([values[name] for values in by_text]))[1] for name in RARE)
    return RareShares(
        rarest=rarest,
        two_rarest=two_rarest,
        column=column,
        chance=float(chances.mean()) if len(chances) else float("nan"),
        n_texts=len(chances),
    )


def rare_values(text: TextSurface, ranks: Int[np.ndarray, " key"]) -> dict[str, Float[np.ndarray, "layer head"]]:
    """Statistics in RARE of one text; NaN for a text without a rare word."""
    if ranks.max() <= FREQUENT:
        return dict.fromkeys(RARE, np.full(text.top_column.shape, np.nan))
    is_rarest = ranks == ranks.max()
    tops = text.top_key[..., text.top_key[0, 0] >= 0]
    shares = (is_rarest[tops].mean(-1), _two_rarest(ranks)[tops].mean(-1), is_rarest[text.top_column].astype(float))
    return {name: np.where(np.isnan(text.confidence), np.nan, share) for name, share in zip(RARE, shares)}


def rare_chance(ranks: Int[np.ndarray, " key"]) -> float:
    """Share of the words of a text that are among its two rarest; NaN for a text without a rare word."""
    if ranks.max() <= FREQUENT:
        return float("nan")
    return float(_two_rarest(ranks).sum() / (ranks > 0).sum())


def _two_rarest(ranks: Int[np.ndarray, " key"]) -> Bool[np.ndarray, " key"]:
    return (ranks > 0) & (ranks >= np.unique(ranks)[-2:][0])


def head_labels(positional: PositionalHeads, rare: RareShares) -> HeadLabels:
    """Label each head by its most attended keys.

    A head is rare when it attends most to one of the two rarest words from more than RARE_SHARE of the tokens, at least
    RARE_OVER_CHANCE times as often as a head that attends to random tokens, and is not positional: in short texts
    the previous token is often a rare one.
    """
    often = rare.two_rarest > max(RARE_SHARE, RARE_OVER_CHANCE * rare.chance)
    return HeadLabels(positional=positional, rare=often & ~positional.holds)


OF_KEYS: Final = (*KEY_KINDS, "sep from others")
"""Shares that are 0 for a text without such a key."""
BEHAVIOURS: Final = ("next", "previous", "broad", "cls", "sep", "punctuation")
"""Labels of a head; if several apply, the last one is used."""
BROAD: Final = 3.8
"""Entropy in nats above which a head is labelled broad."""
THRESHOLDS: Final = {"next": 0.5, "previous": 0.5, "entropy": BROAD, "cls": 0.6, "sep": 0.6, "punctuation": 0.6}
"""Statistic -> threshold for a head's mean, in the order of BEHAVIOURS."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadStatistics:
    """Statistics of every head, or of every layer, over many texts."""

    names: tuple[str, ...]
    """Of heads SHARES, SPREAD, then statistics of the most attended keys: NEAR, and RARE if ranks were given."""
    mean: Float[np.ndarray, "statistic layer *head"]
    """Mean over the texts for which it is defined; NaN if there are none. If any text has a kind of key, the share is 0
    for texts without it, so that the means of KEY_KINDS, NaN aside, sum to 1."""
    low: Float[np.ndarray, "statistic layer *head"]
    high: Float[np.ndarray, "statistic layer *head"]
    """Interval of the mean (t distribution over texts); NaN for fewer than 2 texts."""
    n_texts: Int[np.ndarray, " statistic"]

    def of(self, name: str) -> Float[np.ndarray, "layer *head"]:
        """Means of one statistic."""
        return self.mean[self.names.index(name)]


def statistics_of_moments(
    names: tuple[str, ...], text_moments: tuple[np.ndarray, np.ndarray, np.ndarray], alpha: float
) -> HeadStatistics:
    """Statistics from number, mean and sum of squared deviations over texts, each [statistic layer *head]."""
    n_texts, mean, squares = text_moments
    margin = half_interval(n_texts, squares, alpha)
    n_most = n_texts.reshape(len(names), -1).max(axis=1)
    return HeadStatistics(names=names, mean=mean, low=mean - margin, high=mean + margin, n_texts=n_most)


def head_statistics(
    texts: Sequence[TextSurface], alpha: float = 0.05, ranks: Sequence[Int[np.ndarray, "_"]] | None = None
) -> HeadStatistics:
    """Statistics of every head: means over texts of each text's value, with intervals.

    Intervals cover 1 - alpha. `ranks` are as for `rare_shares`; None leaves RARE out.
    """
    by_text = [text_values(text) for text in texts]
    if ranks is not None:
        for values_of_text, text, text_ranks in zip(by_text, texts, ranks, strict=True):
            values_of_text |= rare_values(text, text_ranks)
    names = tuple(by_text[0])
    values = np.stack([np.stack([values_of_text[name] for name in names]) for values_of_text in by_text])
    key_shares = [names.index(name) for name in OF_KEYS]
    absent = np.isnan(values[:, key_shares])  # of a head that was removed in every text
    values[:, key_shares] = np.where(absent & ~absent.all(axis=0), 0, values[:, key_shares])
    return statistics_of_moments(names, moments(values), alpha)


def layer_statistics(texts: Sequence[TextSurface], alpha: float = 0.05) -> HeadStatistics:
    """Agreement within layers: means over texts, with intervals.

    Source: Michel et al. 2019, their code: the sum over all pairs of heads, each head with itself included, over the
    square of their number; their disagreement is its negative.
    """
    values = np.stack([np.stack([text.agreement, text.output_agreement]) for text in texts])
    return statistics_of_moments(("agreement", "output agreement"), moments(values), alpha)


def gradient_statistics(texts: Sequence[TextGradients], alpha: float = 0.05) -> HeadStatistics:
    """Gradient of the loss with respect to attention to each of KEY_KINDS: means over texts, with intervals."""
    return statistics_of_moments(KEY_KINDS, moments(np.stack([text.importance for text in texts])), alpha)


def uniform_entropy(texts: Sequence[TextSurface]) -> tuple[Float[np.ndarray, " layer"], Float[np.ndarray, " layer"]]:
    """Mean entropy of uniform attention on these texts, over all queries and over the [CLS] query, in nats."""
    entropies = np.stack([np.stack([text.uniform_entropy, text.cls_uniform_entropy]) for text in texts])
    all_queries, cls_query = moments(entropies)[1]
    return all_queries, cls_query


def text_values(text: TextSurface) -> dict[str, Float[np.ndarray, "layer head"]]:
    """SHARES, SPREAD and NEAR of every head on one text; NaN where a statistic is not defined."""
    spread = (text.entropy, text.cls_entropy, text.confidence, text.distance)
    counts, possible = offset_counts(text)
    near = {
        name: np.where(counts.any(axis=0), ratio(counts[offset + RADIUS], np.array(possible[offset + RADIUS])), np.nan)
        for offset, name in NEAR.items()
    }
    return {**dict(zip(SHARES, text.shares)), **dict(zip(SPREAD, spread)), **near}


def behaviours(statistics: HeadStatistics) -> Int[np.ndarray, "layer head"]:
    """Label of each head by its mean statistics, as an index into BEHAVIOURS; -1 for none.

    Source: Clark et al. 2019, section 6 and their code: more than half of the attention on the next or the previous
        token, more than 3.8 nats of entropy, or more than 0.6 on [CLS], [SEP] or punctuation; of several labels the
        last. The linguistic heads that they add by hand are specific to BERT-base, so they are left out.
    """
    labels = np.full(statistics.mean.shape[1:], -1)
    for index, (name, threshold) in enumerate(THRESHOLDS.items()):
        means = statistics.mean[statistics.names.index(name)]
        labels[means > threshold] = index  # NaN exceeds nothing
    return labels
