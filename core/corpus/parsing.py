"""Parses the texts of a corpus once, for all checkpoints that read them."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from attention_sieve.core.commands import make_folder, write_whole
from attention_sieve.core.corpus.manifest import written
from attention_sieve.core.corpus.plan import LARGEST_SHARD, SHARD_SIZE, checked_inputs, corpus_texts, counted_names
from attention_sieve.core.corpus.texts.parsed import (
    PARSED_FOLDER,
    PARSING,
    UNPARSED_FOLDER,
    Parsing,
    parsed_path,
    read_parsing,
    unparsed_path,
    write_parsing,
)
from attention_sieve.core.corpus.texts.text_shards import read_texts, shards_of, write_texts
from attention_sieve.core.engines.work import Executor
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.relations import dependencies, with_tree

PARSED_AT_ONCE: Final = 256
"""Texts whose trees are in memory at once."""


def parse_corpus(
    folder: Path,
    texts: str,
    columns: tuple[str, ...] | None,
    engine: Executor,
    shard_size: int = SHARD_SIZE,
    report: Callable[[int, int], None] = lambda *_: None,
) -> Parsing:
    """Parse all texts and write them with their trees; after an interruption, the same call continues.

    Texts with gold trees keep them.

    Args:
        folder: folder of the parsed texts, created if it does not exist.
        texts, columns: as for `attention_sieve.core.corpus.plan.corpus_texts`.
        engine: parses shards.
        shard_size: texts per shard.
        report: called with the number of parsed texts and of all texts.

    Raises: AnalysisError for texts that cannot be read, a folder of other texts, no parser, and a full disk.
    """
    parsing = _split(folder, texts, columns, shard_size)
    missing = [shard for shard in parsing.shards() if not parsed_path(folder, shard).is_file()]
    n_parsed = parsing.n_texts - sum(map(parsing.n_texts_of, missing))
    report(n_parsed, parsing.n_texts)
    for outcome in engine(partial(_shard_parser, folder), missing):
        if outcome.result is None:
            raise AnalysisError(outcome.why)
        n_parsed += parsing.n_texts_of(outcome.result)
        report(n_parsed, parsing.n_texts)
    return parsing


def _split(folder: Path, texts: str, columns: tuple[str, ...] | None, shard_size: int) -> Parsing:
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
    source, n_texts, n_shards = counted_names(corpus_texts(texts, columns)), 0, 0
    with written(folder / PARSING):
        for shard_texts in shards_of(source, shard_size):
            write_whole(unparsed_path(folder, f"{n_shards:06}"), partial(write_texts, texts=shard_texts))
            n_texts, n_shards = n_texts + len(shard_texts), n_shards + 1
        if not n_shards:
            raise AnalysisError(f"{texts} holds no text. Choose another folder.")
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
