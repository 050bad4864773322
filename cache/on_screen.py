"""What is computed about the text on screen besides its attention, for `Inference.on_screen`; imports torch late."""

from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.texts import prepare
from attention_sieve.core.texts.text import Text

if TYPE_CHECKING:
    from attention_sieve.core.comparison.swap_output import SwapOutput
    from attention_sieve.core.generation.continuation import Continuation
    from attention_sieve.core.passes.outputs import NextTokens, OutputChange, Prediction


def predicted(checkpoint: Checkpoint, text: Text, settings: PassSettings) -> "Prediction | None":
    """Classes or likeliest tokens for a text, truncated if too long; None for a checkpoint without an output head."""
    from attention_sieve.core.passes.outputs import prediction

    return prediction(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings)


def changed(checkpoint: Checkpoint, text: Text, settings: PassSettings, token: int | None = None) -> "OutputChange":
    """Change of the output for a text, truncated if too long, when heads are switched off; as `output_change`."""
    from attention_sieve.core.passes.outputs import output_change

    return output_change(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, token)


def expected_next(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int | None, asked: str
) -> "NextTokens | None":
    """The likeliest tokens after one token of a text, which is truncated if too long; as `next_tokens`."""
    from attention_sieve.core.passes.outputs import next_tokens

    return next_tokens(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position, asked)


def added_by_heads(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int, token: int
) -> Float[np.ndarray, "layer head"]:
    """What each head adds to the logit of a next token of a text, which is truncated if too long."""
    from attention_sieve.core.importance.passes.direct_path import logit_attribution

    return logit_attribution(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position, token)


def swapped(checkpoint: Checkpoint, text: Text, other: Text, settings: PassSettings) -> "SwapOutput":
    """What changes in the output from one sentence to another.

    Raises: TextTooLong.
    """
    from attention_sieve.core.comparison.swap_output import swap_output

    a, b = (prepare(checkpoint, each, settings) for each in (text, other))
    return swap_output(checkpoint, (text, other), a, b, settings)


def continued(checkpoint: Checkpoint, prompt: Text, settings: PassSettings, ids: tuple[int, ...]) -> "Continuation":
    """A prompt with the tokens that were written after it; as `continuation`."""
    from attention_sieve.core.generation.continuation import continuation

    return continuation(checkpoint, prompt, settings, ids)


def chat(checkpoint: Checkpoint, text: Text, typed: str) -> Text:
    """Turns of a chat, typed as lines, as the checkpoint reads them. The checkpoint has a chat template; the text is as
    long as what was typed, so that it is known whether the work is short.

    Raises: AnalysisError for turns that the template does not take, or a checkpoint that has none.
    """
    from attention_sieve.core.generation.chat import chat_text, read_turns

    return chat_text(checkpoint, read_turns(typed))


def looked_from(
    checkpoint: Checkpoint, text: Text, settings: PassSettings, position: int
) -> Float[np.ndarray, "layer head key"]:
    """Attention of one token of a text, which is truncated if too long, to every key."""
    from attention_sieve.core.passes.batches import attention_of_token

    return attention_of_token(checkpoint, prepare(checkpoint, text, settings, truncate=True), settings, position)
