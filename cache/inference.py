"""The one way to numbers that cost a forward pass: look them up, compute what is missing, keep it.

Nothing here needs torch until something is missing.
"""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Lock, RLock, Thread
from typing import Final, TypeVar

import numpy as np
from jaxtyping import Float

from cache.keys import attention_key, scores_key
from cache.packing import packed_attention, packed_measures, unpacked_attention, unpacked_measures
from cache.store import Store
from core.analysis import MeasuredText, Progress, TextAttention, look_at, measure, no_progress
from core.checkpoints import Checkpoint, CheckpointFiles, load_checkpoint
from core.errors import AnalysisError, EveryTextTooLong, NoTokens, TextTooLong
from core.parses import parse, parser_name
from core.texts import Text
from core.tokens import TooLong

LOADED_CHECKPOINTS: Final = 2
"""Checkpoints held in memory; the least recently used goes first."""
RECENT_CORPORA: Final = 4
"""Corpora whose measures stay in memory."""
RECENT_TEXTS: Final = 4
"""Texts whose attention stays in memory: a click on a head asks for the same one again."""
KEEP_AT_ONCE: Final = 16
"""Finished texts that are written to the store together."""


@dataclass(frozen=True)
class Engine:
    """What computes: a checkpoint on a device, in a number format."""

    files: CheckpointFiles
    device: str = "auto"
    dtype: str = "float32"


@dataclass(frozen=True, eq=False, kw_only=True)
class CorpusMeasures:
    """What passes measured of many texts."""

    measures: Float[np.ndarray, "text measure layer head"]
    """By core.measures.MEASURES, texts in the order given."""
    positions: tuple[int, ...]
    """Place of each of them among the texts given."""
    too_long: tuple[tuple[int, int], ...]
    """Place and number of tokens of each text that was left out or cut."""


Key = TypeVar("Key")
Value = TypeVar("Value")
Question = tuple[Engine, tuple[Text, ...], TooLong]


