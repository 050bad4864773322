"""The tabs of the page that read the texts themselves: functions of heads as in Voita et al., with the list that says
which words are rare, and the gradients of the loss with respect to attention."""

from collections import defaultdict
from typing import Final

import numpy as np
import streamlit as st

from attention_sieve.cache.answers import CorpusFinding
from attention_sieve.core.attention.settings import Head
from attention_sieve.core.errors import AnalysisError
from attention_sieve.core.relations.finding import ByArgmax
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.surface.analysis import (
    GRADIENT_ANALYSIS,
    GradientFinding,
    GradientSettings,
    SurfaceFinding,
    SurfaceSettings,
)
from attention_sieve.core.surface.frequencies import FrequencyList, english_frequencies, read_frequencies
from attention_sieve.core.texts.relations import RELATIONS
from attention_sieve.dashboard import costs
from attention_sieve.dashboard.controls import memory
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES
from attention_sieve.dashboard.figures.surface.function_grid import FUNCTIONS, USUAL, Function, function_grid
from attention_sieve.dashboard.figures.surface.gradient_lines import gradient_lines
from attention_sieve.dashboard.files.provenance import without_command
from attention_sieve.dashboard.plain import plain, show_error
from attention_sieve.dashboard.views.analysis import Analysed
from attention_sieve.dashboard.views.asking import find, kept_finding
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.corpus import corpus
from attention_sieve.dashboard.views.pickers import from_list, halves, toggle
from attention_sieve.dashboard.views.relations import argmax_heads
from attention_sieve.dashboard.views.surface import wording
from attention_sieve.dashboard.views.surface.panels import Surface, agreement

REQUESTED: Final = "gradients asked for"
"""Session-state key of the inputs for which the reader has requested gradients."""


def frequency_list() -> FrequencyList | None:
    """The chosen list; None for that of the texts, also until a file is uploaded.

    Raises: TextError for a file that is not a frequency list.
    """
    options = {name: name for name in (wording.BY_TEXTS, wording.BY_WORDFREQ, wording.BY_FILE)}
    kind = from_list(wording.FREQUENCIES, options, key="frequencies", help=wording.FREQUENCIES_HELP, width=320)
    if kind == wording.BY_WORDFREQ:
        return english_frequencies()
    if kind == wording.BY_FILE:
        upload = st.file_uploader(wording.LIST, type=["txt", "tsv", "gz"], key="frequency list", help=wording.LIST_HELP)
        if upload is not None:
            return memory().get_or_put(
                "frequency list", upload.file_id, lambda: read_frequencies(upload.name, upload.getvalue())
            )
        st.info(wording.WAIT_LIST)
    return None


def functions(found: Analysed[SurfaceSettings, SurfaceFinding], surface: Surface) -> None:
    st.markdown(wording.LABELS)
    finding, visit = found.finding, found.visit
    st.markdown(plain(wording.rare_texts(finding.rare.n_texts, finding.n_texts, finding.frequencies.source)))
    tested = corpus(visit)
    if tested is None:
        st.info(wording.NO_RELATIONS)
    else:
        n_pooled = int(tested.tests.holds[tested.tests.roles.index("syntactic")].sum())
        st.markdown(wording.by_sieve(n_pooled, len(_relations(tested.tests)) - n_pooled))
    argmax = None
    if visit.settings.kind != "cross" and toggle(wording.ARGMAX, key="by argmax", help=wording.ARGMAX_HELP):
        argmax = argmax_heads(visit)
    by_head = head_functions(finding, None if tested is None else tested.tests, argmax)
    kinds = USUAL if argmax is None else tuple(FUNCTIONS)
    is_ordered = toggle(wording.BY_CONFIDENCE, key="by confidence", help=wording.BY_CONFIDENCE_HELP)
    confidence = finding.heads.of("confidence")
    figure = function_grid(by_head, confidence, "confidence", surface.heads, kinds, is_ordered=is_ordered)
    chart("functions", figure, without_command(surface.facts), wording.VOITA_1C, selects=True)


def head_functions(
    finding: SurfaceFinding, tests: HeadTests | None, argmax: ByArgmax | None
) -> dict[Head, list[Function]]:
    """Functions of each head that has any: None for `tests` or `argmax`, Voita's rule, leaves out what these give."""
    by_head: defaultdict[Head, list[Function]] = defaultdict(list)
    labels, rare = finding.labels, finding.rare
    positional = labels.positional
    for layer, head in np.argwhere(positional.holds).tolist():
        evidence = wording.by_offset(float(positional.share[layer, head]))
        by_head[layer, head].append(
            Function("positional", wording.offset_name(int(positional.offset[layer, head])), evidence)
        )
    for of_head, relations in ({} if tests is None else _relations(tests)).items():
        letters = "".join(LOOKS[f"syntactic:{relation}"].letter for relation in relations)
        by_head[of_head].append(Function("syntactic", ", ".join(relations), wording.BY_SIEVE, letters))
    if argmax is not None:
        for layer, head in np.argwhere(argmax.heads).tolist():
            best = argmax.best[layer][head]
            evidence = f"{DIRECTION_NAMES[best.direction]}: {best.accuracy:.1%}"
            by_head[layer, head].append(Function("argmax", best.relation, evidence))
    for layer, head in np.argwhere(labels.rare).tolist():
        evidence = wording.by_rarest(float(rare.two_rarest[layer, head]), rare.chance)
        by_head[layer, head].append(Function("rare", "", evidence))
    return dict(by_head)


def _relations(tests: HeadTests) -> dict[Head, list[str]]:
    """Relations of each head with a syntactic role; empty for a head that has only the pooled role."""
    by_head: dict[Head, list[str]] = {}
    for role in ("syntactic", *(f"syntactic:{relation}" for relation in RELATIONS)):
        for layer, head in np.argwhere(tests.holds[tests.roles.index(role)]).tolist():
            by_head.setdefault((layer, head), []).extend(role.split(":")[1:])
    return by_head


def layers(found: Analysed[SurfaceSettings, SurfaceFinding], surface: Surface) -> None:
    left, right = halves()
    with left:
        agreement(found.finding.layers, surface.facts)
    with right:
        _gradients(found, surface.facts)


def _gradients(found: Analysed[SurfaceSettings, SurfaceFinding], facts: dict[str, str]) -> None:
    """Draw lines by layer, a button to compute them, or the reason why there are none."""
    st.markdown(wording.GRADIENT_SEE)
    try:
        corpus_finding = _gradient_finding(found)
    except AnalysisError as error:
        show_error(error)
        return
    if corpus_finding is None:
        return
    texts, statistics = corpus_finding.finding.texts, corpus_finding.finding.statistics
    by_key = {wording.KEYS[name]: of_kind for name, of_kind in zip(statistics.names, statistics.mean, strict=True)}
    st.markdown(wording.on_gradients(len(texts), sum(of_text.n_masked for of_text in texts)))
    facts = facts | {"command": f"{facts['command']} --gradients=gradients.parquet"}
    chart("gradients", gradient_lines(by_key), facts, wording.CLARK_3)


def _gradient_finding(
    found: Analysed[SurfaceSettings, SurfaceFinding],
) -> CorpusFinding[GradientFinding] | None:
    """Gradients that are cached or that the reader has requested; None while there are none."""
    visit = found.visit
    settings = GradientSettings(punctuation=found.settings.punctuation, alpha=found.settings.alpha)
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
