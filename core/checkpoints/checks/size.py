"""Checks how much memory a checkpoint's weights need before any is allocated: from the headers of its files, and from
the model that its configuration describes, built without memory."""

from pathlib import Path
from typing import Any, Final

import psutil
import torch
from safetensors import SafetensorError

from attention_sieve.core.checkpoints.checks.files import n_saved
from attention_sieve.core.errors import CheckpointError, first_line

MOST_TIMES: Final = 4
"""Maximum ratio of a model's number of weights to that in its files. Tied weights are saved once, and a pooler or an
unused head may be missing."""
MOST_MORE: Final = 2**24
"""Additional numbers allowed for tables of positions, which are not saved."""
SHARE_OF_MEMORY: Final = 0.9
"""Share of the machine's available memory for weights on the CPU."""


def check_size(name: str, folder: Path, auto_class: Any, config: Any, dtype: torch.dtype) -> None:
    """Raise if the configuration describes a model far larger than its files, or larger than the available memory.

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
            f"config.json of {name} does not describe a model that can be built ({first_line(error)}). Save the "
            "checkpoint again."
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
    n_bytes, available = n_described * dtype.itemsize, SHARE_OF_MEMORY * psutil.virtual_memory().available
    if n_bytes > available:
        raise CheckpointError(
            f"{name} needs {n_bytes / 1e9:,.1f} GB for its weights, and {available / 1e9:,.1f} GB of memory are free. "
            "Choose a smaller checkpoint or number format, or close other programs."
        )
