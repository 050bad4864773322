"""Surface statistics, and gradients of attention, as questions: what is kept of each text and given back."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from typing import Final

import numpy as np

from cache.keys import text_ingredients
from cache.packing import Arrays
from cache.questions import Answers, Question
from cache.store import array_to_text, text_to_array
from core.checkpoints import Checkpoint
from core.key_kinds import PUNCTUATION, SurfaceSettings
from core.passes import PassSettings, PassText
from core.surface import TextGradients, TextSurface
from core.texts import Text

_WORDS: Final = "key_words"
_ARRAYS: Final = tuple(field.name for field in fields(TextSurface) if field.name != _WORDS)


def packed_surface(found: TextSurface) -> Arrays:
    """What a pass found of one text, in single precision: 40 kB of a text of 40 tokens for 144 heads."""
    arrays = {name: getattr(found, name) for name in _ARRAYS}
    single = {name: array.astype(np.float32) for name, array in arrays.items() if array.dtype.kind == "f"}
    return {**arrays, **single, _WORDS: text_to_array(json.dumps(found.key_words))}


def unpacked_surface(kept: Arrays) -> TextSurface:
    """The inverse of packed_surface, but for the rounding."""
    words = tuple(json.loads(array_to_text(kept[_WORDS])))
    return TextSurface(**{name: kept[name] for name in _ARRAYS}, key_words=words)


def found_surface(answers: Answers) -> tuple[TextSurface, ...]:
    """The answers to a `surface_question`."""
    return tuple(unpacked_surface(kept) for kept in answers.results)


def packed_gradients(found: TextGradients) -> Arrays:
    """How much the loss of one text depends on its attention."""
    return {"importance": found.importance.astype(np.float32), "n_masked": np.array(found.n_masked)}


def unpacked_gradients(kept: Arrays) -> TextGradients:
    """The inverse of packed_gradients, but for the rounding."""
    return TextGradients(importance=kept["importance"], n_masked=int(kept["n_masked"]))


def found_gradients(answers: Answers) -> tuple[TextGradients, ...]:
    """The answers to GRADIENTS."""
    return tuple(unpacked_gradients(kept) for kept in answers.results)


def _gradients(
    checkpoint: Checkpoint, items: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Arrays]]]:
    from core.attention_gradients import attention_gradients

    for batch in attention_gradients(checkpoint, prepared, settings):
        yield [(place, packed_gradients(found)) for place, found in batch]


def _text(text: Text) -> Text:
    return text


def _ingredients(text: Text) -> dict[str, object]:
    return {"text": text_ingredients(text)}


@cache
def surface_question(how: SurfaceSettings) -> Question[Text]:
    """What the heads of a checkpoint look at in each of many texts."""

    def answer(
        checkpoint: Checkpoint, items: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
    ) -> Iterator[list[tuple[int, Arrays]]]:
        from core.observing import collect
        from core.surface_observer import surface_collector

        for batch in collect(checkpoint, prepared, settings, surface_collector(checkpoint, how)):
            yield [(place, packed_surface(found)) for place, found in batch]

    code = ", as in code" if how.as_in_code else ""
    signs = "" if how.punctuation == PUNCTUATION else f", punctuation {json.dumps(how.punctuation)}"
    return Question(kind=f"surface{code}{signs}", text_of=_text, ingredients=_ingredients, answer=answer)


SURFACE: Final = surface_question(SurfaceSettings())
"""The same, unless another way of taking them is asked for."""
GRADIENTS: Final = Question(
    kind="gradients of attention, masked keys as others", text_of=_text, ingredients=_ingredients, answer=_gradients
)
"""How much a masked-language model's loss depends on attention, on each of many texts; only for checkpoints with such
a head that come through the door."""
