"""What heads do to a token they look at, from weights alone: the sign of the eigenvalues of their OV circuits."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from attention_sieve.core.attention.observed import observe
from attention_sieve.core.attention.observers import Pass
from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.checkpoints.load import weight_in
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.importance.passes.direct_path import ELSEWHERE, Row, direct_path, is_norm, pulled_back
from attention_sieve.core.importance.passes.head_outputs import is_linear, remaining_heads, weight_of
from attention_sieve.core.passes.batches import model_inputs
from attention_sieve.core.passes.texts import PassText

ROWS_AT_ONCE: Final = 1 << 14
"""Rows of the embedding that are multiplied at once in double precision."""


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

    Returns: -1 to 1; NaN for removed heads and layers without attention.

    Raises: AnalysisError if values are not rows of a linear layer, or what heads write does not reach the unembedding
        by additions and normalisations alone.
    Source: Elhage et al. 2021, "Detecting copying heads" (eigenvalues of W_U W_OV W_E).
    """
    attention = checkpoint.attentions[text.kind]
    path = direct_path(checkpoint, text, PassSettings(text.kind), len(text.queries.ids) - 1)
    values = _value_weights(checkpoint, path.model, text)
    through = _embedding_to_logits(path.model)
    signs = np.full((attention.n_layers, attention.n_heads), np.nan)
    for layer, module in path.projections.items():
        to_output, from_embedding = path.before_addition(layer, through), values[layer].from_embedding()
        heads = remaining_heads(layer, attention)
        written = to_output @ weight_of(module).double()
        size = written.shape[1] // max(1, len(heads))
        by_value = from_embedding.unflatten(0, (-1, size))
        n_shared = len(heads) // max(1, len(by_value))
        for index, head in enumerate(heads):
            circuit = by_value[index // n_shared] @ written[:, index * size : (index + 1) * size]
            eigenvalues = torch.linalg.eigvals(circuit)
            signs[layer, head] = float(eigenvalues.real.sum() / eigenvalues.abs().sum())
    return signs


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
        return self.weights if self.norm is None else pulled_back(*self.norm, self.weights)


def _value_weights(checkpoint: Checkpoint, model: Any, text: PassText) -> dict[int, _ValueWeights]:
    """By layer: rows of the linear layer whose outputs are the values, wherever in it they stand.

    Raises: AnalysisError.
    """
    attention = checkpoint.attentions[text.kind]
    since: list[tuple[nn.Module, Tensor, Tensor]] = []
    norms: list[tuple[nn.Module, Tensor, Tensor]] = []
    found: dict[int, _ValueWeights] = {}
    layers = iter(range(attention.n_layers))

    def note(into: list[tuple[nn.Module, Tensor, Tensor]]) -> Callable[..., None]:
        def noted(module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
            if isinstance(output, Tensor) and arguments:
                into.append((module, arguments[0], output))

        return noted

    def collect(_: Tensor, values: Float[Tensor, "text kv_head key channel"]) -> None:
        layer = next(layers)
        of_heads = values[0]
        if len(of_heads) == attention.n_heads:
            of_heads = of_heads[remaining_heads(layer, attention)]
        wanted = of_heads.transpose(0, 1).flatten(1)
        for module, given, output in reversed(since):
            if (rows := _rows(wanted, output)) is not None:
                before = next((norm for norm in reversed(norms) if torch.equal(norm[2], given)), None)
                norm = None if before is None else (before[0], before[1][0, -1].double())
                found[layer] = _ValueWeights(weight_of(module)[rows].double(), norm)
                break
        since.clear()
        norms.clear()

    hooks = [module.register_forward_hook(note(since)) for module in model.modules() if is_linear(module)]
    hooks += [module.register_forward_hook(note(norms)) for module in model.modules() if is_norm(module)]
    observe(model, model_inputs(checkpoint, [text]), Pass(calls=attention.calls, on_output=collect))
    for hook in hooks:
        hook.remove()
    n_missing = sum(call is not None and layer not in found for layer, call in enumerate(attention.calls))
    if n_missing:
        raise AnalysisError(
            f"In {n_missing} of {len(attention.calls)} layers of {type(model).__name__} values are more than a product "
            f"with weights, so the OV circuits of its heads are not known. {ELSEWHERE}"
        )
    return found


def _rows(wanted: Float[Tensor, "key value"], output: Tensor) -> list[int] | None:
    """Which columns of the output of a linear layer are the values, in their order; None if it does not give them."""
    if output.ndim != 3 or output.shape[1] != len(wanted):
        return None
    columns = {column.tobytes(): row for row, column in enumerate(output[0].T.double().cpu().numpy())}
    rows = [columns.get(column.tobytes()) for column in wanted.T.double().cpu().numpy()]
    return None if None in rows else [row for row in rows if row is not None]
