"""Effect of switching off each head: a map, the text that a head changes most, a histogram, and each layer with only
its best head on."""

from dataclasses import replace

import numpy as np
import streamlit as st
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.importance.analysis import (
    ABLATION_ANALYSIS,
    SINGLE_HEAD_ANALYSIS,
    ablation_table,
    single_head_table,
)
from attention_sieve.core.importance.finding import AblationFinding
from attention_sieve.core.importance.question import gated_question, layers_off
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, intervals, round_bound
from attention_sieve.dashboard.figures.importance.histogram import score_histogram
from attention_sieve.dashboard.figures.importance.references import damage_beside
from attention_sieve.dashboard.files.provenance import shortened, without_command
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.asking import ask, find
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map, table
from attention_sieve.dashboard.views.descriptions.sentences import kept_sentences, with_sentences
from attention_sieve.dashboard.views.importance import wording
from attention_sieve.dashboard.views.importance.material import Importance, Material
from attention_sieve.dashboard.views.pickers import halves, toggle


def headline(importance: Importance) -> None:
    ablation = importance.ablation
    effects, (layer, head), n_texts = ablation.effects, ablation.most_important, len(ablation.items)
    worst_head = wording.WorstHead(
        layer=layer,
        head=head,
        damage=float(ablation.damage[layer, head]),
        low=float(effects.low[layer, head]),
        high=float(effects.high[layer, head]),
    )
    layers, name = importance.without_layers, ablation.score.name
    frame.say_finding(
        wording.finding(name, worst_head, None if layers is None else float(layers[layer])),
        wording.numbers(name, effects.full, worst_head, n_texts),
    )
    if n_texts < wording.FEW_TEXTS:
        st.caption(wording.FEW)


def damage_without_layers(material: Material, ablation: AblationFinding) -> Float[np.ndarray, " layer"] | None:
    """How much worse the score is with all heads of a layer off, as a reference for one of them; None where the reader
    stops the passes, and where other outputs than nothing replace those of heads."""
    if material.settings.replace != "zero":
        return None
    question = gated_question(material.metric.metric, layers_off(*ablation.damage.shape))
    answers = ask(material.visit, question, [item.text for item in ablation.items])
    if answers is None:
        return None
    return ablation.score.sign * (ablation.score.of(np.stack(answers.results)) - ablation.effects.full)


def picture(importance: Importance) -> None:
    """The map; and the chosen head beside a small and a large effect, with the text that it changes most."""
    left, right = halves()
    with left:
        _map(importance, importance.facts | importance.analysed.facts())
    if importance.heads:
        with right, st.container(key="how large it is"):
            _beside_references(importance, importance.heads[-1])
            if importance.material.metric.metric != "labels":  # else the outcome of a text is not a score
                _most_changed_text(importance, importance.heads[-1])


def _beside_references(importance: Importance, head: Head) -> None:
    damage, layers = importance.ablation.damage, importance.without_layers
    damages = {wording.MEDIAN: float(np.nanmedian(damage)), head_name(*head): float(damage[head])}
    if layers is not None:
        damages[wording.all_of_layer(head[0])] = float(layers[head[0]])
    title = wording.damage_title(wording.SCORE_NAMES[importance.ablation.score.name])
    figure = damage_beside(damages, head_name(*head), title)
    chart("how large it is", figure, without_command(importance.facts))


def _most_changed_text(importance: Importance, head: Head) -> None:
    ablation = importance.ablation
    changes = np.array([answer.without[head][0] - answer.full[0] for answer in ablation.answers])
    most = int(changes.argmax())
    if not changes[most] > 0:  # or the head was removed
        return
    segments = "\n>\n".join(f"> {plain(shortened(segment))}" for segment in ablation.items[most].text.segments)
    st.markdown(f"{wording.most_changed(float(changes[most]))}\n\n{segments}")


def each_head(importance: Importance) -> None:
    ablation, effects = importance.ablation, importance.ablation.effects
    facts = importance.facts | importance.analysed.facts()
    note, n_tested = ablation.without_verdict(effects), int((~np.isnan(effects.p)).sum())
    if note:
        st.info(note)
    if ablation.score.name != "change" and n_tested:
        worse, better = (int((importance.differs & (sign * ablation.damage > 0)).sum()) for sign in (1, -1))
        alpha = importance.material.visit.choice.criterion.alpha
        st.markdown(wording.significant(worse, better, n_tested, alpha))
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
