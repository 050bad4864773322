"""Merges an adapter of PEFT into its base, and shares weights between models in memory.

After merging, everything that reads weights reads those of the adapted model. Weights that the adapter leaves alone can
be the base's own memory.
"""

import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import PreTrainedModel

from attention_sieve.core.checkpoints.adapters import adapter_weights
from attention_sieve.core.checkpoints.checks.files import ADAPTER_CONFIG
from attention_sieve.core.errors import CheckpointError, first_line


def merge_adapter(name: str, folder: Path, model: PreTrainedModel) -> None:
    """Merge an adapter into the weights of its base, in place, as PEFT does. The base has the head that the adapter was
    trained with.

    Weights that change are copied before, as other models may share them; all others stay where they are.

    Raises: CheckpointError for an adapter of another base, and of a kind that cannot be merged.
    """
    from peft import PeftConfig, get_peft_model

    # An adapter that was trained on a model without a head names its layers from there.
    has_head = any(each.startswith(f"{model.base_model_prefix}.") for each in adapter_weights(folder))
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            config: Any = PeftConfig.from_pretrained(str(folder))
            if config.is_prompt_learning or config.is_adaption_prompt:
                raise CheckpointError(
                    f"{name} is an adapter of the kind {config.peft_type.value}, which adds tokens of its own instead "
                    "of changing weights. Choose another one, such as LoRA."
                )
            inner: Any = model if has_head else model.base_model
            adapted: Any = get_peft_model(inner, config, low_cpu_mem_usage=True, autocast_adapter_dtype=False)
            report = adapted.load_adapter(folder, "default", torch_device=str(model.device), low_cpu_mem_usage=True)
            _own_changed_weights(adapted)
            adapted.merge_and_unload()
    except CheckpointError:
        raise
    except Exception as error:  # what a broken file makes the library raise is open-ended
        reason = "its weights have other shapes" if "size mismatch" in str(error) else first_line(error)
        raise _of_another_base(name, model, reason) from error
    # Heads of tasks that the model does not have may be left over: they follow its attention.
    unused = sorted(key for key in report.unexpected_keys if adapted.base_model.prefix in key)
    if report.missing_keys or unused:
        problem = f"{unused[0]} has no place in it" if unused else f"{sorted(report.missing_keys)[0]} is missing"
        raise _of_another_base(name, model, problem)


def _own_changed_weights(adapted: Any) -> None:
    """Give each layer that an adapter changes weights of its own, apart from what is tied to them."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for layer in adapted.modules():
        if isinstance(layer, BaseTunerLayer):
            base: nn.Module = layer.get_base_layer()
            for key, weights in list(base.named_parameters(recurse=False)):
                setattr(base, key, nn.Parameter(weights.detach().clone(), requires_grad=weights.requires_grad))


def _of_another_base(name: str, model: PreTrainedModel, problem: str) -> CheckpointError:
    return CheckpointError(
        f"{name} does not fit its base, a {type(model).__name__} ({problem}). If it was trained on another one, "
        f"correct base_model_name_or_path in its {ADAPTER_CONFIG}; else save the adapter again."
    )


def sharing_weights(model: PreTrainedModel) -> PreTrainedModel:
    """A copy of a model with the same weights in memory; weights that are assigned anew in the copy change only it."""
    shared: dict[int, Any] = {id(values): values for values in model.buffers()}
    for weights in model.parameters():
        shared[id(weights)] = nn.Parameter(weights.detach(), requires_grad=weights.requires_grad)
    return deepcopy(model, shared)
