"""Where else a claim holds: on other texts, and in other checkpoints."""

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from typing import Final

import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.claims.analysis import CLAIM_ANALYSIS
from attention_sieve.core.claims.places import PROBE_TEXTS, Place, places_table
from attention_sieve.core.claims.probe import PROBES, ClaimSettings, ClaimText, claim_texts
from attention_sieve.core.errors import AnalysisError, FetchNeeded
from attention_sieve.core.texts.parsers import parsers_by_language
from attention_sieve.core.texts.tokens import TooLong
from attention_sieve.dashboard import controls, costs
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.files.provenance import reads_texts
from attention_sieve.dashboard.plain import for_visitors, show_error
from attention_sieve.dashboard.progress import let_leave
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.claims import wording
from attention_sieve.dashboard.views.frame import Visit, can_read
from attention_sieve.dashboard.views.other_checkpoints import other_checkpoints

LONG: Final[TooLong] = "truncate"
"""What becomes of other texts that are too long."""
PASSES: Final = 3
"""Of each text of a place."""
ASKED: Final = "claim places"
"""Key of the places in which the reader has asked for a test."""


def inputs_of(visit: Visit, settings: ClaimSettings, texts: str) -> tuple[ClaimText, ...]:
    """The texts of this name; raises TextError."""
    if texts == PROBE_TEXTS:
        return _probe_texts(visit.engine, settings)
    if texts in controls.PROBES:
        return tuple(map(ClaimText, controls.corpus_of_probes(visit.engine.files, controls.PROBES[texts])))
    of_corpus = visit.texts if texts == visit.choice.corpus else ()
    read = of_corpus or controls.corpus_texts(replace(visit.choice, corpus=texts))
    return tuple(ClaimText(text) for text in read if can_read(visit.settings.kind, text))


def _probe_texts(engine: Engine, settings: ClaimSettings) -> tuple[ClaimText, ...]:
    """Kept, because reading a tokenizer takes a second."""

    def make() -> tuple[ClaimText, ...]:
        from attention_sieve.core.checkpoints.load import load_tokenizer  # imports torch

        return claim_texts(settings, None, load_tokenizer(engine.files))

    key = (engine.files.fingerprint, settings.claim.role, settings.number, settings.seed)
    return controls.memory().get_or_put("claim texts", key, lambda: let_leave(make))


def elsewhere(visit: Visit, here: Place, settings: ClaimSettings, facts: Callable[..., dict[str, str]]) -> None:
    """A table of the places where a claim holds; `facts` makes the metadata of its file with options of its command."""
    st.markdown(wording.ELSEWHERE_SEE)
    others = other_checkpoints(
        "Other checkpoints",
        visit.choice,
        (),
        placeholder="none",
        help="Heads of the same numbers are tested there, on the texts chosen above.",
    )
    asked: set[tuple[ClaimSettings, str, str]] = st.session_state.setdefault(ASKED, set())
    places, missing = [here], list[tuple[str, str]]()
    with st.container():  # bars of progress
        for checkpoint, texts in _others(visit, here, settings.claim.role, others):
            place = _place(visit, settings, (checkpoint, texts), is_asked=(settings, checkpoint, texts) in asked)
            if place is None:
                missing.append((checkpoint, texts))
            else:
                places.append(place)
    st.table(wording.table_of(places), border="horizontal", hide_index=True)
    if missing:
        with st.container(horizontal=True, vertical_alignment="center", gap="small", key="not tested"):
            st.markdown("Not tested yet:", width="content")
            for checkpoint, texts in missing:
                add = partial(asked.add, (settings, checkpoint, texts))
                st.button(
                    wording.place_name(checkpoint, texts, here),
                    key=f"test in {checkpoint} on {texts}",
                    on_click=add,
                    icon=":material/play_arrow:",
                    type="tertiary",
                    help=_cost(visit, settings, (checkpoint, texts)),
                )
    if len(places) > 1:
        also = (f"--also={_option(visit, settings, place, here)}" for place in places[1:])
        table_downloads("claim in several places", places_table(places), facts(*also))


def _cost(visit: Visit, settings: ClaimSettings, where: tuple[str, str]) -> str | None:
    """How long a test there takes: a pass of each text as it is, with permuted keys, and beside pairs as far apart."""
    try:
        visit, inputs = _visit_of(visit, settings, where)
    except AnalysisError:  # which is said in the table
        return None
    texts = [each.text for each in inputs]
    return costs.takes(visit.engine.files, PASSES * len(texts), texts)


def _visit_of(visit: Visit, settings: ClaimSettings, where: tuple[str, str]) -> tuple[Visit, tuple[ClaimText, ...]]:
    """The visit of a place, and its texts; raises AnalysisError."""
    checkpoint, texts = where
    if checkpoint != visit.engine.files.name:
        visit = replace(visit, engine=controls.other_engine(visit.choice, checkpoint))
    visit.engine.files.check_heads(visit.settings.kind, settings.claim.heads)
    return visit, inputs_of(visit, settings, texts)


def _option(visit: Visit, settings: ClaimSettings, place: Place, here: Place) -> str:
    if place.checkpoint != here.checkpoint:
        return place.checkpoint
    if place.texts == PROBE_TEXTS:
        return PROBE_TEXTS
    texts = [each.text for each in inputs_of(visit, settings, place.texts)]
    file = reads_texts(texts, f"{re.sub(r'[^A-Za-z0-9 ,-]', '', place.texts)}.jsonl")
    parser = texts[0].parser
    return f"{file}@{parser}" if parser else file


def _others(visit: Visit, here: Place, role: str, others: list[str]) -> Iterator[tuple[str, str]]:
    languages, own = parsers_by_language(), (PROBES.get(role), "fixed-repeats")
    typed = visit.choice.corpus in (controls.UPLOAD, controls.TYPED) and controls.corpus_texts(visit.choice)
    offered = (
        *((PROBE_TEXTS,) if role in PROBES else ()),
        *(name for name, sample in controls.SAMPLES.items() if sample != "both"),
        *(name for name, language in controls.SAMPLES_IN.items() if language in languages),
        *(name for name, kind in controls.PROBES.items() if kind not in own and visit.engine.files.is_decoder),
        *((visit.choice.corpus,) if typed else ()),
    )
    yield from ((here.checkpoint, texts) for texts in offered if texts != here.texts)
    yield from ((checkpoint, here.texts) for checkpoint in others)


def _place(visit: Visit, settings: ClaimSettings, where: tuple[str, str], *, is_asked: bool) -> Place | None:
    """What became of the claim in a place; None where it is not computed yet, and not asked for."""
    checkpoint, texts = where
    try:
        visit, inputs = _visit_of(visit, settings, where)
        asks = find if is_asked else kept_finding
        found = asks(visit, CLAIM_ANALYSIS, settings, inputs, LONG)
    except FetchNeeded as error:
        show_error(error)  # with the button that confirms the download
        return None
    except AnalysisError as error:
        return Place(checkpoint=checkpoint, texts=texts, finding=None, why_not=for_visitors(str(error)))
    return None if found is None else Place(checkpoint=checkpoint, texts=texts, finding=found.finding)
