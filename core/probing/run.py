"""A run of probes: the attention of a corpus in short turns, then training, one probe after the other; one run at a
time."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from threading import Lock
from typing import Any, Final, Literal

import numpy as np

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.errors import EveryTextTooLong
from core.passes.prepare import prepare_all
from core.probing.attachment import AttachmentScore
from core.probing.features import Pieces, embedded_words, word_attention_maps, word_pieces
from core.probing.probe import ProbeSettings, Training, offset_scores, uas
from core.probing.texts import PassedWords, ProbeText, check_fits, n_left_out, probe_texts
from core.probing.word_vectors import WordVectors, no_vectors
from core.texts.relations import Dependencies
from core.texts.text import Text
from core.texts.tokens import TooLong

TURN: Final = 8_000
"""Characters of the texts that are passed in one turn, while others wait: about a second's work."""
WAIT_SECONDS: Final = 0.3
"""Between two looks at whether another reader's training has ended."""

Stage = Literal["waiting", "passing", "training"]

_one_at_a_time: Final = Lock()
"""A corpus's attention takes much memory, and training a core of the machine."""


@dataclass(frozen=True)
class ProbeKind:
    """One of the probes that are trained on a corpus."""

    words: bool
    """Whether weights depend on the words."""
    control: bool
    """Whether on a checkpoint of random weights; the vectors of words are then still those of the real one."""


@dataclass(frozen=True)
class Stand:
    """How far the work is."""

    stage: Stage
    share: float
    """Of the stage that is done."""
    kind: ProbeKind | None = None
    """What is being trained."""
    training: Training | None = None


Tell = Callable[[Stand], None]
"""Called several times a second; it may raise to stop."""


OnCheckpoint = Callable[[bool, Callable[[Checkpoint], Any], Callable[[], None]], Any]
"""Does some work on the loaded checkpoint or, where the first argument is true, on its control of random weights, and
returns its result; the last argument is called while the work is waited for, and may raise to stop."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeQuestion:
    """What is to be trained on which texts."""

    texts: Sequence[Text]
    trees: Sequence[Dependencies]
    train: Sequence[int]
    """Indices of the training texts."""
    test: Sequence[int]
    kinds: Sequence[ProbeKind]
    settings: PassSettings
    how: ProbeSettings
    """Of all kinds; its `words` says nothing."""
    vectors: WordVectors | None
    """Of the words of all texts; None for the checkpoint's own."""
    too_long: TooLong


