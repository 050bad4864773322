"""The command `python -m attention_sieve maps`: maps of attention as files for other programs."""

import argparse
import json
import sys
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float16

from attention_sieve.core.attention.settings import PassSettings
from attention_sieve.core.checkpoints.checkpoint import Checkpoint
from attention_sieve.core.commands import (
    check_name,
    check_output,
    checkpoint_facts,
    loaded,
    make_folder,
    prepared_texts,
    progress_bar,
    read_texts,
    write,
    write_whole,
)
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.options import (
    add_checkpoint_options,
    add_output_option,
    add_random_weights_option,
    add_texts_options,
)
from attention_sieve.core.passes.texts import PassText
from attention_sieve.core.texts.text import Text

CONFIRMED_ABOVE: Final = 10**9
"""Bytes above which maps are written only after confirmation."""
LARGEST_TEXT: Final = 4 * 10**9
"""Maximum size in bytes of the maps of one text while they are computed."""
COMPUTED_BYTES: Final = np.dtype(np.float32).itemsize
WRITTEN_BYTES: Final = np.dtype(np.float16).itemsize

Maps = Float16[np.ndarray, "layer head query key"]


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("maps", help="export attention maps", description=maps.__doc__)
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser)
    add_output_option(parser, "an .npz file, or a folder for one safetensors file per text")
    parser.add_argument(
        "--yes", action="store_true", help=f"write more than {CONFIRMED_ABOVE // 10**9} GB without asking"
    )
    parser.set_defaults(run=maps)


def maps(arguments: argparse.Namespace) -> None:
    """Export the attention maps of every text (layer x head x query x key, float16), with its tokens.

    Rows sum to 1, in a model with attention sinks (GPT-OSS) to what its sinks leave: these are no keys.

    A safetensors file contains `attention`, `query ids` and `key ids`, and as metadata `query tokens`, `key tokens`,
    `segments` (JSON) and the provenance. An .npz file contains the provenance as `facts` and, for each text, prefixed
    with its index in the file, `00000 attention`, `00000 query tokens`, `00000 key tokens` and `00000 segments`.
    """
    texts = read_texts(arguments.texts, arguments.text_columns)
    is_npz = arguments.output.suffix.lower() == ".npz"
    if is_npz:
        check_output(arguments.output)
    else:
        _check_folder(arguments.output)
    checkpoint, settings = loaded(arguments)
    prepared = prepared_texts(checkpoint, texts, settings, arguments.too_long)
    _confirm(bytes_of(checkpoint, list(prepared.values())), len(prepared), arguments.yes)
    batches = progress_bar(_maps(checkpoint, prepared, settings), len(prepared))
    facts = checkpoint_facts(checkpoint, settings)
    if not is_npz:
        make_folder(arguments.output)
    write_maps = _write_npz if is_npz else _write_folder
    write(arguments.output, lambda output: write_maps(output, batches, prepared, texts, facts))


def _check_folder(output: Path) -> None:
    check_name(output)
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        problem = "is a file" if output.is_file() else "is not empty"
        raise AnalysisError(f"{output} {problem}. Choose a new folder, or a file name that ends in .npz.")
    if output.suffix and not output.is_dir():
        raise AnalysisError(
            f"{output} would be a folder, because only .npz is written as a single file. Choose a file name that ends "
            "in .npz, or a folder name without a suffix."
        )
    check_output(output / "a file" if output.is_dir() else output)


def bytes_of(checkpoint: Checkpoint, texts: Sequence[PassText]) -> int:
    """Size of the maps of texts in bytes, as written.

    Raises: AnalysisError for a text whose maps are too large to be computed.
    """
    layers = checkpoint.attentions[texts[0].kind]
    n_maps = layers.n_layers * layers.n_heads
    n_entries = [n_maps * len(text.queries.ids) * len(text.keys.ids) for text in texts]
    largest = max(range(len(texts)), key=lambda i: n_entries[i])
    if n_entries[largest] * COMPUTED_BYTES > LARGEST_TEXT:
        raise AnalysisError(
            f"A text of {texts[largest].n_tokens:,} tokens has maps of {n_entries[largest] * COMPUTED_BYTES / 1e9:.1f} "
            f"GB, and at most {LARGEST_TEXT / 1e9:.0f} GB can be computed at once. Give shorter texts."
        )
    return sum(n_entries) * WRITTEN_BYTES


def _confirm(n_bytes: int, n_texts: int, is_confirmed: bool) -> None:
    """Ask for confirmation before large files are written.

    Raises: AnalysisError if the answer is not yes, or standard input is not a terminal.
    """
    if n_bytes <= CONFIRMED_ABOVE or is_confirmed:
        return
    size = f"The maps of {n_texts:,} texts take {n_bytes / 1e9:.1f} GB."
    if sys.stdin.isatty() and input(f"{size} Write them? [y/N] ").strip().lower() in ("y", "yes"):
        return
    raise AnalysisError(f"{size} Give fewer or shorter texts, or add --yes.")


def _maps(
    checkpoint: Checkpoint, prepared: Mapping[int, PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Maps]]]:
    """The index and the maps of every text, batch by batch."""
    from attention_sieve.core.passes.batches import MapCollector, collect

    indices = list(prepared)
    for batch in collect(checkpoint, list(prepared.values()), settings, MapCollector):
        yield [(indices[row], maps) for row, maps in batch]


def _write_folder(
    output: Path,
    maps_of_texts: Iterable[tuple[int, Maps]],
    prepared: Mapping[int, PassText],
    texts: Sequence[Text],
    facts: Mapping[str, str],
) -> None:
    from safetensors.numpy import save

    for index, maps in maps_of_texts:
        text = prepared[index]
        metadata = {
            **facts,
            "query tokens": json.dumps(text.queries.tokens, ensure_ascii=False),
            "key tokens": json.dumps(text.keys.tokens, ensure_ascii=False),
            "segments": json.dumps(texts[index].segments, ensure_ascii=False),
        }
        arrays = {"attention": maps, "query ids": text.queries.ids, "key ids": text.keys.ids}
        content = save(arrays, metadata)
        write_whole(output / f"{index:05}.safetensors", partial(Path.write_bytes, data=content))


def _write_npz(
    output: Path,
    maps_of_texts: Iterable[tuple[int, Maps]],
    prepared: Mapping[int, PassText],
    texts: Sequence[Text],
    facts: Mapping[str, str],
) -> None:
    """Write one array after the other, so that they are not all in memory at once."""
    with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:

        def add(name: str, array: np.ndarray) -> None:
            with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
                np.lib.format.write_array(file, array, allow_pickle=False)

        add("facts", np.array([json.dumps(dict(facts), ensure_ascii=False)]))
        for index, maps in maps_of_texts:
            text = prepared[index]
            add(f"{index:05} attention", maps)
            add(f"{index:05} query tokens", np.array(text.queries.tokens))
            add(f"{index:05} key tokens", np.array(text.keys.tokens))
            add(f"{index:05} segments", np.array(texts[index].segments))
