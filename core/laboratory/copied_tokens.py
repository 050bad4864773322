"""Runs a decoder over texts with each of its heads off, and reads off how well it predicts their copied tokens."""

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.laboratory.outcomes import CopyOutcomes
from attention_sieve.core.laboratory.sequences import is_copied
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, model_inputs, plan_batches
from attention_sieve.core.passes.texts import PassText


def copy_outcomes(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, CopyOutcomes]]]:
    """Loss and accuracy of the copied tokens of each text, with all heads on and without each.

    Args:
        checkpoint: a decoder, loaded.
        settings: which heads are off throughout.

    Yields: index of the text and its outcomes, batch by batch; not in input order.
    Raises: AnalysisError for a checkpoint that does not predict the next token.
    """
    if checkpoint.head != "next token":
        raise AnalysisError(
            f"{checkpoint.files.name} predicts no next token, so it copies none. Choose a decoder with its head."
        )
    attention = checkpoint.attentions[settings.kind]
    shape = attention.n_layers, attention.n_heads
    base = gates(checkpoint, settings)
    base = torch.ones(shape, device=checkpoint.device) if base is None else base
    without_each = base * (1 - torch.eye(base.numel(), device=base.device).view(-1, *shape))
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        inputs = model_inputs(checkpoint, batch_texts)
        outcomes = [  # gating, text, 2
            _outcomes(
                observe(checkpoint.full_model, inputs, Pass(calls=attention.calls, gates=head_gates)).logits,
                batch_texts,
            )
            for head_gates in (base, *without_each)
        ]
        full, without = outcomes[0], np.stack(outcomes[1:]).reshape(*shape, len(batch_texts), 2)
        yield [
            (
                index,
                CopyOutcomes(
                    n_copied=int(is_copied(texts[index].queries.ids).sum()), full=full[row], without=without[:, :, row]
                ),
            )
            for row, index in enumerate(batch.positions)
        ]


def _outcomes(logits: Float[Tensor, "text token choice"], texts: Sequence[PassText]) -> Float[np.ndarray, "text 2"]:
    """Mean loss in nats and accuracy of the copied tokens of each text; NaN where there are none."""
    rows = []
    for text_logits, text in zip(logits, texts, strict=True):
        ids = torch.from_numpy(text.queries.ids)
        copied = torch.from_numpy(np.flatnonzero(is_copied(text.queries.ids)))
        choices, targets = text_logits.cpu().double()[copied - 1], ids[copied]
        loss = torch.nn.functional.cross_entropy(choices, targets)  # the mean of nothing is NaN
        rows.append((float(loss), float((choices.argmax(-1) == targets).double().mean())))
    return np.array(rows)
