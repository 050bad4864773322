"""Labels each head by the target of most of its attention. Does not import torch."""

from typing import Final

import numpy as np
from jaxtyping import Int

from attention_sieve.core.surface.statistics import HeadStatistics

BEHAVIOURS: Final = ("next", "previous", "broad", "cls", "sep", "punctuation")
"""Labels of a head; if several apply, the last one is used."""
BROAD: Final = 3.8
"""Entropy in nats above which a head is labelled broad."""
THRESHOLDS: Final = {"next": 0.5, "previous": 0.5, "entropy": BROAD, "cls": 0.6, "sep": 0.6, "punctuation": 0.6}
"""Statistic -> threshold for a head's mean, in the order of BEHAVIOURS."""


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
