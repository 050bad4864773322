"""A run of probes: computes the attention of a corpus in short turns, then trains the probes one after the other. Only
one run trains at a time."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import EveryTextTooLong
from attention_sieve.core.passes.texts import prepare_all
from attention_sieve.core.running import Journal
from attention_sieve.core.texts.relations import Dependencies
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.core.tree_probes.features import Pieces, embedded_words, word_attention_maps, word_pieces
from attention_sieve.core.tree_probes.kept import KeptProbes
from attention_sieve.core.tree_probes.probe import (
    ProbeKind,
    ProbeResults,
    ProbeTraining,
    TrainedProbe,
    TreeProbeSettings,
    offset_scores,
    uas,
)
from attention_sieve.core.tree_probes.texts import BUDGET_BYTES, PassedWords, check_fits, n_left_out, probe_texts
from attention_sieve.core.tree_probes.word_vectors import WordVectors, no_vectors

TURN: Final = 8_000
"""Characters of the texts of one turn, during which other requests wait: about a second's work."""
WAIT_SECONDS: Final = 0.3
"""Interval between checks whether another run has ended."""

_one_at_a_time: Final = Lock()
"""The attention of a corpus takes much memory, and training takes a CPU core."""


OnCheckpoint = Callable[[bool, Callable[[Checkpoint], Any], Callable[[], None]], Any]
"""on_checkpoint(control, work, watch) -> result of the work on the loaded checkpoint, or on its random control; `watch`
is called while waiting for it, and may raise to stop."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeQuestion:
    """The probes to train, and their texts."""

    texts: Sequence[Text]
    trees: Sequence[Dependencies]
    train: Sequence[int]
    """Indices of the training texts."""
    test: Sequence[int]
    kinds: Sequence[ProbeKind]
    settings: PassSettings
    how: TreeProbeSettings
    """Settings of all probes; `words` is ignored."""
    vectors: WordVectors | None
    """Vectors of the words of all texts; None for the checkpoint's own embeddings."""
    too_long: TooLong
    most_bytes: int = BUDGET_BYTES
    """Of the attention of all texts."""


def train_probes(
    on_checkpoint: OnCheckpoint,
    question: ProbeQuestion,
    journal: Journal,
    kept: KeptProbes,
    turn: int | None = TURN,
) -> ProbeResults:
    """Train probes on a corpus, one after the other, once no other run is training. Each is a piece of the run.

    Args:
        journal: asked to stop, the run ends with the best state so far of the current probe.
        kept: those that are finished are not trained again; each other one is added.
        turn: characters of the texts of one turn; None passes all texts in one, whose batches are reported.

    Raises: AnalysisError if any stage fails; Stopped.
    """
    while not _one_at_a_time.acquire(timeout=WAIT_SECONDS):
        journal.part("Waiting for another training to finish")
    try:
        work = _Work(on_checkpoint, question, journal, kept, turn)
        journal.plan(len(question.kinds))
        for control in sorted({kind.control for kind in question.kinds}):
            work.do(control)
        if work.results is None:
            raise ValueError("A run of probes has at least one.")
        return work.results
    finally:
        _one_at_a_time.release()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Passed:
    """Results of passes, by index of the text."""

    words: dict[int, PassedWords]
    pieces: dict[int, Pieces]
    too_long: list[tuple[int, int]]


