"""Surface: where every head looks, over a corpus."""

from collections import Counter
from collections.abc import Callable
from typing import Final

import numpy as np
import streamlit as st

from cache.inference import Answers
from cache.surface import found_surface, surface_question
from core.errors import AnalysisError
from core.frequencies import FrequencyList
from core.key_kinds import SurfaceSettings
from core.surface_labels import head_labels, positional, rare_shares
from core.surface_statistics import head_statistics, layer_statistics, uniform_entropy
from dashboard import controls, provenance, state
from dashboard import surface_wording as wording
from dashboard import wording as shared_wording
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.entropy_panels import TITLES, entropy_panel
from dashboard.figures.gradient_lines import agreement_lines
from dashboard.figures.head_dots import Head
from dashboard.figures.surface_scatter import PANELS, share_scatter
from dashboard.plain import plain, show_error
from dashboard.views.asking import asked
from dashboard.views.charts import chart
from dashboard.views.corpus import ask_about_long_texts, ask_for_texts, policy, readable
from dashboard.views.head_functions import frequency_list, functions
from dashboard.views.layout import halves
from dashboard.views.loss_gradients import gradients
from dashboard.views.surface_focus import Numbers, Surface, remembered
from dashboard.views.surface_tables import chosen_heads_table, head_grid, table

MOSTLY: Final = {"cls": "[CLS]", "sep": "[SEP]"}
"""Shares that the headline counts, as it names them."""


def show() -> None:
    """Draw the page."""
    st.title("Surface")
    st.markdown(wording.SEE)
    try:
        _surface()
    except AnalysisError as error:
        show_error(error)
    with st.expander(shared_wording.HOW):
        for part in (wording.HOW_SHARES, wording.HOW_FUNCTIONS, wording.HOW_GRADIENTS):
            st.markdown(part)
        st.markdown(shared_wording.NOT_EXPLANATION)
    with st.expander(wording.PAPER_TITLE):
        st.markdown(wording.PAPER)


def _surface() -> None:
    chosen = state.choice()
    controls.heads_off(chosen)
    engine, inference = controls.engine(chosen), controls.inference()
    given = controls.corpus_texts(chosen)
    texts = readable(chosen, engine, given)
    if not texts:
        ask_for_texts(chosen, given)
        return
    headline, details, below = st.container(), st.container(), st.container()
    with below:
        frequencies, how = frequency_list(texts), _settings()
    alpha = chosen.criterion.alpha
    question = (engine, texts, chosen.pass_settings(engine), policy(), alpha, frequencies, how)
    with headline:
        numbers = remembered(
            question,
            lambda: _numbers(asked(inference, engine, chosen, surface_question(how), texts), frequencies, alpha),
        )
    if numbers is None:
        return
    state.remember_off(chosen)
    n_layers, n_heads = numbers.heads.mean.shape[1:]
    surface = Surface(
        inference=inference,
        engine=engine,
        chosen=chosen,
        texts=texts,
        numbers=numbers,
        heads=state.chosen_heads(n_layers, n_heads, _most_confident(numbers)),
        facts={
            **provenance.corpus_facts(chosen, engine, numbers.n_texts),
            "word frequencies": frequencies.source,
            "as in code": "yes" if how.as_in_code else "no",
        },
    )
    with headline:
        ask_about_long_texts(numbers.too_long)
        _headline(surface)
        if how.as_in_code:
            st.caption(wording.BY_CODE)
    with details:
        _details(surface)
        state.put_in_link(surface.heads)
        if surface.heads:
            names = ", ".join(head_name(*head) for head in surface.heads)
            st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")


def _settings() -> SurfaceSettings:
    """How the statistics are taken."""
    with st.expander(wording.SETTINGS):
        as_in_code = st.toggle(
            wording.AS_IN_CODE,
            key="surface as in code",
            help=wording.AS_IN_CODE_HELP,
            bind="query-params",
            persist_state="session",
        )
    return SurfaceSettings(as_in_code=as_in_code)


