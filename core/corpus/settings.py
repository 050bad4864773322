"""Settings of a corpus, as plain values that mean the same in any process and on any machine."""

import importlib.metadata
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Final

from attention_sieve.core.answering import Analysis
from attention_sieve.core.attention.settings import Head, Kind, PassSettings
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.json_values import typed_json
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.measures import Scale, ScoreSettings, SyntacticDirection
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.tokens import TooLong

FORMAT: Final = 2
"""Format of a results folder; higher numbers are from newer versions of the program."""
SCORES_VERSION: Final = 1
"""Part of the key of a shard; increase it when its scores or statistics would be different."""
PACKAGES: Final = ("torch", "transformers", "tokenizers", "numpy", "pyarrow")
"""Packages whose version may change the last digits of a score, or the bytes of a file."""


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
    def of_pass(self) -> PassSettings:
        """Settings of a pass."""
        return PassSettings(self.kind, self.off)

    @property
    def of_scores(self) -> ScoreSettings:
        """Settings of the scores."""
        return ScoreSettings(
            roles=self.roles,
            direction=self.direction,
            block_entropy=self.block_entropy,
            scale=self.scale,
            parses=self.parses,
        )

    def of(self, analysis: Analysis[Any, Any, Any, Any, Any]) -> Any:
        """Settings of an analysis: the usual ones, but for what is said here of the scores."""
        usual = analysis.settings
        return replace(usual, scores=self.of_scores) if isinstance(usual, RoleSettings) else usual


def versions() -> dict[str, str]:
    """Installed versions of the packages that affect results, and the parser."""
    return {name: importlib.metadata.version(name) for name in PACKAGES} | {"parser": parser_name()}
