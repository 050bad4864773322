"""Online code length of the training labels: bits for sending them block by block, each encoded by probes that are
trained on the blocks before."""

from collections.abc import Sequence
from itertools import pairwise
from math import log2
from typing import Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.knowledge.labels import STRENGTHS, TaskLabels
from attention_sieve.core.knowledge.probes.probe import fit, turns_of

SHARES: Final = (0.001, 0.002, 0.004, 0.008, 0.016, 0.032, 0.0625, 0.125, 0.25, 0.5, 1.0)
"""Shares of the rows at which blocks end."""
ROWS_PER_CLASS: Final = 2
"""Minimum rows per class in the first block, as a probe trained on fewer is meaningless."""


def code_length(
    features: Float[np.ndarray, "example vector column"],
    labels: TaskLabels,
    seed: int = 0,
    strengths: Sequence[float] = STRENGTHS,
) -> tuple[Float[np.ndarray, " vector"], float]:
    """Online code length of the labels of the training part, given each vector.

    The first block is sent by the uniform code. The intercept is penalised like the weights, so that a class that has
    not occurred yet keeps a probability. The strength is that of the shortest code, and is sent too.

    Args:
        labels: of the same examples; classes, not values.
        seed: of the order in which the rows are sent.

    Returns: bits, and bits if every label were sent as one of equally likely classes.
    Source: Voita and Titov 2020, section 2.2.2. Their first blocks of small data have fewer rows than twice the number
    of classes; here they are sent together.
    """
    order, grid = np.random.default_rng(seed).permutation(labels.train), np.asarray(strengths, float)
    ends = block_ends(len(order), labels.n_classes)
    bits = np.full((features.shape[1], len(grid)), ends[0] * log2(labels.n_classes) + log2(len(grid)))
    for chunk in turns_of(features, labels, len(grid)):
        for start, end in pairwise(ends):
            bits[chunk] += _block_bits(features[:, chunk], labels, grid, order[:start], order[start:end])
    return bits.min(axis=1), len(order) * log2(labels.n_classes)


def block_ends(n_rows: int, n_classes: int) -> tuple[int, ...]:
    """Number of rows after each block."""
    least = min(n_rows, ROWS_PER_CLASS * n_classes)
    return tuple(sorted({max(least, round(share * n_rows)) for share in SHARES}))


def _block_bits(
    features: Float[np.ndarray, "example vector column"],
    labels: TaskLabels,
    strengths: Float[np.ndarray, " strength"],
    before: Int[np.ndarray, " row"],
    block: Int[np.ndarray, " row_of_block"],
) -> Float[np.ndarray, "vector strength"]:
    vector_strengths = np.tile(strengths, (features.shape[1], 1))
    probes = fit(features[before], labels.targets[before], vector_strengths, penalises_intercept=True)
    logs = probes.log_probabilities(features[block]).numpy()
    return -np.einsum("vscr,rc->vs", logs, labels.targets[block]) / np.log(2)
