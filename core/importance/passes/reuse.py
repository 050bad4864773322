"""Forward passes that take the output of the lower layers from an earlier pass instead of computing it again.

No code knows a family of models: whatever stands in an outermost list of modules counts as a layer, and which
attention calls belong to it is seen during a recorded pass.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

from core.attention.observers import Pass, current_pass


def twin(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model's modules around the same weights: what is changed in it, other passes do not see."""
    shared = {id(values): values for values in chain(model.parameters(), model.buffers())}
    return copy.deepcopy(model, shared)


def outermost_layers(model: nn.Module) -> list[nn.Module]:
    """The modules of all lists of modules that stand in no other such list."""
    lists = {name: part for name, part in model.named_modules() if isinstance(part, nn.ModuleList)}
    return [
        layer
        for name, part in lists.items()
        if not any(name.startswith(f"{outer}.") for outer in lists)
        for layer in part
    ]


class LayerReuse:
    """A twin of a model whose layers can be skipped; what they would compute comes from a recorded pass.

    Attributes:
        model: to be run inside `recording` or `above`.
    """

    def __init__(self, model: PreTrainedModel) -> None:
        self.model = twin(model)
        self._stored: dict[int, Any] = {}
        self._calls: dict[int, range] = {}
        self._records = self._runs_once = False
        self._skipped: frozenset[int] = frozenset()
        self._n_copies = self._n_texts = 1
        for place, layer in enumerate(outermost_layers(self.model)):
            layer.forward = self._wrapped(place, layer.forward)

    def _wrapped(self, place: int, forward: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            current = current_pass.get() or Pass()
            if place in self._skipped:
                current.n_calls += len(self._calls[place])
                return _copied(self._stored[place], self._n_texts, self._n_copies)
            first = current.n_calls
            output = forward(*arguments, **named)
            if self._records:
                self._runs_once &= place not in self._stored
                self._stored[place], self._calls[place] = output, range(first, current.n_calls)
            return output

        return run

    @contextmanager
    def recording(self, n_texts: int) -> Iterator[None]:
        """Keep the output of every layer of the pass inside, over so many texts."""
        self._stored, self._calls, self._n_texts = {}, {}, n_texts
        self._records = self._runs_once = True
        try:
            yield
        finally:
            self._records = False

    @contextmanager
    def above(self, call: int, n_copies: int) -> Iterator[None]:
        """Skip in the pass inside, over so many copies of the recorded texts, what comes before the layer of an
        attention call.

        Nothing is skipped if that call belongs to no layer, or if a layer is run more than once (ALBERT).
        """
        layer = next((calls for calls in self._calls.values() if call in calls), None)
        if layer is not None and self._runs_once:
            self._skipped = frozenset(place for place, calls in self._calls.items() if calls.stop <= layer.start)
        self._n_copies = n_copies
        try:
            yield
        finally:
            self._skipped = frozenset()


def _copied(output: Any, n_texts: int, n_copies: int) -> Any:
    """Copies of a layer's output for all texts, one behind the other; what is shared by all texts stays single."""
    if isinstance(output, Tensor):
        return output.repeat(n_copies, *[1] * (output.dim() - 1)) if _is_per_text(output, n_texts) else output
    if isinstance(output, ModelOutput):
        return type(output)(**{name: _copied(values, n_texts, n_copies) for name, values in output.items()})
    if isinstance(output, (tuple, list)):
        return type(output)(_copied(values, n_texts, n_copies) for values in output)
    return output


def _is_per_text(values: torch.Tensor, n_texts: int) -> bool:
    return values.dim() > 0 and values.shape[0] == n_texts
