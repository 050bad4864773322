"""The commands that compute what a page shows, for the provenance of its files, and the files that they read."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from typing import Any, Final

from attention_sieve.cache.answers import Engine
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles
from attention_sieve.core.texts.parsers import parser_option
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard.state import Choice

CORPUS: Final = "texts.jsonl"
ONE_TEXT: Final = "text.jsonl"
THEN: Final = " && "
"""Between two lines of which the second follows the first."""
NONE: Final = "none computes these numbers"
"""In place of a command."""
PARSES: Final = ("roles", "score", "controls", "relations", "word-links", "tree-probes", "claim")
_read: Final[ContextVar[dict[str, Callable[[], bytes]] | None]] = ContextVar("read", default=None)
"""What makes the files that the commands of the page being drawn read, by their names; None outside of a run of a
page."""


def begin_page() -> None:
    """Forget the files of another page or an earlier run."""
    _read.set({})


def files_read() -> dict[str, Callable[[], bytes]]:
    """What makes each file that the commands of this page read, by its name."""
    return dict(_read.get() or {})


def reads(name: str, content: Callable[[], bytes]) -> str:
    """Keep a file that a command reads, for the archive of the page; `content` makes it. Returns its name."""
    if (read := _read.get()) is not None:
        read[name] = content
    return name


def reads_texts(texts: Sequence[Text], name: str = "") -> str:
    """Keep texts that a command reads, as a file; returns its name, by default one for all texts of a page."""
    return reads(name or (ONE_TEXT if len(texts) == 1 else CORPUS), partial(lines_of, texts))


def call(name: str, choice: Choice, engine: Engine, *options: str, output: str = "", checkpoint: str = "") -> str:
    """The line of a command about a checkpoint.

    Args:
        options: further ones, from `given_options`.
        output: file that it writes; by default a table with the name of the command.
        checkpoint: what the command calls it, if not by its name.
    """
    settings = choice.pass_settings(engine)
    of_checkpoint = [
        "--checkpoint",
        checkpoint or engine.files.name,
        *([f"--dtype={engine.dtype}"] if engine.dtype != "float32" else []),
        *([f"--attention={settings.kind}"] if settings.kind != engine.files.kinds[0] else []),
        *([f"--off={','.join(f'{layer}-{head}' for layer, head in settings.off)}"] if settings.off else []),
    ]
    return command_line([name, *of_checkpoint, *options, "--output", output or f"{name}.parquet"])


def command(
    name: str, choice: Choice, engine: Engine, texts: Sequence[Text], *options: str, too_long: str = "skip"
) -> dict[str, str]:
    """What computes the numbers on a page, as a fact of its files; the archive of the page holds the texts.

    Args:
        texts: that the command reads, if it reads any; one text is in a file of its own.
        options: as for `call`.
    """
    read = ["--texts", reads_texts(texts), *(parser_option(texts) if name in PARSES else [])] if texts else []
    output = f"{name}.npz" if name == "maps" else ""
    return {"command": call(name, choice, engine, *read, *options, f"--too-long={too_long}", output=output)}


def without_command(facts: Mapping[str, str]) -> dict[str, str]:
    return {**facts, "command": NONE}


def with_command(facts: Mapping[str, str]) -> Mapping[str, str]:
    """Provenance that names the command that computes the numbers, or says that none does."""
    return facts if "command" in facts else without_command(facts)


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
    return "".join(f"{json.dumps(text_object(text), ensure_ascii=False)}\n" for text in texts).encode(errors="replace")


def text_object(text: Text) -> dict[str, Any]:
    """A text as an object of a file of texts, from which the same text is read."""
    if text.given is not None:
        return {name: value for name, value in text.given.fields.items() if value is not None}
    if len(text.segments) == 2:
        return dict(zip(("text_a", "text_b"), text.segments))
    if text.words is None or text.spans is not None:
        return {"text": text.segments[0]}
    trees = {} if text.heads is None or text.relations is None else {"heads": text.heads[0], "relns": text.relations[0]}
    return {"words": text.words[0], **trees}
