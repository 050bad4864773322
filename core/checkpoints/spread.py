"""Models that accelerate spreads over several devices, or whose weights it keeps elsewhere until a layer runs."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import psutil
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

SHARE_OF_GPU: Final = 0.8
"""Share of a GPU's free memory for weights; the rest is for attention."""


def placed(model: PreTrainedModel, device: str) -> PreTrainedModel:
    """A model that was loaded on the CPU, on a device; over all GPUs if there are several and one is too small.

    What no GPU has room for stays in the machine's memory, from which each layer is brought to a GPU as it runs.
    """
    if device != "cuda" or (n_gpus := torch.cuda.device_count()) < 2:
        return model.to(device)
    free: dict[int | str, int] = {gpu: int(SHARE_OF_GPU * torch.cuda.mem_get_info(gpu)[0]) for gpu in range(n_gpus)}
    if model.get_memory_footprint() <= free[torch.cuda.current_device()]:
        return model.to(device)
    from accelerate import dispatch_model

    return dispatch_model(model, device_map(model, free | {"cpu": psutil.virtual_memory().available}))


def device_map(model: PreTrainedModel, free: Mapping[int | str, int]) -> Mapping[str, int | str]:
    """The device of each part of a model, so that no layer is divided. The bytes that are free for weights on each
    device are filled in this order."""
    from accelerate import infer_auto_device_map

    found: Mapping[str, int | str] = infer_auto_device_map(
        model, max_memory=dict(free), no_split_module_classes=list(model._no_split_modules or ())
    )
    return found


def input_device(model: nn.Module) -> torch.device:
    """Where a model takes its inputs: on the device of its first weights, or where these are brought once they are
    used."""
    device = next(model.parameters()).device
    return next(_execution_devices(model), device) if device.type == "meta" else device


def _execution_devices(model: nn.Module) -> Iterator[torch.device]:
    """Where the hooks of accelerate run modules, in their order."""
    for module in model.modules():
        hook: Any = getattr(module, "_hf_hook", None)
        for each in getattr(hook, "hooks", (hook,)):
            if (device := getattr(each, "execution_device", None)) is not None:
                yield torch.device(device)


def weight_in(module: Any) -> Tensor:
    """The weights of a layer; a copy of those that are elsewhere."""
    weight: Tensor = module.weight
    if not weight.is_meta:
        return weight
    from accelerate.utils import align_module_device

    with align_module_device(module):
        weight = module.weight
        return weight.detach().clone()
