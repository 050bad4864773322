"""The direct path: from what each part of a model adds to the residual stream, past everything between, to the logits.

Every factor on the way is held where it is in a text, so that what parts add can be summed. No module is found by its
name: output projections and layers are traced, and the sum over all parts is compared with the logit.

Source: nostalgebraist 2020 (logit lens); Elhage et al. 2021 (direct paths).
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

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
from attention_sieve.core.generation.attribution import Attribution, Parts
from attention_sieve.core.importance.passes.head_outputs import projection_modules, remaining_heads, weight_of
from attention_sieve.core.importance.passes.held_factors import HeldFactors, is_in_stream, without_stream
from attention_sieve.core.passes.batches import gates, model_inputs
from attention_sieve.core.passes.reuse import copy_sharing_weights, outermost_layers
from attention_sieve.core.passes.texts import PassText

Row = Float[Tensor, " channel"]
ROWS_AT_ONCE: Final = 1 << 14
"""Rows of an embedding that are converted to double precision at once."""
ELSEWHERE: Final = "Choose a checkpoint of another family, such as GPT-2 or Llama."
LEAST: Final = 1e-6
"""Size of a product, as a share of the product of its factors' norms, up to which it is rounding: passes compute in
float32. Of heads of real models it is above 1e-4."""
MOST_FACTOR: Final = 1e6
"""Logits are at most so many times what the unembedding gives; models set those of tokens that they never write to the
least number there is."""


def logit_attribution(
    checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int, token: int
) -> Attribution:
    """What each head, the rest of each layer, and the embedding add directly to the logit of a next token.

    Args:
        checkpoint: loaded, a causal language model.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off; these add 0.
        position: index of the token after which the token follows.
        token: its id.

    Returns: in logits, relative to the mean of all tokens; their sum is the logit.

    Raises: AnalysisError as `direct_path`, and for a token that the model never writes.
    Source: Wang et al. 2022, section 3.1 (direct effects on logits).
    """
    return direct_path(checkpoint, text, settings, position).attribution(token)


def direct_path(checkpoint: Checkpoint, text: PassText, settings: PassSettings, position: int) -> "DirectPath":
    """The direct path of each head, traced at one position of a text.

    Args:
        checkpoint: loaded, a causal language model.
        text: prepared for the kind of attention in the settings.
        settings: which heads are off.
        position: index of the token at which factors are held.

    Raises: AnalysisError if what heads write passes a weight matrix between the last layer and the unembedding, or if
        what all parts add is not the logit of the likeliest token.
    """
    model = copy_sharing_weights(checkpoint.full_model)
    attention = checkpoint.attentions[text.kind]
    on = gates(checkpoint, settings)
    if on is None:
        on = torch.ones(attention.n_layers, attention.n_heads, device=checkpoint.device)
    path = DirectPath(model, attention, projection_modules(checkpoint, model, text), on, position)
    # Of the pass with gradients no attention is part: what projections are given is cut off.
    observed_pass = Pass(
        calls=attention.calls, gates=on.requires_grad_(), on_output=path.note_values, backward="constant"
    )
    with torch.enable_grad(), HeldFactors(path.note):
        output = observe(model, model_inputs(checkpoint, [text]), observed_pass)
    path.end(output.logits)
    path.attribution(int(output.logits[0, position].argmax()))
    return path


class _Addition(NamedTuple):
    """What is added to the stream somewhere."""

    values: Tensor
    block: int
    """The layer that was entered last, by the order of calls; -1 before the first."""
    is_between: bool
    """Whether it is added after this layer and before the next."""


class _Projected(NamedTuple):
    """What passes the output projection of a layer at the position."""

    given: Row
    output: Row
    added: Tensor
    """Nothing, added to the output at the position, so that gradients are of this row alone."""
    block: int


class DirectPath:
    """What is added to the residual stream in a pass, and the way from there to the logits at one position."""

    def __init__(
        self,
        model: Any,
        attention: AttentionLayers,
        projections: dict[int, nn.Module],
        on: Float[Tensor, "layer head"],
        position: int,
    ) -> None:
        self.projections = projections
        self.model, self._attention, self._position = model, attention, position
        self._on = on.cpu().numpy()
        self._values: list[Float[Tensor, "kv_head key channel"]] = []
        """By layer."""
        self._projected: dict[int, _Projected] = {}
        self._additions: list[_Addition] = []
        self._block, self._is_between = -1, True
        self._cut_off_at: set[tuple[int, bool]] = set()
        """Where the stream passes modules with weights, as in additions."""
        self._unembedded = self._raw = self._logits = torch.empty(0)
        """At the position: what is unembedded, what that gives, and the logits."""
        self._precision = 0.0
        self._hooks = list(self._hooked())

    def _hooked(self) -> Iterator[Any]:
        unembedding = self.model.get_output_embeddings()
        layers = _layers_with(self.model, set(self.projections.values()))
        around = {part for part in self.model.modules() if any(inner in layers for inner in part.modules())}
        for module in self.model.modules():
            has_weights = any(values.ndim > 1 for values in module.parameters(recurse=False))
            if has_weights and module not in around and module is not unembedding:
                yield module.register_forward_pre_hook(self._cut_off, with_kwargs=True)
        yield self.model.get_input_embeddings().register_forward_hook(lambda _, __, output: self.note(output))
        numbers: dict[nn.Module, list[int]] = {}
        for number, module in sorted(self.projections.items()):
            numbers.setdefault(module, []).append(number)
        for module, module_numbers in numbers.items():
            yield module.register_forward_hook(self._note_projection(iter(module_numbers)))
        for layer in layers:
            yield layer.register_forward_pre_hook(self._enter, with_kwargs=True)
            yield layer.register_forward_hook(self._leave)
        yield unembedding.register_forward_hook(self._note_unembedding)

    def note(self, values: Tensor) -> Tensor:
        """Note what is added to the stream; returns it as a part of the stream."""
        leaf = values.detach().requires_grad_()
        self._additions.append(_Addition(leaf, self._block, self._is_between))
        return leaf.clone()  # some models scale it in place

    def note_values(self, _: Tensor, values: Float[Tensor, "text kv_head key channel"]) -> None:
        """Note the values of the next layer."""
        self._values.append(values[0].detach())

    def end(self, logits: Float[Tensor, "text token choice"]) -> None:
        """Take the hooks from the model, and keep its logits at the position.

        Raises: AnalysisError if more than factors stand between the last layer and the unembedding.
        """
        for hook in self._hooks:
            hook.remove()
        self._logits = self._row(logits)
        is_cut_off = (self._block, True) in self._cut_off_at
        if not self._unembedded.requires_grad or is_cut_off:
            raise AnalysisError(
                f"{type(self.model).__name__} does more than to normalise before it predicts a token, so what single "
                f"heads add to it is not known. {ELSEWHERE}"
            )

    @torch.no_grad()
    def attribution(self, token: int) -> Attribution:
        """What each part adds to the logit of a token.

        Raises: AnalysisError if that does not sum to the logit, and for a token that the model never writes.
        """
        factors = self._logits / self._raw
        is_written = (factors > 0) & (factors < MOST_FACTOR)
        usual = factors[is_written].median() if is_written.any() else torch.ones_like(factors[0])
        factors, is_written = factors.where(self._raw != 0, usual), is_written | (self._raw == 0)
        if not is_written[token]:
            raise AnalysisError(f"{type(self.model).__name__} never writes the token {token:,}. Choose another one.")
        is_capped = bool(((factors[is_written] / usual - 1).abs() > 4 * self._precision).any())
        relative = -is_written.double() / is_written.sum()
        relative[token] += 1
        direction = relative if is_capped else relative * usual
        return Attribution(
            adds=self._parts(direction),
            capped=self._parts(relative * factors.where(is_written, 0)) if is_capped else None,
            alone=self._alone(direction),
        )

    def before_addition(
        self, directions: Float[Tensor, "direction channel"]
    ) -> dict[int, Float[Tensor, "direction channel_before"]]:
        """Directions in what is unembedded, as directions in what the output projection of each layer gives."""
        by_layer = self._slopes([at.added for at in self._projected.values()], directions)
        return {
            layer: torch.zeros(len(directions), len(at.output)).to(at.output) if slope is None else slope.double()
            for (layer, at), slope in zip(self._projected.items(), by_layer, strict=True)
        }

    def _slopes(
        self, parts: Sequence[Tensor], directions: Float[Tensor, "direction channel"]
    ) -> Sequence[Tensor | None]:
        """Gradients of the products of directions and what is unembedded at the position; None for what is no part."""
        row = self._unembedded
        return torch.autograd.grad(
            row, parts, directions.to(row), retain_graph=True, allow_unused=True, is_grads_batched=True
        )

    def _parts(self, weights: Float[Tensor, " choice"]) -> Parts:
        """What each part adds to the sum of what the unembedding gives for each token, times weights."""
        unembedding, attention = self.model.get_output_embeddings(), self._attention
        direction = self._direction(weights)
        heads = np.full((attention.n_layers, attention.n_heads), np.nan)
        blocks, embedding, end = np.zeros(self._block + 1), 0.0, 0.0
        for layer, (by_output,) in self.before_addition(direction).items():
            at, present = self._projected[layer], remaining_heads(layer, attention)
            by_channel = at.given * (by_output @ weight_of(self.projections[layer]).double())
            heads[layer, present] = by_channel.view(len(present), -1).sum(-1).cpu().numpy()
            blocks[at.block] += float(by_output @ at.output - by_channel.sum())  # of its bias
        slopes = self._slopes([addition.values for addition in self._additions], direction)
        for (values, block, is_between), slope in zip(self._additions, slopes, strict=True):
            added = 0.0 if slope is None else float((values.double() * slope[0].double()).sum())
            if block == -1:
                embedding += added
            elif is_between and block == self._block:
                end += added
            else:
                blocks[block] += added
        if getattr(unembedding, "bias", None) is not None:
            end += float(weights @ unembedding.bias.double())
        parts = Parts(heads=heads, blocks=blocks, embedding=embedding, end=end)
        self._check(parts, float(weights @ self._raw))
        return parts

    def _alone(self, weights: Float[Tensor, " choice"]) -> Float[np.ndarray, "layer head key"]:
        """What each head would add to such a sum if all its attention were on one key."""
        n_layers, n_heads = self._attention.n_layers, self._attention.n_heads
        alone = np.full((n_layers, n_heads, self._values[0].shape[1]), np.nan)
        for layer, (by_output,) in self.before_addition(self._direction(weights)).items():
            present, values = remaining_heads(layer, self._attention), self._values[layer].double()
            by_head = (by_output @ weight_of(self.projections[layer]).double()).view(len(present), -1)
            shared = torch.tensor(present) * len(values) // n_heads
            alone[layer, present] = torch.einsum("hkc,hc->hk", values[shared], by_head).cpu().numpy()
        return alone * self._on[..., None]

    def _direction(self, weights: Float[Tensor, " choice"]) -> Float[Tensor, "1 channel"]:
        """The sum of what the unembedding gives for each token, times weights, as a direction in what it is given."""
        return weighted_rows(weight_in(self.model.get_output_embeddings()), weights)[None]

    def _check(self, parts: Parts, logit: float) -> None:
        added = np.array([*parts.heads[~np.isnan(parts.heads)], *parts.blocks, parts.embedding, parts.end])
        if not abs(added.sum() - logit) <= self._precision**0.5 * np.abs(added).sum():
            raise AnalysisError(
                f"What the parts of {type(self.model).__name__} add sums to {added.sum():.3g}, and its logit is "
                f"{logit:.3g}. It does more than to add and to multiply by factors, so what single heads add is not "
                f"known. {ELSEWHERE}"
            )

    def _row(self, values: Tensor) -> Row:
        return values.detach().flatten(0, -2)[self._position].double()

    def _cut_off(self, _: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if is_in_stream([*arguments, *named.values()]):
            self._cut_off_at.add((self._block, self._is_between))
        return without_stream(arguments), without_stream(named)

    def _enter(self, _: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """Count a layer; what enters the first one is part of the stream, even if it comes from weights."""
        if self._block == -1 and not is_in_stream([*arguments[:1], named.get("hidden_states")]):
            if arguments:
                arguments = (self.note(arguments[0]), *arguments[1:])
            else:
                named = {**named, "hidden_states": self.note(named["hidden_states"])}
        self._block, self._is_between = self._block + 1, False
        return arguments, named

    def _leave(self, _: nn.Module, __: tuple[Any, ...], ___: Any) -> None:
        self._is_between = True

    def _note_projection(self, numbers: Iterator[int]) -> Callable[..., Tensor]:
        def note(_: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> Tensor:
            added, at = output.new_zeros(output.shape[-1]).requires_grad_(), torch.zeros_like(output[..., :1])
            at.view(-1)[self._position] = 1
            given, row = self._row(arguments[0]), self._row(output)
            self._projected[next(numbers)] = _Projected(given, row, added, self._block)
            return torch.addcmul(output, at, added)

        return note

    def _note_unembedding(self, module: nn.Module, arguments: tuple[Any, ...], output: Tensor) -> None:
        self._unembedded = arguments[0].flatten(0, -2)[self._position]
        self._raw = self._row(output)
        # Normalisations compute in float32, whatever the format of the model.
        self._precision = max(torch.finfo(kind).eps for kind in (output.dtype, weight_in(module).dtype, torch.float32))


def weighted_rows(matrix: Float[Tensor, "row channel"], weights: Float[Tensor, " row"]) -> Float[Tensor, " channel"]:
    """Sum of the rows of a large matrix, each times its weight, in double precision."""
    parts = zip(matrix.split(ROWS_AT_ONCE), weights.split(ROWS_AT_ONCE))
    return torch.stack([row_weights @ rows[: len(row_weights)].double() for rows, row_weights in parts]).sum(0)


def is_rounding(product: Tensor, sizes: Tensor) -> bool:
    """Whether a product is nothing against its factors, so that its sign says nothing.

    Args:
        product: its size.
        sizes: product of the norms of its factors.
    """
    return float(product) <= LEAST * float(sizes)


def _layers_with(model: nn.Module, projections: set[nn.Module]) -> list[nn.Module]:
    """The layers of the stacks that projections are part of."""
    lists = [part for part in model.modules() if isinstance(part, nn.ModuleList)]
    outermost = outermost_layers(model)
    return [
        layer
        for stack in lists
        if any(module in projections for module in stack.modules())
        for layer in stack
        if any(layer is outer for outer in outermost)
    ]
