"""What heads of a planted model look at and what the task loses without them, by hooks on plain transformers."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import torch
from jaxtyping import Float
from torch import Tensor, nn
from transformers import PreTrainedModel

from benchmarks.planted.truth import Effects, Head, SetEffect, Task


def output_projections(model: PreTrainedModel) -> list[nn.Module]:
    """The module of each layer that projects what the heads give, one head beside the other."""
    if model.config.model_type == "gpt2":
        return [block.attn.c_proj for block in model.transformer.h]
    if model.config.model_type == "bert":
        return [block.attention.output.dense for block in model.bert.encoder.layer]
    return [block.self_attn.o_proj for block in model.model.layers]


@contextmanager
def without(model: PreTrainedModel, heads: Sequence[Head]) -> Iterator[None]:
    """Sets the outputs of heads to zero while it lasts."""
    n_heads, handles = model.config.num_attention_heads, []
    for layer, projection in enumerate(output_projections(model)):
        off = [head for place, head in heads if place == layer]

        def clear(_: nn.Module, given: tuple[Tensor], off: list[int] = off) -> tuple[Tensor]:
            parts = given[0].unflatten(-1, (n_heads, -1)).clone()
            parts[..., off, :] = 0
            return (parts.flatten(-2),)

        if off:
            handles.append(projection.register_forward_pre_hook(clear))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def inputs(task: Task) -> dict[str, Tensor]:
    """The texts of a task as a model of transformers takes them."""
    given = {"input_ids": torch.tensor(task.tokens)}
    return given if task.segments is None else {**given, "token_type_ids": torch.tensor(task.segments)}


def loss(model: PreTrainedModel, task: Task) -> Float[Tensor, ""]:
    """Mean loss over all scored tokens, in nats."""
    rows = torch.tensor([row for row, scored in enumerate(task.scored) for _ in scored])
    scored, targets = (torch.tensor([number for row in part for number in row]) for part in (task.scored, task.targets))
    logits = model(**inputs(task)).logits[rows, scored]
    return nn.functional.cross_entropy(logits, targets)


@torch.no_grad()
def effects(model: PreTrainedModel, task: Task, sets: Sequence[Sequence[Head]]) -> Effects:
    """The loss of the task, and its rise without each head, and without sets of heads.

    Args:
        model: With eager attention.
        task: Its texts.
        sets: Heads that are off together.
    """
    whole = loss(model, task).item()

    def rise(heads: Sequence[Head]) -> float:
        with without(model, heads):
            return loss(model, task).item() - whole

    n_layers, n_heads = model.config.num_hidden_layers, model.config.num_attention_heads
    single = tuple(tuple(rise([(layer, head)]) for head in range(n_heads)) for layer in range(n_layers))
    return Effects(whole, single, tuple(SetEffect(tuple(heads), rise(heads)) for heads in sets))


@torch.no_grad()
def attention(
    model: PreTrainedModel, task: Task, off: Sequence[Head] = ()
) -> Float[Tensor, "layer text head query key"]:
    """The attention of all heads on the texts of a task.

    Args:
        model: With eager attention.
        task: Its texts.
        off: Heads whose outputs are set to zero meanwhile.
    """
    with without(model, off):
        return torch.stack(model(**inputs(task), output_attentions=True).attentions)
