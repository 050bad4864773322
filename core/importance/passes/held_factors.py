"""Backward rules under which what is written to the residual stream flows on by additions and constant factors.

Every factor on the way is held where it is in a pass, whatever it comes from: scales of normalisations, gates,
multipliers of a configuration, learned scalars. What is added to the stream is noted, so that all of it can be summed.

Source: Elhage et al. 2021 (direct paths); nostalgebraist 2020 (logit lens), for the scale of the last normalisation.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import torch
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

_NOT_LINEAR: Final = (
    *("rsqrt", "sqrt", "reciprocal", "square", "pow", "__pow__", "norm", "vector_norm", "var", "std", "var_mean"),
    *("exp", "sigmoid", "tanh", "softmax", "silu", "gelu", "relu", "softplus", "leaky_relu", "elu", "logsigmoid"),
)
_ADDITIONS: Final = ("add", "__add__", "__radd__", "add_", "__iadd__", "sub", "__sub__", "__rsub__", "sub_", "__isub__")


def _functions(names: Iterable[str]) -> frozenset[Callable[..., Any]]:
    """The functions of PyTorch with these names, wherever it has them."""
    places = (torch, Tensor, nn.functional, torch.linalg)
    return frozenset(getattr(place, name) for name in names for place in places if hasattr(place, name))


HELD: Final = _functions(_NOT_LINEAR)
"""Functions whose results are constants as far as gradients go. One that is missing here and on the way makes the parts
not sum to the logit, which is looked at."""
ADDED: Final = _functions(_ADDITIONS)


class HeldFactors(TorchFunctionMode):
    """Context in which results of functions that are not linear are constants, and additions to the stream are noted.

    The stream is whatever requires a gradient: modules whose outputs are to be told apart give outputs that do.
    """

    def __init__(self, note: Callable[[Tensor], Tensor]) -> None:
        """Args:
        note: is given every tensor that is added to the stream, and gives it back as one that requires a gradient.
        """
        super().__init__()
        self._note = note

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the intercepted function under these rules."""
        keywords = kwargs or {}
        if not torch.is_grad_enabled() or not is_in_stream([*args, *keywords.values()]):
            return func(*args, **keywords)
        if func in (nn.functional.layer_norm, torch.layer_norm):
            return self._with_bias(layer_norm, *args, **keywords)
        if func in (nn.functional.rms_norm, torch.rms_norm):
            return _rms_norm(*args, **keywords)
        if func in HELD:
            held = func(*args, **keywords)
            return without_stream(tuple(held) if isinstance(held, tuple) else held)
        if func in ADDED:
            args = tuple(self._note(value) if _is_added(value) else value for value in args)
        return func(*args, **keywords)

    def _with_bias(
        self,
        norm: Callable[..., Tensor],
        values: Tensor,
        shape: Sequence[int],
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        normed = norm(values, shape, weight, None, eps)
        return normed if bias is None else normed + self._note(bias)


def layer_norm(
    values: Tensor, shape: Sequence[int], weight: Tensor | None = None, bias: Tensor | None = None, eps: float = 1e-5
) -> Tensor:
    """Layer normalisation that divides by a constant, as far as gradients go."""
    axes = tuple(range(-len(shape), 0))
    centred = values - values.mean(axes, keepdim=True)
    normed = centred / (values.var(axes, unbiased=False, keepdim=True) + eps).sqrt().detach()
    normed = normed if weight is None else normed * weight
    return normed if bias is None else normed + bias


def _rms_norm(values: Tensor, shape: Sequence[int], weight: Tensor | None = None, eps: float | None = None) -> Tensor:
    eps = torch.finfo(values.dtype).eps if eps is None else eps
    axes = tuple(range(-len(shape), 0))
    normed = values / (values.detach().square().mean(axes, keepdim=True) + eps).sqrt()
    return normed if weight is None else normed * weight


def without_stream(values: Any) -> Any:
    """Tensors, also in containers, as constants."""
    if isinstance(values, Tensor):
        return values.detach() if values.requires_grad else values
    if isinstance(values, Mapping) and type(values) is dict:
        return {name: without_stream(value) for name, value in values.items()}
    if type(values) in (list, tuple):
        return type(values)(without_stream(value) for value in values)
    return values


def is_in_stream(values: Iterable[Any]) -> bool:
    """Whether any of these values is a tensor of the stream."""
    return any(isinstance(value, Tensor) and value.requires_grad for value in values)


def _is_added(value: Any) -> bool:
    return isinstance(value, Tensor) and not value.requires_grad and value.is_floating_point()