class _Work:
    """Trains the probes of a question, those of one checkpoint at a time."""

    def __init__(
        self,
        on_checkpoint: OnCheckpoint,
        question: ProbeQuestion,
        journal: Journal,
        kept: KeptProbes,
        turn: int | None,
    ) -> None:
        self._on_checkpoint, self._question, self._turn = on_checkpoint, question, turn
        self._journal, self._kept, self.results = journal, kept, kept.read(question.kinds)
        self._word_vectors: tuple[np.ndarray, dict[int, np.ndarray]] | None = None

    def do(self, control: bool) -> None:
        """Train the probes of the checkpoint, or those of its random control."""
        passed: _Passed | None = None
        for kind in [kind for kind in self._question.kinds if kind.control == control]:
            self._journal.piece(kind.name)
            was_kept = self.results is not None and self.results.has([kind])
            if not was_kept:
                passed = passed or self._passed(control)
                self._train(kind, passed)
            self._journal.done(was_kept=was_kept)

    def _passed(self, control: bool) -> _Passed:
        """Attention of all texts, in turns; the shortest first, as a batch holds texts of similar length."""
        texts, passed = self._question.texts, _Passed(words={}, pieces={}, too_long=[])

        def report(n_more: int = 0) -> None:
            self._journal.part("reading texts", len(passed.words) + len(passed.too_long) + n_more, len(texts))

        for indices in [range(len(texts))] if self._turn is None else _turns(texts, self._turn):
            report()
            of_batch = report if self._turn is None else None
            turn = self._on_checkpoint(control, partial(_turn, self._question, indices, of_batch), report)
            passed.words.update(turn.words)
            passed.pieces.update(turn.pieces)
            passed.too_long.extend(turn.too_long)
        if not passed.words:
            raise EveryTextTooLong(tuple(passed.too_long))
        return passed

    def _train(self, kind: ProbeKind, passed: _Passed) -> None:
        from attention_sieve.core.tree_probes.training import predicted_heads, train

        question, (table, rows) = self._question, self._vectors(kind, passed)
        trees = dict(enumerate(question.trees))
        train_texts, test_texts = (
            probe_texts(passed.words, trees, rows, indices) for indices in (question.train, question.test)
        )
        results = self.results or ProbeResults(
            offsets=offset_scores(train_texts, test_texts),
            probes={},
            too_long=tuple(sorted(passed.too_long)),
            n_left_out=n_left_out([*train_texts, *test_texts]),
        )
        last: ProbeTraining | None = None
        try:
            for last in train(train_texts, table, replace(question.how, words=kind.words)):
                epoch = f", epoch {last.epoch} of at most {question.how.epochs}"
                held_out = f", {last.epochs[-1].held_out_score:.1%} of heads found in validation texts (UAS)"
                self._journal.part("training", last.done, last.n_texts, f"{epoch}{held_out}")
        finally:
            if last is not None and (last.is_finished or last.best):
                score = uas(predicted_heads(last.probe, test_texts, table), test_texts)
                probes = {**results.probes, kind: TrainedProbe(training=last, score=score)}
                self.results = replace(results, probes=probes)
                self._kept.write(kind, self.results)

    def _vectors(self, kind: ProbeKind, passed: _Passed) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        """The vectors of words, and the rows of the words of each text by its index."""
        if not kind.words:
            empty = no_vectors([len(pieces) for pieces in passed.pieces.values()])
            return empty.table, dict(zip(passed.pieces, empty.rows))
        if self._word_vectors is None:
            vectors, indices = self._question.vectors, list(range(len(self._question.texts)))
            if vectors is None:
                indices, pieces = list(passed.pieces), list(passed.pieces.values())
                embed = partial(embedded_words, texts=pieces)
                vectors = self._on_checkpoint(False, embed, self._journal.check)
            self._word_vectors = vectors.table, dict(zip(indices, vectors.rows))
        return self._word_vectors


def _turn(
    question: ProbeQuestion, indices: Sequence[int], report: Callable[[int], None] | None, checkpoint: Checkpoint
) -> _Passed:
    """Pass some texts through a checkpoint; raises if the attention of all texts would not fit into memory. `report` is
    called with the number of texts after each batch."""
    layers = checkpoint.attentions[question.settings.kind]
    n_words = [min(len(tree.heads), checkpoint.max_tokens) for tree in question.trees]
    check_fits(n_words, layers.n_layers, layers.n_heads, question.most_bytes)
    texts = [question.texts[index] for index in indices]
    prepared, too_long = prepare_all(checkpoint, texts, question.settings, question.too_long)
    prepared_indices = [indices[row] for row in prepared]
    words = [question.trees[index].words for index in prepared_indices]
    passed = list(prepared.values())
    features: dict[int, PassedWords] = {}
    for batch in word_attention_maps(checkpoint, passed, words, question.settings):
        features |= {prepared_indices[row]: of_text for row, of_text in batch}
        if report is not None:
            report(len(features))
    return _Passed(
        words=features,
        pieces={
            index: word_pieces(text, text_words) for index, text, text_words in zip(prepared_indices, passed, words)
        },
        too_long=[(indices[row], n_tokens) for row, n_tokens in too_long],
    )


def _turns(texts: Sequence[Text], most: int) -> Iterator[Sequence[int]]:
    """Indices of texts of at most so many characters together."""
    turn, n_characters = list[int](), 0
    for index in sorted(range(len(texts)), key=lambda index: _size(texts[index])):
        if turn and n_characters + _size(texts[index]) > most:
            yield turn
            turn, n_characters = [], 0
        turn.append(index)
        n_characters += _size(texts[index])
    yield turn


def _size(text: Text) -> int:
    return sum(map(len, text.segments))
