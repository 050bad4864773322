"""Adapters of PEFT, merged into their base in memory: everything that reads weights then reads those of the adapted
model. Weights that the adapter leaves alone can be the base's own memory.

PEFT matches the expressions in an adapter's configuration without an end in time. They are matched here, with one, and
PEFT is given the names that they stand for.
"""

import re
import time
import warnings
from collections.abc import Collection
from copy import deepcopy
from math import prod
from pathlib import Path
from typing import Any, Final

import regex
import torch
from torch import nn
from transformers import PreTrainedModel

from attention_sieve.core.checkpoints.checks.adapters import adapter_settings, adapter_weights
from attention_sieve.core.checkpoints.checks.files import ADAPTER_CONFIG
from attention_sieve.core.errors import CheckpointError, first_line, quoted

NONE_BESIDE: Final = {"subfolder": "config.json"}
"""For `adapter_kwargs` of transformers, which would also load the adapter in a folder of the hub that holds a whole
model: it looks for one below a file, where none can be."""
WHOLE: Final = ("target_modules", "exclude_modules", "feedforward_modules")
"""Settings that hold an expression for whole names of modules, or a list of names."""
ENDS: Final = ("rank_pattern", "alpha_pattern", "lambda_pattern")
"""Settings with a value for each expression for the end of a name."""
ADALORA: Final = "ADALORA"
"""A kind whose patterns of ranks are the full names of weights."""
ALL_LINEAR: Final = "all-linear"
"""What PEFT takes for the names of all linear layers."""
NO_MODULE: Final = "(?!)"
"""An expression that matches nothing."""
SECONDS: Final = 2.0
"""For all expressions of an adapter; those of published ones take a hundredth of one."""
LONGEST: Final = 5_000
"""Characters in an expression."""
MOST_REPEATS: Final = 100
"""Product of the counts in the braces of an expression, for each of which it is written out once."""
_COUNTS: Final = re.compile(r"\{(\d*),?(\d*)\}")


def merge_adapter(name: str, folder: Path, model: PreTrainedModel) -> None:
    """Merge an adapter into the weights of its base, in place, as PEFT does. The base has the head that the adapter was
    trained with.

    Weights that change are copied before, as other models may share them; all others stay where they are.

    Raises: CheckpointError for an adapter of another base, and for settings that are not read.
    """
    from peft import get_peft_config, get_peft_model

    # An adapter that was trained on a model without a head names its layers from there.
    has_head = any(path.startswith(f"{model.base_model_prefix}.") for path in adapter_weights(folder))
    inner: Any = model if has_head else model.base_model
    settings = _with_names(name, adapter_settings(name, folder), [path for path, _ in inner.named_modules() if path])
    try:
        with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
            warnings.simplefilter("ignore")
            config: Any = get_peft_config(settings)
            adapted: Any = get_peft_model(inner, config, low_cpu_mem_usage=True, autocast_adapter_dtype=False)
            report = adapted.load_adapter(folder, "default", torch_device=str(model.device), low_cpu_mem_usage=True)
            _own_changed_weights(adapted)
            adapted.merge_and_unload()
    except Exception as error:  # what a broken file makes the library raise is open-ended
        reason = "its weights have other shapes" if "size mismatch" in str(error) else first_line(error)
        raise _other_base_error(name, model, reason) from error
    # Heads of tasks that the model does not have may be left over: they follow its attention.
    unused = sorted(key for key in report.unexpected_keys if adapted.base_model.prefix in key)
    if report.missing_keys or unused:
        problem = f"{unused[0]} has no place in it" if unused else f"{sorted(report.missing_keys)[0]} is missing"
        raise _other_base_error(name, model, problem)


def _with_names(name: str, settings: dict[str, Any], modules: Collection[str]) -> dict[str, Any]:
    """Settings with the names of modules in place of expressions, which are at most as many as there are modules."""
    for key, value in settings.items():
        if isinstance(value, list | dict) and key != "trainable_token_indices" and len(value) > len(modules):
            raise CheckpointError(
                f"{ADAPTER_CONFIG} of {name}: {key} has {len(value):,} entries, and its base has {len(modules):,} "
                "modules. Save the adapter again, or correct base_model_name_or_path."
            )
    began, with_names = time.monotonic(), dict(settings)

    def names_of(expression: str) -> str:
        return _names_of(f"{ADAPTER_CONFIG} of {name}", expression, modules, began + SECONDS)

    for key in WHOLE:
        if isinstance(value := settings.get(key), str) and value.lower() != ALL_LINEAR:
            with_names[key] = names_of(value)
    for key in () if settings["peft_type"] == ADALORA else ENDS:
        if isinstance(patterns := settings.get(key), dict):
            by_names: dict[str, Any] = {}
            for pattern, value in patterns.items():
                by_names.setdefault(names_of(rf"(?:.*\.)?(?:{pattern})$"), value)  # PEFT follows the first that matches
            with_names[key] = by_names
    return with_names


def _names_of(where: str, expression: str, modules: Collection[str], deadline: float) -> str:
    """An expression for exactly those modules that another one matches from the beginning of their names to the end."""
    n_repeats = prod(max(1, int(count[:9])) for pair in _COUNTS.findall(expression) for count in pair if count)
    if len(expression) > LONGEST or n_repeats > MOST_REPEATS:
        raise CheckpointError(
            f"{where} holds an expression of {len(expression):,} characters and {n_repeats:,} repeats, and at most "
            f"{LONGEST:,} and {MOST_REPEATS:,} are matched ({quoted(expression)}). Write names of modules there."
        )
    try:
        re.compile(expression)  # knows less than `regex`, and is what PEFT takes
        pattern = regex.compile(expression)
        matching = [path for path in modules if pattern.fullmatch(path, timeout=max(1e-3, deadline - time.monotonic()))]
    except TimeoutError:
        raise CheckpointError(
            f"{where} holds an expression that takes more than {SECONDS:g} seconds to match ({quoted(expression)}). "
            "Write the names of the modules there."
        ) from None
    except (re.error, regex.error, RecursionError, OverflowError) as error:
        raise CheckpointError(
            f"{where} holds an expression that cannot be read ({first_line(error)}: {quoted(expression)}). Write the "
            "names of the modules there."
        ) from None
    return f"^(?:{'|'.join(map(re.escape, matching))})" if matching else NO_MODULE


def _own_changed_weights(adapted: Any) -> None:
    """Give each layer that an adapter changes weights of its own, apart from what is tied to them."""
    from peft.tuners.tuners_utils import BaseTunerLayer

    for layer in adapted.modules():
        if isinstance(layer, BaseTunerLayer):
            base: nn.Module = layer.get_base_layer()
            for key, weights in list(base.named_parameters(recurse=False)):
                setattr(base, key, nn.Parameter(weights.detach().clone(), requires_grad=weights.requires_grad))


def _other_base_error(name: str, model: PreTrainedModel, problem: str) -> CheckpointError:
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
