"""Fallback for models that do not use transformers' attention interface: intercept their softmax."""

from collections.abc import Callable, Iterable
from typing import Any, Final

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attention_sieve.core.attention.observers import Tile, WatchingDone, current_pass
from attention_sieve.core.pauses import pause

SOFTMAXES: Final = frozenset({torch.softmax, torch.nn.functional.softmax, Tensor.softmax})


class SoftmaxTap(TorchFunctionMode):
    """Passes every softmax over a `text head query key` array to the observers of the current pass.

    The model computes the whole array, so memory grows with the square of the length. Gates scale the probabilities,
    which is equivalent to scaling the output of the head.
    """

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the intercepted function, and observe the result of a softmax."""
        result = func(*args, **(kwargs or {}))
        if func in SOFTMAXES and result.dim() == 4:
            return _seen(result)
        return result


def _seen(attention: Tensor) -> Tensor:
    """Show one layer's attention to the observers; returns the gated probabilities."""
    current = current_pass.get()
    if current is None or (layer := current.next_layer()) is None:
        return attention
    pause()
    n_texts, _, n_queries, _ = attention.shape
    probabilities = attention if attention.dtype == torch.float64 else attention.float()
    indicators = current.indicators()
    tile = Tile(
        layer=layer,
        texts=slice(0, n_texts),
        queries=slice(0, n_queries),
        probabilities=probabilities,
        row_sums=None,
        indicator_sums=None if indicators is None else probabilities @ indicators[:, None].to(probabilities.dtype),
        entropy=torch.special.entr(probabilities).sum(-1) if current.wants_entropy() else None,
        outputs=None,
    )
    current.show(tile)
    if current.ends_at(layer):
        raise WatchingDone
    gate = current.gate(layer, tile.texts)
    return attention if gate is None else attention * gate.to(attention.dtype)
