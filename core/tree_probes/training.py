"""Training of probes for dependency heads, and their predictions."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import torch
from jaxtyping import Float, Float32, Int
from torch import Tensor
from torch.nn import functional

from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.tokens import CLS_WORD, FIRST_WORD, OTHER_SPECIAL
from attention_sieve.core.tree_probes.probe import Epoch, Probe, ProbeTraining, TreeProbeSettings
from attention_sieve.core.tree_probes.texts import LEAST_TEXTS, NO_CANDIDATE, ProbeText
from attention_sieve.core.tree_probes.word_vectors import UNKNOWN

REPORT_TEXTS: Final = 100
"""Training texts between two progress reports."""
ENTRIES: Final = 2**22
"""Attention entries processed at once, padding included; with all copies under 100 MB."""
NO_WORD: Final = -100
"""Target of padding, which the loss ignores."""


def train(
    texts: Sequence[ProbeText], vectors: Float32[np.ndarray, "row dimension"], settings: TreeProbeSettings
) -> Iterator[ProbeTraining]:
    """Train a probe on the CPU, yielding its progress every REPORT_TEXTS texts and after each epoch.

    The loss is the cross-entropy over ROOT and the words with tokens, for every such word whose head has tokens,
    punctuation included. The caller may stop iterating and use the best probe so far. The result is
    deterministic for the same texts, settings and number of threads.

    Args:
        texts: training texts; a share of them is used for validation.
        vectors: word vectors, indexed by the texts' rows; dimension 0 for a probe without words.

    Raises: AnalysisError for too few texts.
    Source: Clark et al. 2019, section 5. Their code trains one epoch on 36,000 sentences with batch size 1; here early
    stopping allows more epochs on fewer sentences.
    """
    order = np.random.default_rng(settings.seed).permutation(len(texts))
    n_held_out = max(LEAST_TEXTS, round(settings.held_out * len(texts)))
    if len(texts) - n_held_out < LEAST_TEXTS:
        raise AnalysisError(
            f"A probe needs at least {LEAST_TEXTS} training texts besides its validation texts; of {len(texts)}, "
            f"{n_held_out} are for validation. Give more texts with trees."
        )
    training_texts, validation_texts = (
        [texts[index] for index in part] for part in (order[n_held_out:], order[:n_held_out])
    )
    return _Run(training_texts, validation_texts, vectors, settings).course()


class _Run:
    def __init__(
        self,
        training_texts: Sequence[ProbeText],
        validation_texts: Sequence[ProbeText],
        vectors: Float32[np.ndarray, "row dimension"],
        settings: TreeProbeSettings,
    ) -> None:
        self._texts, self._validation_texts, self._settings = training_texts, validation_texts, settings
        self._table = torch.from_numpy(vectors)
        # Not the numbers that have split the texts: with those, the order of training would follow from the split.
        self._rng = np.random.default_rng((settings.seed, 1))
        self._scorer = _Scorer(_untrained(training_texts[0], vectors, self._rng), settings)
        self._optimizer = torch.optim.Adam(self._scorer.parameters(), settings.learning_rate)
        self._epochs = [Epoch(0, None, *_measured(self._scorer, validation_texts, self._table))]
        self._best, self._probe = 0, self._scorer.learned()

    @property
    def is_finished(self) -> bool:
        """Whether all epochs are done, or early stopping applies."""
        n_epochs = len(self._epochs) - 1
        return n_epochs >= self._settings.epochs or n_epochs - self._best >= self._settings.patience

    def course(self) -> Iterator[ProbeTraining]:
        """Train until finished."""
        while not self.is_finished:
            yield from self._epoch()

    def _epoch(self) -> Iterator[ProbeTraining]:
        order, size, total_loss = self._rng.permutation(len(self._texts)), self._settings.texts_per_step, 0.0
        for start in range(0, len(order), size):
            total_loss += self._step([self._texts[index] for index in order[start : start + size]])
            done = start + size
            if done < len(order) and done // REPORT_TEXTS > start // REPORT_TEXTS:
                yield self._report(done)
        validation = _measured(self._scorer, self._validation_texts, self._table)
        self._epochs.append(Epoch(len(self._epochs), total_loss / _n_words(self._texts), *validation))
        if self._epochs[-1].held_out_loss < self._epochs[self._best].held_out_loss:
            self._best, self._probe = len(self._epochs) - 1, self._scorer.learned()
        yield self._report(len(order))

    def _step(self, texts: Sequence[ProbeText]) -> float:
        total_loss = 0.0
        self._optimizer.zero_grad()
        # Gradients of sums add up, so how the texts fit into memory does not change the step.
        for part in _parts(texts):
            batch = _batch(part, self._table)
            loss = _loss(self._scorer(batch), batch)
            loss.backward()
            total_loss += float(loss.detach())
        self._optimizer.step()
        return total_loss

    def _report(self, done: int) -> ProbeTraining:
        return ProbeTraining(
            probe=self._probe,
            best=self._best,
            epochs=tuple(self._epochs),
            done=done,
            n_texts=len(self._texts),
            n_held_out=len(self._validation_texts),
            is_finished=self.is_finished and done == len(self._texts),
        )


def predicted_heads(
    probe: Probe, texts: Sequence[ProbeText], vectors: Float32[np.ndarray, "row dimension"]
) -> list[Int[np.ndarray, " _"]]:
    """Most likely candidate for each word of each text; NO_CANDIDATE for a word without tokens."""
    batches = _scored(_Scorer(probe), texts, torch.from_numpy(vectors))
    return [heads for part, _, logits in batches for heads in _likeliest(logits, part)]


def scores(
    probe: Probe, text: ProbeText, vectors: Float32[np.ndarray, "row dimension"]
) -> Float[np.ndarray, "passed candidate"]:
    """Logits of each of a text's `candidates` for each word."""
    with torch.no_grad():
        return _Scorer(probe)(_batch([text], torch.from_numpy(vectors)))[0].numpy()


