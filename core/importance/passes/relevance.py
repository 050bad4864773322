"""How much of a prediction goes through each head: layer-wise relevance propagation as gradient times input.

Under changed backward rules, gradient times input distributes a logit over the neurons of each layer: norms divide by
a constant, activation functions multiply by the constant f(x) / x, and attention is a sum with constant weights
("conservative"), or a product each of whose two factors gets half ("halved", which loses what softmax's own offset
takes). Both have signs: a head may count against the prediction. The alpha-beta rules share out relevance by sign
instead (`core.importance.passes.alpha_beta`). Biases take their share with them; in a model without any, the input's
relevances sum to the logit. Gated feed-forward layers count their gate as a constant.

Layer-wise relevance propagation is patented for commercial use.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from core.attention.observed import check_heads_are_seen
from core.attention.observers import Backward
from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.importance.passes.alpha_beta import SHARES, AlphaBetaRules
from core.importance.passes.backward_rules import BackwardRules, scaled
from core.importance.passes.gradients import with_head_outputs
from core.importance.passes.head_outputs import BY_ZERO, real_tokens
from core.importance.passes.reuse import outermost_layers, twin
from core.importance.per_text import Rule, TextRelevance, with_holes
from core.passes.batches import BATCH_TOKENS, check_length, plan_batches
from core.passes.metric import Metric
from core.passes.readout import Readout, check_metric, model_of
from core.passes.texts import PassText

_ATTENTION: Final[dict[Rule, Backward]] = {
    "conservative": "constant", "halved": "halved", **dict.fromkeys(SHARES, "constant")
}  # fmt: skip
_GATES: Final = ("gate_proj", "wi_0", "gate_up_proj", "Wi")
"""Layers of gated feed-forward networks, beside whose activation another factor stands."""


def head_relevance(
    checkpoint: Checkpoint,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
    rule: Rule = "conservative",
) -> Iterator[list[tuple[int, TextRelevance]]]:
    """Relevance of each head, and of each token at the input of the first layer, for the largest logit of a text.

    Args:
        checkpoint: loaded.
        texts: prepared; see `core.importance.passes.sweep.with_targets`.
        settings: which attention, and which heads are off.
        metric: decides what is distributed: labels the logit of the predicted class, lm the largest logit of each
            predicted token (mean), output the length of the text vector.
        rule: how attention is propagated through.

    Yields: index of the text and its relevances, batch by batch; not in input order.
    Raises: AnalysisError for a checkpoint without this metric or whose heads cannot be seen, and for a text whose
        attention would fill the memory.
    Source: Voita et al. 2019, section 4; rules of Ali et al. 2022 ("conservative") and Achtibat et al. 2024 ("halved"),
        as gradients in Arras et al. 2025; alpha-beta of Bach et al. 2015, with the shares of Voita's code (one half
        each, "alpha-beta"), which also has derivatives for attention and norms and rescales what is lost; here nothing
        is.
    """
    check_metric(checkpoint, metric, settings.kind)
    check_heads_are_seen(checkpoint.model, BY_ZERO)
    for text in texts:
        check_length(checkpoint.attentions[settings.kind], text.n_tokens)
    model = _with_constant_slopes(model_of(checkpoint, metric, settings.kind))
    for batch in plan_batches([text.n_tokens for text in texts], BATCH_TOKENS["cpu"]):
        chosen = [texts[place] for place in batch.positions]
        yield list(zip(batch.positions, _relevance(checkpoint, model, chosen, settings, metric, rule), strict=True))


def _relevance(
    checkpoint: Checkpoint,
    model: PreTrainedModel,
    texts: Sequence[PassText],
    settings: PassSettings,
    metric: Metric,
    rule: Rule,
) -> list[TextRelevance]:
    readout = Readout(checkpoint, metric, texts)
    rules = AlphaBetaRules(SHARES[rule]) if rule in SHARES else BackwardRules()
    with torch.enable_grad(), rules, _first_inputs(_stacks(model, texts)) as first:
        output, outputs = with_head_outputs(checkpoint, readout, settings, model, backward=_ATTENTION[rule])
        tops = readout.tops(output)
        found = torch.autograd.grad(tops.sum(), [*outputs, *first])
    by_output, by_input = found[: len(outputs)], found[len(outputs) :]
    # Texts of a language model's loss are read up to the decoder, whichever attention is looked at.
    looking = [replace(text, kind=settings.kind) for text in texts]
    real, removed = real_tokens(checkpoint, looking), checkpoint.attentions[settings.kind].removed
    heads = [torch.einsum("tqhc,tqhc,tq->th", o.detach(), g, real) for o, g in zip(outputs, by_output, strict=True)]
    tokens = [(of_stack.detach() * slope).sum(-1).cpu().numpy() for of_stack, slope in zip(first, by_input)]
    by_text, of_tops = torch.stack(heads, 1).cpu().numpy(), tops.detach().cpu().numpy()
    return [
        TextRelevance(
            heads=with_holes(by_text[row], removed),
            tokens=np.concatenate([of_stack[row, :n] for of_stack, n in zip(tokens, _lengths(text))]),
            top=of_tops[row, ...],
        )
        for row, text in enumerate(texts)
    ]


def _lengths(text: PassText) -> list[int]:
    """Tokens at the input of each stack."""
    return [len(stack.ids) for stack in (text.source, text.target) if stack is not None]


def _with_constant_slopes(model: PreTrainedModel) -> PreTrainedModel:
    """A twin of a model whose activation modules multiply by a constant, or are one beside another factor."""
    changed = twin(model)
    for parent in changed.modules():
        is_gated = any(hasattr(parent, name) for name in _GATES)
        for part in parent.children():
            if "activation" in type(part).__module__:
                part.forward = _constant(part.forward, is_gated)
    return changed


def _constant(forward: Callable[[Tensor], Tensor], is_gated: bool) -> Callable[[Tensor], Tensor]:
    def activated(values: Tensor) -> Tensor:
        result = forward(values.detach())
        return result if is_gated else scaled(values, result)

    return activated


@contextmanager
def _first_inputs(stacks: Sequence[nn.Module]) -> Iterator[list[Float[Tensor, "text token channel"]]]:
    """The hidden states with which the first layer of each stack begins in the pass inside, in the order of a pass."""
    found: list[Tensor] = []
    handles = []
    for stack in stacks:
        begun: list[bool] = []

        def keep(_: nn.Module, arguments: tuple[Any, ...], named: dict[str, Any], begun: list[bool] = begun) -> None:
            if not begun:
                begun.append(True)
                found.append(arguments[0] if arguments else named["hidden_states"])

        handles += [layer.register_forward_pre_hook(keep, with_kwargs=True) for layer in outermost_layers(stack)]
    try:
        yield found
    finally:
        for handle in handles:
            handle.remove()


def _stacks(model: PreTrainedModel, texts: Sequence[PassText]) -> list[nn.Module]:
    """The encoder and the decoder where both run; else the model itself."""
    return [model] if texts[0].target is None else [model.get_encoder(), model.get_decoder()]
