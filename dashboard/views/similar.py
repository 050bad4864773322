"""Similar heads: which heads attend alike, over a corpus."""

from collections.abc import Callable
from typing import Any

import numpy as np
import streamlit as st

from cache.distances import distance_question
from cache.inference import Engine, Inference
from cache.surface import SURFACE, found_surface
from core.errors import AnalysisError
from core.head_layout import groups
from core.roles import ROLES, shown_roles
from core.similar_heads import behaviours, closest_pair, within_and_between
from core.surface_statistics import head_statistics
from core.texts import Text
from dashboard import controls, provenance, state
from dashboard import similar_wording as wording
from dashboard import wording as shared_wording
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.head_kinds import BEHAVIOUR_LOOKS, ROLE_LOOKS, HeadKinds
from dashboard.figures.head_map_mds import heads_by_kind, heads_by_layer
from dashboard.plain import show_error
from dashboard.state import Choice
from dashboard.views.asking import asked
from dashboard.views.charts import chart
from dashboard.views.corpus import ask_about_long_texts, ask_for_texts, corpus, policy, readable
from dashboard.views.layout import halves
from dashboard.views.similar_details import layers, nearest, pairs, table, tree
from dashboard.views.similar_focus import (
    HOW_FAR_KEY,
    MEAN_UNIT,
    N_TEXTS,
    N_TEXTS_KEY,
    SUM_UNIT,
    USUAL,
    Arranged,
    Similar,
    arranged,
    compared_texts,
    how,
)

COLOUR_KEY = "similar colour"


def show() -> None:
    """Draw the page."""
    st.title("Similar heads")
    st.markdown(wording.SEE)
    try:
        _similar()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        st.markdown(wording.HOW)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(shared_wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _similar() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    given = controls.corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    if not texts:
        ask_for_texts(chosen, given)
        return
    _settings()
    wanted, settings = compared_texts(texts), chosen.pass_settings(engine)
    answers = asked(inference, engine, chosen, distance_question(how()), wanted)
    if answers is None:
        return
    state.remember_off(chosen)
    ask_about_long_texts(answers.too_long)
    n_layers, n_heads = answers.results[0]["relative"].shape[:2]
    if n_layers * n_heads < 2:
        st.info(wording.NO_SECOND_HEAD)
        return
    found = arranged(answers, (engine, wanted, settings, policy(), how()))
    unit = SUM_UNIT if how().smoothed else MEAN_UNIT
    if len(wanted) < len(texts):
        st.caption(wording.of_texts(len(wanted), len(texts)))
    _summary(found, unit)
    kinds = _kinds(inference, engine, chosen, texts, wanted, (n_layers, n_heads))
    pair = closest_pair(found.distances)
    _draw(
        Similar(
            engine=engine,
            arranged=found,
            unit=unit,
            kinds=kinds,
            heads=state.chosen_heads(n_layers, n_heads, pair[0] if pair else (0, 0)),
            facts=_facts(chosen, engine, found),
        )
    )


def _settings() -> None:
    kept: dict[str, Any] = {"bind": "query-params", "persist_state": "session"}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.segmented_control(
            wording.N_TEXTS,
            (*map(str, N_TEXTS), wording.ALL_TEXTS),
            default=str(USUAL),
            key=N_TEXTS_KEY,
            required=True,
            help=wording.N_TEXTS_HELP,
            **kept,
        )
        st.segmented_control(
            wording.HOW_FAR,
            (wording.MEAN, wording.AUTHORS),
            default=wording.MEAN,
            key=HOW_FAR_KEY,
            required=True,
            help=wording.HOW_FAR_HELP,
            **kept,
        )
        st.segmented_control(
            wording.COLOUR,
            (wording.BEHAVIOUR, wording.ROLE),
            default=wording.BEHAVIOUR,
            key=COLOUR_KEY,
            required=True,
            help=wording.COLOUR_HELP,
            **kept,
        )


def _facts(chosen: Choice, engine: Engine, found: Arranged) -> dict[str, str]:
    return {
        **provenance.corpus_facts(chosen, engine, found.found.n_texts),
        "rows smoothed": "yes" if how().smoothed else "no",
        "most rows of a text": str(how().rows),
    }


def _summary(found: Arranged, unit: str) -> None:
    pair = closest_pair(found.distances)
    n_layers, n_heads = found.found.shape
    said = wording.summary(
        None if pair is None else (head_name(*pair[0]), head_name(*pair[1]), pair[2]),
        *within_and_between(found.distances),
        unit,
        found.found.n_texts,
        n_layers * n_heads,
    )
    sizes = [len(part) for part in groups(found.tree)]
    st.markdown(f"{said} {wording.groups_of(sizes, found.tree.cut, unit)}")


def _kinds(
    inference: Inference,
    engine: Engine,
    chosen: Choice,
    texts: tuple[Text, ...],
    wanted: tuple[Text, ...],
    shape: tuple[int, int],
) -> HeadKinds:
    """Behaviours over the compared texts, or roles over the corpus; none where the reader has stopped the work."""
    if st.session_state[COLOUR_KEY] == wording.ROLE:
        return _roles(inference, engine, chosen, texts, shape)
    of = np.full(shape, -1)
    answers = asked(inference, engine, chosen, SURFACE, wanted)
    if answers is None:
        st.info(wording.NO_BEHAVIOUR)
    else:
        of = behaviours(head_statistics(found_surface(answers)))
    return HeadKinds(title=wording.BEHAVIOUR, looks=BEHAVIOUR_LOOKS, of=of)


def _roles(
    inference: Inference, engine: Engine, chosen: Choice, texts: tuple[Text, ...], shape: tuple[int, int]
) -> HeadKinds:
    tested = corpus(inference, engine, chosen, texts)
    of = np.full(shape, -1)
    if tested is not None:
        coarse, _ = shown_roles(tested.tests.mean)
        places = [ROLES.index(role) for role in coarse]
        holds = tested.tests.holds[places]
        one = np.array(places)[holds.argmax(axis=0)]
        of = np.where(holds.sum(axis=0) > 1, len(ROLES), np.where(holds.any(axis=0), one, -1))
    return HeadKinds(title=wording.ROLE, looks=ROLE_LOOKS, of=of)


def _draw(similar: Similar) -> None:
    plane = similar.arranged.plane
    left, right = halves()
    with left:
        figure = heads_by_kind(plane, similar.kinds, similar.heads)
        chart(f"heads by {similar.kinds.title}", figure, similar.facts, wording.CLARK_6, selects=True)
    with right:
        chart("heads by layer", heads_by_layer(plane, similar.heads), similar.facts, wording.CLARK_6, selects=True)
    nearest(similar)
    views: dict[str, Callable[[Similar], None]] = {
        wording.TREE: tree,
        wording.LAYERS: layers,
        wording.PAIR: pairs,
        wording.TABLE: table,
    }
    tabs = st.tabs(list(views), key="similar details", on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, views.values()):
        if tab.open:
            with tab:
                draw(similar)
    if similar.heads:
        names = ", ".join(head_name(*head) for head in similar.heads)
        st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")