def _numbers(answers: Answers | None, frequencies: FrequencyList, alpha: float) -> Numbers | None:
    if answers is None:
        return None
    found = found_surface(answers)
    ranks = [frequencies.ranks(of_text.key_words) for of_text in found]
    rare = rare_shares(found, ranks)
    return Numbers(
        heads=head_statistics(found, alpha, ranks),
        layers=layer_statistics(found, alpha),
        uniform=dict(zip(TITLES, uniform_entropy(found), strict=True)),
        labels=head_labels(positional(found), rare),
        rare=rare,
        n_texts=len(found),
        too_long=answers.too_long,
    )


def _most_confident(numbers: Numbers) -> Head:
    """Something to look at before a head is chosen."""
    confidence = np.nan_to_num(numbers.heads.of("confidence"), nan=-1)
    layer, head = np.unravel_index(confidence.argmax(), confidence.shape)
    return int(layer), int(head)


def _headline(surface: Surface) -> None:
    numbers = surface.numbers
    shares = {MOSTLY[name]: numbers.heads.of(name) for name in MOSTLY}
    known = {name: share for name, share in shares.items() if np.isfinite(share).any()}
    has_offsets = np.isfinite(numbers.heads.of("distance")).any()
    found = numbers.labels.positional
    offsets = Counter(found.offset[found.holds].tolist())
    said = wording.summary(
        numbers.n_texts,
        found.holds.size,
        {name: int((share > wording.MOST).sum()) for name, share in known.items()},
        dict(sorted(offsets.items())) if has_offsets else None,
        int(numbers.labels.rare.sum()) if numbers.rare.n_texts else None,
    )
    st.markdown(said if numbers.n_texts >= wording.FEW_TEXTS else f"{said} {wording.FEW}")
    layers = {name: np.flatnonzero(share.mean(axis=1) > wording.MOST).tolist() for name, share in known.items()}
    if any(layers.values()):
        st.markdown(plain(wording.most_of_layers({name: of_name for name, of_name in layers.items() if of_name})))
    if not has_offsets:
        st.info(wording.NO_NEIGHBOURS)
    elif len(known) < len(shares):
        st.info(plain(wording.without_specials([name for name in shares if name not in known])))


def _details(surface: Surface) -> None:
    views: dict[str, Callable[[Surface], None]] = {
        wording.SHARES: _shares,
        wording.ENTROPY: _entropy,
        wording.HEADS: head_grid,
        wording.FUNCTIONS: functions,
        wording.LAYERS: _layers,
        wording.TABLE: table,
    }
    tabs = st.tabs(list(views), key="surface details", on_change="rerun", bind="query-params")
    for tab, draw in zip(tabs, views.values()):
        if tab.open:
            with tab:
                draw(surface)


def _shares(surface: Surface) -> None:
    cells = [*halves(), *halves()]
    for place, (name, panel) in zip(cells, PANELS.items()):
        with place:
            figure = share_scatter(surface.numbers.heads, panel, surface.heads)
            chart(f"shares, {name}", figure, surface.facts, wording.CLARK_2, selects=True)
    with cells[-1]:
        chosen_heads_table(surface)


def _entropy(surface: Surface) -> None:
    numbers = surface.numbers
    values = [*(numbers.heads.of(name) for name in TITLES), *numbers.uniform.values()]
    most = max((float(np.nanmax(value)) for value in values if np.isfinite(value).any()), default=0.0)
    for place, name in zip(halves(), TITLES):
        with place:
            figure = entropy_panel(numbers.heads, name, numbers.uniform[name], most, surface.heads)
            chart(name, figure, surface.facts, wording.CLARK_4, selects=True)


def _layers(surface: Surface) -> None:
    left, right = halves()
    with left:
        st.markdown(wording.AGREEMENT)
        attention, outputs = surface.numbers.layers.mean
        figure = agreement_lines({"attention": attention, "outputs": outputs})
        chart("agreement", figure, surface.facts, wording.MICHEL)
    with right:
        gradients(surface)
