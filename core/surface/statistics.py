"""Surface statistics of every head and layer: means over texts, with confidence intervals, and labels of heads by them;
does not import torch."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.statistics.means import half_interval, moments, ratio
from attention_sieve.core.surface.labels import NEAR, RADIUS, offset_counts, rare_values
from attention_sieve.core.surface.per_text import KEY_KINDS, SHARES, SPREAD, TextGradients, TextSurface

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
    names: tuple[str, ...], of_texts: tuple[np.ndarray, np.ndarray, np.ndarray], alpha: float
) -> HeadStatistics:
    """Statistics from number, mean and sum of squared deviations over texts, each [statistic layer *head]."""
    n_texts, mean, squares = of_texts
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
