"""The alpha-beta rules of relevance propagation, as gradient times input.

The terms of each sum are split by sign. Those above 0 get the share alpha of the sum's relevance, in proportion to
their size, those below 0 the share beta; where one side is empty, the other gets all of it. Alpha and beta add up to 1,
so nothing is lost except what biases take. If neither share is below 0, every relevance has the sign of the logit.
Attention weights, divisors of norms, and slopes of activation functions are constants.

Source: Bach et al. 2015, section 2.4, where the share of the terms below 0 is minus beta; Voita's code.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor, nn

from attention_sieve.core.importance.passes.backward_rules import BackwardRules
from attention_sieve.core.importance.per_text import Rule


@dataclass(frozen=True)
class Shares:
    """How the relevance of a sum is split by the sign of its terms."""

    above: float
    """Share of the terms above 0: alpha."""
    below: float
    """Share of the terms below 0: beta in Voita's code, minus beta in Bach's notation."""


SHARES: Final[dict[Rule, Shares]] = {
    "alpha-beta": Shares(0.5, 0.5),
    "alpha1-beta0": Shares(1.0, 0.0),
    "alpha2-beta1": Shares(2.0, -1.0),
}
_SUMS: Final = (torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__)
_PRODUCTS: Final = (torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm)


class AlphaBetaRules(BackwardRules):
    """Context in which the gradients of linear maps, sums and norms split relevance by sign."""

    def __init__(self, shares: Shares) -> None:
        """Use these shares."""
        super().__init__()
        self._shares = shares

    def __torch_function__(
        self, func: Callable[..., Any], types: Iterable[type], args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        """Call the intercepted function, and attach the rule's gradient to its result."""
        keywords = kwargs or {}
        tensors = [value for value in args if isinstance(value, Tensor)]
        if not any(value.requires_grad for value in tensors):
            return func(*args, **keywords)
        if func is nn.functional.linear:
            return self._linear(*args, **keywords)
        if func is torch.addmm and not keywords:  # the linear layers of GPT-2
            bias, values, weight = args
            return self._linear(values, weight.T, bias)
        if func is nn.functional.layer_norm:
            return self._norm(*args, **keywords)
        if func in _PRODUCTS and not args[0].requires_grad:  # attention: constant weights times values
            weights, values = args
            above, below = values.clamp(min=0), values.clamp(max=0)
            plus, minus = weights.clamp(min=0), weights.clamp(max=0)
            return self._shared(plus @ above + minus @ below, plus @ below + minus @ above)
        if func in _SUMS and len(tensors) == 2 and not keywords and tensors[0].shape == tensors[1].shape:
            if all(value.requires_grad for value in tensors):
                return self._sum(*tensors)
            return func(*args)
        return super().__torch_function__(func, types, args, kwargs)

    def _linear(self, values: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        constant = weight.detach()
        plus, minus = constant.clamp(min=0).T, constant.clamp(max=0).T
        above, below = values.clamp(min=0), values.clamp(max=0)
        return self._with_bias(above @ plus + below @ minus, above @ minus + below @ plus, bias)

    def _norm(
        self,
        values: Tensor,
        shape: Any,
        weight: Tensor | None = None,
        bias: Tensor | None = None,
        eps: float = 1e-5,
    ) -> Tensor:
        axes = tuple(range(-len(shape), 0))
        size = values.shape[-len(shape) :].numel()
        above, below = values.clamp(min=0), values.clamp(max=0)
        centred = self._shared(
            above - (above + below.sum(axes, keepdim=True) - below) / size,
            below - (below + above.sum(axes, keepdim=True) - above) / size,
        )
        normed = centred / (values.var(axes, unbiased=False, keepdim=True) + eps).sqrt().detach()
        normed = normed if weight is None else normed * weight.detach()
        return self._with_bias(normed.clamp(min=0), normed.clamp(max=0), bias)

    def _sum(self, first: Tensor, second: Tensor) -> Tensor:
        return self._shared(
            first.clamp(min=0) + second.clamp(min=0),
            first.clamp(max=0) + second.clamp(max=0),
        )

    def _with_bias(self, above: Tensor, below: Tensor, bias: Tensor | None) -> Tensor:
        if bias is None:
            return self._shared(above, below)
        constant = bias.detach()
        return self._shared(above + constant.clamp(min=0), below + constant.clamp(max=0))

    def _shared(self, above: Tensor, below: Tensor) -> Tensor:
        """The sum of both, with gradients that give each side its share of the sum's relevance.

        Relevance is gradient times input, so each side is scaled, by a constant, to its share of the sum.
        """
        total = (above + below).detach()
        has_both = (above > 0) & (below < 0)
        ones = torch.ones_like(total)
        scale_above = torch.where(
            has_both, self._shares.above * total / torch.where(above > 0, above, ones), ones
        ).detach()
        scale_below = torch.where(
            has_both, self._shares.below * total / torch.where(below < 0, below, ones), ones
        ).detach()
        scaled = above * scale_above + below * scale_below
        return total + (scaled - scaled.detach())
