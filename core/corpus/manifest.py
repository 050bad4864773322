"""The manifest of a results folder: texts, checkpoint, shards, and settings that mean the same on any machine.

manifest.json        the manifest
texts/00000.parquet  texts of each shard
scores/              their scores, with the same row numbers
statistics/          statistics of each shard
done/00000.json      record of a finished shard: digests of its two files
statistics.safetensors   statistics of all shards, merged in their order
"""

import hashlib
import importlib.metadata
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from attention_sieve.core.answering import Analysis
from attention_sieve.core.attention.settings import Head, Kind, PassSettings
from attention_sieve.core.commands import write_whole
from attention_sieve.core.errors import PROGRAM, AnalysisError, first_line, shortened
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import Scale, ScoreSettings, SyntacticDirection
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.tokens import TooLong

FORMAT: Final = 2
"""Format of a results folder; higher numbers are from newer versions of the program."""
SCORES_VERSION: Final = 2
"""Part of the key of a shard; increase it when its scores or statistics would be different."""
PACKAGES: Final = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")
"""Packages whose version may change the last digits of a score, or the bytes of a file."""
MANIFEST: Final = "manifest.json"
STATISTICS: Final = "statistics.safetensors"
TEXTS_FOLDER: Final = "texts"
SCORES_FOLDER: Final = "scores"
STATISTICS_FOLDER: Final = "statistics"
DONE_FOLDER: Final = "done"
FOLDERS: Final = (TEXTS_FOLDER, SCORES_FOLDER, STATISTICS_FOLDER, DONE_FOLDER)


@dataclass(frozen=True)
class _Versioned:
    """What every format of a file says about itself."""

    format: int


def check_format(path: Path, content: str | bytes, newest: int) -> None:
    """Raise for a file of a newer version of the program.

    Args:
        path: the file, for the message.
        content: its description of itself, as JSON.
        newest: the newest format that is read.

    Raises: AnalysisError; ValueError for a description without a format.
    """
    version = typed_json(content, _Versioned).format
    if version > newest:
        raise AnalysisError(
            f"{path} was written by a newer version of this program (format {version}, and this one reads {newest}). "
            "Update the program."
        )


@dataclass(frozen=True, kw_only=True)
class CorpusSettings:
    """How every text of a corpus is analysed."""

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    """Settings of another version of the program are refused where JSON is read, not left out."""

    questions: tuple[str, ...] = ("roles",)
    """Names of the analyses."""
    kind: Kind = "self"
    off: tuple[Head, ...] = ()
    device: str = "cpu"
    dtype: str = "float32"
    too_long: TooLong = "skip"
    """How to treat texts that are too long for the checkpoint; those left out keep their rows."""
    roles: tuple[str, ...] = ROLES
    """Roles that are scored."""
    direction: SyntacticDirection = "dependent-to-head"
    block_entropy: bool = True
    scale: Scale = "score"
    parses: bool = True
    """Whether texts without trees are parsed; otherwise no syntactic role applies to them."""
    n_threads: int = 1
    """Threads per process. The number changes the order of additions, which may change the last digits."""

    def __post_init__(self) -> None:
        if not self.questions:
            raise AnalysisError("There is no question to ask of the texts. Choose one.")
        if not 1 <= self.n_threads <= 1024:
            raise AnalysisError(f"The number of threads is {self.n_threads}. Choose 1 to 1024.")

    @property
    def pass_settings(self) -> PassSettings:
        """Settings of a pass."""
        return PassSettings(self.kind, self.off)

    @property
    def score_settings(self) -> ScoreSettings:
        """Settings of the scores."""
        return ScoreSettings(
            roles=self.roles,
            direction=self.direction,
            block_entropy=self.block_entropy,
            scale=self.scale,
            parses=self.parses,
        )

    def analysis_settings(self, analysis: Analysis[Any, Any, Any, Any, Any]) -> Any:
        """Settings of an analysis: the usual ones, but for what is said here of the scores."""
        usual = analysis.settings
        return replace(usual, scores=self.score_settings) if isinstance(usual, RoleSettings) else usual


def versions() -> dict[str, str]:
    """Installed versions of the packages that affect results, and the parser."""
    return {name: importlib.metadata.version(name) for name in PACKAGES} | {"parser": parser_name()}


@dataclass(frozen=True)
class InputFile:
    """An input file of the texts."""

    path: str
    n_bytes: int
    sha256: str


