"""Checkpoints in GGUF files: dequantised once, and written as a configuration, a tokenizer and safetensors."""

import contextlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.checkpoint import file_sha256
from attention_sieve.core.checkpoints.folders import UNFINISHED, program_folder
from attention_sieve.core.errors import CheckpointError, first_line, panics_caught, shortened

SUFFIX: Final = ".gguf"
MAGIC: Final = b"GGUF"
WEIGHTS: Final = "weights_before"
"""Key of the configuration under which stands how the weights were stored in the GGUF file, such as Q4_1."""
MISMATCH: Final = "ignore_mismatched_sizes"
"""An option that transformers' message on weights of another shape names."""
PLAIN: Final = ("F32", "F16", "BF16", "F64")
"""Types of GGUF that are numbers as they are."""


def folder_of_gguf(path: Path) -> Path:
    """The folder of the checkpoint in a GGUF file, written when the file is seen for the first time. Several files of
    the same bytes share a folder in the program's cache folder.

    Raises: CheckpointError for a file that is damaged or of a family that transformers does not read, and where the
        package `gguf` is missing.
    """
    name = shortened(str(path))
    try:
        with path.open("rb") as file:
            is_gguf = file.read(len(MAGIC)) == MAGIC
        folder = program_folder() / "gguf" / file_sha256(path)[:32]
    except OSError as error:
        raise CheckpointError(f"{name} cannot be read ({error.strerror}). Check the path.") from None
    if not is_gguf:
        raise CheckpointError(f"{name} does not begin as a GGUF file does. Fetch it again, or choose a folder.")
    if not (folder / "config.json").is_file():
        write_checkpoint(path, folder)
    return folder


@panics_caught()
def write_checkpoint(path: Path, folder: Path) -> None:
    """Dequantise the weights in a GGUF file, and write them beside their configuration and tokenizer. The folder
    appears once all is written.

    Raises: CheckpointError as `folder_of_gguf`, and where the folder cannot be written.
    """
    name = shortened(str(path))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=UNFINISHED, dir=folder.parent))
    except OSError as error:
        raise CheckpointError(f"{name} cannot be unpacked in {folder.parent} ({error.strerror}).") from None
    try:
        _write(path, part, _stored_as(path, name))
        with contextlib.suppress(OSError):  # another process has written the same meanwhile
            part.rename(folder)
    except CheckpointError:
        raise
    except Exception as error:  # what a broken file makes the libraries raise is open-ended
        why = "its weights do not fit the model" if MISMATCH in str(error) else first_line(error)
        raise CheckpointError(
            f"{name} cannot be read as a checkpoint ({why}). It may be damaged, or of a family that "
            "transformers does not read: fetch it again, or choose another file."
        ) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _stored_as(path: Path, name: str) -> str:
    """The commonest type of the weights in a GGUF file, by the number of their values; empty for plain numbers."""
    try:
        from gguf import GGUFReader
    except ModuleNotFoundError:
        raise CheckpointError(
            f"{name} is a GGUF file, and the package that reads them is not installed. Install it with: "
            "pip install gguf==0.19.0"
        ) from None
    sizes: dict[str, int] = {}
    for tensor in GGUFReader(path).tensors:
        kind = str(tensor.tensor_type.name)
        sizes[kind] = sizes.get(kind, 0) + int(tensor.n_elements)
    commonest = max(sizes, key=lambda kind: sizes[kind])
    return "" if commonest in PLAIN else commonest


def _write(path: Path, folder: Path, stored_as: str) -> None:
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    options: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    source = path.resolve().parent
    config = AutoConfig.from_pretrained(source, trust_remote_code=False, **options)
    auto_class = AutoModelForCausalLM if type(config) in AutoModelForCausalLM._model_mapping else AutoModel
    model = auto_class.from_pretrained(source, dtype="float32", **options)
    model.hf_quantizer = None  # the weights are plain numbers by now
    del model.config.quantization_config
    setattr(model.config, WEIGHTS, stored_as)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, trust_remote_code=False, **options).save_pretrained(folder)
    os.chmod(folder, 0o755)
