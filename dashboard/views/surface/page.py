"""Where heads look: the surface statistics of every head, over a corpus."""

from functools import partial
from pathlib import Path
from typing import Final

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from attention_sieve.core.attention.settings import highest_head
from attention_sieve.core.corpus.results import Results
from attention_sieve.core.surface.analysis import (
    SURFACE_ANALYSIS,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.figures.surface.scatter import TITLES, panels_of
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.files.provenance import reads, without_command
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import Analysed, analysed, chosen_settings
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences
from attention_sieve.dashboard.views.frame import Places
from attention_sieve.dashboard.views.pickers import one_of, toggle
from attention_sieve.dashboard.views.results import wording as results_wording
from attention_sieve.dashboard.views.results.chosen import Opened, opened_results, say_what, texts_or_results
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.over_texts import frequency_list, functions, layers
from attention_sieve.dashboard.views.surface.panels import (
    Surface,
    agreement,
    entropy_panels,
    say,
    say_denominators,
    share_panel,
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
    places = frame.places()
    with places.sections:
        details = st.container(key="surface views")
        details.empty()  # without an element the container would take up no space
        folded = st.expander(shared_wording.SETTINGS)
        with folded:
            usual = SurfaceSettings(
                frequencies=frequency_list(),
                as_in_code=toggle(wording.AS_IN_CODE, key="surface as in code", help=wording.AS_IN_CODE_HELP),
                alpha=visit.choice.criterion.alpha,
            )
        settings = chosen_settings(usual, "surface", folded, {"punctuation": wording.PUNCTUATION})
    with places.finding:
        found = analysed(visit, SURFACE_ANALYSIS, settings)
    if found is not None:
        _draw(_of_texts(found), places, details)


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
    places = frame.places()
    with places.controls:
        opened = opened_results(results, "surface")
    with places.sections:
        say_what(opened)
    _draw(_of_corpus(opened), places, places.sections)


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


def _draw(surface: Surface, places: Places, details: DeltaGenerator) -> None:
    with places.finding:
        say(surface)
    with places.controls:
        options = {wording.PANELS[name]: name for name in panels_of(surface.statistics)}
        name = one_of(wording.SHARES, options, key="surface shares") if options else None
        if name == "neighbours":
            say_denominators(surface)
        frame.link_to_inspect(surface.heads)
    if name is not None:
        with places.picture:
            share_panel(surface, name)
    views = {
        wording.ENTROPY: entropy_panels,
        wording.CHOSEN: chosen_heads_table,
        wording.HEADS: head_grid,
        **surface.views,
        wording.TABLE: table,
    }
    with details:
        frame.tabs(surface.tabs, {title: partial(draw, surface) for title, draw in views.items()})
    state.put_in_link(surface.heads)
