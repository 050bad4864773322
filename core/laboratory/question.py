"""The question how well a model continues what it has seen, with all heads on and without each of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float

from attention_sieve.core.attention.settings import ONE_STACK, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.passes.question import Question, text_alone, text_itself
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyOutcomes:
    """How well a model predicts the copied tokens of a text; NaN in a text without any.

    The two numbers are the mean loss in nats, and the share of tokens to which it gives the highest probability.
    """

    n_copied: int
    """Number of copied tokens."""
    full: Float[np.ndarray, "2"]
    """With no other heads off than those of the settings."""
    without: Float[np.ndarray, "layer head 2"]
    """With this head off, too."""


@dataclass(frozen=True, eq=False, kw_only=True)
class CopyScore:
    """The same over all copied tokens of some texts."""

    loss: float
    accuracy: float
    loss_without: Float[np.ndarray, "layer head"]
    """Loss with each head off, too."""


def copy_score(outcomes: Sequence[CopyOutcomes]) -> CopyScore:
    """The mean over all copied tokens of some texts, of which at least one has any."""
    weights = np.array([outcome.n_copied for outcome in outcomes], dtype=float)
    full, without = (
        np.average(np.nan_to_num([getattr(outcome, name) for outcome in outcomes]), axis=0, weights=weights)
        for name in ("full", "without")
    )
    return CopyScore(loss=float(full[0]), accuracy=float(full[1]), loss_without=without[..., 0])


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
