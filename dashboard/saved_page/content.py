"""What a saved page shows, computed from a loaded checkpoint, or from two."""

from collections.abc import Sequence
from dataclasses import dataclass

from attention_sieve.core.answering import AnswerQuestion, Reading, answer, find_in, on_common_inputs
from attention_sieve.core.attention.settings import Head, PassSettings, head_name
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import prepared_texts, progress_bar
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.passes.texts import PassText, TextAttention, check_settings, prepare, with_relations
from attention_sieve.core.roles.analysis import ROLE_ANALYSIS
from attention_sieve.core.roles.finding import RoleFinding, RoleSettings
from attention_sieve.core.texts.parsers import trees_source
from attention_sieve.core.texts.text import Text
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard.saved_page.asked import MOST_WEIGHTS, Asked, NamedCheckpoint


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """What one checkpoint gives."""

    finding: RoleFinding
    drawn: tuple[TextAttention, ...]
    """Whole attention of each text that is drawn."""
    removed: tuple[Head, ...]
    n_shared: int
    """How many neighbouring heads share keys and values."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Content:
    """What a page shows, and the question that it answers."""

    asked: Asked
    found: tuple[Found, ...]
    n_tokens: tuple[int, ...]
    """Of each text, under the first checkpoint."""


@dataclass(frozen=True, kw_only=True)
class PageRequest:
    """What a reader asks of a page, before the texts are read."""

    pass_settings: PassSettings
    settings: RoleSettings
    texts: Sequence[Text]
    drawn: Sequence[Text] = ()
    """None of them draws the first text that fits."""
    chosen: Sequence[Head] = ()
    too_long: TooLong = "error"


def compute(checkpoints: Sequence[Checkpoint], request: PageRequest, answer: AnswerQuestion = answer) -> Content:
    """Compute what a page shows, under bars of progress.

    Args:
        checkpoints: one, or a reference and another of the same shape.
        answer: as for `Reading`.

    Raises: AnalysisError for checkpoints of different shapes, attention that is too large to be drawn, and of any
        stage.
    """
    pass_settings = request.pass_settings
    for checkpoint in checkpoints:
        check_settings(checkpoint, pass_settings)
    ROLE_ANALYSIS.question(request.settings).check(pass_settings.kind)
    shapes = [
        (layers.n_layers, layers.n_heads) for layers in (each.attentions[pass_settings.kind] for each in checkpoints)
    ]
    check_shapes(shapes)
    for layer, head in request.chosen:
        if layer >= shapes[0][0] or head >= shapes[0][1]:
            raise AnalysisError(
                f"There is no head {head_name(layer, head)}: {checkpoints[0].files.name} has {shapes[0][0]} layers x "
                f"{shapes[0][1]} heads. Choose another."
            )
    readings = on_common_inputs(
        [
            Reading(
                checkpoint=checkpoint,
                pass_settings=pass_settings,
                inputs=request.texts,
                prepared=prepared_texts(checkpoint, request.texts, pass_settings, request.too_long),
                answer=answer,
            )
            for checkpoint in checkpoints
        ]
    )
    texts, prepared = tuple(readings[0].inputs), readings[0].prepared
    n_weights = len(checkpoints) * shapes[0][0] * shapes[0][1]
    sizes = {index: n_weights * n_entries(text) for index, text in prepared.items()}
    shortest = min(sizes, key=sizes.__getitem__)
    first = next((index for index, size in sizes.items() if size <= MOST_WEIGHTS), shortest)
    drawn = tuple(request.drawn) or (texts[first],)
    lengths = [text.lengths for text in prepared.values()]
    asked = Asked(
        checkpoints=tuple(NamedCheckpoint.of(checkpoint.files) for checkpoint in checkpoints),
        dtype=checkpoints[0].dtype,
        attention=pass_settings.kind,
        off=pass_settings.off,
        settings=request.settings,
        texts=texts,
        drawn=drawn,
        chosen=tuple(request.chosen),
        truncated=request.too_long == "truncate",
        parser=trees_source([*texts, *drawn]),
    )
    return Content(
        asked=asked,
        found=tuple(_found(reading, asked, n_weights) for reading in readings),
        n_tokens=tuple(length["n_tokens"] - length["n_cut"] for length in lengths),
    )


def _found(reading: Reading[Text], asked: Asked, n_weights: int) -> Found:
    from attention_sieve.core.roles.scores import text_attention  # imports torch

    checkpoint, pass_settings = reading.checkpoint, reading.pass_settings
    prepared = [prepare(checkpoint, text, pass_settings, truncate=asked.truncated) for text in asked.drawn]
    check_weights(n_weights * sum(map(n_entries, prepared)))
    if asked.settings.scores.parses:
        prepared = with_relations(prepared, asked.drawn)
    return Found(
        finding=find_in(ROLE_ANALYSIS, reading, asked.settings, progress_bar),
        drawn=tuple(text_attention(checkpoint, text, pass_settings) for text in prepared),
        removed=checkpoint.attentions[pass_settings.kind].removed,
        n_shared=checkpoint.files.n_shared,
    )


def check_shapes(shapes: Sequence[tuple[int, int]]) -> None:
    """Raise AnalysisError for checkpoints with different numbers of layers and heads."""
    if len(set(shapes)) > 1:
        written = " and ".join(f"{layers} layers of {heads} heads" for layers, heads in shapes)
        raise AnalysisError(
            f"The checkpoints have {written}, so that no head of one is a head of the other. Save a page of each."
        )


def check_weights(n_weights: int) -> None:
    """Raise AnalysisError for more weights than a page holds."""
    if n_weights > MOST_WEIGHTS:
        raise AnalysisError(
            f"The attention in the texts to draw has {n_weights:,} weights, and a page holds at most {MOST_WEIGHTS:,}. "
            "Choose a shorter text to draw."
        )


def n_entries(text: PassText) -> int:
    """Number of weights of one head in a text."""
    return len(text.queries.ids) * len(text.keys.ids)
