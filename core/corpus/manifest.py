"""What a results folder holds: which texts, under which checkpoint, with which settings, in which shards.

manifest.json        this
texts/00000.parquet  texts of each shard
scores/              their scores, with the same row numbers
statistics/          statistics of each shard
done/00000.json      what the two files of a finished shard have to be
statistics.safetensors   statistics of all shards, merged in their order
"""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

from core.commands import write_whole
from core.corpus.settings import FORMAT, CorpusSettings, versions
from core.corpus.statistics import check_format
from core.errors import AnalysisError, first_line

MANIFEST: Final = "manifest.json"
STATISTICS: Final = "statistics.safetensors"
TEXTS_FOLDER: Final = "texts"
SCORES_FOLDER: Final = "scores"
STATISTICS_FOLDER: Final = "statistics"
DONE_FOLDER: Final = "done"
FOLDERS: Final = (TEXTS_FOLDER, SCORES_FOLDER, STATISTICS_FOLDER, DONE_FOLDER)


@dataclass(frozen=True)
class InputFile:
    """A file that texts were read from."""

    path: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """Texts that are scored together."""

    name: str
    n_texts: int
    sha256: str
    """Of the file of its texts."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A planned corpus."""

    checkpoint: str
    """The name that finds it."""
    fingerprint: str
    tokenizer: str
    """Digest of the tokenizer's files."""
    random_weights: int | None
    """Seed of weights before any training, in place of the checkpoint's."""
    settings: CorpusSettings
    texts: str
    """Where they were read from."""
    text_columns: tuple[str, ...] | None
    shard_size: int
    inputs: tuple[InputFile, ...]
    shards: tuple[Shard, ...]
    versions: dict[str, str]

    @property
    def n_texts(self) -> int:
        """Of all shards."""
        return sum(shard.n_texts for shard in self.shards)

    @property
    def title(self) -> str:
        """Name of the checkpoint as a reader sees it."""
        if self.random_weights is None:
            return self.checkpoint
        return f"{self.checkpoint} (random weights, seed {self.random_weights})"

    @property
    def texts_sha256(self) -> str:
        """Digest of all texts, the same for two checkpoints that read the same ones in the same shards."""
        return hashlib.sha256("\n".join(shard.sha256 for shard in self.shards).encode()).hexdigest()

    def key(self, shard: Shard) -> str:
        """Digest of everything that the scores of a shard depend on."""
        told = [FORMAT, self.fingerprint, asdict(self.settings), self.versions, shard.sha256]
        return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """What a file of statistics says about where it comes from."""
        return {
            "checkpoint": self.title,
            "fingerprint": self.fingerprint,
            "tokenizer": self.tokenizer,
            "texts": self.texts_sha256,
            "settings": asdict(self.settings),
        }


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write it whole or not at all.

    Raises: OSError.
    """
    told = {"format": FORMAT, **asdict(manifest)}
    write_whole(folder / MANIFEST, lambda path: path.write_text(json.dumps(told, indent=1), encoding="utf-8"))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a results folder.

    Raises: AnalysisError for a folder without one, and for one that is damaged or of a newer version of the program.
    """
    path = folder / MANIFEST
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        version = int(told.pop("format"))
    except (FileNotFoundError, NotADirectoryError):
        raise AnalysisError(
            f"{folder} is no results folder: it has no {MANIFEST}. Make one with: python -m core corpus run"
        ) from None
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise _damaged(path, error) from None
    check_format(path, version)
    try:
        return _manifest(told)
    except (TypeError, KeyError, ValueError, AttributeError) as error:
        raise _damaged(path, error) from None


def _manifest(told: dict[str, Any]) -> Manifest:
    columns = told["text_columns"]
    return Manifest(
        **{name: told[name] for name in ("checkpoint", "fingerprint", "tokenizer", "random_weights", "texts")},
        settings=settings_from(told["settings"]),
        text_columns=None if columns is None else tuple(columns),
        shard_size=int(told["shard_size"]),
        inputs=tuple(InputFile(**each) for each in told["inputs"]),
        shards=tuple(_shard(each) for each in told["shards"]),
        versions=dict(told["versions"]),
    )


def _shard(told: dict[str, Any]) -> Shard:
    shard = Shard(**told)
    if not (shard.name.isdigit() and int(shard.n_texts) > 0):
        raise ValueError(f"a shard named {shard.name[:20]!r} with {shard.n_texts} texts")
    return shard


def settings_from(told: dict[str, Any]) -> CorpusSettings:
    """Settings as JSON holds them.

    Raises: TypeError for names that settings have not; AnalysisError for values that they do not take.
    """
    known = {field.name for field in fields(CorpusSettings)}
    if set(told) != known:
        raise TypeError(f"settings with {', '.join(sorted(set(told) ^ known))}")
    tuples = {"questions": tuple(told["questions"]), "off": tuple((int(i), int(j)) for i, j in told["off"])}
    return CorpusSettings(**(told | tuples))


def check_versions(manifest: Manifest) -> None:
    """Refuse to go on with other packages than those that the corpus was planned with.

    Raises: AnalysisError.
    """
    here = versions()
    other = [
        f"{name} {then} (here {here.get(name)})" for name, then in manifest.versions.items() if here.get(name) != then
    ]
    if other:
        raise AnalysisError(
            f"The corpus was planned with {', '.join(other)}, and scores of two versions do not belong together. "
            "Install these versions, or plan it anew in another folder."
        )


def text_path(folder: Path, shard: Shard) -> Path:
    """File of the texts of a shard."""
    return folder / TEXTS_FOLDER / f"{shard.name}.parquet"


def score_path(folder: Path, shard: Shard) -> Path:
    """File of the scores of a shard."""
    return folder / SCORES_FOLDER / f"{shard.name}.parquet"


def statistics_path(folder: Path, shard: Shard) -> Path:
    """File of the statistics of a shard."""
    return folder / STATISTICS_FOLDER / f"{shard.name}.safetensors"


def record_path(folder: Path, shard: Shard) -> Path:
    """File that says what the two others have to be."""
    return folder / DONE_FOLDER / f"{shard.name}.json"


def _damaged(path: Path, error: BaseException) -> AnalysisError:
    return AnalysisError(f"{path} is damaged ({first_line(error)}). Plan the corpus again in another folder.")
