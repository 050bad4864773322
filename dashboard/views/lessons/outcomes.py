"""What a checkpoint makes of the text on screen, a prediction or a ranking of sentences by their similarity to it, and
how few heads have to be off until it makes something else of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.cache.looks import predicted
from attention_sieve.core.answering import Question
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.importance.nearest import by_lead, each_off, first_off, n_until_another, similarities
from attention_sieve.core.importance.question import ablation_question, vectors_question
from attention_sieve.core.texts.text import Text, read_typed
from attention_sieve.dashboard.figures.text.arcs import visible
from attention_sieve.dashboard.views.lessons.computation import StepInputs
from attention_sieve.dashboard.views.lessons.sentences import SIMILAR

MOST_OFF: Final = 24

Vectors = Question[Text, Float[np.ndarray, "gating channel"]]


@dataclass(frozen=True, eq=False, kw_only=True)
class LessonOutcome:
    names: tuple[str, ...]
    """Sentences, or what is predicted; highest value first."""
    values: Float[np.ndarray, " name"]
    """Similarities (cosines of text vectors), or probabilities."""
    is_prediction: bool

    @property
    def first(self) -> str:
        return self.names[0]


@dataclass(frozen=True, eq=False, kw_only=True)
class Change:
    """The heads that have to be off until the outcome is another one."""

    heads: tuple[Head, ...]
    """Enough of them; no claim that no others would do. Empty if MOST_OFF do not change it."""
    before: LessonOutcome
    after: LessonOutcome
    """Without these heads."""


@lru_cache(maxsize=8)  # the same question finds its answers in memory
def each_off_question(n_layers: int, n_heads: int) -> Vectors:
    """Vectors with all heads on, and with each head off alone."""
    return vectors_question(each_off(n_layers, n_heads))


@lru_cache(maxsize=64)
def first_off_question(heads: tuple[Head, ...], n_layers: int, n_heads: int) -> Vectors:
    """Vectors with all heads on, and with the first one of some heads off, the first two, and so on."""
    return vectors_question(first_off(heads, n_layers, n_heads))


def outcome(inputs: StepInputs, off: Sequence[Head]) -> LessonOutcome:
    text, settings = read_typed(inputs.typed)[0], PassSettings(inputs.visit.settings.kind, tuple(sorted(off)))
    prediction = inputs.visit.inference.on_screen(inputs.visit.engine, predicted, text, settings)
    if prediction is not None and len(prediction.names) > 1:
        return _ranked(list(map(visible, prediction.names)), prediction.values, is_prediction=True)
    vectors = _vectors(inputs, first_off_question((), *shape_of(inputs)), settings)
    return _ranked(SIMILAR, similarities(vectors)[0], is_prediction=False)


def change_of(inputs: StepInputs) -> Change:
    """The heads without which the checkpoint makes something else of the text on screen.

    They are switched off one after the other: first those without which, alone, the most similar sentence is least
    ahead; where the checkpoint predicts, those that alone change the text's vector most.
    """
    before = outcome(inputs, ())
    heads = _until_another_prediction(inputs, before) if before.is_prediction else _until_another_sentence(inputs)
    return Change(heads=heads, before=before, after=outcome(inputs, heads))


def turns(inputs: StepInputs, heads: Sequence[Head]) -> Float[np.ndarray, " n_off"]:
    """Angle between the vector of the text on screen with all heads on and without the first of these heads, the first
    two, and so on, in degrees."""
    vectors = _vectors(inputs, first_off_question(tuple(heads), *shape_of(inputs)), None)[0].astype(np.float64)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.degrees(np.arccos(np.clip(unit[1:] @ unit[0], -1, 1)))


def shape_of(inputs: StepInputs) -> tuple[int, int]:
    n_layers, n_heads = inputs.attention.attention.shape[:2]
    return n_layers, n_heads


def _until_another_sentence(inputs: StepInputs) -> tuple[Head, ...]:
    shape = shape_of(inputs)
    heads = by_lead(similarities(_vectors(inputs, each_off_question(*shape), None)), shape[1])[:MOST_OFF]
    n_off = n_until_another(similarities(_vectors(inputs, first_off_question(tuple(heads), *shape), None)))
    return tuple(heads[: n_off or 0])


def _until_another_prediction(inputs: StepInputs, before: LessonOutcome) -> tuple[Head, ...]:
    text, settings = read_typed(inputs.typed)[0], PassSettings(inputs.visit.settings.kind)
    answers = inputs.visit.inference.ask(
        inputs.visit.engine, ablation_question("output"), [text], settings, too_long="truncate"
    )
    change = np.nan_to_num(answers.results[0].without[..., 0], nan=-1)
    n_heads = change.shape[1]
    order = [divmod(int(place), n_heads) for place in np.argsort(-change, axis=None, kind="stable")[:MOST_OFF]]
    heads = (tuple(order[: n_off + 1]) for n_off in range(len(order)))
    return next((some for some in heads if outcome(inputs, some).first != before.first), ())


def _vectors(
    inputs: StepInputs,
    question: Vectors,
    settings: PassSettings | None,
) -> Float[np.ndarray, "text gating channel"]:
    """Vectors of the text on screen and of the sentences; with all heads on unless `settings` says otherwise."""
    texts = [read_typed(inputs.typed)[0], *(Text((sentence,)) for sentence in SIMILAR)]
    settings = settings or PassSettings(inputs.visit.settings.kind)
    answers = inputs.visit.inference.ask(inputs.visit.engine, question, texts, settings, too_long="truncate")
    return np.stack(answers.results)


def _ranked(names: Sequence[str], values: Float[np.ndarray, " name"], *, is_prediction: bool) -> LessonOutcome:
    order = np.argsort(-values, kind="stable")
    ranked = tuple(names[place] for place in order)
    return LessonOutcome(names=ranked, values=values[order], is_prediction=is_prediction)
