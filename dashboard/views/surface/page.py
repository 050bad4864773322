"""Where heads look: the surface statistics of every head, over a corpus."""

from pathlib import Path
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import highest_head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.surface.analysis import (
    GRADIENT_ANALYSIS,
    SURFACE_ANALYSIS,
    GradientFinding,
    GradientSettings,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.dashboard import costs, state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.surface.gradient_lines import gradient_lines
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import reads
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, analysed, chosen_settings
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences
from attention_sieve.dashboard.views.pickers import halves, toggle
from attention_sieve.dashboard.views.results.chosen import texts_or_results
from attention_sieve.dashboard.views.surface import results, wording
from attention_sieve.dashboard.views.surface.functions import frequency_list, functions
from attention_sieve.dashboard.views.surface.panels import (
    HeadNumbers,
    Surface,
    agreement,
    entropy_panels,
    mostly,
    share_panels,
    summary,
)
from attention_sieve.dashboard.views.surface.tables import chosen_heads_table, head_grid, table

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)
REQUESTED: Final = "gradients asked for"
"""Session-state key of the inputs for which the reader has requested gradients."""


def show() -> None:
    frame.page("Where heads look", wording.SEE, texts_or_results(_surface, results.surface), NOTES)


def _surface() -> None:
    visit = frame.visit()
    if visit is None:
        return
    headline, details = st.container(key="surface headline"), st.container(key="surface views")
    settings_slot = st.container()
    for container in (headline, details):
        container.empty()  # without an element the container would take up no space
    with settings_slot:
        folded = st.expander(shared_wording.SETTINGS)
        with folded:
            usual = SurfaceSettings(
                frequencies=frequency_list(),
                as_in_code=toggle(wording.AS_IN_CODE, key="surface as in code", help=wording.AS_IN_CODE_HELP),
                alpha=visit.choice.criterion.alpha,
            )
        settings = chosen_settings(usual, "surface", folded, {"punctuation": wording.PUNCTUATION})
    with headline:
        found = analysed(visit, SURFACE_ANALYSIS, settings)
    if found is None:
        return
    numbers = _numbers(found)
    surface = Surface(visit=visit, finding=found.finding, numbers=numbers)
    with headline:
        _headline(surface)
        if settings.as_in_code:
            st.caption(wording.BY_CODE)
    with details:
        _details(surface)
        state.put_in_link(numbers.heads)
        frame.link_to_inspect(numbers.heads)


def _numbers(found: Analysed[SurfaceSettings, SurfaceFinding]) -> HeadNumbers:
    finding, settings, visit = found.finding, found.settings, found.visit
    n_layers, n_heads = finding.heads.mean.shape[1:]
    options = list[str]()
    if (words := settings.frequencies) is not None:
        options = ["--frequencies", reads("frequencies.txt", lambda: "\n".join(words.rank_of).encode())]
    files = visit.engine.files
    return HeadNumbers(
        statistics=finding.heads,
        checkpoint=files.name,
        alpha=settings.alpha,
        heads=state.chosen_heads(n_layers, n_heads, highest_head(finding.heads.of("confidence"))),
        reset=(files.name, files.fingerprint, state.n_pushed()),
        facts=provenance.corpus_facts(visit.choice, visit.engine, finding.n_texts) | found.facts(*options),
        as_in_code=settings.as_in_code,
    )


def _headline(surface: Surface) -> None:
    finding = surface.finding
    said = summary(
        finding.heads,
        finding.labels,
        n_texts=finding.n_texts,
        n_rare_texts=finding.rare.n_texts,
        n_removed=len(surface.visit.removed),
    )
    st.markdown(said if finding.n_texts >= wording.FEW_TEXTS else f"{said} {wording.FEW}")
    shares = mostly(finding.heads).items()
    layers = {name: np.flatnonzero(share.mean(axis=1) > wording.MOST).tolist() for name, share in shares}
    if any(layers.values()):
        st.markdown(plain(wording.most_of_layers({name: of_name for name, of_name in layers.items() if of_name})))
    if not np.isfinite(finding.heads.of("distance")).any():
        st.info(wording.NO_NEIGHBOURS)


def _details(surface: Surface) -> None:
    frame.tabs(
        "surface details",
        {
            wording.SHARES: lambda: share_panels(surface.numbers),
            wording.ENTROPY: lambda: _entropy(surface),
            wording.CHOSEN: lambda: chosen_heads_table(surface.numbers),
            wording.HEADS: lambda: head_grid(surface.numbers),
            wording.FUNCTIONS: lambda: functions(surface),
            wording.LAYERS: lambda: _layers(surface),
            wording.TABLE: lambda: table(surface.numbers, kept_sentences(surface.visit)),
        },
    )


def _entropy(surface: Surface) -> None:
    st.markdown(wording.ENTROPY_SEE)
    entropy_panels(surface.numbers, surface.finding.uniform)


def _layers(surface: Surface) -> None:
    left, right = halves()
    with left:
        agreement(surface.finding.layers, surface.numbers.facts)
    with right:
        gradients(surface)


def gradients(surface: Surface) -> None:
    """Draw lines by layer, a button to compute them, or the reason why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        corpus_finding = _gradient_finding(surface)
    except AnalysisError as error:
        show_error(error)
        return
    if corpus_finding is None:
        return
    texts, statistics = corpus_finding.finding.texts, corpus_finding.finding.statistics
    by_key = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(texts), sum(of_text.n_masked for of_text in texts)))
    facts = surface.numbers.facts | {"command": f"{surface.numbers.facts['command']} --gradients=gradients.parquet"}
    chart("gradients", gradient_lines(by_key), facts, wording.CLARK_3)


def _gradient_finding(surface: Surface) -> CorpusFinding[GradientFinding] | None:
    """Gradients that are cached or that the reader has requested; None while there are none."""
    visit = surface.visit
    of_surface = surface.finding.settings
    settings = GradientSettings(punctuation=of_surface.punctuation, alpha=of_surface.alpha)
    if (kept := kept_finding(visit, GRADIENT_ANALYSIS, settings)) is not None:
        return kept
    if visit.engine.files.head != "masked token":
        st.info(wording.NO_LANGUAGE_MODEL)
        return None
    question = (visit.engine, visit.settings, visit.texts)
    if st.session_state.get(REQUESTED) == question:
        return find(visit, GRADIENT_ANALYSIS, settings)
    st.button(
        wording.COMPUTE,
        icon=":material/calculate:",
        help=wording.COMPUTE_HELP,
        on_click=lambda: st.session_state.update({REQUESTED: question}),
    )
    costs.say(visit.engine.files, costs.TRAINING * len(visit.texts), visit.texts)
    return None
