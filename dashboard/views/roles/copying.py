"""Looks, writes, matters: whether the heads of a decoder copy, by three tests."""

from dataclasses import replace
from functools import partial

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import Head
from attention_sieve.core.copying.analysis import COLUMNS, COPY_ANALYSIS, copy_table
from attention_sieve.core.copying.finding import CopyFinding, CopySettings
from attention_sieve.core.copying.published import DIFFERENCES, least
from attention_sieve.dashboard.components.source import Selection
from attention_sieve.dashboard.components.venn import role_venn
from attention_sieve.dashboard.figures.appearance import COLUMN_LOOKS
from attention_sieve.dashboard.figures.head_scatter import head_scatter
from attention_sieve.dashboard.figures.roles.combinations import Overlaps
from attention_sieve.dashboard.figures.roles.venn_svg import venn_svg
from attention_sieve.dashboard.files.downloads import drawing_downloads
from attention_sieve.dashboard.plain import errors_shown, plain
from attention_sieve.dashboard.views.analysis import Analysed, analysed, chosen_settings
from attention_sieve.dashboard.views.charts import chart, table
from attention_sieve.dashboard.views.frame import Visit
from attention_sieve.dashboard.views.pickers import from_list, one_of, toggle
from attention_sieve.dashboard.views.roles import copying_wording as wording


def copying(visit: Visit, heads: list[Head]) -> None:
    st.markdown(wording.SEE)
    with st.container(horizontal=True, vertical_alignment="bottom"):
        detector = from_list("How looking is scored", wording.DETECTORS, key="detector", width=300)
        way = one_of("How writing is scored", wording.WAYS, key="writing", help=wording.WAY_HELP)
        ablates = toggle("Switch each head off in turn", key="matters", help=wording.ABLATE_HELP)
    st.caption(DIFFERENCES[detector])
    chosen = replace(
        COPY_ANALYSIS.settings,
        detector=detector,
        tau=visit.choice.criterion.tau if detector == visit.choice.scale else least(detector),
        way=way,
        no_ablation=not ablates,
        alpha=visit.choice.criterion.alpha,
        correction=visit.choice.criterion.correction,
    )
    settings = chosen_settings(chosen, "copying", labels=wording.FURTHER)
    with errors_shown():
        doing = "Testing where heads look and what they write"
        if (found := analysed(visit, COPY_ANALYSIS, settings, asks=False, doing=doing)) is not None:
            _show(found, heads)


def _show(found: Analysed[CopySettings, CopyFinding], heads: list[Head]) -> None:
    finding, facts = found.finding, found.facts()
    st.markdown(wording.summary(finding))
    for name, reason in finding.answers.left_out:
        st.info(plain(wording.missing(name, reason)))
    if finding.answers.outcomes is not None and finding.effects is None:
        st.info(wording.NO_SECOND_COPY)
    if len(finding.columns) > 1:
        _venn(finding, facts)
    if finding.writes is not None:
        words = wording.scatter(found.visit.engine.files.name)
        figure = head_scatter(finding.looks, finding.writes, words, heads)
        chart("looks and writes", figure, facts, selects=True)
    with st.expander("Every head"):
        table("copying", copy_table(finding), facts, COLUMNS)
        if finding.without_verdict:
            st.caption(finding.without_verdict)
        st.caption(wording.NOTE)


def _venn(finding: CopyFinding, facts: dict[str, str]) -> None:
    overlaps = Overlaps(
        roles=tuple(finding.columns), combinations=finding.combinations, none=wording.NONE, looks=COLUMN_LOOKS
    )
    part = role_venn(overlaps, Selection("copying venn", None, overlaps.roles), wording.OVERLAPS)
    shown = overlaps.roles if part is None else part
    inside = np.logical_and.reduce([finding.present, *(h == (n in shown) for n, h in finding.columns.items())])
    st.caption(wording.region(shown, [(layer, head) for layer, head in np.argwhere(inside).tolist()]))
    drawing_downloads("looks, writes, matters", wording.OVERLAPS, facts, partial(venn_svg, overlaps))