@dataclass(frozen=True, eq=False)
class _Batch:
    """The passed words of texts as tensors, padded."""

    maps: Tensor
    """[text direction map word candidate]: from a candidate to the word, and from the word to a candidate."""
    root: Tensor
    """[text direction map word special]: the same with the special tokens."""
    vectors: Tensor
    """[text word dimension]"""
    targets: Tensor
    """[text word]: NO_CANDIDATE where no candidate is correct, NO_WORD for padding."""


def _batch(texts: Sequence[ProbeText], table: Tensor) -> _Batch:
    n_texts, longest = len(texts), max(len(text.rows) for text in texts)
    n_layers, n_heads = texts[0].passed.attention.shape[:2]
    maps = torch.zeros((n_texts, 2, n_layers * n_heads, longest, FIRST_WORD + longest))
    rows = torch.full((n_texts, longest), UNKNOWN)
    targets = torch.full((n_texts, longest), NO_WORD)
    for i, text in enumerate(texts):
        n_words = len(text.rows)
        attention = torch.from_numpy(text.passed.attention).flatten(0, 1)
        maps[i, 0, :, :n_words, : FIRST_WORD + n_words] = attention.transpose(1, 2)[:, FIRST_WORD:]
        maps[i, 1, :, :n_words, : FIRST_WORD + n_words] = attention[:, FIRST_WORD:]
        rows[i, :n_words] = torch.from_numpy(text.rows)
        targets[i, :n_words] = torch.from_numpy(text.targets)
    return _Batch(maps[..., FIRST_WORD:], maps[..., [CLS_WORD, OTHER_SPECIAL]], table[rows], targets)


class _Scorer(torch.nn.Module):
    """A probe as a torch module: scores of ROOT first, then of the words, in the order of `ProbeText.candidates`."""

    def __init__(self, probe: Probe, settings: TreeProbeSettings | None = None) -> None:
        """Initialise from a probe; the settings determine which weights are trained."""
        super().__init__()
        self._shape = probe.constant.shape
        n_directions, n_maps = self._shape[0], self._shape[1] * self._shape[2]
        by_word = probe.by_word.reshape(n_directions, 2, n_maps, probe.by_word.shape[-1])
        # Without words there is nothing but the constants; without settings nothing is trained.
        has_constant = settings is None or settings.bias or not settings.words
        self.constant = _weights(probe.constant.reshape(n_directions, n_maps), has_constant)
        self.by_word = _weights(by_word, bool(by_word.size))
        self.root_vector = _weights(probe.root_vector, bool(by_word.size))
        self.root_parts = _weights(probe.root_parts, True)

    def forward(self, batch: _Batch) -> Tensor:
        """[text word candidate], ROOT first; minus infinity for padding."""
        words = torch.einsum("trmwc,rm->twc", batch.maps, self.constant)
        root_weights = self.constant.expand(*batch.targets.shape, *self.constant.shape)
        if self.by_word.numel():
            # W (v_i, v_j) is the sum of one term per word, so no tensor has pairs x dimension x maps entries.
            candidate_weights, word_weights = (
                torch.einsum("twd,rmd->twrm", batch.vectors, self.by_word[:, i]) for i in (0, 1)
            )
            words = words + torch.einsum("trmwc,tcrm->twc", batch.maps, candidate_weights)
            words = words + torch.einsum("trmwc,twrm->twc", batch.maps, word_weights)
            root_weights = root_weights + word_weights + self.by_word[:, 0] @ self.root_vector
        root = torch.einsum("trmws,twrm->tws", batch.root, root_weights) @ self.root_parts
        words = words.masked_fill((batch.targets == NO_WORD)[:, None], -torch.inf)
        return torch.cat([root[..., None], words], -1)

    def learned(self) -> Probe:
        """The current weights as a Probe."""

        def array(weights: Tensor, *shape: int) -> np.ndarray:
            return weights.detach().numpy().reshape(shape).copy()

        n_directions, n_layers, n_heads = self._shape
        return Probe(
            constant=array(self.constant, n_directions, n_layers, n_heads),
            by_word=array(self.by_word, n_directions, 2, n_layers, n_heads, self.by_word.shape[-1]),
            root_vector=array(self.root_vector, len(self.root_vector)),
            root_parts=array(self.root_parts, len(self.root_parts)),
        )


