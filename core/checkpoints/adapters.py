"""Adapters of PEFT: folders with adapter_config.json and adapter_model.safetensors, which change a base checkpoint.

Does not import torch; `attention_sieve.core.checkpoints.slicing` loads them.
"""

import importlib.util
import re
from pathlib import Path
from typing import Final

from safetensors import safe_open

from attention_sieve.core.checkpoints.checks.files import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    PICKLED,
    WEIGHT_FILES,
    check_header,
    read_json,
)
from attention_sieve.core.errors import CheckpointError

PREFIX: Final = "base_model.model."
"""How the names of all weights in an adapter's file begin."""
CLASSIFIER: Final = re.compile(r"(classifier|score)\.(.*\.)?weight")
"""Weights of a classification head; the last ones have a row for each class."""


def checked_adapter(name: str, folder: Path) -> tuple[str, str]:
    """Check the files of an adapter before anything is loaded.

    Returns: its kind, as PEFT names it, such as LORA, and the base that it names.
    Raises: CheckpointError.
    """
    config = read_json(name, folder / ADAPTER_CONFIG)
    if any(folder.glob(WEIGHT_FILES)):
        raise CheckpointError(
            f"{name} holds a whole model and an adapter. Move {ADAPTER_CONFIG} and the adapter's weights to a folder "
            "of their own, or delete what you do not want to load."
        )
    pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(f"adapter_model{pattern[1:]}"))
    if not (folder / ADAPTER_WEIGHTS).is_file():
        raise CheckpointError(
            f"{name} has only weights that could run code when loaded ({pickled[0]}). Save it as safetensors: load it "
            "with peft where you trust it, and call save_pretrained."
            if pickled
            else f"{name} holds {ADAPTER_CONFIG} and no {ADAPTER_WEIGHTS}. Save the adapter again."
        )
    check_header(name, folder / ADAPTER_WEIGHTS)
    kind, base = config.get("peft_type"), config.get("base_model_name_or_path")
    if not isinstance(kind, str) or config.get("megatron_config"):  # for which PEFT imports what the file names
        raise CheckpointError(f"{name} is an adapter of a kind that is not loaded. Choose another, such as LoRA.")
    if not isinstance(base, str) or not base.strip():
        raise CheckpointError(
            f"{ADAPTER_CONFIG} of {name} does not name its base. Write the base's folder or hub id there, as "
            "base_model_name_or_path."
        )
    if importlib.util.find_spec("peft") is None:
        raise CheckpointError(
            f"{name} is an adapter, and the package that reads them is not installed. Install it with: "
            "pip install peft==0.21.2"
        )
    return kind, base.strip()


def n_classes(folder: Path) -> int | None:
    """Classes of the classification head that an adapter brings; None if it brings none."""
    if read_json(folder.name, folder / ADAPTER_CONFIG).get("task_type") != "SEQ_CLS":
        return None
    with safe_open(folder / ADAPTER_WEIGHTS, framework="numpy") as file:
        heads = [name for name in sorted(file.keys()) if CLASSIFIER.fullmatch(name.removeprefix(PREFIX))]
        return int(file.get_slice(heads[-1]).get_shape()[0]) if heads else None


def adapter_weights(folder: Path) -> set[str]:
    """Names of the weights in an adapter's file, as a model names them that it fits."""
    with safe_open(folder / ADAPTER_WEIGHTS, framework="numpy") as file:
        return {name.removeprefix(PREFIX) for name in file.keys()}  # noqa: SIM118
