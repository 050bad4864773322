"""Outputs of heads before the output projection: sums over the tokens of each text, from one forward pass."""

from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import Head, PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.per_text import TextOutputs, with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, gates, model_inputs, plan_batches, to_device
from attention_sieve.core.passes.texts import PassText

BY_ZERO: Final = "Replace heads by zero, or choose"
"""Advice where the outputs of heads cannot be observed."""


def head_outputs(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings
) -> Iterator[list[tuple[int, TextOutputs]]]:
    """Sum and sum of squares of each head's output over the tokens of each text, by channel.

    Args:
        checkpoint: loaded.
        texts: prepared.
        settings: which attention, and which heads are off.

    Yields: index of the text and its sums, batch by batch; not in input order.
    Raises: AnalysisError if the outputs of single heads cannot be observed.
    """
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    calls, removed = checkpoint.attentions[settings.kind].calls, checkpoint.attentions[settings.kind].removed
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS[checkpoint.device]):
        batch_texts = [texts[index] for index in batch.positions]
        real, layers = real_tokens(checkpoint, batch_texts), list[tuple[Tensor, Tensor]]()

        def collect(
            outputs: Tensor, _: Tensor, real: Tensor = real, layers: list[tuple[Tensor, Tensor]] = layers
        ) -> None:
            outputs = outputs * real[..., None, None]
            layers.append((outputs.sum(1), (outputs**2).sum(1)))

        observe(
            checkpoint.model,
            model_inputs(checkpoint, batch_texts),
            Pass(calls=calls, gates=gates(checkpoint, settings), on_output=collect, stops=True),
        )
        sums = [torch.stack(by_layer, 1).cpu().numpy() for by_layer in zip(*layers)]
        yield [
            (index, _outputs([by_text[row] for by_text in sums], removed, len(texts[index].queries.ids)))
            for row, index in enumerate(batch.positions)
        ]


def _outputs(
    sums: Sequence[Float[np.ndarray, "layer head channel"]], removed: Sequence[Head], n_tokens: int
) -> TextOutputs:
    total, squares = (with_holes(values, removed) for values in sums)
    return TextOutputs(total=total, squares=squares, n_tokens=n_tokens)


def real_tokens(checkpoint: Checkpoint, texts: Sequence[PassText]) -> Float[Tensor, "text query"]:
    """1 for the queries of each text, 0 for padding."""
    lengths = torch.tensor([len(text.queries.ids) for text in texts])
    real = (torch.arange(int(lengths.max())) < lengths[:, None]).to(checkpoint.statistics_dtype)
    return to_device(real, checkpoint.device)
