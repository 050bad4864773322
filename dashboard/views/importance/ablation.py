"""Effect of switching off each head: a map, a histogram, and each layer with only its best head on."""

from typing import Final

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.importance.effects import KeptAlone, kept_alone
from attention_sieve.core.importance.verdicts import verdict_facts, without_verdict
from attention_sieve.core.statistics.means import Correction
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.importance.histogram import score_histogram
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views.charts import chart
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.importance.material import ablated
from attention_sieve.dashboard.views.importance.numbers import Importance, most_important
from attention_sieve.dashboard.views.layout import halves
from attention_sieve.dashboard.views.maps import head_selection, show_head_map
from attention_sieve.dashboard.views.pickers import toggle

COLUMNS: Final = ("without", "delta", "low", "high", "p", "p_adjusted")


def headline(importance: Importance) -> None:
    """Summarise the results in a sentence or two."""
    effects, damage, differs = importance.effects, importance.damage, importance.differs
    layer, head = most_important(effects, importance.score.sign)
    worst_head = (
        head_name(layer, head),
        effects.without[layer, head],
        effects.low[layer, head],
        effects.high[layer, head],
    )
    n_heads, n_texts = int((~np.isnan(damage)).sum()), len(importance.ablated.results)
    st.markdown(wording.summary(importance.score.name, effects.full, worst_head, n_heads, n_texts))
    note = without_verdict(effects.delta, effects.p, importance.documents)
    if importance.score.name != "change" and (n_tested := int((~np.isnan(effects.p)).sum())):
        worse, better = int((differs & (damage > 0)).sum()), int((differs & (damage < 0)).sum())
        alpha = importance.material.visit.chosen.criterion.alpha
        st.markdown(wording.significant(worse, better, n_tested, alpha))
    if note or n_texts < wording.FEW_TEXTS:
        st.info(" ".join([note, wording.FEW] if n_texts < wording.FEW_TEXTS else [note]))


def each_head(importance: Importance) -> None:
    """Draw the map of all heads next to their histogram, then each layer with one head."""
    left, right = halves()
    with left:
        _map(importance)
    with right:
        name = wording.SCORE_NAMES[importance.score.name]
        figure = score_histogram(importance.effects.without, importance.effects.full, name)
        chart("scores without each head", figure, importance.facts, wording.MICHEL_1)
    _table(importance)
    _one_head_a_layer(importance)


def _map(importance: Importance) -> None:
    effects, score = importance.effects, importance.score
    name, checkpoint = wording.SCORE_NAMES[score.name], importance.material.visit.engine.files.name
    signed, has_verdicts = bool((importance.damage < 0).any()), not np.isnan(effects.p).all()
    outlined = importance.differs if has_verdicts and score.name != "change" else None
    picture = HeadMap(
        title=wording.damage_title(name),
        label=f"{wording.damage_title(name)} of the heads of {checkpoint}",
        values=importance.damage,
        bound=round_bound(float(np.nanmax(np.abs(importance.damage), initial=0))),
        signed=signed,
        low_label=wording.HELPS if signed else "",
        high_label=wording.high_end(name),
        outlined=outlined,
        outline="" if outlined is None else wording.DIFFERS,
        details=[
            (wording.without(name), effects.without),
            *([(wording.INTERVAL, _intervals(importance))] if has_verdicts else []),
            *([] if outlined is None else [(wording.P_ADJUSTED, effects.p_adjusted)]),
        ],
    )
    show_head_map(
        picture,
        head_selection("importance map", importance.heads, (*importance.material.key, state.n_pushed())),
        file="importance of heads",
        facts=importance.facts,
        paper=wording.MICHEL_T1,
    )


def _intervals(importance: Importance) -> list[list[str]]:
    effects = importance.effects
    return [
        ["" if np.isnan(low) else f"{low:+.3g} to {high:+.3g}" for low, high in zip(*rows)]
        for rows in zip(effects.low, effects.high)
    ]


def _table(importance: Importance) -> None:
    with st.expander(wording.TABLE):
        effects = importance.effects
        layer, head = np.indices(effects.delta.shape)
        rows = pd.DataFrame(
            {
                "layer": layer.ravel(),
                "head": head.ravel(),
                "full": effects.full,
                **{column: getattr(effects, column).ravel() for column in COLUMNS},
            }
        )
        numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in ("full", *COLUMNS)}
        st.dataframe(rows, hide_index=True, column_config=numbers)
        sentences = kept_sentences(importance.material.visit)
        facts = importance.facts | verdict_facts(effects.delta, effects.p, importance.documents)
        table_downloads("ablation", with_sentences(rows, sentences), facts)


def _one_head_a_layer(importance: Importance) -> None:
    """Each layer with only its best head on; optional, since it takes a sweep of its own."""
    if not toggle(wording.KEEP_ONE, key="keep one", help=wording.KEEP_ONE_HELP):
        return
    answers = ablated(importance.material, alone=True)
    if answers is None:
        return
    documents = importance.material.documents(answers.positions)
    correction: Correction = importance.material.visit.chosen.criterion.correction
    score = importance.material.score(answers.positions)
    single_heads = kept_alone(answers.results, score, documents, correction)
    rows = _single_head_rows(single_heads)
    n_tested, n_unchanged = int((~np.isnan(single_heads.p)).sum()), _n_unchanged(single_heads, importance)
    st.markdown(wording.kept(wording.SCORE_NAMES[score.name], single_heads.full, n_unchanged, n_tested))
    if note := without_verdict(single_heads.delta, single_heads.p, documents):
        st.info(note)
    numbers = {name: st.column_config.NumberColumn(format="%.4g") for name in COLUMNS}
    st.dataframe(rows, hide_index=True, column_config=numbers)
    st.caption(wording.MICHEL_T2)
    facts = importance.facts | verdict_facts(single_heads.delta, single_heads.p, documents)
    table_downloads("one head a layer", rows, facts)


def _n_unchanged(single_heads: KeptAlone, importance: Importance) -> int:
    """Number of layers whose score does not differ significantly with only one head on."""
    return int((single_heads.p_adjusted >= importance.material.visit.chosen.criterion.alpha).sum())


def _single_head_rows(single_heads: KeptAlone) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "layer": np.arange(len(single_heads.delta)),
            "chosen on one half": [head_name(layer, head) for layer, head in enumerate(single_heads.head[0].tolist())],
            "chosen on the other": [head_name(layer, head) for layer, head in enumerate(single_heads.head[1].tolist())],
            **{column: getattr(single_heads, column) for column in COLUMNS},
        }
    )