@dataclass(frozen=True)
class Shard:
    """Texts that are scored together."""

    name: str
    n_texts: int
    sha256: str
    """Digest of the file with its texts."""

    def __post_init__(self) -> None:
        if not (re.fullmatch("[0-9]+", self.name) and self.n_texts > 0):
            raise ValueError(f"a shard named {self.name[:20]!r} with {self.n_texts:,} texts")


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """A planned corpus."""

    checkpoint: str
    """Name of the checkpoint, as used to find it."""
    fingerprint: str
    tokenizer: str
    """Digest of the tokenizer's files."""
    random_weights: int | None
    """Seed of randomly initialised weights; None for the checkpoint's own."""
    settings: CorpusSettings
    texts: str
    """Source of the texts."""
    text_columns: tuple[str, ...] | None
    shard_size: int
    inputs: tuple[InputFile, ...]
    shards: tuple[Shard, ...]
    versions: dict[str, str]

    @property
    def n_texts(self) -> int:
        """Number of texts in all shards."""
        return sum(shard.n_texts for shard in self.shards)

    @property
    def title(self) -> str:
        """Display name of the checkpoint."""
        if self.random_weights is None:
            return self.checkpoint
        return f"{self.checkpoint} (random weights, seed {self.random_weights})"

    @property
    def texts_sha256(self) -> str:
        """Digest of all texts; equal for two checkpoints with the same texts in the same shards."""
        return hashlib.sha256("\n".join(shard.sha256 for shard in self.shards).encode()).hexdigest()

    def key(self, shard: Shard) -> str:
        """Digest of everything that the scores of a shard depend on."""
        ingredients = [SCORES_VERSION, self.fingerprint, self._settings(), self.versions, shard.sha256]
        return hashlib.sha256(json.dumps(ingredients, sort_keys=True).encode()).hexdigest()

    def facts(self) -> dict[str, Any]:
        """Metadata of a file of statistics: its origin."""
        return {
            "checkpoint": self.title,
            "fingerprint": self.fingerprint,
            "tokenizer": self.tokenizer,
            "texts": self.texts_sha256,
            "settings": self._settings(),
        }

    def _settings(self) -> dict[str, Any]:
        """The settings, without the usual roles, which earlier versions of the program did not name."""
        settings = asdict(self.settings)
        return {name: value for name, value in settings.items() if (name, value) != ("roles", ROLES)}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest atomically.

    Raises: OSError.
    """
    content = {"format": FORMAT, **asdict(manifest)}
    write_whole(folder / MANIFEST, lambda path: path.write_text(json.dumps(content, indent=1), encoding="utf-8"))


def read_manifest(folder: Path) -> Manifest:
    """The manifest of a results folder.

    Raises: AnalysisError for a folder without one, and for one that is damaged or of a newer version of the program.
    """
    path, name = folder / MANIFEST, shortened(str(folder))
    try:
        content = path.read_bytes()
        check_format(path, content, FORMAT)
        return typed_json(content, Manifest)
    except (FileNotFoundError, NotADirectoryError):
        raise AnalysisError(
            f"{name} is not a results folder: it has no {MANIFEST}. Make one with: {PROGRAM} corpus run"
        ) from None
    except OSError as error:
        raise AnalysisError(
            f"{MANIFEST} of {name} cannot be read: {error.strerror}. Check the name and its permissions."
        ) from None
    except ValueError as error:
        raise AnalysisError(
            f"{path} is damaged ({first_line(error)}). Plan the corpus again in another folder."
        ) from None


def check_versions(manifest: Manifest) -> None:
    """Raise if the installed packages differ from those that the corpus was planned with.

    Raises: AnalysisError.
    """
    installed = versions()
    differing = [
        f"{name} {planned} (here {installed.get(name)})"
        for name, planned in manifest.versions.items()
        if installed.get(name) != planned
    ]
    if differing:
        raise AnalysisError(
            f"The corpus was planned with {', '.join(differing)}, and scores of two versions do not belong together. "
            "Install these versions, or plan it again in another folder."
        )


@contextmanager
def written(path: Path, remedy: str = "Check the free space and the permissions there.") -> Iterator[None]:
    """Context for writing a file, or the files of a folder.

    Raises: AnalysisError that says what to do if writing fails.
    """
    try:
        yield
    except OSError as error:
        raise AnalysisError(f"{path} cannot be written ({error.strerror or error}). {remedy}") from None


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
    """File with the record of a finished shard: digests of its scores and statistics."""
    return folder / DONE_FOLDER / f"{shard.name}.json"
