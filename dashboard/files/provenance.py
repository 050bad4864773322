"""Provenance of the files that a page offers: facts such as checkpoint, texts and settings, and the command that
computes what they hold, with the files that it reads."""

import json
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import replace
from functools import partial
from typing import Any, Final

from attention_sieve import __version__
from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.command_lines import command_line, given_options
from attention_sieve.core.roles.roles import DECODER_ROLES, ROLES, known_roles, role_title
from attention_sieve.core.texts.parsers import parser_name, parser_option
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, state, wording
from attention_sieve.dashboard.state import Choice

LONGEST_LINE: Final = 110
LONGEST_QUOTE: Final = 60
COMPARED: Final = "compared checkpoint"
DIFFERENCES: Final = "compared minus reference (b - a)"
CORPUS_NAMES: Final = {controls.UPLOAD: "uploaded texts", controls.TYPED: "typed texts"}
"""Names of corpora in titles, where they differ from the option in the sidebar."""


def corpus_facts(choice: Choice, engine: Engine, n_texts: int, n_tokens: Sequence[int] = ()) -> dict[str, str]:
    """Provenance of a file about a corpus; `n_tokens` of each text for scores, which grow with the length of a text."""
    criterion, settings = choice.criterion, choice.score_settings
    return {
        **engine_facts(choice, engine),
        "corpus": choice.corpus,
        "corpus texts": str(n_texts),
        **({"tokens": wording.token_range(n_tokens)} if n_tokens else {}),
        **threshold_facts(choice),
        "alpha": f"{criterion.alpha:g}",
        "rule": criterion.rule,
        "correction": criterion.correction,
        "family": criterion.family,
        "ddof": str(criterion.ddof),
        "method": criterion.method,
        "direction": settings.direction,
        **({"further roles": ", ".join(map(role_title, further))} if (further := choice.roles[len(ROLES) :]) else {}),
        **settings.rules,
        **({"block entropy": "yes" if settings.block_entropy else "no"} if settings.scale == "score" else {}),
    }


def comparison_facts(
    choice: Choice, engines: tuple[Engine, Engine], n_texts: int, n_tokens: Sequence[int] = ()
) -> dict[str, str]:
    reference, compared = engines
    return {
        **corpus_facts(replace(choice, off=()), reference, n_texts, n_tokens),
        COMPARED: compared.files.name,
        "its revision": compared.files.revision or "local",
        "its fingerprint": compared.files.fingerprint,
        "differences": DIFFERENCES,
    }


def threshold_facts(choice: Choice) -> dict[str, str]:
    return {"scale": choice.scale, "tau": f"{choice.criterion.tau:g}"}


def engine_facts(choice: Choice, engine: Engine) -> dict[str, str]:
    settings = choice.pass_settings(engine)
    return {
        "program": f"Attention Sieve {__version__}",
        "checkpoint": engine.files.name,
        "revision": engine.files.revision or "local",
        "fingerprint": engine.files.fingerprint,
        "dtype": engine.dtype,
        **engine.files.facts_of_weights,
        **({} if settings.kind == "self" else {"attention": settings.kind}),
        **({"heads off": ", ".join(head_name(*head) for head in settings.off)} if settings.off else {}),
        "parser": parser_name(state.parser()),
    }


def caption(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Provenance as lines below a figure, those of the checkpoint first."""
    facts = {name: value[:12] if name.endswith(("fingerprint", "sha256")) else value for name, value in facts.items()}
    names = list(facts)
    n_engine = names.index("parser") + 1
    return (
        ", ".join(facts[name] if name == "program" else f"{name} {facts[name]}" for name in names[:n_engine]),
        *(shortened(f"{name}: {facts[name]}") for name in names[n_engine:] if name == "text"),
        ", ".join(f"{name} {facts[name]}" for name in names[n_engine:] if name != "text"),
    )


def titled(title: str, facts: Mapping[str, str]) -> str:
    """A figure's title with its checkpoint and its texts, such as "Roles of 72 heads, bert-base, 128 sample texts"."""
    return ", ".join(part for part in (title, models(facts), texts(facts)) if part)


def models(facts: Mapping[str, str]) -> str:
    """Name of the checkpoint, or of the compared one against its reference; of a path, the last part."""
    reference = wording.model_name(facts["checkpoint"])
    return f"{wording.model_name(facts[COMPARED])} against {reference}" if COMPARED in facts else reference


def texts(facts: Mapping[str, str]) -> str:
    """Number of texts and corpus, or the one text; empty if the facts name neither."""
    if "corpus texts" in facts:
        return f"{int(facts['corpus texts']):,} {CORPUS_NAMES.get(facts['corpus'], facts['corpus'])}"
    if "text" in facts:
        text = facts["text"].replace(" ||| ", " / ")
        return "“" + (text if len(text) <= LONGEST_QUOTE else text[: LONGEST_QUOTE - 1].rstrip() + "…") + "”"
    return ""


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"


CORPUS: Final = "texts.jsonl"
ONE_TEXT: Final = "text.jsonl"
THEN: Final = " && "
"""Between two lines of which the second follows the first."""
NO_COMMAND: Final = "none computes these numbers"
"""In place of a command."""
PARSES: Final = ("card", "roles", "score", "controls", "relations", "word-links", "tree-probes", "claim")
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
    return {**facts, "command": NO_COMMAND}


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
