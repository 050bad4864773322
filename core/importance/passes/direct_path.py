"""The direct path: from the output of each attention head, past everything between, to the logits.

The scale of every normalisation is held where it is in a text, so that what heads add can be summed. No module is found
by its name: output projections, normalisations and the unembedding are traced.

Source: nostalgebraist 2020 (logit lens); Elhage et al. 2021 (direct paths).
"""

import copy
from collections.abc import Callable
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
from attention_sieve.core.importance.passes.head_outputs import projection_modules, remaining_heads, weight_of
from attention_sieve.core.importance.passes.reuse import copy_sharing_weights, outermost_layers
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.texts import PassText

Row = Float[Tensor, " channel"]
ELSEWHERE: Final = "Choose a checkpoint of another family, such as GPT-2 or Llama."


@torch.no_grad()
def logit_attribution(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int, token: int
) -> Float[np.ndarray, "layer head"]:
    """What each head adds directly to the logit of a next token, relative to the mean of all tokens.

    Args:
        checkpoint: loaded, a causal language model.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off; these add 0.
        position: index of the token after which the token follows.
        token: its id.

    Returns: in logits; NaN for removed heads and layers without attention.

    Raises: AnalysisError as `direct_path`.
    Source: Wang et al. 2022, section 3.1 (direct effects on logits).
    """
    attention = checkpoint.attentions[text.kind]
    path = direct_path(checkpoint, text, settings, position)
    unembedding = weight_in(path.model.get_output_embeddings())
    direction = (unembedding[token] - unembedding.mean(0)).double()
    added = np.full((attention.n_layers, attention.n_heads), np.nan)
    for layer, module in path.projections.items():
        (to_output,) = path.before_addition(layer, direction[None])
        by_channel = path.inputs[layer] * (to_output @ weight_of(module).double())
        heads = remaining_heads(layer, attention)
        added[layer, heads] = by_channel.view(len(heads), -1).sum(-1).cpu().numpy()
    return added


def direct_path(checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int) -> "DirectPath":
    """The direct path of each head, traced at one position of a text.

    Args:
        checkpoint: loaded, a causal language model.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off.
        position: index of the token at which the scales of normalisations are held.

    Raises: AnalysisError if what heads write does not reach the unembedding by additions and normalisations alone, as
        in models that normalise after each addition.
    """
    model = copy_sharing_weights(checkpoint.full_model)
    path = DirectPath(model, projection_modules(checkpoint, model, text), position)
    calls = checkpoint.attentions[text.kind].calls
    observe(model, model_inputs(checkpoint, [text]), Pass(calls=calls, gates=gates(checkpoint, settings)))
    path.end()
    return path


