"""Compares a plain model with the program that it computes, and measures what each head is worth, by plain hooks."""

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from benchmarks.planted.rasp.compiled import NO_TARGET, Examples, ProgramHead
from benchmarks.planted.rasp.hosts import LOGIT, Carried
from benchmarks.planted.truth import Effects, Head, Task


@dataclass(frozen=True)
class Comparison:
    """How far a plain model is from the compiled one and from the program."""

    outputs: float
    """Greatest difference of what both write for a value, over all texts, tokens and values."""
    attention: float
    """Greatest difference between attention and an even share of what the head's selector selects."""
    right: float
    """Share of tokens with an output at which the greatest logit is that of the right one."""


def compared(carried: Carried) -> Comparison:
    """Compares a plain model with its program on all examples.

    Args:
        carried: The model; it is asked in the precision that it has.
    """
    outputs, attention, right = [], [], []
    for examples in carried.program.examples:
        with torch.no_grad():
            ids = torch.tensor(carried.input_ids[examples.tokens])
            answer = carried.model(input_ids=ids, output_attentions=True)
        logits = answer.logits.double().numpy()
        outputs.append(np.abs(logits[..., carried.output_ids] / LOGIT - examples.outputs).max())
        for index, head in enumerate(carried.program.heads):
            seen = answer.attentions[head.layer][:, carried.heads.places[head.layer][head.head]].double().numpy()
            attention.append(np.abs(seen - selected_share(examples, index, head)).max())
        has_output = examples.targets != NO_TARGET
        wanted = carried.output_ids[examples.targets[has_output]]
        right.append(logits[has_output].argmax(-1) == wanted)
    return Comparison(float(max(outputs)), float(max(attention)), float(np.concatenate(right).mean()))


def selected_share(examples: Examples, index: int, head: ProgramHead) -> Float[np.ndarray, "text query key"]:
    """The attention of a head that looks evenly at what its selector selects.

    Args:
        examples: Inputs, and what is selected of them.
        index: Of the head among those of the program.
        head: Says when the first token is attended to.
    """
    selected = examples.selected[:, index]
    share = np.zeros((len(selected), selected.shape[1] + 1, selected.shape[2] + 1))
    share[:, 1:, 1:] = selected
    share[:, :, 0] = 1 if head.counts else ~share.any(axis=-1)
    return share / share.sum(axis=-1, keepdims=True)


def task_of(carried: Carried) -> Task:
    """The last examples; each token with an output is scored at its own position.

    Args:
        carried: The model whose ids are used.
    """
    examples = carried.program.examples[-1]
    scored = [np.flatnonzero(targets != NO_TARGET) for targets in examples.targets]
    return Task(
        kind="next token",
        tokens=tuple(tuple(text.tolist()) for text in carried.input_ids[examples.tokens]),
        scored=tuple(tuple(positions.tolist()) for positions in scored),
        targets=tuple(
            tuple(carried.output_ids[targets[positions]].tolist())
            for targets, positions in zip(examples.targets, scored)
        ),
    )


def effects_of(carried: Carried, task: Task) -> Effects:
    """The loss of a task, and its rise without each head.

    Args:
        carried: The model.
        task: Its own.
    """
    full = loss(carried, task)
    layers, heads = len(carried.program.layers), carried.heads.number
    return Effects(
        loss=full,
        single=tuple(
            tuple(loss(carried, task, [(layer, head)]) - full for head in range(heads)) for layer in range(layers)
        ),
        sets=(),
    )


def loss(carried: Carried, task: Task, off: Iterable[Head] = ()) -> float:
    """The loss of a task in nats per scored token.

    Args:
        carried: The model.
        task: Its own.
        off: Heads whose output is set to zero.
    """
    with torch.no_grad(), zeroed(carried, off):
        chances = carried.model(input_ids=torch.tensor(task.tokens)).logits.double().log_softmax(-1)
    right = [
        chances[text, list(positions), list(targets)]
        for text, (positions, targets) in enumerate(zip(task.scored, task.targets, strict=True))
    ]
    return -torch.cat(right).mean().item()


@contextmanager
def zeroed(carried: Carried, heads: Iterable[Head]) -> Iterator[None]:
    """Sets the output of heads to zero for a while.

    Args:
        carried: The model.
        heads: Of the host.
    """
    size = carried.heads.size
    with ExitStack() as hooks:
        for layer, head in heads:

            def without(_: torch.nn.Module, inputs: tuple[Tensor, ...], first: int = head * size) -> tuple[Tensor, ...]:
                return (inputs[0].index_fill(-1, torch.arange(first, first + size), 0), *inputs[1:])

            hooks.callback(carried.projections[layer].register_forward_pre_hook(without).remove)
        yield
