"""Provenance of the files that a page offers: facts such as checkpoint, texts and settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from attention_sieve import __version__
from attention_sieve.cache.answers import Engine
from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.roles.roles import ROLES, role_title
from attention_sieve.core.texts.parsers import parser_name
from attention_sieve.core.texts.text import Text
from attention_sieve.dashboard import controls, state, wording
from attention_sieve.dashboard.state import Choice

LONGEST_LINE: Final = 110
LONGEST_QUOTE: Final = 60
COMPARED: Final = "compared checkpoint"
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
        "differences": "compared minus reference (b - a)",
    }


def threshold_facts(choice: Choice) -> dict[str, str]:
    return {"scale": choice.scale, "tau": f"{choice.criterion.tau:g}"}


def text_facts(choice: Choice, engine: Engine, text: Text) -> dict[str, str]:
    return {**engine_facts(choice, engine), "text": " ||| ".join(text.segments)}


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
    return facts.get("mentions of", "")


def shortened(text: str) -> str:
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
