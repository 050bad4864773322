"""Probes for dependency heads: how well all heads together tell which word is a word's head.

What a probe is asked and what it has learned, and what its score is held against; no torch.
Source: Clark et al. 2019, section 5.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from core.attachment import RIGHT_BRANCHING, AttachmentScore, at_offset, attachment_score, best_offset
from core.checkpoints import LARGEST_SEED
from core.errors import AnalysisError
from core.probe_texts import ProbeText


@dataclass(frozen=True)
class ProbeSettings:
    """How a probe learns; AnalysisError for a number out of range."""

    words: bool = False
    """Whether the weight of a head depends on the two words, or is one number."""
    bias: bool = False
    """Whether a head also has a weight that no word changes, where the others depend on words. The paper's formula has
    none; its code has one."""
    learning_rate: float = 0.002
    """Of Adam."""
    texts_per_step: int = 1
    epochs: int = 30
    """At most."""
    patience: int = 3
    """Epochs without a lower loss on the texts held out after which it ends."""
    held_out: float = 0.1
    """Share of the texts to learn from that are not learned from, but say when to end."""
    seed: int = 0
    """Of which texts are held out, their order, and where ROOT's vector begins."""

    def __post_init__(self) -> None:
        for name, value in (
            ("texts a step", self.texts_per_step),
            ("epochs", self.epochs),
            ("patience", self.patience),
        ):
            if value < 1:
                raise AnalysisError(f"A probe needs at least 1 as its {name}, got {value:g}. Give a larger number.")
        if not 0 < self.learning_rate <= 1:
            raise AnalysisError(f"The learning rate is {self.learning_rate:g}. Give one above 0 and at most 1.")
        if not 0 < self.held_out < 1:
            raise AnalysisError(f"The share held out is {self.held_out:g}. Give one between 0 and 1.")
        if not 0 <= self.seed <= LARGEST_SEED:
            raise AnalysisError(f"The seed is {self.seed}. Give a whole number from 0 to {LARGEST_SEED}.")


@dataclass(frozen=True, eq=False, kw_only=True)
class Probe:
    """What a probe has learned: how likely each candidate i is to be the head of word j, by

    p(i|j) proportional to exp of the sum over heads k of w_k attention_k(i, j) + u_k attention_k(j, i)

    where a weight is a number, or W_k (v_i, v_j) with the vectors of the two words. For the candidate ROOT the
    attention to, and from, it is a_start times that of [CLS] plus a_end times that of the other special tokens.
    """

    constant: Float[np.ndarray, "direction layer head"]
    """w and u; 0 where a weight is left to the words."""
    by_word: Float[np.ndarray, "direction side layer head dimension"]
    """W and U, for the candidate's vector and the word's own; dimension 0 where words play no part."""
    root_vector: Float[np.ndarray, " dimension"]
    """In the place of ROOT's word vector."""
    root_parts: Float[np.ndarray, " special"]
    """a_start and a_end."""

    @property
    def weights(self) -> Float[np.ndarray, "direction layer head"]:
        """w and u of each head: numbers, or where they depend on words the Euclidean norm of all that they are."""
        if not self.by_word.shape[-1]:
            return self.constant
        return np.sqrt(self.constant**2 + (self.by_word**2).sum(axis=(1, 4)))


@dataclass(frozen=True)
class Epoch:
    """How well a probe does after so many times through the texts."""

    number: int
    """0 before the first step."""
    loss: float | None
    """Mean cross-entropy of a word while it was learned from, in nats; None before the first step."""
    held_out_loss: float
    held_out_score: float
    """UAS of the texts held out, of 1."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Training:
    """How far a probe's training is."""

    probe: Probe
    """The best so far by its loss on the texts held out."""
    best: int
    """Number of its epoch."""
    epochs: tuple[Epoch, ...]
    done: int
    """Texts learned from in the epoch that is on."""
    n_texts: int
    """Texts of an epoch."""
    n_held_out: int
    is_finished: bool


def uas(predicted: Sequence[Int[np.ndarray, " _"]], texts: Sequence[ProbeText]) -> AttachmentScore:
    """How often the predicted heads of texts are right."""
    return attachment_score(predicted, [text.heads for text in texts], [text.counts for text in texts])


def offset_scores(train: Sequence[ProbeText], test: Sequence[ProbeText]) -> dict[int, AttachmentScore]:
    """What a fixed offset reaches on the texts to test on: right-branching, and the best on the texts to learn from.

    Returns: by offset; one where both are the same.
    """
    best = best_offset([text.heads for text in train], [text.counts for text in train])
    offsets = dict.fromkeys((RIGHT_BRANCHING, best))
    return {offset: uas([at_offset(len(text.heads), offset) for text in test], test) for offset in offsets}
