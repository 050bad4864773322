"""What heads do to a token they look at, from weights alone: the sign of the eigenvalues of their OV circuits."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import AttentionLayers, Checkpoint
from attention_sieve.core.checkpoints.load import weight_in
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.direct_path import (
    ELSEWHERE,
    ROWS_AT_ONCE,
    DirectPath,
    Row,
    direct_path,
    is_rounding,
)
from attention_sieve.core.importance.passes.head_outputs import is_linear, remaining_heads, weight_of
from attention_sieve.core.importance.passes.held_factors import HeldFactors
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import PassText

CHANNELS_AT_ONCE: Final = 1 << 8
"""Channels of the embedding that are traced to the outputs of all layers at once."""


@torch.no_grad()
def ov_signs(checkpoint: Checkpoint, text: PassText) -> Float[np.ndarray, "layer head"]:
    """Sum of the eigenvalues of each head's OV circuit W_E W_V W_O W_U, over the sum of their moduli.

    1 where every eigenvalue is positive: the head raises the logit of each token that it looks at (copying); -1 where
    it lowers them. The weights of normalisations on the way are part of the circuit, their scales, which are positive,
    and all biases are not. The eigenvalues other than 0 are those of the small matrix W_V W_E^T W_U W_O, in which W_E^T
    W_U is the same for all heads.

    Args:
        checkpoint: loaded, a causal language model.
        text: short, prepared; the way of values and outputs through the modules is traced on it.

    Returns: -1 to 1; NaN for removed heads, layers without attention, and heads whose circuit is nothing but rounding.

    Raises: AnalysisError if values are not rows of a linear layer, or as `direct_path`.
    Source: Elhage et al. 2021, "Detecting copying heads" (eigenvalues of W_U W_OV W_E).
    """
    attention = checkpoint.attentions[text.kind]
    path = direct_path(checkpoint, text, PassSettings(text.kind), len(text.queries.ids) - 1)
    values = {layer: own.from_embedding() for layer, own in _value_weights(checkpoint, path.model, text).items()}
    signs = np.full((attention.n_layers, attention.n_heads), np.nan)
    for layer, (circuits, sizes) in _circuits(path, values, attention).items():
        for head, circuit, size in zip(remaining_heads(layer, attention), circuits, sizes, strict=True):
            eigenvalues = torch.linalg.eigvals(circuit)
            moduli = eigenvalues.abs().sum()
            if not is_rounding(moduli, size):
                signs[layer, head] = float(eigenvalues.real.sum() / moduli)
    return signs


def _circuits(
    path: DirectPath, values: Mapping[int, Float[Tensor, "_ channel"]], attention: AttentionLayers
) -> dict[int, tuple[Float[Tensor, "head value value"], Float[Tensor, " head"]]]:
    """By layer: W_V W_E^T W_U W_O of each head, and the product of the sizes of its three factors."""
    through = _embedding_to_logits(path.model)
    circuits, squares = dict[int, Tensor](), dict[int, Tensor]()
    for channels in torch.arange(len(through), device=through.device).split(CHANNELS_AT_ONCE):
        for layer, to_output in path.before_addition(through[channels]).items():
            outputs, by_value = _by_head(path, values, layer, attention)
            written = torch.einsum("co,hos->hcs", to_output, outputs)
            circuits[layer] = circuits.get(layer, 0) + by_value[..., channels] @ written
            squares[layer] = squares.get(layer, 0) + to_output.square().sum()
    sized = {}
    for layer, circuit in circuits.items():
        outputs, by_value = _by_head(path, values, layer, attention)
        sizes = squares[layer].sqrt() * outputs.flatten(1).norm(dim=1) * by_value.flatten(1).norm(dim=1)
        sized[layer] = (circuit, sizes)
    return sized


def _by_head(
    path: DirectPath, values: Mapping[int, Float[Tensor, "_ channel"]], layer: int, attention: AttentionLayers
) -> tuple[Float[Tensor, "head channel value"], Float[Tensor, "head value channel"]]:
    """Weights of outputs and of values of the heads that are left in a layer."""
    n_heads = len(remaining_heads(layer, attention))
    outputs = weight_of(path.projections[layer]).double().unflatten(1, (n_heads, -1)).transpose(0, 1)
    by_value = values[layer].unflatten(0, (-1, outputs.shape[2]))
    return outputs, by_value.repeat_interleave(n_heads // len(by_value), 0)


def _embedding_to_logits(model: Any) -> Float[Tensor, "embedded unembedded"]:
    """W_E^T W_U: the sum over all tokens of the products of both."""
    embedding, unembedding = weight_in(model.get_input_embeddings()), weight_in(model.get_output_embeddings())
    pairs = zip(embedding.split(ROWS_AT_ONCE), unembedding.split(ROWS_AT_ONCE))
    total = sum(rows.double().T @ columns[: len(rows)].double() for rows, columns in pairs)
    if not isinstance(total, Tensor) or embedding.shape[1] != unembedding.shape[1]:
        raise AnalysisError(f"{type(model).__name__} embeds tokens in another space than it writes to. {ELSEWHERE}")
    return total


@dataclass(frozen=True, eq=False)
class _ValueWeights:
    """How a layer makes values of what the layers below it write."""

    weights: Float[Tensor, "value channel"]
    norm: tuple[nn.Module, Row] | None
    """The normalisation before them, with an input; None where there is none."""

    def from_embedding(self) -> Float[Tensor, "value channel"]:
        """The weights, with those of the normalisation."""
        if self.norm is None:
            return self.weights
        module, given = self.norm
        module, given = copy.deepcopy(module).double(), given.clone()  # those of the pass are of inference mode
        with torch.enable_grad(), HeldFactors(lambda bias: bias):
            output = module(given.requires_grad_()[None, None])[0, 0]
        (pulled_back,) = torch.autograd.grad(output, given, self.weights.to(output), is_grads_batched=True)
        return pulled_back.double()


def _value_weights(checkpoint: Checkpoint, model: Any, text: PassText) -> dict[int, _ValueWeights]:
    """By layer: rows of the linear layer whose outputs are the values, wherever in it they stand.

    Raises: AnalysisError.
    """
    attention = checkpoint.attentions[text.kind]
    since: list[tuple[nn.Module, Tensor, Tensor]] = []
    norms: list[tuple[nn.Module, Tensor, Tensor]] = []
    weights: dict[int, _ValueWeights] = {}
    layers = iter(range(attention.n_layers))

    def note(into: list[tuple[nn.Module, Tensor, Tensor]]) -> Callable[..., None]:
        def noted(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
            if isinstance(output, Tensor) and arguments:
                into.append((module, arguments[0], output))

        return noted

    def collect(_: Tensor, values: Float[Tensor, "text kv_head key channel"]) -> None:
        layer = next(layers)
        head_values = values[0]
        if len(head_values) == attention.n_heads:
            head_values = head_values[remaining_heads(layer, attention)]
        wanted = head_values.transpose(0, 1).flatten(1)
        for module, given, output in reversed(since):
            if (rows := _rows(wanted, output)) is not None:
                before = next((norm for norm in reversed(norms) if torch.equal(norm[2], given)), None)
                norm = None if before is None else (before[0], before[1][0, -1].double())
                weights[layer] = _ValueWeights(weight_of(module)[rows].double(), norm)
                break
        since.clear()
        norms.clear()

    hooks = [module.register_forward_hook(note(since)) for module in model.modules() if is_linear(module)]
    hooks += [module.register_forward_hook(note(norms)) for module in model.modules() if _is_norm(module)]
    observe(model, model_inputs(checkpoint, [text]), Pass(calls=attention.calls, on_output=collect))
    for hook in hooks:
        hook.remove()
    n_missing = sum(call is not None and layer not in weights for layer, call in enumerate(attention.calls))
    if n_missing:
        raise AnalysisError(
            f"In {n_missing} of {len(attention.calls)} layers of {type(model).__name__} values are more than a product "
            f"with weights, so the OV circuits of its heads are not known. {ELSEWHERE}"
        )
    return weights


def _is_norm(module: nn.Module) -> bool:
    """Whether it may be a normalisation: it has weights, each for one channel."""
    own = list(module.parameters())
    return bool(own) and all(values.ndim == 1 for values in own)


def _rows(wanted: Float[Tensor, "key value"], output: Tensor) -> list[int] | None:
    """Which columns of the output of a linear layer are the values, in their order; None if it does not give them."""
    if output.ndim != 3 or output.shape[1] != len(wanted):
        return None
    columns = {column.tobytes(): row for row, column in enumerate(output[0].T.double().cpu().numpy())}
    rows = [columns.get(column.tobytes()) for column in wanted.T.double().cpu().numpy()]
    return None if None in rows else [row for row in rows if row is not None]
