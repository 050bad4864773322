"""The question of a comparison: scores of a text under two checkpoints, and the divergence of their attention."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.answering import SIDES, Arrays, Question, part, part_of, text_alone, text_itself
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import PassText, with_relations
from attention_sieve.core.roles.measures import TextMeasures
from attention_sieve.core.roles.question import SCORES
from attention_sieve.core.texts.text import Text


@dataclass(frozen=True, eq=False, kw_only=True)
class ComparedText:
    """Measures of a text under two checkpoints, and the divergence of their attention."""

    sides: tuple[TextMeasures, TextMeasures]
    """Under the reference, and under the compared checkpoint."""
    lengths: tuple[dict[str, int], dict[str, int]]
    """As of `PassText.lengths`, under each."""
    divergence: Float[np.ndarray, "layer head"] | None
    """In nats, 0 to ln 2; NaN if the tokens differ. None if the numbers of layers or heads differ."""


def divergences(texts: Sequence[ComparedText]) -> Float[np.ndarray, "text layer head"] | None:
    """The divergence of one or more texts; None if the numbers of layers or heads differ."""
    arrays = [text.divergence for text in texts if text.divergence is not None]
    return np.stack(arrays) if arrays else None


def _compute(
    checkpoints: tuple[Checkpoint, Checkpoint],
    texts: Sequence[Text],
    prepared: Sequence[tuple[PassText, PassText]],
    settings: tuple[PassSettings, PassSettings],
) -> Iterator[list[tuple[int, ComparedText]]]:
    from attention_sieve.core.comparison.in_step import compare_batch

    # Relations for both checkpoints in one call, so that each text is parsed once.
    sides = [side for pair in prepared for side in pair]
    parsed = with_relations(sides, [text for text in texts for _ in SIDES])
    compared = compare_batch(*checkpoints, parsed[::2], parsed[1::2], *settings)
    yield [
        (
            row,
            ComparedText(
                sides=(compared.a[row], compared.b[row]),
                lengths=(pair[0].lengths, pair[1].lengths),
                divergence=None if compared.divergence is None else compared.divergence[row],
            ),
        )
        for row, pair in enumerate(prepared)
    ]


def _pack(text: ComparedText) -> Arrays:
    arrays = {"divergence": np.empty((0, 0), np.float32) if text.divergence is None else text.divergence}
    for name, measures, lengths in zip(SIDES, text.sides, text.lengths, strict=True):
        counts = {count: np.array(value) for count, value in lengths.items()}
        arrays |= part(name, {**SCORES.pack(measures), **counts})
    return arrays


def _unpack(arrays: Arrays) -> ComparedText:
    a, b = (part_of(arrays, name) for name in SIDES)
    lengths = tuple({count: int(side.pop(count)) for count in ("n_tokens", "n_cut")} for side in (a, b))
    return ComparedText(
        sides=(SCORES.unpack(a), SCORES.unpack(b)),
        lengths=(lengths[0], lengths[1]),
        divergence=arrays["divergence"] if arrays["divergence"].size else None,
    )


COMPARISON: Final[Question[Text, ComparedText]] = Question(
    name="comparison",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_compute,
    pack=_pack,
    unpack=_unpack,
    kinds=SCORES.kinds,
    why_not=SCORES.why_not,
)
"""Question about two checkpoints: scores of each text, and the divergence, by two passes in step."""
