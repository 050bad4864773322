"""What is wanted of one text, what a pass saw of it, and how the store keeps that."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float

from cache.keys import attention_key, divergence_key, scores_key
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
class Against:
    """Keys of what else is wanted of a text where two checkpoints are compared."""

    scores_key: str
    """Of its scores under the compared checkpoint."""
    divergence_key: str


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
    against: Against | None = None

    @property
    def keys(self) -> list[str]:
        """Keys of all that is wanted."""
        against = (None, None) if self.against is None else (self.against.scores_key, self.against.divergence_key)
        return [key for key in (self.scores_key, self.attention_key, *against) if key is not None]


@dataclass(frozen=True, eq=False, kw_only=True)
class Seen:
    """What a pass saw of one text, or two passes in step."""

    measured: MeasuredText
    attention: Arrays | None = None
    """From packed_attention, where it was wanted: rounded as the store rounds it."""
    against: MeasuredText | None = None
    """Under the compared checkpoint."""
    divergence: Float[np.ndarray, "layer head"] | None = None
    """Between the two, as core.divergence gives it; of no size where the checkpoints have not the same heads."""

    @property
    def sides(self) -> tuple[MeasuredText, ...]:
        """What was measured under each checkpoint."""
        return (self.measured,) if self.against is None else (self.measured, self.against)


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


def wanted_comparison(
    engines: tuple[Engine, Engine],
    settings: tuple[PassSettings, PassSettings],
    texts: Sequence[Text],
    parser: str,
    truncate: bool,
) -> list[Wanted]:
    """Scores of texts under two checkpoints, and the divergence of their attention."""
    of_a, of_b = (wanted_scores(engine, asked, texts, parser, truncate) for engine, asked in zip(engines, settings))
    fingerprints, dtype = (engines[0].files.fingerprint, engines[1].files.fingerprint), engines[0].dtype
    return [
        replace(a, against=Against(b.scores_key, divergence_key(fingerprints, dtype, settings, a.text)))
        for a, b in zip(of_a, of_b)
    ]


def read(store: Store, wanted: Sequence[Wanted]) -> dict[Wanted, Seen]:
    """What the store has of all that is wanted of a text; texts of which it has less are absent."""
    keys = [key for one in wanted for key in one.keys]
    kept = store.get_many(list(dict.fromkeys(keys)))
    found = {one: _seen(one, kept) for one in wanted}
    return {one: seen for one, seen in found.items() if seen is not None}


def _seen(wanted: Wanted, kept: Mapping[str, Arrays]) -> Seen | None:
    against = wanted.against
    compared = {} if against is None else kept.get(against.divergence_key, {})
    if compared and "divergence" not in compared:
        return Seen(measured=unpacked_measures(compared))
    if any(key not in kept for key in wanted.keys):
        return None
    return Seen(
        measured=unpacked_measures(kept[wanted.scores_key]),
        attention=None if wanted.attention_key is None else kept[wanted.attention_key],
        against=None if against is None else unpacked_measures(kept[against.scores_key]),
        divergence=compared.get("divergence"),
    )


def write(store: Store, seen: Mapping[Wanted, Seen]) -> None:
    """Keep what passes saw, in one transaction."""
    results: dict[str, Arrays] = {}
    for wanted, one in seen.items():
        results |= _packed(wanted, one)
    if results:
        store.put_many(results)


def _packed(wanted: Wanted, seen: Seen) -> dict[str, Arrays]:
    against = wanted.against
    if against is not None and seen.against is None:
        # Left out as too long for one of the two; for the other it may not be.
        return {against.divergence_key: packed_measures(seen.measured)}
    results = {wanted.scores_key: packed_measures(seen.measured)}
    if wanted.attention_key is not None and seen.attention is not None:
        results[wanted.attention_key] = seen.attention
    if against is not None and seen.against is not None and seen.divergence is not None:
        results[against.scores_key] = packed_measures(seen.against)
        results[against.divergence_key] = {"divergence": seen.divergence}
    return results
