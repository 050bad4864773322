"""Relevance of each head for a prediction: layer-wise relevance propagation as gradient times input.

Under modified backward rules, gradient times input distributes a logit over the neurons of each layer: norms divide by
a constant, activation functions multiply by the constant f(x) / x, and attention is a sum with constant weights.
Relevance is signed: a head may work against the prediction. Biases absorb some of it; in a model without any, the
relevances of the input sum to the logit. In gated feed-forward layers the gate is a constant.

Layer-wise relevance propagation is patented for commercial use.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from transformers import PreTrainedModel

from attention_sieve.core.attention.observed import check_heads_are_seen
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.importance.passes.head_outputs import BY_ZERO, real_tokens, with_head_outputs
from attention_sieve.core.importance.passes.held_factors import layer_norm
from attention_sieve.core.importance.per_text import TextRelevance, with_holes
from attention_sieve.core.passes.batches import BATCH_TOKENS, check_length, plan_batches
from attention_sieve.core.passes.metric import Metric
from attention_sieve.core.passes.readout import Readout, check_metric, model_of
from attention_sieve.core.passes.reuse import copy_sharing_weights, outermost_layers
from attention_sieve.core.passes.texts import PassText

_GATES: Final = ("gate_proj", "wi_0", "gate_up_proj", "Wi")
"""Layers of gated feed-forward networks, whose activation is multiplied by a second factor."""
_ACTIVATIONS: Final = (
    torch.tanh,
    Tensor.tanh,
    torch.relu,
    Tensor.relu,
    nn.functional.relu,
    nn.functional.gelu,
    nn.functional.silu,
)
"""Functions with f(0) = 0 that models call directly, not as modules."""


def head_relevance(
    checkpoint: Checkpoint, texts: Sequence[PassText], settings: PassSettings, metric: Metric
) -> Iterator[list[tuple[int, TextRelevance]]]:
    """Relevance of each head, and of each token at the input of the first layer, for the largest logit of a text.

    Args:
        checkpoint: loaded.
        texts: prepared; see `attention_sieve.core.importance.passes.sweep.with_targets`.
        settings: which attention, and which heads are off.
        metric: determines what is distributed: for labels the logit of the predicted class, for lm the largest logit of
            each predicted token (mean), for output the length of the text vector.

    Yields: index of the text and its relevances, batch by batch; not in input order.
    Raises: AnalysisError for a checkpoint without this metric or whose heads cannot be seen, and for a text whose
        attention would fill the memory.
    Source: Voita et al. 2019, section 4, whose code splits relevance by sign (alpha-beta) instead; rules of Ali et al.
        2022, as gradients in Arras et al. 2025.
    """
    check_metric(checkpoint, metric, settings.kind)
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    for text in texts:
        check_length(checkpoint.attentions[settings.kind], text.n_tokens)
    model = _with_constant_slopes(model_of(checkpoint, metric, settings.kind))
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS["cpu"]):
        batch_texts = [texts[index] for index in batch.positions]
        yield list(zip(batch.positions, _relevance(checkpoint, model, batch_texts, settings, metric), strict=True))


def _relevance(
    checkpoint: Checkpoint,
    model: PreTrainedModel,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
) -> list[TextRelevance]:
    readout = Readout(checkpoint, metric, texts)
    stacks = [model] if texts[0].target is None else [model.get_encoder(), model.get_decoder()]
    with torch.enable_grad(), BackwardRules(), _first_inputs(stacks) as first_inputs:
        output, outputs = with_head_outputs(checkpoint, readout, settings, model, backward="constant")
        tops = readout.tops(output)
        gradients = torch.autograd.grad(tops.sum(), [*outputs, *first_inputs])
    output_gradients, input_gradients = gradients[: len(outputs)], gradients[len(outputs) :]
    # For a language model's loss, texts are prepared for the decoder, whichever attention is observed.
    observed = [replace(text, kind=settings.kind) for text in texts]
    real, removed = real_tokens(checkpoint, observed), checkpoint.attentions[settings.kind].removed
    heads = [
        torch.einsum("tqhc,tqhc,tq->th", o.detach(), g, real) for o, g in zip(outputs, output_gradients, strict=True)
    ]
    tokens = [
        (values.detach() * gradient).sum(-1).cpu().numpy() for values, gradient in zip(first_inputs, input_gradients)
    ]
    by_text, top_values = torch.stack(heads, 1).cpu().numpy(), tops.detach().cpu().numpy()
    n_tokens = [[len(stack.ids) for stack in (text.source, text.target) if stack is not None] for text in texts]
    return [
        TextRelevance(
            heads=with_holes(by_text[row], removed),
            tokens=np.concatenate([values[row, :n] for values, n in zip(tokens, n_tokens[row])]),
            top=top_values[row, ...],
        )
        for row in range(len(texts))
    ]


def _with_constant_slopes(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model whose activation modules multiply by a constant, or are constants in gated layers."""
    copied = copy_sharing_weights(model)
    for parent in copied.modules():
        is_gated = any(hasattr(parent, name) for name in _GATES)
        for module in parent.children():
            if "activation" in type(module).__module__:
                module.forward = _constant(module.forward, is_gated)
    return copied


def _constant(forward: Callable[[Tensor], Tensor], is_gated: bool) -> Callable[[Tensor], Tensor]:
    def activated(values: Tensor) -> Tensor:
        result = forward(values.detach())
        return result if is_gated else scaled(values, result)

    return activated


@contextmanager
def _first_inputs(stacks: Sequence[nn.Module]) -> Iterator[list[Float[Tensor, "text token channel"]]]:
    """Record the input of the first layer of each stack during the pass inside, in order."""
    inputs: list[Tensor] = []
    handles = []
    for stack in stacks:
        is_recorded: list[bool] = []

        def record(
            _: nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], is_recorded: list[bool] = is_recorded
        ) -> None:
            if not is_recorded:
                is_recorded.append(True)
                values: Tensor = arguments[0] if arguments else keywords["hidden_states"]
                inputs.append(values.requires_grad_())  # no weight of the copy does

        handles += [layer.register_forward_pre_hook(record, with_kwargs=True) for layer in outermost_layers(stack)]
    try:
        yield inputs
    finally:
        for handle in handles:
            handle.remove()


class BackwardRules(TorchFunctionMode):
    """Context in which layer norms divide, and activation functions multiply, by constants as far as gradients go."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the intercepted function, and attach the rule's gradient to its result."""
        keywords = kwargs or {}
        values = next((value for value in args if isinstance(value, Tensor)), None)
        if values is None or not values.requires_grad:
            return func(*args, **keywords)
        if func is nn.functional.layer_norm:
            return layer_norm(*args, **keywords)
        result = func(*args, **keywords)
        if func in (torch.rsqrt, Tensor.rsqrt):  # the divisor of every root-mean-square norm
            return result.detach()
        return scaled(values, result) if func in _ACTIVATIONS else result


def scaled(values: Tensor, result: Tensor) -> Tensor:
    """The result of an activation function as a multiple of its input."""
    return values * torch.where(values == 0, 0.0, result.detach() / values.detach())