@dataclass(frozen=True, eq=False, kw_only=True)
class TrainedProbe:
    """A trained probe and how well it does on the texts to test on."""

    training: Training
    """Not finished where the reader stopped it."""
    score: AttachmentScore


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeResults:
    """What was found so far."""

    offsets: Mapping[int, AttachmentScore]
    """Of right-branching and of the best fixed offset."""
    probes: Mapping[ProbeKind, TrainedProbe]
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out."""
    n_left_out: int
    """Words of the other texts that are used for neither, as they or their heads have no tokens."""

    @property
    def n_bytes(self) -> int:
        """Memory that they take."""
        return sum(one.training.probe.by_word.nbytes for one in self.probes.values())


def train_probes(
    on_checkpoint: OnCheckpoint,
    question: ProbeQuestion,
    tell: Tell,
    keep: Callable[[ProbeResults], None],
) -> None:
    """Train probes on a corpus, one after the other, once no other training is on.

    Args:
        on_checkpoint: passes the texts.
        question: what is asked.
        tell: where it raises, the work ends, and of the probe that was being trained the best so far is kept.
        keep: called after each probe with all that was found until then.

    Raises: AnalysisError of any stage; whatever `tell` raises.
    """
    while not _one_at_a_time.acquire(timeout=WAIT_SECONDS):
        tell(Stand("waiting", 0.0))
    try:
        work = _Work(on_checkpoint, question, tell, keep)
        for control in sorted({kind.control for kind in question.kinds}):
            work.do(control)
    finally:
        _one_at_a_time.release()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Passed:
    """What passes gave of texts, by place."""

    words: dict[int, PassedWords]
    pieces: dict[int, Pieces]
    too_long: list[tuple[int, int]]


class _Work:
    """The probes of a question, those of one checkpoint at a time."""

    def __init__(
        self,
        on_checkpoint: OnCheckpoint,
        question: ProbeQuestion,
        tell: Tell,
        keep: Callable[[ProbeResults], None],
    ) -> None:
        self._on_checkpoint, self._question = on_checkpoint, question
        self._tell, self._keep = tell, keep
        self._table: np.ndarray | None = None
        self._rows: dict[int, np.ndarray] = {}
        self._results: ProbeResults | None = None

    def do(self, control: bool) -> None:
        """Train the probes of the checkpoint, and then those of its random control."""
        asked = self._question
        kinds = [kind for kind in asked.kinds if kind.control == control]
        passed = self._passed(control)
        if self._table is None and any(kind.words for kind in asked.kinds):
            self._find_vectors(control, passed)
        for kind in kinds:
            self._train(kind, passed)

    def _passed(self, control: bool) -> _Passed:
        """Attention of all texts, in turns; the shortest first, as a batch holds texts of like length."""
        texts = self._question.texts
        order = sorted(range(len(texts)), key=lambda place: _size(texts[place]))
        passed = _Passed(words={}, pieces={}, too_long=[])
        for places in _turns(order, texts):
            stand = Stand("passing", (len(passed.words) + len(passed.too_long)) / len(texts))
            self._tell(stand)
            turn = self._on_checkpoint(control, partial(_turn, self._question, places), partial(self._tell, stand))
            passed.words.update(turn.words)
            passed.pieces.update(turn.pieces)
            passed.too_long.extend(turn.too_long)
        if not passed.words:
            raise EveryTextTooLong(tuple(passed.too_long))
        return passed

    def _find_vectors(self, control: bool, passed: _Passed) -> None:
        given = self._question.vectors
        if given is not None:
            self._table, self._rows = given.table, dict(enumerate(given.rows))
            return
        pieces = list(passed.pieces.values())
        own = self._on_checkpoint(control, lambda checkpoint: embedded_words(checkpoint, pieces), _no_watch)
        self._table, self._rows = own.table, dict(zip(passed.pieces, own.rows))

    def _train(self, kind: ProbeKind, passed: _Passed) -> None:
        from core.probing.training import train

        asked, (table, rows) = self._question, self._vectors(kind, passed)
        trees = dict(enumerate(asked.trees))
        own, test = (probe_texts(passed.words, trees, rows, places) for places in (asked.train, asked.test))
        if self._results is None:
            self._results = ProbeResults(
                offsets=offset_scores(own, test),
                probes={},
                too_long=tuple(sorted(passed.too_long)),
                n_left_out=n_left_out([*own, *test]),
            )
        last: Training | None = None
        try:
            for last in train(own, table, replace(asked.how, words=kind.words)):
                self._tell(Stand("training", _share(last, asked.how.epochs), kind, last))
        finally:
            if last is not None and (last.is_finished or last.best):
                self._score(kind, last, test, table)

    def _vectors(self, kind: ProbeKind, passed: _Passed) -> tuple[np.ndarray, dict[int, np.ndarray]]:
        if kind.words and self._table is not None:
            return self._table, self._rows
        none = no_vectors([len(pieces) for pieces in passed.pieces.values()])
        return none.table, dict(zip(passed.pieces, none.rows))

    def _score(self, kind: ProbeKind, training: Training, test: Sequence[ProbeText], table: np.ndarray) -> None:
        from core.probing.training import predicted_heads

        if self._results is None:
            raise RuntimeError("A probe was trained before its texts were there.")
        score = uas(predicted_heads(training.probe, test, table), test)
        probes = {**self._results.probes, kind: TrainedProbe(training=training, score=score)}
        self._results = replace(self._results, probes=probes)
        self._keep(self._results)


def _no_watch() -> None:
    """For work that takes no time."""


def _turn(question: ProbeQuestion, places: Sequence[int], checkpoint: Checkpoint) -> _Passed:
    """What a pass gives of some texts; the checkpoint's shape says whether all of them fit into memory."""
    layers = checkpoint.attentions[question.settings.kind]
    n_words = [min(len(tree.heads), checkpoint.max_tokens) for tree in question.trees]
    check_fits(n_words, layers.n_layers, layers.n_heads)
    texts = [question.texts[place] for place in places]
    prepared, too_long = prepare_all(checkpoint, texts, question.settings, question.too_long)
    kept = [places[row] for row in prepared]
    words = [question.trees[place].words for place in kept]
    passed = list(prepared.values())
    work = word_attention_maps(checkpoint, passed, words, question.settings)
    return _Passed(
        words={kept[row]: features for batch in work for row, features in batch},
        pieces={place: word_pieces(text, of_text) for place, text, of_text in zip(kept, passed, words)},
        too_long=[(places[row], n_tokens) for row, n_tokens in too_long],
    )


def _turns(order: Sequence[int], texts: Sequence[Text]) -> Iterator[list[int]]:
    turn, n_characters = list[int](), 0
    for place in order:
        if turn and n_characters + _size(texts[place]) > TURN:
            yield turn
            turn, n_characters = [], 0
        turn.append(place)
        n_characters += _size(texts[place])
    yield turn


def _size(text: Text) -> int:
    return sum(map(len, text.segments))


def _share(training: Training, most_epochs: int) -> float:
    n_whole = len(training.epochs) - 1 - (training.done == training.n_texts)
    return min((n_whole + training.done / training.n_texts) / most_epochs, 1.0)
