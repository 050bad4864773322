"""Checkpoints in GGUF files: dequantised once, and written as a configuration, a tokenizer and safetensors.

`python -m attention_sieve.core.checkpoints.gguf FILE FOLDER` does so in a process of its own, with limited memory and
time: a small file can describe a model without an end.
"""

import contextlib
import os
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any, Final

from attention_sieve.core.checkpoints.checkpoint import file_sha256
from attention_sieve.core.checkpoints.checks.files import check_counts
from attention_sieve.core.checkpoints.folders import UNFINISHED, program_folder
from attention_sieve.core.checkpoints.limited import Failed, Limits, report_error, reported_error
from attention_sieve.core.errors import CheckpointError, first_line, panics_caught, shortened

SUFFIX: Final = ".gguf"
MAGIC: Final = b"GGUF"
WEIGHTS: Final = "weights_before"
"""Key of the configuration under which stands how the weights were stored in the GGUF file, such as Q4_1."""
MISMATCH: Final = "ignore_mismatched_sizes"
"""An option that transformers' message on weights of another shape names."""
PLAIN: Final = ("F32", "F16", "BF16", "F64")
"""Types of GGUF that are numbers as they are."""
MOST_BYTES: Final = 2_000_000_000
"""Memory for a file without weights; torch and transformers take .4 GB of it."""
BYTES_PER_BYTE: Final = 30
"""Further memory for each byte of a file: weights of 2 bits become 16 times as large, and are there twice."""
MOST_SECONDS: Final = 60
"""Of a processor, for a file without weights; ten times as many more for each GB."""
LONGEST_WAIT: Final = 300
"""Seconds by the clock, likewise."""


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
        _unpack(path, folder)
    return folder


def _unpack(path: Path, folder: Path) -> None:
    """Dequantise the weights in a GGUF file in a process of its own, and write them beside their configuration and
    tokenizer. The folder appears once all is written.

    Raises: CheckpointError as `folder_of_gguf`, and where the folder cannot be written.
    """
    name = shortened(str(path))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", suffix=UNFINISHED, dir=folder.parent))
    except OSError as error:
        raise CheckpointError(f"{name} cannot be unpacked in {folder.parent} ({error.strerror}).") from None
    try:
        if reason := reported_error(__name__, [str(path), str(part)], limits(path.stat().st_size)):
            raise CheckpointError(reason)
        with contextlib.suppress(OSError):  # another process has written the same meanwhile
            part.rename(folder)
    except Failed as failed:
        raise CheckpointError(
            f"{name} {failed} when it was unpacked, so it is not used. Fetch it again, or choose another file."
        ) from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def limits(n_bytes: int) -> Limits:
    """What the process may take that unpacks a file of so many bytes."""
    n_gigabytes = n_bytes / 1e9
    return Limits(
        n_bytes=MOST_BYTES + BYTES_PER_BYTE * n_bytes,
        processor_seconds=round(MOST_SECONDS * (1 + 10 * n_gigabytes)),
        seconds=round(LONGEST_WAIT * (1 + 10 * n_gigabytes)),
    )


@panics_caught()
def write_checkpoint(path: Path, folder: Path) -> None:
    """Dequantise the weights in a GGUF file, and write them into a folder beside their configuration and tokenizer.

    Raises: CheckpointError for a file that is damaged, or of a family that transformers does not read.
    """
    name = shortened(str(path))
    try:
        _write(name, path, folder, _stored_as(path, name))
    except CheckpointError:
        raise
    except Exception as error:  # what a broken file makes the libraries raise is open-ended
        why = "its weights do not fit the model" if MISMATCH in str(error) else first_line(error)
        raise CheckpointError(
            f"{name} cannot be read as a checkpoint ({why}). It may be damaged, or of a family that "
            "transformers does not read: fetch it again, or choose another file."
        ) from error


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


def _write(name: str, path: Path, folder: Path, stored_as: str) -> None:
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM, AutoTokenizer
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()
    options: dict[str, Any] = {"gguf_file": path.name, "local_files_only": True}
    source = path.resolve().parent
    config = AutoConfig.from_pretrained(source, trust_remote_code=False, **options)
    check_counts(name, config.to_dict())
    auto_class = AutoModelForCausalLM if type(config) in AutoModelForCausalLM._model_mapping else AutoModel
    # transformers would load an adapter beside the file, too: it looks for one below the file, where none can be.
    alone = {"adapter_kwargs": {"subfolder": path.name}, "trust_remote_code": False}
    model = auto_class.from_pretrained(source, dtype="float32", **alone, **options)
    model.hf_quantizer = None  # the weights are plain numbers by now
    del model.config.quantization_config
    setattr(model.config, WEIGHTS, stored_as)
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, trust_remote_code=False, **options).save_pretrained(folder)
    os.chmod(folder, 0o755)


if __name__ == "__main__":
    report_error(partial(write_checkpoint, *map(Path, sys.argv[1:])))
