"""Forward passes that reuse the outputs of lower layers from an earlier pass.

Nothing is specific to a model family: every module in an outermost ModuleList counts as a layer, and its attention
calls are determined during a recorded pass.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from attention_sieve.core.attention.layers import outermost_lists
from attention_sieve.core.attention.observers import Pass, current_pass


def copy_sharing_weights(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model's modules that shares its weights: changes to the modules do not affect the original.

    Weights of the copy require no gradients, as those of a model in memory may.
    """
    shared: dict[int, Tensor] = {id(values): values for values in model.buffers()}
    for weights in model.parameters():
        shared[id(weights)] = nn.Parameter(weights.detach(), False) if weights.requires_grad else weights
    return copy.deepcopy(model, shared)


def outermost_layers(model: nn.Module) -> list[nn.Module]:
    """The modules of every ModuleList that is not nested in another."""
    return [layer for part in outermost_lists(model) for layer in part]


class LayerReuse:
    """A copy of a model whose layers can be skipped, taking their outputs from a recorded pass.

    Attributes:
        model: to be run inside `recording` or `above`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = copy_sharing_weights(model)
        self._stored: dict[int, Any] = {}
        self._calls: dict[int, range] = {}
        self._records = self._runs_once = False
        self._skipped: frozenset[int] = frozenset()
        self._n_copies = self._n_texts = 1
        for index, layer in enumerate(outermost_layers(self.model)):
            layer.forward = self._wrapped(index, layer.forward)

    def _wrapped(self, index: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **keywords: Any) -> Any:
            current = current_pass.get() or Pass()
            if index in self._skipped:
                current.n_calls += len(self._calls[index])
                return _copied(self._stored[index], self._n_texts, self._n_copies)
            first = current.n_calls
            output = forward(*arguments, **keywords)
            if self._records:
                self._runs_once &= index not in self._stored
                self._stored[index], self._calls[index] = output, range(first, current.n_calls)
            return output

        return run

    @contextmanager
    def recording(self, n_texts: int) -> Iterator[None]:
        """Record the output of every layer during the pass inside, which has this number of texts."""
        self._stored, self._calls, self._n_texts = {}, {}, n_texts
        self._records = self._runs_once = True
        try:
            yield
        finally:
            self._records = False

    @contextmanager
    def above(self, call: int | None, n_copies: int) -> Iterator[None]:
        """Skip the layers below that of an attention call during the pass inside, over copies of the recorded texts.

        Nothing is skipped if that call belongs to no layer, or if a layer is run more than once (ALBERT).
        """
        layer = next((calls for calls in self._calls.values() if call in calls), None)
        if layer is not None and self._runs_once:
            self._skipped = frozenset(index for index, calls in self._calls.items() if calls.stop <= layer.start)
        self._n_copies = n_copies
        try:
            yield
        finally:
            self._skipped = frozenset()


def _copied(output: Any, n_texts: int, n_copies: int) -> Any:
    """Repeat a layer's output along the text axis; values shared by all texts are not repeated."""
    if isinstance(output, Tensor):
        is_per_text = output.dim() > 0 and output.shape[0] == n_texts
        return output.repeat(n_copies, *[1] * (output.dim() - 1)) if is_per_text else output
    if isinstance(output, ModelOutput):
        return type(output)(**{name: _copied(values, n_texts, n_copies) for name, values in output.items()})
    if isinstance(output, (tuple, list)):
        return type(output)(_copied(values, n_texts, n_copies) for values in output)
    return output
