"""Checks the files of an adapter of PEFT, and which of its settings PEFT is given; does not import torch.

PEFT follows what an adapter's configuration names: models of the hub and their code, other adapters, files of torch's
own format. Here a kind of adapter and a setting are read if they stand on a list, and none of these names a place but
the base.
"""

import importlib.util
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from safetensors import safe_open

from attention_sieve.core.checkpoints.checks.files import (
    ADAPTER_CONFIG,
    ADAPTER_WEIGHTS,
    PICKLED,
    WEIGHT_FILES,
    check_header,
    read_json,
)
from attention_sieve.core.errors import CheckpointError, quoted

KINDS: Final = ("LORA", "ADALORA", "LOHA", "LOKR", "DELORA", "HIRA", "IA3", "HRA", "LN_TUNING")
"""Kinds of adapters that are read, as PEFT names them: they change weights of the base by what their own file holds."""
SETTINGS: Final = frozenset({
    "r", "lora_alpha", "alpha", "use_rslora", "use_dora", "bias", "lora_bias", "fan_in_fan_out",
    "target_modules", "exclude_modules", "feedforward_modules", "target_parameters", "modules_to_save",
    "layers_to_transform", "layers_pattern", "rank_pattern", "alpha_pattern", "trainable_token_indices",
    "ensure_weight_tying", "task_type", "use_effective_conv2d", "decompose_both", "decompose_factor",
    "delora_lambda", "lambda_pattern", "apply_GS", "target_r", "init_r", "tinit", "tfinal", "total_step",
})  # fmt: skip
"""Settings on which it depends what these kinds compute."""
OF_TRAINING: Final = frozenset({
    "peft_type", "peft_version", "base_model_name_or_path", "revision", "auto_mapping", "inference_mode",
    "lora_dropout", "hira_dropout", "module_dropout", "rank_dropout", "rank_dropout_scale",
    "init_ia3_weights", "loftq_config", "eva_config", "corda_config", "lora_ga_config", "runtime_config",
    "megatron_core", "qalora_group_size", "deltaT", "beta1", "beta2", "orth_reg_weight",
})  # fmt: skip
"""Settings that say where an adapter comes from or how it was trained. PEFT is not given them."""
INITIAL: Final = ("init_lora_weights", "init_weights")
"""Settings with the way in which weights were drawn before the training."""
KEEPING_THE_BASE: Final = (None, True, False, "gaussian", "eva", "orthogonal", "lycoris")
"""Ways that left the weights of the base alone. Of the others, PEFT would change them again."""
NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
"""A name of modules or parameters, which PEFT puts into expressions."""
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
    _settings(name, config)
    base = config.get("base_model_name_or_path")
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
    return config["peft_type"], base.strip()


def adapter_settings(name: str, folder: Path) -> dict[str, Any]:
    """The settings of an adapter that PEFT is given, its kind included, as they stand in its configuration.

    Raises: CheckpointError for a kind or a setting that is not read.
    """
    return _settings(name, read_json(name, folder / ADAPTER_CONFIG))


def _settings(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    kind = config.get("peft_type")
    if kind not in KINDS:
        raise CheckpointError(
            f"{name} is an adapter of the kind {quoted(kind)}, and those are read that change weights of their base by "
            f"what their own file holds: {', '.join(KINDS)}. Choose one of these."
        )
    for key in INITIAL:
        if (way := config.get(key)) not in KEEPING_THE_BASE:
            raise CheckpointError(
                f"{ADAPTER_CONFIG} of {name} has {key} = {quoted(way)}, which changed the weights of the base before "
                "the training. Save the adapter again as one of the base as it is: save_pretrained of peft does so "
                "with path_initial_model_for_weight_conversion."
            )
    unread = [key for key in config if key not in SETTINGS | OF_TRAINING and key not in INITIAL and config[key]]
    if unread:
        raise CheckpointError(
            f"{ADAPTER_CONFIG} of {name} sets {quoted(unread[0])}, which is not read. If the adapter computes the same "
            "without it, remove it there; else merge the adapter into its base with peft."
        )
    settings = {key: config[key] for key in config if key in SETTINGS and config[key] is not None}
    for key in ("modules_to_save", "layers_pattern", "target_parameters"):
        _check_names(name, key, settings.get(key, ()))
    return {"peft_type": kind, **settings}


def _check_names(name: str, key: str, names: object) -> None:
    """Raise unless these are a name, or a list of names, of modules or parameters."""
    given = [names] if isinstance(names, str) else names
    if not isinstance(given, list | tuple):
        raise CheckpointError(f"{ADAPTER_CONFIG} of {name}: {key} is {quoted(names)}. Write a list of names there.")
    for module in given:
        if not isinstance(module, str) or not NAME.fullmatch(module):
            raise CheckpointError(
                f"{ADAPTER_CONFIG} of {name}: {key} holds {quoted(module)}, which is no name of modules. Name them in "
                "full."
            )


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
