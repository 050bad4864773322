"""Results of probes: their scores, the weight of each head, and their learning curves."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
import streamlit as st

from attention_sieve.cache.answers import Engine
from attention_sieve.core.tree_probes.probe import ProbeKind, ProbeResults, TrainedProbe
from attention_sieve.dashboard import state
from attention_sieve.dashboard.figures.head_map import HeadMap, round_bound
from attention_sieve.dashboard.figures.tree_probes import NamedScore, probe_curve, probe_scores
from attention_sieve.dashboard.files.downloads import table_downloads
from attention_sieve.dashboard.views import frame
from attention_sieve.dashboard.views.charts import chart, head_selection, show_head_map
from attention_sieve.dashboard.views.grammar.tree_probes import wording
from attention_sieve.dashboard.views.pickers import from_list, halves


@dataclass(frozen=True, eq=False, kw_only=True)
class ProbeView:
    results: ProbeResults
    engine: Engine
    facts: Mapping[str, str]


def show_results(view: ProbeView) -> None:
    probes = view.results.probes
    if not probes:
        return
    best = max((kind for kind in probes if not kind.control), key=lambda kind: probes[kind].score.share)
    control = probes.get(ProbeKind(best.words, True))
    st.markdown(
        wording.headline(
            best.name,
            probes[best].score.share,
            {offset: score.share for offset, score in view.results.offsets.items()},
            None if control is None else control.score.share,
        )
    )
    st.subheader(wording.SCORES)
    st.markdown(wording.SCORES_NOTE)
    left, right = halves()
    with left:
        chart("probe scores", probe_scores(_scores(view.results)), view.facts, wording.SCORES_PAPER)
    with right:
        _table(view)
    # Until the reader picks one, the best of the probes trained so far is shown, even while further ones are trained.
    kinds = {wording.BEST: best, **{kind.name: kind for kind in probes}}
    if st.session_state.get("probe shown") not in kinds:
        st.session_state["probe shown"] = wording.BEST
    kind = from_list(wording.SHOWN, kinds, key="probe shown", width=320)
    _weights(view, kind, probes[kind])
    st.subheader(wording.CURVE)
    chart("probe learning curve", probe_curve(probes[kind].training), view.facts, wording.CURVE_PAPER)


def _scores(results: ProbeResults) -> list[NamedScore]:
    probes = [
        NamedScore(kind.name, "random weights" if kind.control else "probe", probe.score)
        for kind, probe in results.probes.items()
    ]
    is_best = len(results.offsets) == 1
    offsets = [
        NamedScore(wording.offset_name(offset, is_best=is_best), "fixed offset", score)
        for offset, score in results.offsets.items()
    ]
    return [*probes, *offsets]


def _table(view: ProbeView) -> None:
    trainings = {kind.name: probe.training for kind, probe in view.results.probes.items()}
    epochs = {
        name: wording.epochs(len(training.epochs) - 1, training.best, training.is_finished)
        for name, training in trainings.items()
    }
    table = pd.DataFrame(
        {
            "name": row.name,
            "uas": row.score.share,
            "low": row.score.low,
            "high": row.score.high,
            "training": epochs.get(row.name, wording.UNTRAINED),
        }
        for row in _scores(view.results)
    )
    columns = {
        name: st.column_config.NumberColumn(label, help=help_text, format="percent")
        if name in ("uas", "low", "high")
        else st.column_config.Column(label, help=help_text)
        for name, (label, help_text) in wording.COLUMNS.items()
    }
    st.dataframe(table, hide_index=True, column_config=columns, column_order=list(columns), key="probe table")
    table_downloads("probe scores", table, view.facts)


def _weights(view: ProbeView, kind: ProbeKind, probe: TrainedProbe) -> None:
    st.subheader(wording.WEIGHTS)
    note = wording.WEIGHTS_WORDS_NOTE if kind.words else wording.WEIGHTS_NOTE
    st.markdown(f"**{kind.name.capitalize()}.** {note}")
    weights = probe.training.probe.weights
    _, n_layers, n_heads = weights.shape
    bound = round_bound(float(np.abs(weights).max()))
    layer, head = np.unravel_index(np.abs(weights).max(axis=0).argmax(), (n_layers, n_heads))
    heads = state.chosen_heads(n_layers, n_heads, (int(layer), int(head)))
    titles = (wording.W_WORDS, wording.U_WORDS) if kind.words else (wording.W_TITLE, wording.U_TITLE)
    for column, letter, title, values, other_values in zip(halves(), "wu", titles, weights, weights[::-1]):
        picture = HeadMap(
            title=title,
            label=f"{title}: {kind.name}, heads of {view.engine.files.name}",
            values=values,
            bound=bound,
            signed=not kind.words,
            low_label="" if kind.words else wording.LESS,
            high_label="" if kind.words else wording.MORE,
            details=[(wording.OTHER_WAY, other_values)],
        )
        with column:
            show_head_map(
                picture,
                head_selection(f"probe {letter}", heads, (view.engine.files.fingerprint, tuple(heads))),
                file=f"probe weights {letter}",
                facts=view.facts,
            )
    rows = pd.MultiIndex.from_product([range(n_layers), range(n_heads)], names=["layer", "head"])
    table = pd.DataFrame({"w": weights[0].ravel(), "u": weights[1].ravel()}, index=rows).reset_index()
    table_downloads("probe weights", table, view.facts)
    st.caption(wording.WEIGHTS_PAPER)
    state.put_in_link(heads)
    frame.link_to_inspect(heads)
