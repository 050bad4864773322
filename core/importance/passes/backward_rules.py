"""Modified backward rules of norms and activation functions, under which gradient times input is relevance."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

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
            return _layer_norm(*args, **keywords)
        result = func(*args, **keywords)
        if func in (torch.rsqrt, Tensor.rsqrt):  # the divisor of every root-mean-square norm
            return result.detach()
        return scaled(values, result) if func in _ACTIVATIONS else result


def _layer_norm(
    values: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    axes = tuple(range(-len(shape), 0))
    centred = values - values.mean(axes, keepdim=True)
    normed = centred / (values.var(axes, unbiased=False, keepdim=True) + eps).sqrt().detach()
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def scaled(values: Tensor, result: Tensor) -> Tensor:
    """The result of an activation function as a multiple of its input."""
    return values * torch.where(values == 0, 0.0, result.detach() / values.detach())
