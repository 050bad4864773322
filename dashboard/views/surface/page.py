"""Where heads look: the surface statistics of every head, over a corpus."""

from functools import partial
from pathlib import Path
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import highest_head
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.surface.analysis import (
    SURFACE_ANALYSIS,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.surface.scatter import TITLES
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import reads, without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, analysed, chosen_settings
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences
from attention_sieve.dashboard.views.pickers import toggle
from attention_sieve.dashboard.views.results import wording as results_wording
from attention_sieve.dashboard.views.results.chosen import Opened, opened_results, say_what, texts_or_results
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.over_texts import frequency_list, functions, layers
from attention_sieve.dashboard.views.surface.panels import (
    Surface,
    agreement,
    entropy_panels,
    mostly,
    share_panels,
    summary,
)
from attention_sieve.dashboard.views.surface.tables import (
    chosen_heads_table,
    head_grid,
    highest,
    parts_table,
    table,
)

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS, paper_title=wording.PAPER_TITLE)


def show() -> None:
    frame.page("Where heads look", wording.SEE, texts_or_results(_over_texts, _over_corpus), NOTES)


def _over_texts() -> None:
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
    surface = _of_texts(found)
    with headline:
        _headline(surface)
    with details:
        _draw(surface)
        frame.link_to_inspect(surface.heads)


def _of_texts(found: Analysed[SurfaceSettings, SurfaceFinding]) -> Surface:
    finding, settings, visit = found.finding, found.settings, found.visit
    n_layers, n_heads = finding.heads.mean.shape[1:]
    options = list[str]()
    if (words := settings.frequencies) is not None:
        options = ["--frequencies", reads("frequencies.txt", lambda: "\n".join(words.rank_of).encode())]
    files = visit.engine.files
    return Surface(
        statistics=finding.heads,
        labels=finding.labels,
        uniform=finding.uniform,
        n_texts=finding.n_texts,
        n_rare_texts=finding.rare.n_texts,
        checkpoint=files.name,
        alpha=settings.alpha,
        heads=state.chosen_heads(n_layers, n_heads, highest_head(finding.heads.of("confidence"))),
        reset=(files.name, files.fingerprint, state.n_pushed()),
        facts=provenance.corpus_facts(visit.choice, visit.engine, finding.n_texts) | found.facts(*options),
        tabs="surface details",
        views={wording.FUNCTIONS: partial(functions, found), wording.LAYERS: partial(layers, found)},
        sentences=lambda: kept_sentences(visit),
        n_removed=len(visit.removed),
        as_in_code=settings.as_in_code,
    )


def _over_corpus(results: Results) -> None:
    opened = opened_results(results, "surface")
    say_what(opened)
    surface = _of_corpus(opened)
    _headline(surface)
    _draw(surface)


def _of_corpus(opened: Opened) -> Surface:
    part, alpha = opened.part, opened.choice.criterion.alpha
    statistics, by_layer, (labels, rare) = part.surface(alpha), part.layers(alpha), part.labels()
    return Surface(
        statistics=statistics,
        labels=labels,
        uniform=dict(zip(TITLES, by_layer.mean[2:], strict=True)),
        n_texts=part.n_texts,
        n_rare_texts=rare.n_texts,
        checkpoint=opened.results.checkpoint,
        alpha=alpha,
        heads=opened.heads(highest_head(statistics.of("confidence"))),
        reset=opened.reset,
        facts=opened.facts,
        tabs="results surface",
        views={
            wording.LAYERS: lambda _: agreement(by_layer, without_command(opened.facts)),
            results_wording.PARTS: partial(parts_table, opened),
            results_wording.HIGHEST: partial(highest, opened),
        },
    )


def _headline(surface: Surface) -> None:
    statistics, said = surface.statistics, summary(surface)
    st.markdown(said if surface.n_texts >= wording.FEW_TEXTS else f"{said} {wording.FEW}")
    shares = mostly(statistics).items()
    most = {name: np.flatnonzero(share.mean(axis=1) > wording.MOST).tolist() for name, share in shares}
    if any(most.values()):
        st.markdown(plain(wording.most_of_layers({name: of_name for name, of_name in most.items() if of_name})))
    if not np.isfinite(statistics.of("distance")).any():
        st.info(wording.NO_NEIGHBOURS)
    if surface.as_in_code:
        st.caption(wording.BY_CODE)


def _draw(surface: Surface) -> None:
    views = {
        wording.SHARES: share_panels,
        wording.ENTROPY: entropy_panels,
        wording.CHOSEN: chosen_heads_table,
        wording.HEADS: head_grid,
        **surface.views,
        wording.TABLE: table,
    }
    frame.tabs(surface.tabs, {title: partial(draw, surface) for title, draw in views.items()})
    state.put_in_link(surface.heads)
