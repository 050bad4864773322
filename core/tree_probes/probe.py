"""Probes that predict dependency heads from all attention heads jointly: settings, weights, scores and baselines.

Does not import torch.
Source: Clark et al. 2019, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.checkpoints.find import LARGEST_SEED
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.tree_probes.attachment import (
    RIGHT_BRANCHING,
    AttachmentScore,
    at_offset,
    attachment_score,
    best_offset,
)
from attention_sieve.core.tree_probes.texts import ProbeText


@dataclass(frozen=True)
class TreeProbeSettings:
    """Training settings of a probe; raises AnalysisError for a number out of range."""

    words: bool = False
    """Whether the weight of a head depends on the two words, instead of being one number."""
    bias: Annotated[bool, "add a weight per head that does not depend on the words, as in the authors' code"] = False
    """Absent in the paper's formula."""
    learning_rate: Annotated[float, "learning rate of Adam; 0.002 in the paper"] = 0.002
    texts_per_step: Annotated[int, "batch size, in texts"] = 1
    epochs: Annotated[int, "maximum number of times that the probe sees every training text"] = 30
    patience: Annotated[int, "epochs without a lower validation loss after which training ends"] = 3
    held_out: Annotated[float, "share of the training texts that only decides when training ends"] = 0.1
    """For validation (early stopping)."""
    seed: Annotated[int, "random seed of the splits, the order of texts, random weights and ROOT's first vector"] = 0

    def __post_init__(self) -> None:
        for name, value in (
            ("texts a step", self.texts_per_step),
            ("epochs", self.epochs),
            ("patience", self.patience),
        ):
            if value < 1:
                raise AnalysisError(f"A probe needs at least 1 as its {name}, got {value:g}. Give a larger number.")
        if not 0 < self.learning_rate <= 1:
            raise AnalysisError(f"The learning rate is {self.learning_rate:g}. Choose a number above 0 and at most 1.")
        if not 0 < self.held_out < 1:
            raise AnalysisError(f"The validation split is {self.held_out:g}. Give one between 0 and 1.")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise AnalysisError(f"The seed is {self.seed}. Give a whole number from 0 to {LARGEST_SEED}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """Weights of a trained probe. The probability that candidate i is the head of word j is

    p(i|j) proportional to exp of the sum over heads k of w_k attention_k(i, j) + u_k attention_k(j, i)

    where a weight is a number, or W_k (v_i, v_j) with the vectors of the two words. For the candidate ROOT the
    attention to, and from, it is a_start times that of [CLS] plus a_end times that of the other special tokens.
    """

    constant: Float[np.ndarray, "direction layer head"]
    """w and u; 0 where the weight depends on the words only."""
    by_word: Float[np.ndarray, "direction side layer head dimension"]
    """W and U, for the vectors of the candidate and of the word; dimension 0 for a probe without words."""
    root_vector: Float[np.ndarray, " dimension"]
    """Used as the word vector of ROOT."""
    root_parts: Float[np.ndarray, " special"]
    """a_start and a_end."""

    @property
    def weights(self) -> Float[np.ndarray, "direction layer head"]:
        """w and u of each head; where they depend on words, the Euclidean norm of all their parameters."""
        if not self.by_word.shape[-1]:
            return self.constant
        return np.sqrt(self.constant**2 + (self.by_word**2).sum(axis=(1, 4)))


@dataclass(frozen=True)
class Epoch:
    """Performance of a probe after an epoch."""

    number: int
    """Number of the epoch; 0 before training."""
    loss: float | None
    """Mean cross-entropy of a training word, in nats; None before the first step."""
    held_out_loss: float
    held_out_score: float
    """UAS on the validation texts, 0 to 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeTraining:
    """Progress of a probe's training."""

    probe: Probe
    """The probe with the lowest validation loss so far."""
    best: int
    """Number of its epoch."""
    epochs: tuple[Epoch, ...]
    done: int
    """Training texts processed in the current epoch."""
    n_texts: int
    """Texts of an epoch."""
    n_held_out: int
    is_finished: bool


def uas(predicted: Sequence[Int[np.ndarray, " _"]], texts: Sequence[ProbeText]) -> AttachmentScore:
    """UAS of predicted heads."""
    return attachment_score(predicted, [text.heads for text in texts], [text.counts for text in texts])


def offset_scores(train: Sequence[ProbeText], test: Sequence[ProbeText]) -> dict[int, AttachmentScore]:
    """UAS of fixed offsets on the test texts: right-branching, and the best offset on the training texts.

    Returns: scores by offset; a single one if both offsets are equal.
    """
    best = best_offset([text.heads for text in train], [text.counts for text in train])
    offsets = dict.fromkeys((RIGHT_BRANCHING, best))
    return {offset: uas([at_offset(len(text.heads), offset) for text in test], test) for offset in offsets}
