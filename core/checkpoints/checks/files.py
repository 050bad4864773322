"""Checks the files of a whole checkpoint before anything is loaded; does not import torch."""

import math
from collections import Counter
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Final

from safetensors import SafetensorError, safe_open

from attention_sieve.core.checkpoints.checkpoint import REMOVED_HEADS, unreadable
from attention_sieve.core.errors import CheckpointError, first_line, quoted
from attention_sieve.core.json_values import parse_json

PICKLED: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
TOKENIZER_FILES: Final = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model",
)  # fmt: skip
VOCABULARIES: Final = tuple(name for name in TOKENIZER_FILES if name.startswith(("vocab", "spiece", "sentence")))
WEIGHT_FILES: Final = "model*.safetensors"
INDEX: Final = "model.safetensors.index.json"
WHOLE_FILES: Final = ("config.json", WEIGHT_FILES, INDEX, REMOVED_HEADS, *TOKENIZER_FILES)
"""Files from which a whole checkpoint is loaded; all are part of its fingerprint."""
ADAPTER_CONFIG: Final = "adapter_config.json"
ADAPTER_WEIGHTS: Final = "adapter_model.safetensors"
CHECKPOINT_FILES: Final = (*WHOLE_FILES, ADAPTER_CONFIG, ADAPTER_WEIGHTS)
"""Those, and of an adapter."""
WRITING_FILES: Final = ("chat_template.jinja", "generation_config.json")
"""Files that say how turns of a chat are written for a model, and with which tokens it ends a text. No result that is
kept depends on them, so they are no part of its fingerprint; no others are read."""
FORMATS: Final = {"BF16": "bfloat16", "F16": "float16", "F64": "float64"}
"""Number formats other than float32, by their names in safetensors files."""
MAX_JSON_BYTES: Final = 20_000_000
"""Maximum size of a configuration or an index of weights; real ones are far smaller."""
MAX_TOKENIZER_BYTES: Final = 60_000_000
"""Maximum size of a file of a tokenizer; the largest published ones have under 40 MB."""
MAX_LAYERS: Final = 1_000
"""Larger numbers are mistakes, and building such a model would take hours."""
MAX_CLASSES: Final = 100_000
"""Maximum number of classes; transformers names each of them before anything else is read."""


def checked_config(name: str, folder: Path) -> dict[str, Any]:
    """Read a checkpoint's configuration, after checking that its folder holds safetensors weights and a tokenizer.

    Afterwards no file needs to be read that is larger than its header says, or than real ones are.

    Raises: CheckpointError.
    """
    config = _read_config(name, folder)
    _check_weights(name, folder)
    _check_weight_places(name, folder, config)
    _check_tokenizer(name, folder)
    for path in sorted(folder.glob(WEIGHT_FILES)):
        check_header(name, path)
    return config


def n_saved(folder: Path) -> int:
    """Number of weights in the weight files of a folder, according to their headers.

    Raises: SafetensorError for a file that is not a safetensors file, OSError for one that cannot be read.
    """
    return sum(_n_by_format(folder).values())


def saved_format(folder: Path) -> str:
    """Number format of most weights in the weight files of a folder, if it is another one than float32, else empty.

    Raises: SafetensorError for a file that is not a safetensors file.
    """
    numbers = _n_by_format(folder)
    return FORMATS.get(max(numbers, key=lambda dtype: numbers[dtype], default=""), "")


def _n_by_format(folder: Path) -> Counter[str]:
    numbers: Counter[str] = Counter()
    for path in folder.glob(WEIGHT_FILES):
        path.open("rb").close()  # of a file that may not be read, safetensors says that it is not there
        with safe_open(path, framework="numpy") as file:
            for name in file.keys():  # noqa: SIM118
                weights = file.get_slice(name)
                numbers[weights.get_dtype()] += math.prod(weights.get_shape())
    return numbers


