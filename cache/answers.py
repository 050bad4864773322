"""What is wanted of one text, what a pass saw of it, and how the store keeps that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from cache.keys import attention_key, scores_key
from cache.packing import Arrays, packed_measures, unpacked_measures
from cache.store import Store
from core.analysis import MeasuredText
from core.checkpoints import CheckpointFiles
from core.passes import PassSettings
from core.texts import Text


@dataclass(frozen=True)
class Engine:
    """What computes: a checkpoint on a device, in a number format."""

    files: CheckpointFiles
    device: str = "auto"
    dtype: str = "float32"

    def settings(self, asked: PassSettings | None) -> PassSettings:
        """What was asked for, or else the checkpoint's first attention with all heads on."""
        return asked or PassSettings(self.files.kinds[0])


@dataclass(frozen=True)
class Wanted:
    """One text as a session wants it."""

    text: Text
    scores_key: str
    truncate: bool = False
    """Cut it where it is too long."""
    start: tuple[int, int] | None = None
    """First query and key of the part of its attention to keep; None keeps none."""
    attention_key: str | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What a pass saw of one text."""

    measured: MeasuredText
    attention: Arrays | None = None
    """From packed_attention, where it was wanted: rounded as the store rounds it."""


def wanted_scores(
    engine: Engine, settings: PassSettings, texts: Iterable[Text], parser: str, truncate: bool
) -> list[Wanted]:
    """The scores of texts."""
    checkpoint, dtype = engine.files.fingerprint, engine.dtype
    return [Wanted(text, scores_key(checkpoint, dtype, settings, text, parser), truncate) for text in texts]


def wanted_look(
    engine: Engine, settings: PassSettings, text: Text, parser: str, truncate: bool, start: tuple[int, int]
) -> Wanted:
    """Scores and attention of one text."""
    (wanted,) = wanted_scores(engine, settings, [text], parser, truncate)
    key = attention_key(engine.files.fingerprint, engine.dtype, settings, text, parser, start)
    return Wanted(text, wanted.scores_key, truncate, start, key)


def read(store: Store, wanted: Sequence[Wanted]) -> dict[Wanted, Seen]:
    """What the store has of all that is wanted of a text; texts of which it has less are absent."""
    keys = [key for one in wanted for key in (one.scores_key, one.attention_key) if key is not None]
    kept = store.get_many(list(dict.fromkeys(keys)))
    found = {one: _seen(one, kept) for one in wanted}
    return {one: seen for one, seen in found.items() if seen is not None}


def _seen(wanted: Wanted, kept: Mapping[str, Arrays]) -> Seen | None:
    measured, attention = kept.get(wanted.scores_key), kept.get(wanted.attention_key or "")
    if measured is None or (wanted.attention_key is not None and attention is None):
        return None
    return Seen(measured=unpacked_measures(measured), attention=attention)


def write(store: Store, seen: Mapping[Wanted, Seen]) -> None:
    """Keep what passes saw, in one transaction."""
    results: dict[str, Arrays] = {}
    for wanted, one in seen.items():
        results[wanted.scores_key] = packed_measures(one.measured)
        if wanted.attention_key is not None and one.attention is not None:
            results[wanted.attention_key] = one.attention
    if results:
        store.put_many(results)
