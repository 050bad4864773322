"""Carries compiled programs over to plain models, and compares these with the compiled ones."""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from tokenizers import Tokenizer, models, pre_tokenizers
from tokenizers.processors import TemplateProcessing
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from benchmarks.planted.hosts import plain_model
from benchmarks.planted.rasp.compiled import NO_TARGET, CompiledProgram, Examples, ProgramHead
from benchmarks.planted.rasp.plain import LOGIT, Layout, layout, plain_weights
from benchmarks.planted.vocabulary import first_token


@dataclass(frozen=True, eq=False)
class Carried:
    """A plain model that computes a program."""

    program: CompiledProgram
    at: Layout
    model: PreTrainedModel


@dataclass(frozen=True)
class Comparison:
    """How far a plain model is from the compiled one and from the program."""

    outputs: float
    """Greatest difference of what both write for a value, over all texts, tokens and values."""
    attention: float
    """Greatest difference between attention and an even share of what the head's selector selects."""
    right: float
    """Share of tokens with an output at which the greatest logit is that of the right one."""


def carried(program: CompiledProgram) -> Carried:
    """A plain model that computes a program.

    Args:
        program: Compiled.
    """
    at = layout(program)
    return Carried(program, at, plain_model(at.host, plain_weights(program, at)))


def host_ids(tokens: np.ndarray, at: Layout) -> torch.Tensor:
    """The host's ids of texts.

    Args:
        tokens: Indices in the program's vocabulary.
        at: Where the program is.
    """
    return torch.tensor([[at.input_ids[token] for token in text] for text in tokens])


def compared(carried: Carried) -> Comparison:
    """Compares a plain model with its program on all examples.

    Args:
        carried: The model; it is asked in the precision that it has.
    """
    outputs, attention, right = [], [], []
    ids = np.array(carried.at.output_ids)
    for examples in carried.program.examples:
        with torch.no_grad():
            answer = carried.model(input_ids=host_ids(examples.tokens, carried.at), output_attentions=True)
        logits = answer.logits.double().numpy()
        outputs.append(np.abs(logits[..., ids] / LOGIT - examples.outputs).max())
        for index, used in enumerate(carried.program.heads):
            layer, head = carried.at.place(used.layer, used.head)
            seen = answer.attentions[layer][:, head].double().numpy()
            attention.append(np.abs(seen - selected_share(examples, index, used)).max())
        has_output = examples.targets != NO_TARGET
        right.append(logits[has_output].argmax(-1) == ids[examples.targets[has_output]])
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


def tokenizer(carried: Carried) -> PreTrainedTokenizerFast:
    """Splits a text at spaces, and begins it with the first token; there is none at its end.

    Args:
        carried: The model that it is for.
    """
    ids = {word: index for index, word in enumerate(carried.at.words)}
    first, is_bert = first_token(carried.at.host), carried.at.host == "bert"
    words = Tokenizer(models.WordLevel(ids, unk_token="[UNK]" if is_bert else first))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    words.post_processor = TemplateProcessing(single=f"{first} $A", special_tokens=[(first, ids[first])])
    special = {"bos_token": first, "eos_token": first, "unk_token": first}
    if is_bert:
        names = ("pad", "unk", "cls", "sep", "mask")
        special = {f"{name}_token": f"[{name.upper()}]" for name in names}
    longest = len(carried.program.positions)
    return PreTrainedTokenizerFast(tokenizer_object=words, model_max_length=longest, **special)