def _read_config(name: str, folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(
            f"{name} holds no config.json, so it is not a checkpoint. Choose a folder saved by save_pretrained."
        )
    config = read_json(name, path)
    check_counts(f"config.json of {name}", config)
    _check_architectures(name, config.get("architectures"))
    return config


def check_counts(where: str, config: dict[str, Any]) -> None:
    """Raise for more layers or classes than are loaded; `where` begins the message.

    Raises: CheckpointError.
    """
    for noun, ends, bound in (("layers", ("layers", "layer"), MAX_LAYERS), ("classes", ("num_labels",), MAX_CLASSES)):
        largest = max(_counts(config, ends), default=0)
        if largest > bound:
            shown = f"{largest:,}"[:100]
            raise CheckpointError(
                f"{where} names {shown} {noun} and at most {bound:,} are loaded. Correct the number, or save the "
                "checkpoint again."
            )


def _check_architectures(name: str, names: object) -> None:
    """Raise unless this is a list of class names or None; transformers does not check it."""
    if names is not None and not (
        isinstance(names, list) and all(isinstance(name_of_class, str) for name_of_class in names)
    ):
        raise CheckpointError(
            f"config.json of {name} gives {quoted(names)} as its architectures, and a list of names is expected. "
            "Correct it, or save the checkpoint again."
        )


def read_json(name: str, path: Path) -> dict[str, Any]:
    """The object in a JSON file of a checkpoint.

    Raises: CheckpointError.
    """
    try:
        n_bytes = path.stat().st_size
        if n_bytes > MAX_JSON_BYTES:
            raise CheckpointError(
                f"{path.name} of {name} has {n_bytes:,} bytes and at most {MAX_JSON_BYTES:,} are read. Save the "
                "checkpoint again."
            )
        content = parse_json(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise unreadable(name, path.name, error) from None
    except ValueError as error:
        raise CheckpointError(f"{path.name} of {name} cannot be read ({error}). Save the checkpoint again.") from None
    if not isinstance(content, dict):
        raise CheckpointError(f"{path.name} of {name} holds no settings. Save the checkpoint again.")
    return content


def _counts(config: dict[str, Any], ends: tuple[str, ...]) -> Iterator[float]:
    """All numbers under keys with these endings in a configuration and its nested configurations."""
    for settings in (config, *(value for value in config.values() if isinstance(value, dict))):
        for key, value in settings.items():
            if isinstance(value, int | float) and key.endswith(ends):
                yield value


def _check_weights(name: str, folder: Path) -> None:
    if any(folder.glob(WEIGHT_FILES)):
        return
    pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(pattern))
    if pickled:
        raise CheckpointError(
            f"{name} has only weights that could run code when loaded ({pickled[0]}). Save it as safetensors: load it "
            "where you trust it, and call save_pretrained."
        )
    raise CheckpointError(f"{name} holds no weights (model.safetensors). Choose a folder saved by save_pretrained.")


def check_header(name: str, path: Path) -> None:
    """Raise for weights that are not of the size that their header says; reads only the header.

    What cannot be read as a file is reported when its state is recorded.
    """
    if not path.is_file():
        return
    try:
        with safe_open(path, framework="numpy"):
            pass
    except OSError:
        return
    except SafetensorError as error:
        raise CheckpointError(
            f"The weights of {name} cannot be loaded ({path.name}: {first_line(error)}). Save the checkpoint again."
        ) from None


def _check_weight_places(name: str, folder: Path, config: dict[str, Any]) -> None:
    """Raise if a configuration or an index refers to weights elsewhere, which the fingerprint would not cover."""
    file_names = [config["transformers_weights"]] if config.get("transformers_weights") else []
    if (folder / INDEX).is_file() and not (folder / "model.safetensors").is_file():
        weight_map = read_json(name, folder / INDEX).get("weight_map")
        file_names += weight_map.values() if isinstance(weight_map, dict) else [weight_map]
    for file_name in file_names:
        if (
            not isinstance(file_name, str)
            or Path(file_name).name != file_name
            or not fnmatchcase(file_name, WEIGHT_FILES)
        ):
            raise CheckpointError(
                f"{name} takes weights from {str(file_name)[:100]!r}, and only files {WEIGHT_FILES} in its own folder "
                "are read. Save the checkpoint again."
            )


def _check_tokenizer(name: str, folder: Path) -> None:
    files = [path for path in (folder / file for file in TOKENIZER_FILES) if path.is_file()]
    if not {path.name for path in files} & {"tokenizer.json", "tokenizer.model", *VOCABULARIES}:
        raise CheckpointError(
            f"{name} has no tokenizer (tokenizer.json or a vocabulary). Save its tokenizer beside its weights."
        )
    for path in files:
        if (n_bytes := path.stat().st_size) > MAX_TOKENIZER_BYTES:
            raise CheckpointError(
                f"{path.name} of {name} has {n_bytes / 1e6:,.0f} MB, and at most {MAX_TOKENIZER_BYTES / 1e6:,.0f} MB "
                "are read; that is more than any published tokenizer has. Save its tokenizer again."
            )
