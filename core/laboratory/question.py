"""The question how well a model continues what it has seen, with all heads on and without each of them."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np

from attention_sieve.core.answering import Question, text_alone, text_itself
from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.laboratory.outcomes import CopyOutcomes
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text


def _compute(
    checkpoint: Checkpoint, texts: Sequence[Text], prepared: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, CopyOutcomes]]]:
    from attention_sieve.core.laboratory.copied_tokens import copy_outcomes

    return copy_outcomes(checkpoint, prepared, settings)


COPIED_TOKENS: Final[Question[Text, CopyOutcomes]] = Question(
    name="laboratory, copied tokens",
    text_of=text_itself,
    depends_on=text_alone,
    compute=_compute,
    pack=lambda result: {
        "copied": np.array(result.n_copied),
        "full": result.full.astype(np.float32),
        "without": result.without.astype(np.float32),
    },
    unpack=lambda arrays: CopyOutcomes(n_copied=int(arrays["copied"]), full=arrays["full"], without=arrays["without"]),
    kinds=ONE_STACK,
    why_not="Copied tokens are measured in decoders that are no part of an encoder-decoder. Choose such a checkpoint.",
)
"""How well a model predicts the copied tokens of each text (see `attention_sieve.core.laboratory.sequences`)."""