class DirectPath:
    """What passes through output projections, and through normalisations, at one position."""

    def __init__(self, model: Any, projections: dict[int, nn.Module], position: int) -> None:
        self.inputs: dict[int, Row] = {}
        """Of each projection."""
        self.norms: dict[int, tuple[nn.Module, Row]] = {}
        """Normalisation of what a projection gives before it is added, with its input; where there is one."""
        self._seen: list[tuple[nn.Module, Row, Row]] = []
        """Every normalisation so far, with its input and output."""
        self._given: dict[int, Row] = {}
        self._unembedded: Row | None = None
        self._position, self.model, self.projections = position, model, projections
        hooks = [module.register_forward_hook(self._note_projection(layer)) for layer, module in projections.items()]
        hooks += [module.register_forward_hook(self._note_norm) for module in model.modules() if is_norm(module)]
        hooks.append(outermost_layers(model)[-1].register_forward_pre_hook(self._check_input, with_kwargs=True))
        hooks.append(model.get_output_embeddings().register_forward_pre_hook(self._note_unembedding))
        self._hooks = hooks

    def end(self) -> None:
        """Take the hooks from the model."""
        for hook in self._hooks:
            hook.remove()

    def before_addition(
        self, layer: int, directions: Float[Tensor, "direction channel"]
    ) -> Float[Tensor, "direction channel"]:
        """Directions in what is unembedded, as directions in what the output projection of a layer gives.

        Raises: AnalysisError if more than a normalisation stands before the unembedding.
        """
        to_residual = pulled_back(*self._last_norm(), directions)
        after = self.norms.get(layer)
        return to_residual if after is None else pulled_back(*after, to_residual)

    def _last_norm(self) -> tuple[nn.Module, Row]:
        """The normalisation before the unembedding, and its input."""
        for module, before, after in reversed(self._seen):
            if self._unembedded is not None and torch.equal(after, self._unembedded):
                return module, before
        raise AnalysisError(
            f"{type(self.model).__name__} does more than to normalise before it predicts a token, so what single "
            f"heads add to it is not known. {ELSEWHERE}"
        )

    def _row(self, values: Tensor) -> Row:
        return values[0, min(self._position, values.shape[1] - 1)].detach().double()

    def _note_projection(self, layer: int) -> Callable[..., None]:
        def note(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
            self.inputs[layer], self._given[layer] = self._row(arguments[0]), self._row(output)

        return note

    def _note_norm(self, module: nn.Module, arguments: tuple[Any, ...], output: Any) -> None:
        if not isinstance(output, Tensor) or output.ndim != 3:
            return
        before = self._row(arguments[0])
        self._seen.append((module, before, self._row(output)))
        for layer, given in self._given.items():
            if torch.equal(before, given):
                self.norms[layer] = (module, before)
        self._given.clear()

    def _check_input(self, _: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> None:
        entering = self._row(arguments[0] if arguments else named["hidden_states"])
        if len(self.inputs) > 0 and any(torch.equal(after, entering) for _, _, after in self._seen):
            raise AnalysisError(
                f"{type(self.model).__name__} normalises the sum after each layer, so what heads add does not reach "
                f"its prediction directly. {ELSEWHERE}"
            )

    def _note_unembedding(self, _: nn.Module, arguments: tuple[Any, ...]) -> None:
        self._unembedded = self._row(arguments[0])


def is_norm(module: nn.Module) -> bool:
    """Whether it may be a normalisation: it has weights, each for one channel."""
    own = list(module.parameters())
    return bool(own) and all(values.ndim == 1 for values in own)


def pulled_back(
    norm: nn.Module, at: Row, directions: Float[Tensor, "direction channel"]
) -> Float[Tensor, "direction channel_before"]:
    """Directions before a normalisation that give the same products as `directions` after it, the scale held.

    The derivative of a normalisation lacks what changes its scale, which is a multiple of its input c (less its mean,
    where that is subtracted). N(x) = s * c + b, with s = weight / sqrt(mean(c^2) + eps); its derivative transposed is
    s * u - c <s * c, u> / (n (mean(c^2) + eps)), so the second term is added again.
    """
    norm = copy.deepcopy(norm).double()
    at, directions = at.clone(), directions.clone()  # those of the pass are of inference mode, without gradients
    with torch.enable_grad():
        x = at.clone().requires_grad_()
        output = norm(x[None, None])[0, 0].double()
        (by_derivative,) = torch.autograd.grad(output, x, directions, retain_graph=True, is_grads_batched=True)
        scaled = output.detach() - norm(torch.zeros_like(at)[None, None])[0, 0].detach().double()
        (of_scaled,) = torch.autograd.grad(output @ scaled, x)
    centred = at - at.mean() if torch.allclose(norm((at + 1)[None, None])[0, 0].double(), output) else at
    # <c, J' (s * c)> = |s * c|^2 eps / (mean(c^2) + eps): what eps, which no module gives by name, takes of the scale.
    of_eps = (centred @ of_scaled) / (scaled @ scaled)
    return by_derivative + torch.outer(directions @ scaled, centred) * (1 - of_eps) / (centred @ centred)
