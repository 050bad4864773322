"""Checks how much memory a checkpoint's weights need before any is allocated: from the headers of its files, and from
the model that its configuration describes, built without memory."""

from pathlib import Path
from typing import Any, Final

import psutil
import torch
from safetensors import SafetensorError

from core.checkpoints.checks.files import n_saved
from core.errors import CheckpointError, first_line

MOST_TIMES: Final = 4
"""How many times as many numbers as its files a model may have. Weights that are tied are saved once, and a pooler or
an unused head may be missing."""
MOST_MORE: Final = 2**24
"""Numbers that it may have beyond that: tables of positions, which are not saved."""
SHARE_OF_MEMORY: Final = 0.9
"""Of what the machine has available, for weights on the CPU."""


def check_size(name: str, folder: Path, auto_class: Any, config: Any, dtype: torch.dtype) -> None:
    """Raise if the configuration describes a model far larger than its files, or one that memory has no room for.

    Args:
        name: name of the checkpoint, for error messages.
        folder: its folder.
        auto_class: the class of transformers that makes it.
        config: its configuration.
        dtype: number format of the weights in memory.

    Raises: CheckpointError with the largest weight and both sizes.
    """
    try:
        n_in_files = n_saved(folder)
        with torch.device("meta"):
            model = auto_class.from_config(config, trust_remote_code=False)
    except SafetensorError as error:
        raise CheckpointError(
            f"The weights of {name} cannot be loaded ({first_line(error)}). Save the checkpoint again."
        ) from None
    except Exception as error:  # what a broken configuration makes the library raise is open-ended
        raise CheckpointError(
            f"config.json of {name} describes no model that can be made ({first_line(error)}). Save the checkpoint "
            "again."
        ) from error
    weights = dict([*model.named_parameters(), *model.named_buffers()])
    n_described = sum(values.numel() for values in weights.values())
    if n_described > MOST_TIMES * n_in_files + MOST_MORE:
        largest = max(weights, key=lambda key: weights[key].numel())
        shape = " x ".join(f"{size:,}" for size in weights[largest].shape)
        raise CheckpointError(
            f"config.json of {name} describes a model of {n_described:,} numbers ({largest} has {shape}), and its "
            f"files hold {n_in_files:,}. Correct config.json, or save the checkpoint again."
        )
    n_bytes, room = n_described * dtype.itemsize, SHARE_OF_MEMORY * psutil.virtual_memory().available
    if n_bytes > room:
        raise CheckpointError(
            f"{name} needs {n_bytes / 1e9:,.1f} GB for its weights, and {room / 1e9:,.1f} GB of memory are free. "
            "Choose a smaller checkpoint or number format, or end other programs."
        )
