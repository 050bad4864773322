"""Gradient of each text's loss with respect to every head: one forward and one backward pass for all heads."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.passes.head_outputs import BY_ZERO, real_tokens
from attention_sieve.core.importance.per_text import TextSlopes, with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, check_length, gates, plan_batches
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.texts import PassText


def head_slopes(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    labels: Sequence[float | None],
    settings: PassSettings,
    metric: Metric,
) -> Iterator[list[tuple[int, TextSlopes]]]:
    """Product of each head's output and the gradient of a text's loss with respect to it, summed over tokens.

    Each text has its own loss, so nothing depends on the batch; for the metric output see
    `attention_sieve.core.passes.readout.Readout.losses`.

    Args:
        checkpoint: loaded.
        texts: prepared; see `attention_sieve.core.importance.passes.sweep.with_targets`.
        labels: class or value of each text; None for other metrics than labels.
        settings: which attention, and which heads are off; for these the product is 0.
        metric: determines the loss.

    Yields: index of the text and its slopes, batch by batch; not in input order.
    Raises: AnalysisError for a checkpoint without this metric or whose heads cannot be seen, and for a text whose
        attention would fill the memory.
    Source: Michel et al. 2019, section 4.1, equation 3 and its form as a dot product.
    """
    check_metric(checkpoint, metric, settings.kind)
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    for text in texts:
        check_length(checkpoint.attentions[settings.kind], text.n_tokens)
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS["cpu"]):
        batch_texts = [texts[index] for index in batch.positions]
        slopes = _slopes(checkpoint, batch_texts, [labels[index] for index in batch.positions], settings, metric)
        yield list(zip(batch.positions, slopes, strict=True))


def _slopes(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    labels: Sequence[float | None],
    settings: PassSettings,
    metric: Metric,
) -> list[TextSlopes]:
    readout = Readout(checkpoint, metric, texts)
    with torch.enable_grad():
        output, outputs = with_head_outputs(checkpoint, readout, settings, model_of(checkpoint, metric, settings.kind))
        losses = readout.losses(output, labels)
        gradients = torch.autograd.grad(losses.sum(), outputs)
    # For a language model's loss, texts are prepared for the decoder, whichever attention is observed.
    observed = [replace(text, kind=settings.kind) for text in texts]
    real, removed = real_tokens(checkpoint, observed), checkpoint.attentions[settings.kind].removed
    signed, absolute, gradient = (
        torch.stack(values, 1).cpu().numpy()
        for values in zip(
            *(
                _sums(head_output.detach(), gradient_of_output, real)
                for head_output, gradient_of_output in zip(outputs, gradients)
            )
        )
    )
    return [
        TextSlopes(
            signed=with_holes(signed[row], removed),
            absolute=with_holes(absolute[row], removed),
            gradient=with_holes(gradient[row], removed),
            n_tokens=len(text.queries.ids),
            loss=losses[row].detach().cpu().numpy(),
        )
        for row, text in enumerate(observed)
    ]


def with_head_outputs(
    checkpoint: Checkpoint, readout: Readout, settings: PassSettings, model: Any, **options: Any
) -> tuple[Any, list[Float[Tensor, "text query head channel"]]]:
    """The model's output for a batch, and the outputs of the heads of each layer in that pass."""
    attention, outputs = checkpoint.attentions[settings.kind], list[Tensor]()
    base = gates(checkpoint, settings)
    shape = (attention.n_layers, attention.n_heads)
    base = torch.ones(shape, device=checkpoint.device) if base is None else base
    output = observe(
        model,
        readout.inputs(),
        Pass(
            calls=attention.calls,
            gates=base.requires_grad_(),
            on_output=lambda head_outputs, _: outputs.append(head_outputs),
            **options,
        ),
    )
    return output, outputs


def _sums(
    outputs: Float[Tensor, "text query head channel"],
    gradients: Float[Tensor, "text query head channel"],
    real: Float[Tensor, "text query"],
) -> tuple[Float[Tensor, "text head"], Float[Tensor, "text head"], Float[Tensor, "text head channel"]]:
    """Sums over tokens of the products, of their absolute values, and of the gradients by channel."""
    by_token = torch.einsum("tqhc,tqhc,tq->tqh", outputs, gradients, real)
    return by_token.sum(1), by_token.abs().sum(1), torch.einsum("tqhc,tq->thc", gradients, real)
