"""Outputs of heads before the output projection, gradients with respect to them, and the weights of that projection.

Output projections are located by tracing the heads' outputs and not by module name.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from attention_sieve.core.attention.observed import check_heads_are_seen, observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.load import weight_in
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.per_text import TextOutputs, TextSlopes, with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, check_length, gates, model_inputs, plan_batches, to_device
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.reuse import copy_sharing_weights
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
        total, squares = (torch.stack(by_layer, 1).cpu().numpy() for by_layer in zip(*layers))
        yield [
            (
                index,
                TextOutputs(
                    total=with_holes(total[row], removed),
                    squares=with_holes(squares[row], removed),
                    n_tokens=len(texts[index].queries.ids),
                ),
            )
            for row, index in enumerate(batch.positions)
        ]


def real_tokens(checkpoint: Checkpoint, texts: Sequence[PassText]) -> Float[Tensor, "text query"]:
    """1 for the queries of each text, 0 for padding."""
    lengths = torch.tensor([len(text.queries.ids) for text in texts])
    real = (torch.arange(int(lengths.max())) < lengths[:, None]).to(checkpoint.statistics_dtype)
    return to_device(real, checkpoint.device)


def output_projections(checkpoint: Checkpoint, text: PassText) -> Float[np.ndarray, "layer channel_out head channel"]:
    """Weights of the output projection of each layer, by head.

    Args:
        checkpoint: loaded.
        text: short, prepared for the kind of attention; the outputs of its heads are traced.

    Raises: AnalysisError if the outputs of heads cannot be observed, or do not reach a linear layer.
    """
    model = copy_sharing_weights(model_of(checkpoint, "output", text.kind))
    attention, by_layer = checkpoint.attentions[text.kind], {}
    for layer, module in projection_modules(checkpoint, model, text).items():
        by_layer[layer] = _by_head(weight_of(module), layer, attention)
    nothing = np.full_like(next(iter(by_layer.values())), np.nan)
    return np.stack([by_layer.get(layer, nothing) for layer in range(attention.n_layers)])


def projection_modules(checkpoint: Checkpoint, model: PreTrainedModel, text: PassText) -> dict[int, nn.Module]:
    """The output projection of each layer that has attention.

    Args:
        checkpoint: loaded.
        model: a copy of one of its models, to which nothing stays added.
        text: short, prepared for the kind of attention; the outputs of its heads are traced.

    Raises: AnalysisError if the outputs of heads cannot be observed, or do not reach a linear layer.
    """
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    attention = checkpoint.attentions[text.kind]
    present = [layer for layer, call in enumerate(attention.calls) if call is not None]
    outputs: list[Tensor] = []
    modules: dict[int, nn.Module] = {}

    def trace(module: nn.Module, arguments: tuple[Any, ...]) -> None:
        values = arguments[0]
        # With those of the last layer that has attention come zeros of the layers behind it, which have none.
        layer = max((layer for layer in present if layer < len(outputs)), default=-1)
        is_candidate = layer >= 0 and values.numel() == outputs[layer].numel()
        if is_candidate and torch.equal(values.flatten(), outputs[layer].to(values).flatten()):
            modules.setdefault(layer, module)

    def collect(head_outputs: Float[Tensor, "text query head channel"], _: Tensor) -> None:
        outputs.append(head_outputs[:, :, remaining_heads(len(outputs), attention)])

    hooks = [module.register_forward_pre_hook(trace) for module in model.modules() if is_linear(module)]
    observe(model, model_inputs(checkpoint, [text]), Pass(calls=attention.calls, on_output=collect))
    for hook in hooks:
        hook.remove()
    if len(modules) < len(present):
        raise AnalysisError(
            f"The output projection of {type(checkpoint.model).__name__} could not be found in "
            f"{len(present) - len(modules)} of {len(present)} layers, so measures by its weights are "
            "missing. Choose a checkpoint of another family, such as BERT."
        )
    return modules


def is_linear(module: nn.Module) -> bool:
    """Whether it multiplies with weights, as Linear and the Conv1D of GPT-2 do."""
    return isinstance(module, nn.Linear) or type(module).__name__ == "Conv1D"


def weight_of(module: Any) -> Float[Tensor, "channel_out channel_in"]:
    """The weights of an output projection, whichever way round its layer keeps them."""
    return weight_in(module) if isinstance(module, nn.Linear) else weight_in(module).T


def remaining_heads(layer: int, attention: AttentionLayers) -> list[int]:
    """Heads of a layer that were not removed."""
    return [head for head in range(attention.n_heads) if (layer, head) not in attention.removed]


def _by_head(
    weights: Float[Tensor, "channel_out kept_channel"], layer: int, attention: AttentionLayers
) -> Float[np.ndarray, "channel_out head channel"]:
    """Weights by head; NaN for heads that were removed."""
    heads = remaining_heads(layer, attention)
    size = weights.shape[1] // max(1, len(heads))
    by_head = np.full((len(weights), attention.n_heads, size), np.nan)
    by_head[:, heads] = weights.detach().double().cpu().numpy().reshape(len(weights), len(heads), -1)
    return by_head


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
    by_layer = []
    for head_output, gradient_of_output in zip(outputs, gradients):
        by_token = torch.einsum("tqhc,tqhc,tq->tqh", head_output.detach(), gradient_of_output, real)
        by_channel = torch.einsum("tqhc,tq->thc", gradient_of_output, real)
        by_layer.append((by_token.sum(1), by_token.abs().sum(1), by_channel))
    signed, absolute, gradient = (torch.stack(values, 1).cpu().numpy() for values in zip(*by_layer))
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
