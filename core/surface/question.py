"""Questions: surface statistics, and gradients of the loss with respect to attention."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Final

import numpy as np

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.question import Arrays, Question, array_to_text, text_alone, text_itself, text_to_array
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.surface.key_kinds import PUNCTUATION, RowSettings
from attention_sieve.core.surface.per_text import TextGradients, TextSurface
from attention_sieve.core.texts.text import Text

_WORDS: Final = "key_words"
_ARRAYS: Final = tuple(field.name for field in fields(TextSurface) if field.name != _WORDS)


@cache
def surface_question(settings: RowSettings) -> Question[Text, TextSurface]:
    """Surface statistics of the attention of each head on each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], pass_settings: PassSettings
    ) -> Iterator[list[tuple[int, TextSurface]]]:
        from attention_sieve.core.passes.batches import collect
        from attention_sieve.core.surface.observer import surface_collector

        return collect(checkpoint, prepared, pass_settings, surface_collector(checkpoint, settings))

    code = ", as in code" if settings.as_in_code else ""
    return Question(
        name=f"surface{code}{_signs(settings.punctuation)}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=_pack_surface,
        unpack=_unpack_surface,
        version=5,
    )


def _pack_surface(result: TextSurface) -> Arrays:
    """In single precision: 40 kB for a text of 40 tokens and 144 heads."""
    arrays = {name: getattr(result, name) for name in _ARRAYS}
    single = {name: array.astype(np.float32) for name, array in arrays.items() if array.dtype.kind == "f"}
    return {**arrays, **single, _WORDS: text_to_array(json.dumps(result.key_words))}


def _unpack_surface(arrays: Arrays) -> TextSurface:
    words = tuple(json.loads(array_to_text(arrays[_WORDS])))
    return TextSurface(**{name: arrays[name] for name in _ARRAYS}, key_words=words)


@cache
def gradient_question(punctuation: tuple[str, ...]) -> Question[Text, TextGradients]:
    """How much the loss of a masked-language model depends on attention in each text."""

    def compute(
        checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], pass_settings: PassSettings
    ) -> Iterator[list[tuple[int, TextGradients]]]:
        from attention_sieve.core.surface.gradients import attention_gradients

        return attention_gradients(checkpoint, prepared, pass_settings, punctuation=punctuation)

    return Question(
        name=f"gradients of attention, masked keys as others{_signs(punctuation)}",
        text_of=text_itself,
        depends_on=text_alone,
        compute=compute,
        pack=lambda result: {
            "importance": result.importance.astype(np.float32),
            "n_masked": np.array(result.n_masked),
        },
        unpack=lambda arrays: TextGradients(importance=arrays["importance"], n_masked=int(arrays["n_masked"])),
    )


def _signs(punctuation: tuple[str, ...]) -> str:
    """What the name of a question says of the tokens that count as punctuation."""
    return "" if punctuation == PUNCTUATION else f", punctuation {json.dumps(punctuation)}"
