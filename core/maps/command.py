"""The command `python -m core attention`: maps of attention as files for other programs."""

import argparse
import json
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
from jaxtyping import Float16

from core.attention.settings import PassSettings
from core.checkpoints.checkpoint import Checkpoint
from core.commands import (
    add_checkpoint_options,
    add_random_weights_option,
    add_texts_options,
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
from core.errors import AnalysisError
from core.passes.texts import PassText
from core.texts.text import SUFFIXES, Text

CONFIRMED_ABOVE: Final = 10**9
"""Bytes of maps that are not written without having been asked for."""
LARGEST_TEXT: Final = 4 * 10**9
"""Bytes that the maps of one text may take while they are made."""
MADE_AS: Final = np.dtype(np.float32).itemsize
WRITTEN_AS: Final = np.dtype(np.float16).itemsize

Maps = Float16[np.ndarray, "layer head query key"]


def add_command(commands: Any) -> None:
    """Add the command to the command line's subparsers."""
    parser = commands.add_parser("attention", help="write attention maps", description=attention.__doc__)
    add_checkpoint_options(parser)
    add_random_weights_option(parser)
    add_texts_options(parser, ", ".join(SUFFIXES))
    parser.add_argument(
        "--output", required=True, type=Path, help="an .npz file, or a folder for one safetensors file per text"
    )
    parser.add_argument("--yes", action="store_true", help="write more than 1 GB without asking")
    parser.set_defaults(run=attention)


def attention(chosen: argparse.Namespace) -> None:
    """Write the attention of every text, float16, layer x head x query x key, with its tokens.

    A safetensors file holds `attention`, `query ids` and `key ids`, and as metadata `query tokens`, `key tokens`,
    `segments` (JSON) and where it comes from. An .npz holds `facts` and, for every text after its place in the file,
    `00000 attention`, `00000 query tokens`, `00000 key tokens` and `00000 segments`.
    """
    texts = read_texts(chosen.texts, chosen.text_columns)
    is_npz = chosen.output.suffix.lower() == ".npz"
    if is_npz:
        check_output(chosen.output)
    else:
        _check_folder(chosen.output)
    checkpoint, asked = loaded(chosen)
    prepared = prepared_texts(checkpoint, texts, asked, chosen.too_long)
    _confirm(_bytes_of(checkpoint, list(prepared.values())), len(prepared), chosen.yes)
    maps = progress_bar(_maps(checkpoint, prepared, asked), len(prepared))
    facts = checkpoint_facts(checkpoint, asked)
    if not is_npz:
        make_folder(chosen.output)
    how = _write_npz if is_npz else _write_folder
    write(chosen.output, lambda output: how(output, maps, prepared, texts, facts))


def _check_folder(output: Path) -> None:
    check_name(output)
    if output.is_file() or (output.is_dir() and any(output.iterdir())):
        problem = "is a file" if output.is_file() else "is not empty"
        raise AnalysisError(f"{output} {problem}. Name a new folder, or a file that ends in .npz.")
    if output.suffix and not output.is_dir():
        raise AnalysisError(
            f"{output} would be a folder, as only .npz is written as one file. Name a file that ends in .npz, or a "
            "folder without a suffix."
        )
    check_output(output / "a file" if output.is_dir() else output)


def _bytes_of(checkpoint: Checkpoint, texts: Sequence[PassText]) -> int:
    """What the maps of texts take as they are written.

    Raises: AnalysisError for a text whose maps are too large to be made.
    """
    n_entries = [_heads_of(checkpoint, text) * len(text.queries.ids) * len(text.keys.ids) for text in texts]
    largest = max(range(len(texts)), key=lambda i: n_entries[i])
    if n_entries[largest] * MADE_AS > LARGEST_TEXT:
        raise AnalysisError(
            f"A text of {texts[largest].n_tokens:,} tokens has maps of {n_entries[largest] * MADE_AS / 1e9:.1f} GB, "
            f"and at most {LARGEST_TEXT / 1e9:.0f} GB are made at once. Give shorter texts."
        )
    return sum(n_entries) * WRITTEN_AS


def _heads_of(checkpoint: Checkpoint, text: PassText) -> int:
    layers = checkpoint.attentions[text.kind]
    return layers.n_layers * layers.n_heads


def _confirm(n_bytes: int, n_texts: int, is_confirmed: bool) -> None:
    """Ask before a disk is filled.

    Raises: AnalysisError where the answer is not yes, or nobody is there to answer.
    """
    if n_bytes <= CONFIRMED_ABOVE or is_confirmed:
        return
    said = f"The maps of {n_texts:,} texts take {n_bytes / 1e9:.1f} GB."
    if sys.stdin.isatty() and input(f"{said} Write them? [y/N] ").strip().lower() in ("y", "yes"):
        return
    raise AnalysisError(f"{said} Give fewer or shorter texts, or add --yes.")


def _maps(
    checkpoint: Checkpoint, prepared: Mapping[int, PassText], settings: PassSettings
) -> Iterator[list[tuple[int, Maps]]]:
    """The maps of every text with its place, batch by batch."""
    from core.maps.observer import MapCollector
    from core.passes.collect import collect

    places = list(prepared)
    for batch in collect(checkpoint, list(prepared.values()), settings, MapCollector):
        yield [(places[row], maps) for row, maps in batch]


def _write_folder(
    output: Path,
    of_texts: Iterable[tuple[int, Maps]],
    prepared: Mapping[int, PassText],
    texts: Sequence[Text],
    facts: Mapping[str, str],
) -> None:
    from safetensors.numpy import save

    for place, maps in of_texts:
        text = prepared[place]
        metadata = {
            **facts,
            "query tokens": json.dumps(text.queries.tokens, ensure_ascii=False),
            "key tokens": json.dumps(text.keys.tokens, ensure_ascii=False),
            "segments": json.dumps(texts[place].segments, ensure_ascii=False),
        }
        arrays = {"attention": maps, "query ids": text.queries.ids, "key ids": text.keys.ids}
        content = save(arrays, metadata)
        write_whole(output / f"{place:05}.safetensors", partial(Path.write_bytes, data=content))


def _write_npz(
    output: Path,
    of_texts: Iterable[tuple[int, Maps]],
    prepared: Mapping[int, PassText],
    texts: Sequence[Text],
    facts: Mapping[str, str],
) -> None:
    """One array after the other, so that they need not be in memory together."""
    with zipfile.ZipFile(output, "w", zipfile.ZIP_STORED) as archive:
        add = _adder(archive)
        add("facts", np.array([json.dumps(dict(facts), ensure_ascii=False)]))
        for place, maps in of_texts:
            text = prepared[place]
            add(f"{place:05} attention", maps)
            add(f"{place:05} query tokens", np.array(text.queries.tokens))
            add(f"{place:05} key tokens", np.array(text.keys.tokens))
            add(f"{place:05} segments", np.array(texts[place].segments))


def _adder(archive: zipfile.ZipFile) -> Callable[[str, np.ndarray], None]:
    def add(name: str, array: np.ndarray) -> None:
        with archive.open(f"{name}.npy", "w", force_zip64=True) as file:
            np.lib.format.write_array(file, array, allow_pickle=False)

    return add
