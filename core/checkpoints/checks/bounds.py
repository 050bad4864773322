"""Bounds on what a checkpoint makes libraries read or allocate: tokenizer files, which they read without limit, and
weights, from the headers of its files and from the model that its configuration describes, built without memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import psutil
import torch
from safetensors import SafetensorError

from attention_sieve.core.checkpoints.checkpoint import unreadable
from attention_sieve.core.checkpoints.checks.files import TOKENIZER_FILES, n_saved
from attention_sieve.core.errors import CheckpointError, first_line
from attention_sieve.core.json_values import parse_json

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
    except OSError as error:
        raise unreadable(name, Path(error.filename or "a file").name, error) from None
    except SafetensorError as error:
        raise CheckpointError(
            f"The weights of {name} cannot be loaded ({first_line(error)}). Save the checkpoint again."
        ) from None
    try:
        with torch.device("meta"):
            model = auto_class.from_config(config, trust_remote_code=False)
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


MAX_ENTRIES: Final = 1_500_000
"""Maximum number of tokens in a vocabulary; the largest published ones have about a million."""
MAX_ADDED: Final = 20_000
"""Maximum number of added tokens, special ones included. The tokenizer looks for each of them in every text."""
MAX_STEPS: Final = 1_000
"""Maximum number of steps that a text goes through: replacements, patterns, templates."""
MAX_CHARACTERS: Final = 10_000
"""Maximum length of an added token, and of the strings of a step. The normalisation table of SentencePiece is exempt;
the size of its file limits it."""
TABLES: Final = ("precompiled_charsmap",)
"""Keys of such tables."""


def check_tokenizer_files(name: str, folder: Path) -> None:
    """Raise if tokenizer files hold more than any real ones, or would make results differ from run to run.

    Raises: CheckpointError.
    """
    for path in (folder / file for file in TOKENIZER_FILES):
        if not path.is_file():
            continue
        try:
            if path.suffix == ".json":
                _check_json(name, path)
            elif path.suffix == ".txt" and (n_lines := path.read_bytes().count(b"\n")) > MAX_ENTRIES:
                _refuse(name, path, f"has {n_lines:,} lines", f"{MAX_ENTRIES:,}")
        except OSError as error:
            raise unreadable(name, path.name, error) from None


def _check_json(name: str, path: Path) -> None:
    try:
        content = parse_json(path.read_bytes())
    except ValueError as error:
        raise CheckpointError(
            f"{path.name} of {name} cannot be read ({first_line(error)}). Save its tokenizer again."
        ) from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} of {name} holds no settings. Save its tokenizer again.")
    if path.name == "tokenizer.json":
        _check_tokenizer_json(name, path, content)
    elif path.name == "vocab.json":
        _check_count(name, path, "tokens", content, MAX_ENTRIES)
    else:
        added = content.get("added_tokens_decoder") if path.name == "tokenizer_config.json" else content
        _check_count(name, path, "added tokens", added, MAX_ADDED)
        _check_count(name, path, "added tokens", content.get("additional_special_tokens"), MAX_ADDED)


def _check_tokenizer_json(name: str, path: Path, content: dict[str, Any]) -> None:
    model = content.get("model")
    if isinstance(model, dict):
        _check_count(name, path, "tokens", model.get("vocab"), MAX_ENTRIES)
        if model.get("dropout"):
            raise CheckpointError(
                f"The tokenizer of {name} drops merges at random (dropout {str(model['dropout'])[:20]}), so results "
                "would not be reproducible. Set dropout to null in its tokenizer.json."
            )
    added = content.get("added_tokens")
    _check_count(name, path, "added tokens", added, MAX_ADDED)
    steps = [content.get(key) for key in ("normalizer", "pre_tokenizer", "post_processor", "decoder")]
    n_steps = 0
    for key, value in _leaves([steps, added]):
        n_steps += key == "type"
        if isinstance(value, str) and len(value) > MAX_CHARACTERS and key not in TABLES:
            _refuse(name, path, f"has a {key} of {len(value):,} characters", f"{MAX_CHARACTERS:,}")
    if n_steps > MAX_STEPS:
        _refuse(name, path, f"takes a text through {n_steps:,} steps", f"{MAX_STEPS:,}")


def _check_count(name: str, path: Path, noun: str, values: Any, limit: int) -> None:
    if isinstance(values, dict | list) and len(values) > limit:
        _refuse(name, path, f"has {len(values):,} {noun}", f"{limit:,}")


def _leaves(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Every value that is not a list or an object, with its nearest key; the JSON parser limits the depth."""
    pairs = value.items() if isinstance(value, dict) else ((key, item) for item in value)
    for name, item in pairs:
        if isinstance(item, dict | list):
            yield from _leaves(item, name)
        else:
            yield name, item


def _refuse(name: str, path: Path, problem: str, limit: str) -> None:
    raise CheckpointError(
        f"{path.name} of {name} {problem}, and at most {limit} are read; that is more than any published tokenizer "
        "has. Save its tokenizer again."
    )