class Inference:
    """Checkpoints in memory, results in the store; safe to share between threads.

    Attributes:
        store: where results are kept.
        n_passed: texts that have gone through a model so far; a reader of tests.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.n_passed = 0
        self._loaded: OrderedDict[Engine, Checkpoint] = OrderedDict()
        self._recent: OrderedDict[Question, CorpusMeasures] = OrderedDict()
        self._looked: OrderedDict[str, TextAttention] = OrderedDict()
        self._loading: set[Engine] = set()
        self._failed: set[Engine] = set()
        self._lock = RLock()
        # Apart from the lock above, which is held for seconds while a checkpoint is loaded.
        self._recent_lock = Lock()

    def measures(
        self, engine: Engine, texts: Sequence[Text], *, too_long: TooLong = "skip", progress: Progress = no_progress
    ) -> CorpusMeasures:
        """Measures of texts, from memory or the store where they have them.

        Args:
            engine: what computes the missing ones.
            texts: one or more; equal ones are measured once.
            too_long: what happens to texts longer than the checkpoint takes.
            progress: called with texts done and in all; raising stops the work and keeps what is finished.

        Raises: AnalysisError of any stage; EveryTextTooLong when no text is left.
        """
        kept = self.kept_measures(engine, texts, too_long=too_long)
        if kept is not None:
            return kept
        keys, found = self._look_up(engine, texts, too_long)
        missing = {key: text for key, text in zip(keys, texts) if key not in found}
        n_kept, total = len(found), len(found) + len(missing)
        progress(n_kept, total)
        try:
            found |= self._compute(engine, missing, too_long, lambda done, _: progress(n_kept + done, total))
        except (NoTokens, TextTooLong) as error:
            # It counts among the missing texts; the reader counts among those given.
            raise error.at(keys.index(list(missing)[error.position or 0])) from None
        return self._remember((engine, tuple(texts), too_long), _collected([found[key] for key in keys], too_long))

    def kept_measures(
        self, engine: Engine, texts: Sequence[Text], *, too_long: TooLong = "skip"
    ) -> CorpusMeasures | None:
        """Measures of texts that need no pass; None when any text would need one.

        Raises: EveryTextTooLong when no text is left.
        """
        question = (engine, tuple(texts), too_long)
        recent = self._recent.get(question)
        if recent is None:
            keys, found = self._look_up(engine, texts, too_long)
            if any(key not in found for key in keys):
                return None
            recent = _collected([found[key] for key in keys], too_long)
        return self._remember(question, recent)

    def attention(self, engine: Engine, text: Text, *, too_long: TooLong = "error") -> TextAttention:
        """Tokens, relations and attention of one text, from the store where it has them.

        Raises: TextTooLong unless it may be cut; AnalysisError of any stage.
        """
        key = attention_key(engine.files.fingerprint, engine.dtype, text, parser_name())
        looked = self._looked.get(key) or self._look(engine, text, key)
        with self._recent_lock:
            _put_last(self._looked, key, looked, RECENT_TEXTS)
        if looked.tokenized.n_cut and too_long != "truncate":
            n_tokens = len(looked.tokenized.ids)
            raise TextTooLong(None, n_tokens + looked.tokenized.n_cut, n_tokens)
        return looked

    def _look(self, engine: Engine, text: Text, key: str) -> TextAttention:
        kept = self.store.get(key)
        if kept is None:
            with self._lock:
                looked = look_at(self.checkpoint(engine), text, too_long="truncate")
                self.n_passed += 1
            kept = packed_attention(looked)
            self.store.put(key, kept)
        return unpacked_attention(kept)

    def checkpoint(self, engine: Engine) -> Checkpoint:
        """The loaded checkpoint; loads it, or waits for whoever is loading it.

        Raises: CheckpointError.
        """
        with self._lock:
            checkpoint = self._loaded.pop(engine, None)
            if checkpoint is None:
                while len(self._loaded) >= LOADED_CHECKPOINTS:
                    self._loaded.popitem(last=False)
                checkpoint = load_checkpoint(engine.files, device=engine.device, dtype=engine.dtype)
            self._loaded[engine] = checkpoint
            return checkpoint

    def is_loaded(self, engine: Engine) -> bool:
        """Whether a checkpoint is in memory; never waits."""
        return engine in self._loaded

    def is_loading(self, engine: Engine) -> bool:
        """Whether a checkpoint is being loaded in the background; never waits."""
        return engine in self._loading

    def load_behind(self, engine: Engine) -> None:
        """Load a checkpoint in a thread of its own; an error is met again, and shown, by whoever needs it."""
        if not self.is_loaded(engine) and engine not in self._loading | self._failed:
            self._loading.add(engine)
            Thread(target=self._load_quietly, args=(engine,), name="load checkpoint", daemon=True).start()

    def _load_quietly(self, engine: Engine) -> None:
        try:
            self.checkpoint(engine)
            list(parse([Text(("Warm.",))]))
        except AnalysisError:
            self._failed.add(engine)
        finally:
            self._loading.discard(engine)

    def _look_up(
        self, engine: Engine, texts: Sequence[Text], too_long: TooLong
    ) -> tuple[list[str], dict[str, MeasuredText]]:
        """Every text's key, and what the store has under it."""
        parser = parser_name()
        keys = [scores_key(engine.files.fingerprint, engine.dtype, text, parser) for text in texts]
        kept = self.store.get_many(list(dict.fromkeys(keys)))
        measured = {key: unpacked_measures(arrays) for key, arrays in kept.items()}
        return keys, {key: text for key, text in measured.items() if _answers(text, too_long)}

    def _remember(self, question: Question, answer: CorpusMeasures) -> CorpusMeasures:
        """Keep the latest corpora in memory: a moved tau asks for the same one again and again."""
        with self._recent_lock:
            _put_last(self._recent, question, answer, RECENT_CORPORA)
        return answer

    def _compute(
        self, engine: Engine, missing: dict[str, Text], too_long: TooLong, progress: Progress
    ) -> dict[str, MeasuredText]:
        """Measure texts batch by batch; another thread's texts may go between two batches."""
        keys, texts = list(missing), list(missing.values())
        computed: dict[str, MeasuredText] = {}
        unkept: list[str] = []
        with self._lock:
            work = measure(self.checkpoint(engine), texts, too_long=too_long, progress=progress)
        try:
            while (measured := self._next(work)) is not None:
                computed[keys[measured.position]] = measured
                unkept.append(keys[measured.position])
                if len(unkept) == KEEP_AT_ONCE:
                    self._keep(computed, unkept)
                    unkept = []
        finally:
            self._keep(computed, unkept)
        return computed

    def _next(self, work: Iterator[MeasuredText]) -> MeasuredText | None:
        with self._lock:
            measured = next(work, None)
        self.n_passed += measured is not None and measured.measures is not None
        return measured

    def _keep(self, computed: dict[str, MeasuredText], keys: Sequence[str]) -> None:
        if keys:
            self.store.put_many({key: packed_measures(computed[key]) for key in keys})


def _put_last(recent: OrderedDict[Key, Value], key: Key, value: Value, at_most: int) -> None:
    recent[key] = value
    recent.move_to_end(key)
    while len(recent) > at_most:
        recent.popitem(last=False)


def _answers(kept: MeasuredText, too_long: TooLong) -> bool:
    """Whether what is kept of a text serves the wish for long texts; a text that was left out can still be cut."""
    if too_long == "error":
        return not _is_too_long(kept)
    return too_long == "skip" or kept.measures is not None


def _is_too_long(text: MeasuredText) -> bool:
    return text.measures is None or text.n_cut > 0


def _collected(texts: Sequence[MeasuredText], too_long: TooLong) -> CorpusMeasures:
    taken = {i: text.measures for i, text in enumerate(texts) if too_long != "skip" or not _is_too_long(text)}
    measures = [of_text for of_text in taken.values() if of_text is not None]
    if not measures:
        raise EveryTextTooLong(_too_long(texts))
    return CorpusMeasures(
        measures=np.stack(measures),
        positions=tuple(taken),
        too_long=_too_long(texts),
    )


def _too_long(texts: Sequence[MeasuredText]) -> tuple[tuple[int, int], ...]:
    return tuple((i, text.n_tokens) for i, text in enumerate(texts) if _is_too_long(text))
