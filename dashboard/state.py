"""What the reader has chosen: session state, and the query parameters of the link that restores it."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Final

import streamlit as st

from cache.inference import Engine
from core.hypotheses import Correction, Criterion, Method
from core.measures import ScoreSettings

HEADS: Final = "head"
"""Query parameter of the chosen heads, as `3-7,2-5`: layer and head, both 0-based."""
AUTO: Final = "auto"
VERSION: Final = "0.1.0"

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


def heads_from_link() -> list[Head]:
    """Heads named in the link; what is not `layer-head` is left out."""
    found = []
    for part in st.query_params.get(HEADS, "").split(","):
        layer, _, head = part.partition("-")
        if layer.isascii() and layer.isdigit() and head.isascii() and head.isdigit():
            found.append((int(layer), int(head)))
    return found


def chosen_heads(n_layers: int, n_heads: int, otherwise: Head) -> list[Head]:
    """Chosen heads that this checkpoint has; from the link on a first visit, `otherwise` when none is left."""
    if HEADS not in st.session_state:
        st.session_state[HEADS] = heads_from_link()
    inside = [(layer, head) for layer, head in st.session_state[HEADS] if layer < n_layers and head < n_heads]
    return inside or [otherwise]


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
    wanted = ",".join(f"{layer}-{head}" for layer, head in heads)
    if st.query_params.get(HEADS) != wanted:
        st.query_params[HEADS] = wanted


def provenance(chosen: Choice, engine: Engine, n_texts: int) -> dict[str, str]:
    """What a downloaded file says about where it comes from."""
    criterion, settings = chosen.criterion, chosen.score_settings
    return {
        "checkpoint": engine.files.name,
        "revision": engine.files.revision or "local",
        "fingerprint": engine.files.fingerprint,
        "dtype": engine.dtype,
        "corpus texts": str(n_texts),
        "corpus": chosen.corpus,
        "tau": f"{criterion.tau:g}",
        "alpha": f"{criterion.alpha:g}",
        "correction": criterion.correction,
        "ddof": str(criterion.ddof),
        "method": criterion.method,
        "direction": settings.direction,
        "block entropy": "yes" if settings.block_entropy else "no",
        "parser": _parser(),
        "program": f"Attention Sieve {VERSION}",
    }


def caption(facts: Mapping[str, str]) -> tuple[str, ...]:
    """Provenance as two lines under a figure."""
    return (
        f"{facts['checkpoint']} ({facts['fingerprint'][:12]}, {facts['dtype']}), {facts['corpus texts']} texts: "
        f"{facts['corpus']}",
        f"tau {facts['tau']}, alpha {facts['alpha']}, correction {facts['correction']}, method {facts['method']}, "
        f"ddof {facts['ddof']}, {facts['direction']}, {facts['program']}",
    )


def _parser() -> str:
    try:
        return f"spacy {version('spacy')}"
    except PackageNotFoundError:
        return "none"
