"""Effect of switching off each head: a map, a histogram, and each layer with only its best head on."""

from dataclasses import replace

import numpy as np
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.importance.analysis import (
    ABLATION_ANALYSIS,
    SINGLE_HEAD_ANALYSIS,
    ablation_table,
    single_head_table,
)
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, intervals, round_bound
from attention_sieve.dashboard.figures.importance.histogram import score_histogram
from attention_sieve.dashboard.views.asking import find
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map, table
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.importance.material import Importance
from attention_sieve.dashboard.views.pickers import halves, toggle


def headline(importance: Importance) -> None:
    ablation, differs = importance.ablation, importance.differs
    effects, damage, (layer, head) = ablation.effects, ablation.damage, ablation.most_important
    worst_head = (
        head_name(layer, head),
        effects.without[layer, head],
        effects.low[layer, head],
        effects.high[layer, head],
    )
    n_heads, n_texts = int((~np.isnan(damage)).sum()), len(ablation.items)
    st.markdown(wording.summary(ablation.score.name, effects.full, worst_head, n_heads, n_texts))
    note = ablation.without_verdict(effects)
    if ablation.score.name != "change" and (n_tested := int((~np.isnan(effects.p)).sum())):
        worse, better = int((differs & (damage > 0)).sum()), int((differs & (damage < 0)).sum())
        alpha = importance.material.visit.choice.criterion.alpha
        st.markdown(wording.significant(worse, better, n_tested, alpha))
    if note or n_texts < wording.FEW_TEXTS:
        st.info(" ".join([note, wording.FEW] if n_texts < wording.FEW_TEXTS else [note]))


def each_head(importance: Importance) -> None:
    ablation, effects = importance.ablation, importance.ablation.effects
    facts = importance.facts | importance.analysed.facts()
    left, right = halves()
    with left:
        _map(importance, facts)
    with right:
        figure = score_histogram(effects.without, effects.full, wording.SCORE_NAMES[ablation.score.name])
        chart("scores without each head", figure, facts, wording.MICHEL_1)
    with st.expander(wording.TABLE):
        rows = ablation_table(ablation)
        written = with_sentences(rows, kept_sentences(importance.material.visit))
        table("ablation", rows, facts, ABLATION_ANALYSIS.columns, written=written)
    _one_head_a_layer(importance)


def damage_map(importance: Importance, with_roles: str = "") -> HeadMap:
    """How much worse the score is without each head; `with_roles` ends what the map is called."""
    damage, files = importance.ablation.damage, importance.material.visit.engine.files
    name, signed = wording.SCORE_NAMES[importance.ablation.score.name], bool((damage < 0).any())
    return HeadMap(
        title=wording.damage_title(name),
        label=f"{wording.damage_title(name)} of the heads of {files.name}{with_roles}",
        values=damage,
        bound=round_bound(float(np.nanmax(np.abs(damage), initial=0))),
        signed=signed,
        low_label=wording.HELPS if signed else "",
        high_label=wording.high_end(name),
        n_shared=files.n_shared,
    )


def _map(importance: Importance, facts: dict[str, str]) -> None:
    effects, score = importance.ablation.effects, importance.ablation.score
    name, has_verdicts = wording.SCORE_NAMES[score.name], not np.isnan(effects.p).all()
    marked = importance.differs if has_verdicts and score.name != "change" else None
    picture = replace(
        damage_map(importance),
        marked=marked,
        mark="" if marked is None else wording.DIFFERS,
        details=[
            (wording.without(name), effects.without),
            *([(wording.INTERVAL, intervals(effects.low, effects.high, "+.3g"))] if has_verdicts else []),
            *([] if marked is None else [(wording.P_ADJUSTED, effects.p_adjusted)]),
        ],
    )
    show_head_map(
        picture,
        head_selection("importance map", importance.heads, (*importance.material.key, state.n_pushed())),
        file="importance of heads",
        facts=facts,
        paper=wording.MICHEL_T1,
    )


def _one_head_a_layer(importance: Importance) -> None:
    """Each layer with only its best head on; optional, since it takes a sweep of its own."""
    if not toggle(wording.KEEP_ONE, key="keep one", help=wording.KEEP_ONE_HELP):
        return
    material = importance.material
    found = find(material.visit, SINGLE_HEAD_ANALYSIS, material.settings, material.inputs)
    if found is None:
        return
    finding, kept = found.finding, found.finding.kept.effects
    n_tested = int((~np.isnan(kept.p)).sum())
    n_unchanged = int((kept.p_adjusted >= material.visit.choice.criterion.alpha).sum())
    st.markdown(wording.kept(wording.SCORE_NAMES[material.metric.score_name], kept.full, n_unchanged, n_tested))
    if note := finding.without_verdict(kept):
        st.info(note)
    by_command = importance.computed_by("ablate", *importance.material.options, "--keep-one=single-heads.parquet")
    facts = by_command | finding.facts(kept)
    table("one head a layer", single_head_table(finding), facts, SINGLE_HEAD_ANALYSIS.columns)
    st.caption(wording.MICHEL_T2)
