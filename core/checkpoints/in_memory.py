"""A model that a program holds in memory, as a checkpoint: observed where it is, and left as it was."""

import random
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from copy import deepcopy
from pathlib import Path
from threading import RLock
from typing import Any, Final

import numpy as np
import torch
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase

from attention_sieve.core.checkpoints.checkpoint import DTYPES, Checkpoint
from attention_sieve.core.checkpoints.checks.loaded import check_weights, is_eager
from attention_sieve.core.checkpoints.find import DEVICES, described
from attention_sieve.core.checkpoints.load import checkpoint_of, input_device
from attention_sieve.core.errors import CheckpointError, panics_caught, quoted

NO_FINGERPRINT: Final = "none: a model in memory"
IMPLEMENTATION: Final = "_attn_implementation_internal"
"""Where a configuration of transformers keeps its attention implementation. The public name beside it also changes the
configurations within; each is put back on its own."""
EXPERTS: Final = "_experts_implementation_internal"
"""The same of how experts are computed."""
KEPT: Final = (IMPLEMENTATION, EXPERTS, "use_cache")
"""What is changed in configurations for the length of a pass."""
PLAIN: Final = (bool, int, float, str, type(None))
"""Types of the settings that modules keep as attributes, such as whether they are in training mode."""
_one_at_a_time: Final = RLock()
"""Held while a model is observed. One for all models, which may share modules, and because random numbers are put back
that belong to the process; it can be taken again within, as where a model is compared with itself."""


@contextmanager
def observed_in_place(model: Any, tokenizer: Any) -> Iterator[Checkpoint]:
    """A model in memory as a checkpoint, for the length of a block; nothing is copied, and nothing written to disk.

    Whatever ends the block, the training mode of each module, the attention implementation and the states of random
    numbers are then what they were. Hooks on the model stay and act, since they are part of what it computes; they see
    the short texts of the self-check, too, which is made each time. Other threads wait until the block has ended.

    Args:
        model: a model of transformers, also wrapped by PEFT or compiled, on one device, spread over
            several, or with weights that accelerate keeps on a disk.
        tokenizer: the fast tokenizer that belongs to it; a copy is used.

    Raises: CheckpointError for something else, a tokenizer that does not belong to the model, and a failed self-check.
    """
    with _one_at_a_time:
        inner = _unwrapped(model)
        name = f"{type(inner).__name__} in memory"
        _check(inner, tokenizer, name)
        config = inner.config.to_dict() | {"architectures": [type(inner).__name__]}
        files = described(config, name=name, folder=Path(), revision="", fingerprint=NO_FINGERPRINT, states=())
        with _left_as_it_was(inner):
            inner.eval()
            if "use_cache" in vars(inner.config):
                inner.config.use_cache = False
            check_weights(name, inner)
            with panics_caught():
                checkpoint = checkpoint_of(
                    files,
                    inner,
                    deepcopy(tokenizer),
                    device=input_device(inner).type,
                    dtype=str(inner.dtype).removeprefix("torch."),
                )
            _check_layers(inner, checkpoint)
            yield checkpoint


def _unwrapped(model: Any) -> Any:
    """The model of transformers within wrappers: of torch.compile, of data parallelism, of PEFT.

    Raises: CheckpointError for an adapter that is not part of the model's layers.
    """
    while isinstance(model, nn.Module) and not isinstance(model, PreTrainedModel):
        wrapper: Any = model
        if hasattr(wrapper, "get_base_model"):
            if getattr(wrapper.active_peft_config, "is_prompt_learning", False):
                raise CheckpointError(
                    f"The adapter of this {type(wrapper).__name__} puts tokens of its own before each text. "
                    "Give a model with another adapter, such as LoRA, or its base model."
                )
            model = wrapper.get_base_model()
        elif (inner := getattr(wrapper, "_orig_mod", getattr(wrapper, "module", None))) is not None:
            model = inner
        else:
            break
    return model


def _check_layers(model: PreTrainedModel, checkpoint: Checkpoint) -> None:
    """Raise if layers without attention are none of the model's layers: its configuration was changed after it was
    made."""
    stacks = {len(part) for part in model.modules() if isinstance(part, nn.ModuleList)}
    for layers in checkpoint.attentions.values():
        n_calls = sum(call is not None for call in layers.calls)
        if n_calls < layers.n_layers and layers.n_layers not in stacks:
            raise CheckpointError(
                f"The configuration of {checkpoint.files.name} names {layers.n_layers:,} layers, and attention is in "
                f"{n_calls:,} of them, while no part of the model has as many layers. Correct num_hidden_layers."
            )


def _check(model: Any, tokenizer: Any, name: str) -> None:
    if not isinstance(model, PreTrainedModel):
        raise CheckpointError(
            f"The model is a {type(model).__name__}. Give a model of transformers, the name of a checkpoint, or its "
            "folder."
        )
    if not isinstance(model.config, PreTrainedConfig):
        raise CheckpointError(
            f"The configuration of {name} is {quoted(model.config)}. Give the model with the one that it was made from."
        )
    if not isinstance(tokenizer, PreTrainedTokenizerBase) or not tokenizer.is_fast:
        problem = "is missing" if tokenizer is None else f"is a {type(tokenizer).__name__}"
        raise CheckpointError(
            f"The tokenizer of {name} {problem}. Give its fast tokenizer, which reports the characters of each token: "
            "tokenizer=AutoTokenizer.from_pretrained(...)"
        )
    dtype = str(model.dtype).removeprefix("torch.")
    device = input_device(model).type
    if device not in DEVICES or dtype not in DTYPES:
        raise CheckpointError(
            f"{name} has weights of {dtype} on {device}. Move it to one of "
            f"{', '.join(DEVICES)}, in one of {', '.join(DTYPES)}."
        )
    if not model._can_set_attn_implementation() and not is_eager(model):
        raise CheckpointError(
            f"{name} computes its attention in one step of its own, in which nothing can be observed. Load it with "
            'attn_implementation="eager".'
        )


@contextmanager
def _left_as_it_was(model: PreTrainedModel) -> Iterator[None]:
    """Put back what passes change in a model, and the states of random numbers, whatever ends the block."""
    # BigBird changes from sparse attention to full at its first short text, and keeps to that: attributes and modules.
    modules = [
        (
            module,
            {name: value for name, value in vars(module).items() if isinstance(value, PLAIN)},
            [(part, part.copy()) for part in (module._modules, module._buffers)],
        )
        for module in model.modules()
    ]
    configs = {id(config): config for module in model.modules() for config in _configs(getattr(module, "config", None))}
    kept = [
        (config, name, config.__dict__[name]) for config in configs.values() for name in KEPT if name in vars(config)
    ]
    device = input_device(model)
    states, numpy_state = random.getstate(), np.random.get_state()
    gpus = sorted({weights.device.index for weights in model.parameters() if weights.device.type == "cuda"})
    # Inputs go to "cuda", which is the current one of several.
    with torch.random.fork_rng(gpus), torch.cuda.device(device) if device.type == "cuda" else nullcontext():
        try:
            yield
        finally:
            for module, attributes, parts in modules:
                vars(module).update(attributes)
                for part, before in parts:
                    part.clear()
                    part.update(before)
            for config, name, value in kept:
                config.__dict__[name] = value
            random.setstate(states)
            np.random.set_state(numpy_state)


def _configs(config: Any) -> Iterator[Any]:
    """A configuration of transformers and those within it; none for anything else that a module calls so."""
    if config is not None and hasattr(config, "sub_configs"):
        yield config
        for name in config.sub_configs:
            yield from _configs(getattr(config, name, None))
