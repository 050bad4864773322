"""What the reader has chosen: session state, and the query parameters of the link that restores it."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import streamlit as st

from cache.inference import Engine
from core.hypotheses import Correction, Criterion, Method
from core.measures import ScoreSettings
from core.parses import parser_name
from core.texts import Text

HEADS: Final = "head"
"""Query parameter of the chosen heads, as `3-7,2-5`: layer and head, both 0-based."""
AUTO: Final = "auto"
LONGEST_LINE: Final = 110
NO_HEAD: Final = "none"
VERSION: Final = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]["version"]

CORRECTIONS: Final[dict[str, Correction]] = {"Benjamini-Hochberg": "bh", "Holm": "holm", "none": "none"}
METHODS: Final[dict[str, Method]] = {"t-test": "test", "mean alone": "mean"}
"""Names as the page and its link show them."""

Head = tuple[int, int]


@dataclass(frozen=True)
class Choice:
    """What every page shares."""

    checkpoint: str
    device: str
    dtype: str
    corpus: str
    """One of controls.CORPORA."""
    criterion: Criterion
    score_settings: ScoreSettings


def choice() -> Choice:
    """The shared choices, from the widgets of the sidebar.

    Raises: AnalysisError for a value that a hand-written link brought and no widget offers.
    """
    values = st.session_state
    return Choice(
        checkpoint=values["checkpoint"] or "",
        device=values["device"],
        dtype="float32" if values["dtype"] == AUTO else values["dtype"],
        corpus=values["corpus"],
        criterion=Criterion(
            tau=float(values["tau"]),
            alpha=float(values["alpha"]),
            correction=CORRECTIONS[values["correction"]],
            ddof=int(values["ddof"]),  # type: ignore[arg-type]
            method=METHODS[values["method"]],
        ),
        score_settings=ScoreSettings(direction=values["direction"], block_entropy=values["entropy"]),
    )


def heads_from_link() -> list[Head] | None:
    """Heads named in the link, None where it names none; what is not `layer-head` is left out."""
    named = st.query_params.get(HEADS)
    if named is None:
        return None
    found = []
    for part in named.split(","):
        layer, _, head = part.partition("-")
        if layer.isascii() and layer.isdigit() and head.isascii() and head.isdigit():
            found.append((int(layer), int(head)))
    return found


def chosen_heads(n_layers: int, n_heads: int, otherwise: Head) -> list[Head]:
    """Chosen heads that this checkpoint has.

    On a first visit those of the link, or `otherwise` where it says nothing; `otherwise` too when this checkpoint has
    none of those that were chosen. None at all only where the reader cleared the choice.
    """
    if HEADS not in st.session_state:
        st.session_state[HEADS] = heads_from_link()
    chosen = st.session_state[HEADS]
    inside = [(layer, head) for layer, head in chosen or () if layer < n_layers and head < n_heads]
    if not inside and chosen != []:
        inside = st.session_state[HEADS] = [otherwise]
    return inside


def choose_heads(heads: list[Head]) -> None:
    """Remember heads across pages and in the link."""
    st.session_state[HEADS] = heads
    put_in_link(heads)


def push_heads(heads: list[Head]) -> None:
    """Choose heads from outside the grid, which then takes them over."""
    choose_heads(heads)
    st.session_state["pushed heads"] = n_pushed() + 1


def n_pushed() -> int:
    """How often heads were chosen from outside the grid."""
    return st.session_state.get("pushed heads", 0)


def put_in_link(heads: list[Head]) -> None:
    """Write heads to the address bar; a page change clears what no widget is bound to."""
    wanted = ",".join(f"{layer}-{head}" for layer, head in heads) or NO_HEAD
    if st.query_params.get(HEADS) != wanted:
        st.query_params[HEADS] = wanted


def corpus_facts(chosen: Choice, engine: Engine, n_texts: int) -> dict[str, str]:
    """What a file about a corpus says about where it comes from."""
    criterion, settings = chosen.criterion, chosen.score_settings
    return {
        **_engine_facts(engine),
        "corpus": chosen.corpus,
        "corpus texts": str(n_texts),
        "tau": f"{criterion.tau:g}",
        "alpha": f"{criterion.alpha:g}",
        "correction": criterion.correction,
        "ddof": str(criterion.ddof),
        "method": criterion.method,
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
    }


def text_facts(engine: Engine, text: Text) -> dict[str, str]:
    """What a file about one text says about where it comes from."""
    return {**_engine_facts(engine), "text": " ||| ".join(text.segments)}


def _engine_facts(engine: Engine) -> dict[str, str]:
    return {
        "program": f"Attention Sieve {VERSION}",
        "checkpoint": engine.files.name,
        "revision": engine.files.revision or "local",
        "fingerprint": engine.files.fingerprint,
        "dtype": engine.dtype,
        "parser": parser_name(),
    }


def caption(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Provenance as lines under a figure, the engine's first."""
    facts = {**facts, "fingerprint": facts["fingerprint"][:12]}
    names = list(facts)
    n_engine = names.index("parser") + 1
    return (
        ", ".join(facts[name] for name in names[:n_engine]),
        *(shortened(f"{name}: {facts[name]}") for name in names[n_engine:] if name == "text"),
        ", ".join(f"{name} {facts[name]}" for name in names[n_engine:] if name != "text"),
    )


def shortened(text: str) -> str:
    """Text that fits the width of a figure."""
    return text if len(text) <= LONGEST_LINE else text[: LONGEST_LINE - 1] + "…"
