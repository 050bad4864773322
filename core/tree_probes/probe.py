"""Probes that predict dependency heads from all attention heads jointly: settings, weights, scores and baselines.

Source: Clark et al. 2019, section 5.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final

import numpy as np
from jaxtyping import Float, Int

from attention_sieve.core.checkpoints.find import LARGEST_SEED
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.settings import OFFSETS
from attention_sieve.core.tree_probes.texts import LEAST_TEXTS, ROOT_CANDIDATE, ProbeText

RIGHT_BRANCHING: Final = 1
"""Offset at which every word's head is the next word."""
N_RESAMPLES: Final = 1_000
LEVEL: Final = 0.95


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

    @property
    def epoch(self) -> int:
        """Number of the current epoch."""
        return len(self.epochs) - (self.done == self.n_texts)

    @property
    def n_seen(self) -> int:
        """Training texts processed, in all epochs together."""
        return (self.epoch - 1) * self.n_texts + self.done


@dataclass(frozen=True, eq=False, kw_only=True)
class AttachmentScore:
    """Share of words with the correct head, including ROOT and excluding punctuation: UAS."""

    share: float
    low: float
    high: float
    """Confidence interval at LEVEL."""
    n_words: int
    n_texts: int


@dataclass(frozen=True)
class ProbeKind:
    """A kind of probe."""

    words: bool
    """Whether weights depend on the words."""
    control: bool
    """Whether the checkpoint has random weights; word vectors are still those of the real checkpoint."""

    @property
    def name(self) -> str:
        """Its name in reports and on pages."""
        return f"attention {'and words' if self.words else 'alone'}{', random weights' * self.control}"


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedProbe:
    """A trained probe and its score on the test texts."""

    training: ProbeTraining
    """Unfinished if it was stopped."""
    score: AttachmentScore


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeResults:
    """Results so far."""

    offsets: Mapping[int, AttachmentScore]
    """Scores of right-branching and of the best fixed offset."""
    probes: Mapping[ProbeKind, TrainedProbe]
    too_long: tuple[tuple[int, int], ...]
    """Index and number of tokens of each text that was left out."""
    n_left_out: int
    """Words of the other texts used for neither training nor testing, as they or their heads have no tokens."""

    def has(self, kinds: Iterable[ProbeKind]) -> bool:
        """Whether the probes of these kinds are finished."""
        return all(kind in self.probes and self.probes[kind].training.is_finished for kind in kinds)


def uas(predicted: Sequence[Int[np.ndarray, " _"]], texts: Sequence[ProbeText]) -> AttachmentScore:
    """UAS of the predicted heads of texts, with an interval over texts.

    Words of one sentence are not independent, so an interval for independent cases, such as Wilson's, would be too
    narrow. This is a percentile bootstrap interval over texts with a fixed seed.

    Raises: AnalysisError if fewer than LEAST_TEXTS texts have words that count.
    """
    from scipy.stats import bootstrap

    right = [int((heads == text.heads)[text.counts].sum()) for heads, text in zip(predicted, texts, strict=True)]
    correct, words = np.array(right, float), np.array([int(text.counts.sum()) for text in texts], float)
    correct, words = correct[words > 0], words[words > 0]
    if len(words) < LEAST_TEXTS:
        raise AnalysisError(
            f"A score needs at least {LEAST_TEXTS} texts with words besides punctuation to test on, got {len(words)}. "
            "Give more."
        )
    resampled = bootstrap(
        (correct, words),
        lambda correct, words, axis: correct.sum(axis) / words.sum(axis),
        paired=True,
        n_resamples=N_RESAMPLES,
        batch=100,
        confidence_level=LEVEL,
        method="percentile",
        rng=np.random.default_rng(0),
    )
    low, high = map(float, resampled.confidence_interval)
    share = float(correct.sum() / words.sum())
    return AttachmentScore(share=share, low=low, high=high, n_words=int(words.sum()), n_texts=len(words))


def at_offset(n_words: int, offset: int) -> Int[np.ndarray, " word"]:
    """Candidates by a fixed offset: right-branching is 1.

    Returns: candidates; ROOT for positions before the text, the last word for those after it, as in the code of Clark
        et al.
    """
    return np.clip(np.arange(n_words) + 1 + offset, ROOT_CANDIDATE, n_words)


def best_offset(texts: Sequence[ProbeText]) -> int:
    """The most accurate of OFFSETS on some texts; ties are resolved in favour of the smaller, then the positive
    offset."""

    def n_correct(offset: int) -> int:
        return sum(int((at_offset(len(text.heads), offset) == text.heads)[text.counts].sum()) for text in texts)

    return max(OFFSETS, key=lambda offset: (n_correct(offset), -abs(offset), offset))


def offset_scores(train: Sequence[ProbeText], test: Sequence[ProbeText]) -> dict[int, AttachmentScore]:
    """UAS of fixed offsets on the test texts: right-branching, and the best offset on the training texts.

    Returns: scores by offset; a single one if both offsets are equal.
    """
    offsets = dict.fromkeys((RIGHT_BRANCHING, best_offset(train)))
    return {offset: uas([at_offset(len(text.heads), offset) for text in test], test) for offset in offsets}