def _weights(values: np.ndarray, learns: bool) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.from_numpy(values.astype(np.float32)), requires_grad=learns)


def _untrained(text: ProbeText, vectors: Float32[np.ndarray, "row dimension"], rng: np.random.Generator) -> Probe:
    """Initial probe: all candidates equally likely; ROOT's vector has the scale of the word vectors."""
    n_layers, n_heads = text.passed.attention.shape[:2]
    dimension = vectors.shape[1]
    size = float(np.sqrt((vectors[UNKNOWN + 1 :] ** 2).mean())) if dimension else 0.0
    return Probe(
        constant=np.zeros((2, n_layers, n_heads)),
        by_word=np.zeros((2, 2, n_layers, n_heads, dimension)),
        root_vector=size * rng.standard_normal((dimension,)),
        root_parts=np.ones(2),
    )


def _measured(scorer: _Scorer, texts: Sequence[ProbeText], table: Tensor) -> tuple[float, float]:
    """Mean cross-entropy per word in nats, and share of the counting words with the correct head."""
    total_loss, n_correct = 0.0, 0
    for part, batch, logits in _scored(scorer, texts, table):
        total_loss += float(_loss(logits, batch))
        n_correct += sum(
            int((heads == text.heads)[text.counts].sum()) for heads, text in zip(_likeliest(logits, part), part)
        )
    return total_loss / _n_words(texts), n_correct / max(sum(int(text.counts.sum()) for text in texts), 1)


def _scored(
    scorer: _Scorer, texts: Sequence[ProbeText], table: Tensor
) -> Iterator[tuple[Sequence[ProbeText], _Batch, Tensor]]:
    """Yield texts part by part, each with its batch and scores [text word candidate]."""
    for part in _parts(texts):
        batch = _batch(part, table)
        with torch.no_grad():
            logits = scorer(batch)
        yield part, batch, logits


def _parts(texts: Sequence[ProbeText]) -> Iterator[Sequence[ProbeText]]:
    start, largest = 0, 0
    for end, text in enumerate(texts):
        largest = max(largest, text.passed.attention.size)
        if end > start and (end + 1 - start) * largest > ENTRIES:
            yield texts[start:end]
            start, largest = end, text.passed.attention.size
    yield texts[start:]


def _likeliest(logits: Tensor, texts: Sequence[ProbeText]) -> list[Int[np.ndarray, " _"]]:
    heads_of_texts = [np.full(len(text.heads), NO_CANDIDATE) for text in texts]
    for heads, indices, text in zip(heads_of_texts, logits.argmax(-1).numpy(), texts):
        heads[text.passed.places] = text.candidates[indices[: len(text.rows)]]
    return heads_of_texts


def _loss(logits: Tensor, batch: _Batch) -> Tensor:
    """Cross-entropy summed over words, in nats."""
    # A word whose head has no tokens, and padding, are alike to the loss; only padding is hidden from the scores.
    targets = batch.targets.masked_fill(batch.targets == NO_CANDIDATE, NO_WORD)
    return functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=NO_WORD, reduction="sum")


def _n_words(texts: Sequence[ProbeText]) -> int:
    """Number of training words; at least 1, as it is a divisor."""
    return max(sum(text.n_learned for text in texts), 1)
