"""What a saved page asks: all that its numbers depend on, kept in the page, so that they can be computed again."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from attention_sieve.core.attention.settings import Head, Kind, head_names
from attention_sieve.core.checkpoints.checkpoint import CheckpointFiles
from attention_sieve.core.checkpoints.find import is_path
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.roles.finding import RoleSettings
from attention_sieve.core.roles.hypotheses import Criterion
from attention_sieve.core.roles.measures import ScoreSettings
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles, role_title
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.text import PAIR_MARK, Text, texts_sha256

IN_MEMORY: Final = "none"
"""How the fingerprint of a model in memory begins."""
MOST_WEIGHTS: Final = 12_000_000
"""Maximum number of weights of attention in a page, which has a byte and a third for each."""


@dataclass(frozen=True)
class NamedCheckpoint:
    """A checkpoint as a page names it."""

    name: str
    revision: str
    fingerprint: str
    is_decoder: bool
    quantised: str = ""

    @classmethod
    def of(cls, files: CheckpointFiles) -> "NamedCheckpoint":
        """Of a path, its last part: a page does not tell where a folder lies, and so whose it is."""
        name = files.name
        if is_path(name) and not files.revision:
            last = re.split(r"[\\/]", name.rstrip("\\/"))[-1]
            name = files.folder.name if last in ("", ".", "..", "~") else last
        return cls(name, files.revision, files.fingerprint, files.is_decoder, files.quantised)


@dataclass(frozen=True, kw_only=True)
class Asked:
    """The question of a page, about one checkpoint or about two of the same shape."""

    checkpoints: tuple[NamedCheckpoint, ...]
    """One, or a reference and the one that is compared with it."""
    dtype: str
    attention: Kind
    off: tuple[Head, ...]
    settings: RoleSettings
    texts: tuple[Text, ...]
    """Those over which roles are tested."""
    drawn: tuple[Text, ...]
    """Those whose attention is in the page."""
    chosen: tuple[Head, ...]
    """Those whose arcs are drawn at first; none for the one that links words most."""
    truncated: bool
    """Whether texts that are too long are truncated; otherwise there are none."""
    parser: str
    """Where the trees of the texts come from: the parsers and their versions, or the file."""

    @property
    def facts(self) -> dict[str, str]:
        first, *others = self.checkpoints
        scores = self.settings.scores
        return {
            **_facts_of(first, ""),
            **{name: fact for other in others for name, fact in _facts_of(other, "compared ").items()},
            "dtype": self.dtype,
            "attention": self.attention,
            "heads off": head_names(self.off) or "none",
            "texts": f"{len(self.texts):,}",
            "texts sha256": texts_sha256(self.texts),
            "parser": self.parser,
            "roles": ", ".join(map(role_title, scores.roles)),
            **self.settings.facts,
        }

    @property
    def is_in_memory(self) -> bool:
        """Whether a model was in the memory of a program, where no command finds it."""
        return any(checkpoint.fingerprint.startswith(IN_MEMORY) for checkpoint in self.checkpoints)

    @property
    def command(self) -> str:
        """The command that makes the page from its texts, which it holds as a file; empty for a model in memory."""
        if self.is_in_memory:
            return ""
        first, *others = self.checkpoints
        usual_roles = known_roles((*ROLES, *(DECODER_ROLES if first.is_decoder else ())))
        scores, criterion = self.settings.scores, self.settings.criterion
        words = ["page", "--checkpoint", first.name]
        words += [word for other in others for word in ("--compare", other.name)]
        words += ["--texts", TEXTS_FILE]
        words += [word for text in self.drawn for word in ("--text", PAIR_MARK.join(text.segments))]
        words += [] if self.dtype == "float32" else ["--dtype", self.dtype]
        words += [] if self.attention in ("self", "encoder") else ["--attention", self.attention]
        words += [word for layer, head in self.off for word in ("--off", f"{layer}-{head}")]
        words += [word for layer, head in self.chosen for word in ("--heads", f"{layer}-{head}")]
        words += parser_option((*self.texts, *self.drawn))
        words += [] if scores.roles == usual_roles else ["--roles", ",".join(scores.roles)]
        words += given_options(scores, ScoreSettings()) + given_options(criterion, Criterion.usual(scores.scale))
        words += ["--too-long", "truncate"] if self.truncated else []
        return command_line([*words, "--output", "page.html"])


TEXTS_FILE: Final = "texts.json"


def _facts_of(checkpoint: NamedCheckpoint, prefix: str) -> Mapping[str, str]:
    weights = {f"{prefix}weights": f"{checkpoint.quantised}, dequantised"} if checkpoint.quantised else {}
    return {
        f"{prefix}checkpoint": checkpoint.name,
        f"{prefix}revision": checkpoint.revision or "local",
        f"{prefix}fingerprint": checkpoint.fingerprint,
        **weights,
    }
