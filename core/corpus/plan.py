"""Splits the texts of a corpus into shards, once: for a manifest, or to be parsed once for all checkpoints."""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.commands import make_folder, write_whole
from attention_sieve.core.corpus.manifest import (
    FOLDERS,
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
from attention_sieve.core.corpus.texts.parsed import (
    PARSED_FOLDER,
    PARSING,
    UNPARSED_FOLDER,
    Parsing,
    parsed_path,
    read_parsed,
    read_parsing,
    unparsed_path,
    write_parsing,
)
from attention_sieve.core.corpus.texts.text_shards import read_texts, shards_of, write_texts
from attention_sieve.core.engines.work import Executor, run_missing
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.progress import ProgressBar
from attention_sieve.core.running import Journal
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.relations import dependencies, with_tree

SHARD_SIZE: Final = 10_000
LARGEST_SHARD: Final = 1_000_000
PARSED_AT_ONCE: Final = 256
"""Texts whose trees are in memory at once."""
REPORTED: Final = 256
"""Texts that are read from one report of how many there are to the next."""
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
        texts: as for `attention_sieve.core.corpus.texts.inputs.read_inputs`, or a folder written by `parse_corpus`.
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


def write_plan(folder: Path, planned: Manifest, journal: Journal) -> Manifest:
    """Read all texts once and write them shard by shard, then the manifest; nothing is read where shards are planned.

    Args:
        folder: folder of the results, created if it does not exist.
        planned: from `corpus_plan`, or the manifest of the folder.

    Returns: the manifest with its shards.
    Raises: AnalysisError for texts that cannot be read, and a folder that cannot be written.
    """
    if planned.shards:
        return planned
    for name in FOLDERS:
        make_folder(folder / name)
    with written(folder):
        manifest = replace(planned, shards=tuple(_written_shards(folder, planned, journal)))
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


def _written_shards(folder: Path, planned: Manifest, journal: Journal) -> Iterator[Shard]:
    source = texts_read(planned.texts, planned.text_columns, journal)
    for number, shard_texts in enumerate(shards_of(source, planned.shard_size)):
        shard = Shard(f"{number:06}", len(shard_texts), "")
        path = text_path(folder, shard)
        write_whole(path, partial(write_texts, texts=shard_texts))
        yield Shard(shard.name, shard.n_texts, sha256_of(path))


def texts_read(source: str, columns: tuple[str, ...] | None, journal: Journal) -> Iterator[CorpusText]:
    """The texts of `corpus_texts`, reported as they are read.

    Raises: AnalysisError for more than MOST_NAMES data sets or languages, and for no text.
    """
    counts: dict[str, set[str]] = {"data sets": set(), "languages": set()}
    n_read = 0
    for text in ProgressBar(corpus_texts(source, columns), desc="reading", unit="text"):
        for (word, names), name in zip(counts.items(), (text.dataset, text.language)):
            names.add(name)
            if len(names) > MOST_NAMES:
                raise AnalysisError(
                    f"The corpus has more than {MOST_NAMES} {word}, among them {name[:40]!r}. Each gets its own "
                    f"statistics: use fewer folders, or remove the column with the {word}."
                )
        if n_read % REPORTED == 0:
            journal.part("Reading the texts", n_read)
        n_read += 1
        yield text
    if not n_read:
        raise AnalysisError(f"{source} holds no text. Choose another folder.")


def existing_plan(folder: Path, planned: Manifest) -> Manifest:
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


def parse_corpus(
    folder: Path,
    texts: str,
    columns: tuple[str, ...] | None,
    engine: Executor,
    journal: Journal,
    shard_size: int = SHARD_SIZE,
) -> Parsing:
    """Parse all texts and write them with their trees; after an interruption, the same call continues.

    Texts with gold trees keep them.

    Args:
        folder: folder of the parsed texts, created if it does not exist.
        texts, columns: as for `corpus_texts`.
        engine: parses shards.
        journal: each shard is a piece.
        shard_size: texts per shard.

    Raises: AnalysisError for texts that cannot be read, a folder of other texts, no parser, and a full disk.
    """
    parsing = _split(folder, texts, columns, shard_size, journal)
    missing = {shard: shard for shard in parsing.shards() if not parsed_path(folder, shard).is_file()}
    sizes = {shard: parsing.n_texts_of(shard) for shard in parsing.shards()}
    run_missing(engine, partial(_shard_parser, folder), missing, sizes, journal)
    return parsing


def _split(folder: Path, texts: str, columns: tuple[str, ...] | None, shard_size: int, journal: Journal) -> Parsing:
    """The shards of a folder, which are written if they do not exist.

    Raises: AnalysisError.
    """
    if not 1 <= shard_size <= LARGEST_SHARD:
        raise AnalysisError(f"A shard has {shard_size:,} texts. Choose 1 to {LARGEST_SHARD:,}.")
    expected = Parsing(
        texts=texts,
        text_columns=columns,
        inputs=tuple(file.sha256 for file in checked_inputs(texts)),
        shard_size=shard_size,
        parser=parser_name(),
        n_texts=0,
        n_shards=0,
    )
    existing = read_parsing(folder)
    if existing is not None:
        if replace(existing, texts=texts, n_texts=0, n_shards=0) != expected:
            raise AnalysisError(
                f"{folder} contains different texts, or the same texts in different shards or from another parser "
                f"({existing.parser}). Choose another folder."
            )
        n_files = sum(1 for name in (PARSED_FOLDER, UNPARSED_FOLDER) for _ in (folder / name).glob("*"))
        if existing.n_shards > n_files:
            raise AnalysisError(
                f"{folder} should hold {existing.n_shards:,} shards and has {n_files:,} files. Parse the texts again, "
                "elsewhere."
            )
        return existing
    for name in (PARSED_FOLDER, UNPARSED_FOLDER):
        make_folder(folder / name)
    n_texts = n_shards = 0
    with written(folder / PARSING):
        for shard_texts in shards_of(texts_read(texts, columns, journal), shard_size):
            write_whole(unparsed_path(folder, f"{n_shards:06}"), partial(write_texts, texts=shard_texts))
            n_texts, n_shards = n_texts + len(shard_texts), n_shards + 1
        parsing = replace(expected, n_texts=n_texts, n_shards=n_shards)
        write_parsing(folder, parsing)
    return parsing


def _shard_parser(folder: Path) -> Callable[[str], str]:
    """A function that parses one shard and returns its name."""
    return partial(_parse_shard, folder)


def _parse_shard(folder: Path, shard: str) -> str:
    source, target = unparsed_path(folder, shard), parsed_path(folder, shard)
    if not source.is_file() and target.is_file():
        return shard  # retried after its process was killed between removing the source and reporting
    texts = read_texts(source)
    parsed = []
    for start in range(0, len(texts), PARSED_AT_ONCE):
        batch = texts[start : start + PARSED_AT_ONCE]
        trees = dependencies([text.text for text in batch])
        parsed += [
            text if text.text.heads is not None else replace(text, text=with_tree(text.text, tree))
            for text, tree in zip(batch, trees, strict=True)
        ]
    try:
        write_whole(target, partial(write_texts, texts=parsed))
        source.unlink()
    except OSError as error:
        raise AnalysisError(
            f"Shard {shard} cannot be written in {folder} ({error.strerror or error}). Free some space and run the "
            "command again; what is already parsed is kept."
        ) from None
    return shard
