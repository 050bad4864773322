"""The commands that compute what a page shows, for the provenance of its files, and the texts that they read."""

import json
import re
from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any, Final

from attention_sieve.cache.engine import Engine
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.state import Choice

CORPUS: Final = "texts.jsonl"
ONE_TEXT: Final = "text.jsonl"
_read: Final[ContextVar[dict[str, Sequence[Text]] | None]] = ContextVar("read", default=None)
"""Texts that the commands of the page being drawn read, by the name of their file; None outside of a run of a page."""


def begin_page() -> None:
    """Forget the texts of another page or an earlier run."""
    _read.set({})


def texts_read() -> dict[str, Sequence[Text]]:
    """The texts that the commands of this page read, by the name of their file."""
    return dict(_read.get() or {})


def command(
    name: str, choice: Choice, engine: Engine, texts: Sequence[Text], *options: str, too_long: str = "skip"
) -> dict[str, str]:
    """What computes the numbers on a page, as a fact of its files; the archive of the page holds the texts.

    Args:
        name: of the command.
        choice: the settings that all pages share.
        engine: the checkpoint.
        texts: that the command reads, if it reads any; one text is in a file of its own.
        options: further options, from `given_options`.
        too_long: what becomes of texts that are too long.
    """
    file = ONE_TEXT if len(texts) == 1 else CORPUS
    if texts and (read := _read.get()) is not None:
        read[file] = texts
    settings = choice.pass_settings(engine)
    of_checkpoint = [
        *([f"--dtype={engine.dtype}"] if engine.dtype != "float32" else []),
        *([f"--attention={settings.kind}"] if settings.kind != engine.files.kinds[0] else []),
        *([f"--off={','.join(f'{layer}-{head}' for layer, head in settings.off)}"] if settings.off else []),
    ]
    output = [f"--too-long={too_long}", "--output", f"{name}.{'npz' if name == 'maps' else 'parquet'}"]
    named = ["--checkpoint", engine.files.name, *(["--texts", file] if texts else [])]
    return {"command": command_line([name, *named, *of_checkpoint, *options, *output])}


def file_of(name: str, texts: Sequence[Text]) -> str:
    """Name of the file of further texts that a command of this page reads."""
    file = f"{re.sub(r'[^A-Za-z0-9 ,-]', '', name)}.jsonl"
    if (read := _read.get()) is not None:
        read[file] = texts
    return file


def role_options(choice: Choice, engine: Engine) -> list[str]:
    """The options of `score`, and of what else scores roles."""
    usual = known_roles((*ROLES, *(DECODER_ROLES if engine.files.is_decoder else ())))
    scores = choice.score_settings
    return [
        *([f"--roles={','.join(scores.roles)}"] if scores.roles != usual else []),
        *given_options(scores, type(scores)()),
    ]


def lines_of(texts: Sequence[Text]) -> bytes:
    """Texts as JSON lines, which every command reads."""
    return "".join(f"{json.dumps(_object(text), ensure_ascii=False)}\n" for text in texts).encode(errors="replace")


def _object(text: Text) -> dict[str, Any]:
    if text.given is not None:
        return {name: value for name, value in text.given.fields.items() if value is not None}
    if len(text.segments) == 2:
        return dict(zip(("text_a", "text_b"), text.segments))
    if text.words is None or text.spans is not None:
        return {"text": text.segments[0]}
    trees = {} if text.heads is None or text.relations is None else {"heads": text.heads[0], "relns": text.relations[0]}
    return {"words": text.words[0], **trees}
