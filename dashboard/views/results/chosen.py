"""Which results folder is looked at, and which of its texts."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import streamlit as st

from core.attention.settings import Head
from core.corpus.results import Part, Results
from core.corpus.strata import EVERYTHING, Stratum
from core.roles.hypotheses import HeadTests
from core.roles.measures import USUAL_TAU
from dashboard import controls, state
from dashboard.files import provenance
from dashboard.offers.results import open_offered
from dashboard.plain import plain
from dashboard.state import Choice
from dashboard.views.pickers import from_list
from dashboard.views.results import wording

KEPT: Final = 16
"""Parts of corpora whose statistics stay in memory, for all readers."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Opened:
    """A part of a corpus, and the reader's settings."""

    chosen: Choice
    results: Results
    part: Part
    facts: dict[str, str]

    @property
    def reset(self) -> tuple[object, ...]:
        """Changes where views have to take the chosen heads over."""
        return self.results.folder, self.results.fingerprint, state.n_pushed()

    def heads(self, otherwise: Head) -> list[Head]:
        """The chosen heads."""
        n_layers, n_heads = self.shape
        return state.chosen_heads(n_layers, n_heads, otherwise)

    @property
    def shape(self) -> tuple[int, int]:
        """Layers and heads."""
        return next(iter(sums.n.shape[-2:] for sums in self.part.statistics.sums.values() if sums.n.ndim > 3))


def is_chosen() -> bool:
    """Whether the corpus of the sidebar is a results folder."""
    return st.session_state.get("corpus") == controls.RESULTS


def opened() -> Opened | None:
    """What the page is about; None while no folder is named.

    Raises: AnalysisError for a folder that holds no results.
    """
    chosen, name = state.choice(), st.session_state.get("results")
    if not name:
        st.info(controls.wording.WAIT_RESULTS)
        return None
    results = open_offered(str(name))
    scale = results.settings.scale
    if scale != chosen.scale:  # tau of the drawer is one of another scale
        chosen = replace(chosen, criterion=replace(chosen.criterion, tau=USUAL_TAU[scale]))
    stratum = _stratum(results)
    return Opened(
        chosen=chosen, results=results, part=part_of(results, stratum), facts=_facts(chosen, results, stratum)
    )


def decided(of: Opened, by_evidence: bool) -> HeadTests:
    """The roles of the part by the reader's settings."""
    criterion = of.chosen.criterion
    return of.part.by_evidence(criterion) if by_evidence else of.part.tests(criterion)


def busiest(tests: HeadTests) -> Head:
    """The head with most roles."""
    n_held = tests.holds.sum(axis=0)
    layer, head = np.unravel_index(n_held.argmax(), n_held.shape)
    return int(layer), int(head)


def part_of(results: Results, stratum: Stratum) -> Part:
    """The statistics of a part, read once while its file stays as it is."""
    return _part(results.file.path.stat().st_mtime_ns, str(results.folder), stratum, results)


@st.cache_resource(max_entries=KEPT, show_spinner=False)
def _part(written: int, folder: str, stratum: Stratum, _results: Results) -> Part:
    return _results.part(stratum)


def _stratum(results: Results) -> Stratum:
    """The part that the reader picks."""
    names = {each.title: each for each in results.strata}
    if len(names) == 1:
        return EVERYTHING
    return from_list(wording.PART, names, key="part", help=wording.PART_HELP, width=280)


def say_what(of: Opened) -> None:
    """Say what the results are of."""
    results, part = of.results, of.part
    left_out = [
        f"{n:,} {why}"
        for n, why in ((results.n_too_long, "too long"), (results.n_without_token, "without a known token"))
        if n and part.stratum == EVERYTHING
    ]
    name = plain(results.folder.name)
    st.markdown(wording.said_of_corpus(name, plain(results.checkpoint), part.n_texts, part.n_tokens, left_out))
    settings = results.settings.of_scores
    if settings.scale != of.chosen.scale:
        st.info(wording.SCORED_WITH + plain(f"{settings.scale}, {settings.direction}."))


def _facts(chosen: Choice, results: Results, stratum: Stratum) -> dict[str, str]:
    """What files say about where they come from."""
    criterion, settings = chosen.criterion, results.settings
    part = part_of(results, stratum)
    return {
        "program": f"Attention Sieve {provenance.VERSION}",
        "checkpoint": results.checkpoint,
        "fingerprint": results.fingerprint,
        "dtype": settings.dtype,
        "parser": "yes" if settings.parses else "no",
        "corpus": f"texts of {results.folder.name}",
        "corpus texts": str(part.n_texts),
        "part": stratum.title,
        "tau": f"{criterion.tau:g}",
        "alpha": f"{criterion.alpha:g}",
        "rule": criterion.rule,
        "correction": criterion.correction,
        "family": criterion.family,
        "scale": settings.scale,
        "direction": settings.direction,
    }
