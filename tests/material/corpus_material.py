"""A small corpus and how it is run, for tests of corpora."""

import json
from pathlib import Path

from attention_sieve.__main__ import main
from attention_sieve.core.checkpoints.find import find_checkpoint
from attention_sieve.core.corpus.manifest import FOLDERS, MANIFEST, STATISTICS

SENTENCES = (
    "the black cat quickly chased two red birds",
    "she does eat red apples",
    "who sat on the mat",
    "a dog ran where the cat sat quickly",
    "it is unbelievable coffee",
    "the dog",
    "two birds sat on the red house where she ran",
    "do not eat it",
)


def write_corpus(folder: Path, n_texts: int) -> Path:
    """Texts in two files of two data sets, every other one with a language."""
    made = [f"{SENTENCES[number % len(SENTENCES)]} {number}" for number in range(n_texts)]
    half = n_texts // 2
    for name in ("news", "web"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    (folder / "news" / "a.txt").write_text("\n".join(made[:half]) + "\n", encoding="utf-8")
    rows = [{"text": text, "language": "en" if row % 2 else "de"} for row, text in enumerate(made[half:])]
    (folder / "web" / "b.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder


def corpus(verb: str, *arguments: object) -> int:
    """Run the command."""
    return main(["corpus", verb, *map(str, arguments)])


def run_corpus(checkpoint: object, texts: object, output: Path, *more: object) -> int:
    """Run a corpus with small shards, without the parser where not told otherwise."""
    options = ("--checkpoint", checkpoint, "--texts", texts, "--shard-size", 5, "--workers", 1, "--no-parser")
    return corpus("run", *options, "--output", output, *more)


def written(folder: Path) -> dict[str, bytes]:
    """Every file of a results folder."""
    files = [*(path for name in FOLDERS for path in (folder / name).iterdir()), folder / STATISTICS, folder / MANIFEST]
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def fingerprint(checkpoint: object) -> str:
    return find_checkpoint(str(checkpoint)).fingerprint
