"""The way in beside the door: models that compute attention in their own way show their softmax instead."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from core.observers import WatchingDone, current_pass

SOFTMAXES: Final = frozenset({torch.softmax, torch.nn.functional.softmax, Tensor.softmax})


class SoftmaxTap(TorchFunctionMode):
    """Shows the observers of the current pass every softmax over the keys of a `text head query key` array.

    The array is the model's own and whole, so memory grows with the square of the length. A gate scales the
    probabilities, which scales the output of the head just the same.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call what the model calls, and look at a softmax."""
        result = func(*args, **(kwargs or {}))
        if func in SOFTMAXES and result.dim() == 4:
            return _seen(result)
        return result


def _seen(attention: Tensor) -> Tensor:
    """Show one layer's attention; returns what the model goes on with."""
    current = current_pass.get()
    if current is None or (layer := current.next_layer()) is None:
        return attention
    n_texts, _, n_queries, _ = attention.shape
    probabilities = attention if attention.dtype == torch.float64 else attention.float()
    indicators = current.indicators()
    current.show(
        layer,
        slice(0, n_texts),
        slice(0, n_queries),
        probabilities,
        lambda: torch.special.entr(probabilities).sum(-1),
        row_sums=None,
        indicator_sums=None if indicators is None else probabilities @ indicators[:, None].to(probabilities.dtype),
        outputs=None,
    )
    if current.ends_at(layer):
        raise WatchingDone
    return attention if current.gates is None else attention * current.gates[layer, :, None, None].to(attention.dtype)
