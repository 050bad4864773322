"""Splits the texts of a corpus into shards, once, and writes the manifest."""

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.commands import make_folder, write_whole
from attention_sieve.core.corpus.manifest import (
    FOLDERS,
    MANIFEST,
    CorpusSettings,
    InputFile,
    Manifest,
    Shard,
    read_manifest,
    text_path,
    versions,
    write_manifest,
    written,
)
from attention_sieve.core.corpus.texts.inputs import HUB, CorpusText, input_files, read_inputs
from attention_sieve.core.corpus.texts.parsed import read_parsed, read_parsing
from attention_sieve.core.corpus.texts.text_shards import shards_of, write_texts
from attention_sieve.core.errors import AnalysisError

SHARD_SIZE: Final = 10_000
LARGEST_SHARD: Final = 1_000_000
MOST_NAMES: Final = 64
"""Maximum number of data sets, or languages: each takes as much space in the statistics as the whole corpus."""
WEIGHTS_AND_SETTINGS: Final = (".safetensors", "config.json", ".index.json")
"""Suffixes of files that do not belong to the tokenizer."""


def corpus_plan(
    files: CheckpointFiles,
    settings: CorpusSettings,
    texts: str,
    text_columns: tuple[str, ...] | None = None,
    shard_size: int = SHARD_SIZE,
) -> Manifest:
    """The plan of a corpus, as a manifest without shards.

    Args:
        files: files of the checkpoint.
        settings: settings of the corpus.
        texts: as for `attention_sieve.core.corpus.texts.inputs.read_inputs`, or a folder written by
            `attention_sieve.core.corpus.parsing.parse_corpus`.
        text_columns: likewise.
        shard_size: texts per shard.

    Raises: AnalysisError for files that cannot be read.
    """
    if not 1 <= shard_size <= LARGEST_SHARD:
        raise AnalysisError(f"A shard has {shard_size:,} texts. Choose 1 to {LARGEST_SHARD:,}.")
    return Manifest(
        checkpoint=files.name if files.seed is None else files.name.partition(" (random weights")[0],
        fingerprint=files.fingerprint,
        tokenizer=tokenizer_sha256(files),
        random_weights=files.seed,
        settings=settings,
        texts=texts,
        text_columns=text_columns,
        shard_size=shard_size,
        inputs=checked_inputs(texts),
        shards=(),
        versions=versions(),
    )


def write_plan(folder: Path, planned: Manifest, report: Callable[[int], None] = lambda _: None) -> Manifest:
    """Read all texts once and write them shard by shard, then the manifest; a folder with the same plan is unchanged.

    Args:
        folder: folder of the results, created if it does not exist.
        planned: without shards, from `corpus_plan`.
        report: called with the number of texts written.

    Returns: the manifest with its shards.
    Raises: AnalysisError for texts that cannot be read, and a folder that holds another corpus or cannot be written.
    """
    if (folder / MANIFEST).exists():
        return _existing_plan(folder, planned)
    for name in FOLDERS:
        make_folder(folder / name)
    with written(folder):
        manifest = replace(planned, shards=tuple(_written_shards(folder, planned, report)))
        write_manifest(folder, manifest)
    return manifest


def tokenizer_sha256(files: CheckpointFiles) -> str:
    """Digest of the files of a checkpoint that are neither weights nor its configuration."""
    own = [f"{state.name} {state.sha256}" for state in files.states if not state.name.endswith(WEIGHTS_AND_SETTINGS)]
    return hashlib.sha256("\n".join(own).encode()).hexdigest()


def corpus_texts(source: str, columns: tuple[str, ...] | None) -> Iterator[CorpusText]:
    """Texts from `attention_sieve.core.corpus.texts.inputs.read_inputs`, or with their trees from a folder of parsed
    texts.

    Raises: AnalysisError for texts that cannot be read, and for a folder whose texts are not all parsed yet.
    """
    parsing = None if source.startswith(HUB) else read_parsing(Path(source))
    return read_inputs(source, columns) if parsing is None else read_parsed(Path(source), parsing)


def checked_inputs(texts: str) -> tuple[InputFile, ...]:
    """The input files with their digests; none for a data set of the hub.

    Raises: AnalysisError for a file that cannot be read.
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


def _written_shards(folder: Path, planned: Manifest, report: Callable[[int], None]) -> Iterator[Shard]:
    source, n_written = counted_names(corpus_texts(planned.texts, planned.text_columns)), 0
    for number, shard_texts in enumerate(shards_of(source, planned.shard_size)):
        shard = Shard(f"{number:06}", len(shard_texts), "")
        path = text_path(folder, shard)
        write_whole(path, partial(write_texts, texts=shard_texts))
        n_written += len(shard_texts)
        report(n_written)
        yield Shard(shard.name, shard.n_texts, sha256_of(path))
    if not n_written:
        raise AnalysisError(f"{planned.texts} holds no text. Choose another folder.")


def counted_names(texts: Iterable[CorpusText]) -> Iterator[CorpusText]:
    """The same texts, counting their data sets and languages.

    Raises: AnalysisError for more than MOST_NAMES data sets or languages.
    """
    counts: dict[str, set[str]] = {"data sets": set(), "languages": set()}
    for text in texts:
        for (word, names), name in zip(counts.items(), (text.dataset, text.language)):
            names.add(name)
            if len(names) > MOST_NAMES:
                raise AnalysisError(
                    f"The corpus has more than {MOST_NAMES} {word}, among them {name[:40]!r}. Each gets its own "
                    f"statistics: use fewer folders, or remove the column with the {word}."
                )
        yield text


def _existing_plan(folder: Path, planned: Manifest) -> Manifest:
    """The manifest of a folder, if it belongs to the same corpus.

    Raises: AnalysisError.
    """
    existing = read_manifest(folder)
    if existing.tokenizer != planned.tokenizer:
        raise AnalysisError(
            f"{folder} contains shards for another tokenizer, that of {existing.checkpoint}. Use that checkpoint, or "
            "another folder."
        )
    differing = [
        word
        for word, old, new in (
            ("checkpoint", (existing.checkpoint, existing.fingerprint), (planned.checkpoint, planned.fingerprint)),
            ("texts", [file.sha256 for file in existing.inputs], [file.sha256 for file in planned.inputs]),
            ("text columns", existing.text_columns, planned.text_columns),
            ("settings", existing.settings, planned.settings),
            ("shard size", existing.shard_size, planned.shard_size),
        )
        if old != new
    ]
    if differing:
        raise AnalysisError(
            f"{folder} holds a corpus with another {' and '.join(differing)}. Choose another folder, or leave out the "
            "texts and settings to continue with this one."
        )
    return existing
