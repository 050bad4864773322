"""Similar heads: which heads attend alike, over a corpus."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

import streamlit as st

from attention_sieve.core.attention.settings import PassSettings, head_name
from attention_sieve.core.similarity.analysis import SIMILARITY_ANALYSIS
from attention_sieve.core.similarity.distances import DistanceSettings, closest_pair, present_heads
from attention_sieve.dashboard import state
from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.components.grid import patterns_of
from attention_sieve.dashboard.figures.miniatures import pattern_mark
from attention_sieve.dashboard.files import provenance
from attention_sieve.dashboard.samples import EXAMPLE
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.analysis import analysed, chosen_settings
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences
from attention_sieve.dashboard.views.distances import ALL_TEXTS, N_TEXTS, N_TEXTS_KEY, USUAL, compared_texts
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import one_of
from attention_sieve.dashboard.views.similarity import wording
from attention_sieve.dashboard.views.similarity.details import layers, left_outside, nearest, pairs, points, table, tree
from attention_sieve.dashboard.views.similarity.kinds import kinds_of_heads
from attention_sieve.dashboard.views.similarity.numbers import (
    HOW_FAR_KEY,
    MEAN_UNIT,
    SUM_UNIT,
    Arranged,
    Similar,
    arranged,
)

NOTES: Final = frame.read_notes(Path(__file__).parent, wording.NUMBERS)
COLOUR_KEY: Final = "similarity colour"


def show() -> None:
    frame.page("Similar heads", wording.SEE, _similar, NOTES)


def _similar() -> None:
    visit = frame.visit()
    if visit is None:
        return
    n_texts = (*map(str, N_TEXTS), ALL_TEXTS)
    places = frame.places()
    with places.controls:
        one_of(wording.N_TEXTS, _by_name(n_texts), key=N_TEXTS_KEY, start=str(USUAL), help=wording.N_TEXTS_HELP)
        smoothed = one_of(wording.HOW_FAR, wording.SMOOTHED, key=HOW_FAR_KEY, help=wording.HOW_FAR_HELP)
        by = one_of(wording.COLOUR, _by_name(wording.COLOURS), key=COLOUR_KEY, help=wording.COLOUR_HELP)
        more = st.popover(shared_wording.SETTINGS, icon=":material/tune:")
    settings = chosen_settings(DistanceSettings(smoothed=smoothed), "similarity", more, {"rows": wording.ROWS_COMPARED})
    compared = replace(visit, texts=compared_texts(visit.texts))
    with places.finding:
        found = analysed(compared, SIMILARITY_ANALYSIS, settings)
        if found is None:
            return
        n_layers, n_heads = found.finding.shape
        if present_heads(found.finding.mean).sum() < 2:
            st.info(wording.NO_SECOND_HEAD)
            return
        arrangement = arranged(found.finding, smoothed=smoothed)
        unit = SUM_UNIT if smoothed else MEAN_UNIT
        _say(arrangement, unit, len(visit.texts))
        kinds = kinds_of_heads(visit, compared, (n_layers, n_heads), by)
    pair = closest_pair(arrangement.distances)
    similar = Similar(
        engine=visit.engine,
        arranged=arrangement,
        unit=unit,
        kinds=kinds,
        heads=state.chosen_heads(n_layers, n_heads, pair[0] if pair else (0, 0)),
        facts=provenance.corpus_facts(visit.choice, visit.engine, found.finding.n_texts) | found.facts(),
        sentences=kept_sentences(visit),
        patterns=_patterns(visit),
    )
    with places.controls:
        outside = left_outside(arrangement.plane)
    with places.picture:
        points(similar, outside, by)
    with places.sections:
        _sections(similar)
        frame.link_to_inspect(similar.heads)
    state.put_in_link(similar.heads)


def _patterns(visit: Visit) -> list[list[str]] | None:
    """The marks of the heads: their patterns in the example."""
    settings = PassSettings(visit.settings.kind)
    if not frame.can_read(settings.kind, EXAMPLE):
        return None
    text_attention, _ = visit.inference.look(visit.engine, EXAMPLE, settings, too_long="truncate")
    return [[pattern_mark(cells) for cells in of_layer] for of_layer in patterns_of(text_attention).cells]


def _by_name(names: Sequence[str]) -> dict[str, str]:
    """Options whose value is their name: the card of a head on Inspect reads them by name too."""
    return {name: name for name in names}


def _say(arranged: Arranged, unit: str, n_all: int) -> None:
    pair = closest_pair(arranged.distances)
    frame.say_finding(
        wording.NO_PAIR if pair is None else wording.closest(head_name(*pair[0]), head_name(*pair[1])),
        wording.summary(
            None if pair is None else pair[2],
            unit,
            (arranged.divergences.n_texts, n_all),
            int(present_heads(arranged.distances).sum()),
        ),
    )


def _sections(similar: Similar) -> None:
    frame.tabs(
        "similarity details",
        {
            wording.CHOSEN: lambda: nearest(similar),
            wording.TREE: lambda: tree(similar),
            wording.LAYERS: lambda: layers(similar),
            wording.PAIR: lambda: pairs(similar),
            wording.TABLE: lambda: table(similar),
        },
    )
