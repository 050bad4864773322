"""Splits the texts of a corpus into shards, once, and writes what is to be done with them."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Final

from core.checkpoints.checkpoint import CheckpointFiles
from core.commands import make_folder, write_whole
from core.corpus.manifest import (
    FOLDERS,
    MANIFEST,
    InputFile,
    Manifest,
    Shard,
    read_manifest,
    text_path,
    write_manifest,
)
from core.corpus.settings import CorpusSettings, versions
from core.corpus.strata import Names
from core.corpus.texts.inputs import HUB, CorpusText, input_files, read_inputs
from core.corpus.texts.parsed import read_parsed, read_parsing
from core.corpus.texts.text_shards import write_texts
from core.errors import AnalysisError

SHARD_SIZE: Final = 10_000
LARGEST_SHARD: Final = 1_000_000
WEIGHTS_AND_SETTINGS: Final = (".safetensors", "config.json", ".index.json")
"""How the names of files end that are not the tokenizer's."""


def plan(
    folder: Path,
    files: CheckpointFiles,
    settings: CorpusSettings,
    texts: str,
    text_columns: tuple[str, ...] | None = None,
    shard_size: int = SHARD_SIZE,
    report: Callable[[int], None] = lambda _: None,
) -> Manifest:
    """Read all texts once and write them shard by shard, then the manifest; a folder with the same plan stays as it is.

    Args:
        folder: of the results, made where it is not there.
        files: of the checkpoint.
        settings: what is asked of each text.
        texts: as of `core.corpus.texts.inputs.read_inputs`, or a folder that `core.corpus.parsing.parse_corpus` wrote.
        text_columns: likewise.
        shard_size: texts of a shard.
        report: is told how many texts are written.

    Raises: AnalysisError for texts that cannot be read, and a folder that holds another corpus or cannot be written.
    """
    if not 1 <= shard_size <= LARGEST_SHARD:
        raise AnalysisError(f"A shard has {shard_size:,} texts. Choose 1 to {LARGEST_SHARD:,}.")
    inputs = checked_inputs(texts)
    described = Manifest(
        checkpoint=files.name if files.seed is None else files.name.partition(" (random weights")[0],
        fingerprint=files.fingerprint,
        tokenizer=tokenizer_sha256(files),
        random_weights=files.seed,
        settings=settings,
        texts=texts,
        text_columns=text_columns,
        shard_size=shard_size,
        inputs=inputs,
        shards=(),
        versions=versions(),
    )
    if (folder / MANIFEST).exists():
        return _same(folder, described)
    for name in FOLDERS:
        make_folder(folder / name)
    try:
        shards = tuple(_written_shards(folder, texts, text_columns, shard_size, report))
        made = replace(described, shards=shards)
        write_manifest(folder, made)
    except OSError as error:
        raise AnalysisError(f"{folder} cannot be written ({error.strerror or error}). Make room there.") from None
    return made


def tokenizer_sha256(files: CheckpointFiles) -> str:
    """Digest of the files of a checkpoint that are neither weights nor its configuration."""
    own = [f"{state.name} {state.sha256}" for state in files.states if not state.name.endswith(WEIGHTS_AND_SETTINGS)]
    return hashlib.sha256("\n".join(own).encode()).hexdigest()


def corpus_texts(given: str, columns: tuple[str, ...] | None) -> Iterator[CorpusText]:
    """Texts as `core.corpus.texts.inputs.read_inputs` reads them; with their trees where they were parsed beforehand.

    Raises: AnalysisError for texts that cannot be read, and for a folder of which not all texts are parsed yet.
    """
    parsing = None if given.startswith(HUB) else read_parsing(Path(given))
    return read_inputs(given, columns) if parsing is None else read_parsed(Path(given), parsing)


def checked_inputs(texts: str) -> tuple[InputFile, ...]:
    """The files that texts are read from, with their digests; none for a data set of the hub.

    Raises: AnalysisError for what cannot be read.
    """
    if texts.startswith(HUB):
        return ()
    try:
        return tuple(InputFile(str(path), path.stat().st_size, sha256_of(path)) for path in input_files(texts))
    except OSError as error:
        raise AnalysisError(f"{error.filename} cannot be read ({error.strerror}). Check the file.") from None


def sha256_of(path: Path) -> str:
    """Digest of a file.

    Raises: OSError.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _written_shards(
    folder: Path, texts: str, columns: tuple[str, ...] | None, shard_size: int, report: Callable[[int], None]
) -> Iterator[Shard]:
    source, n_written, number = counted_names(corpus_texts(texts, columns)), 0, 0
    while some := list(islice(source, shard_size)):
        shard = Shard(f"{number:06}", len(some), "")
        path = text_path(folder, shard)
        write_whole(path, partial(write_texts, texts=some))
        n_written, number = n_written + len(some), number + 1
        report(n_written)
        yield Shard(shard.name, shard.n_texts, sha256_of(path))
    if not number:
        raise AnalysisError(f"{texts} holds no text. Choose another folder.")


def counted_names(texts: Iterator[CorpusText]) -> Iterator[CorpusText]:
    """The same texts.

    Raises: AnalysisError for more data sets or languages than statistics are kept of.
    """
    names = Names()
    for each in texts:
        names.add(each)
        yield each


def _same(folder: Path, described: Manifest) -> Manifest:
    """The manifest of a folder, if it is of the same corpus.

    Raises: AnalysisError.
    """
    known = read_manifest(folder)
    if known.tokenizer != described.tokenizer:
        raise AnalysisError(
            f"{folder} holds shards of another tokenizer, that of {known.checkpoint}. Give its checkpoint, or another "
            "folder."
        )
    differing = [
        word
        for word, then, now in (
            ("checkpoint", (known.checkpoint, known.fingerprint), (described.checkpoint, described.fingerprint)),
            ("texts", [each.sha256 for each in known.inputs], [each.sha256 for each in described.inputs]),
            ("text columns", known.text_columns, described.text_columns),
            ("settings", known.settings, described.settings),
            ("shard size", known.shard_size, described.shard_size),
        )
        if then != now
    ]
    if differing:
        raise AnalysisError(
            f"{folder} holds a corpus with another {' and '.join(differing)}. Name another folder, or leave the texts "
            "and settings out to go on with this one."
        )
    return known
