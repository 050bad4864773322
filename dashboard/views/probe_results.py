"""What probes found: their scores, what each head weighs, and how they learned."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import streamlit as st

from cache.inference import Engine
from cache.probing import FoundProbe, ProbeKind, ProbeResults
from dashboard import probing_wording as wording
from dashboard import provenance, state
from dashboard.components.head_map import head_map
from dashboard.downloads import drawing_downloads, table_downloads
from dashboard.figures.arcs_svg import head_name
from dashboard.figures.head_map_svg import head_map_svg, round_bound
from dashboard.figures.probe_curve import probe_curve
from dashboard.figures.probe_scores import NamedScore, probe_scores
from dashboard.views.charts import chart
from dashboard.views.layout import halves


@dataclass(frozen=True, eq=False, kw_only=True)
class Shown:
    """Results, and where they come from."""

    results: ProbeResults
    engine: Engine
    facts: Mapping[str, str]


def show_results(shown: Shown) -> None:
    """Scores of all, then weights and course of the one that the reader picks."""
    found = shown.results.found
    if not found:
        return
    own = [kind for kind in found if not kind.control]
    best = max(own, key=lambda kind: found[kind].score.share)
    control = found.get(ProbeKind(best.words, True))
    st.markdown(
        wording.headline(
            wording.kind_name(best),
            found[best].score.share,
            {offset: score.share for offset, score in shown.results.offsets.items()},
            None if control is None else control.score.share,
        )
    )
    st.subheader(wording.SCORES)
    st.markdown(wording.SCORES_NOTE)
    left, right = halves()
    with left:
        chart("probe scores", probe_scores(_scores(shown.results)), shown.facts, wording.SCORES_PAPER)
    with right:
        _table(shown)
    # Until the reader picks one it is the best of those found so far, however many there are when the page first looks.
    names = {wording.BEST: best, **{wording.kind_name(kind): kind for kind in found}}
    if st.session_state.get("probe shown") not in names:
        st.session_state["probe shown"] = wording.BEST
    picked = st.selectbox(
        wording.SHOWN, list(names), key="probe shown", bind="query-params", persist_state="session", width=320
    )
    kind = names[picked]
    _weights(shown, kind, found[kind])
    st.subheader(wording.CURVE)
    chart("probe learning curve", probe_curve(found[kind].training), shown.facts, wording.CURVE_PAPER)


def _scores(results: ProbeResults) -> list[NamedScore]:
    probes = [
        NamedScore(wording.kind_name(kind), "random weights" if kind.control else "probe", one.score)
        for kind, one in results.found.items()
    ]
    is_best = len(results.offsets) == 1
    offsets = [
        NamedScore(wording.offset_name(offset, is_best=is_best), "fixed offset", score)
        for offset, score in results.offsets.items()
    ]
    return [*probes, *offsets]


def _table(shown: Shown) -> None:
    ended = {
        wording.kind_name(kind): wording.ended(
            len(one.training.epochs) - 1, one.training.best, one.training.is_finished
        )
        for kind, one in shown.results.found.items()
    }
    table = pd.DataFrame(
        {
            "name": one.name,
            "uas": one.score.share,
            "low": one.score.low,
            "high": one.score.high,
            "training": ended.get(one.name, wording.UNTRAINED),
        }
        for one in _scores(shown.results)
    )
    columns = {
        name: st.column_config.NumberColumn(label, help=about, format="percent")
        if name in ("uas", "low", "high")
        else st.column_config.Column(label, help=about)
        for name, (label, about) in wording.COLUMNS.items()
    }
    st.dataframe(table, hide_index=True, column_config=columns, column_order=list(columns), key="probe table")
    table_downloads("probe scores", table, shown.facts)


def _weights(shown: Shown, kind: ProbeKind, found: FoundProbe) -> None:
    """w and u of each head on one scale, side by side."""
    st.subheader(wording.WEIGHTS)
    note = wording.WEIGHTS_WORDS_NOTE if kind.words else wording.WEIGHTS_NOTE
    st.markdown(f"**{wording.kind_name(kind).capitalize()}.** {note}")
    weights = found.training.probe.weights
    _, n_layers, n_heads = weights.shape
    bound = round_bound(float(np.abs(weights).max()))
    strongest = np.unravel_index(np.abs(weights).max(axis=0).argmax(), (n_layers, n_heads))
    heads = state.chosen_heads(n_layers, n_heads, (int(strongest[0]), int(strongest[1])))
    titles = (wording.W_WORDS, wording.U_WORDS) if kind.words else (wording.W_TITLE, wording.U_TITLE)
    ends: dict[str, Any] = {} if kind.words else {"low_label": wording.LESS, "high_label": wording.MORE}
    for place, letter, title, values, other in zip(halves(), "wu", titles, weights, weights[::-1]):
        whole = f"{title}: {wording.kind_name(kind)}, heads of {shown.engine.files.name}"
        drawn: dict[str, Any] = {"bound": bound, "signed": not kind.words, **ends}
        with place:
            head_map(
                key=f"probe {letter}",
                values=values,
                details=[("the other way", other)],
                label=whole,
                title=title,
                chosen=heads,
                reset=(shown.engine.files.fingerprint, tuple(heads)),
                on_change=state.choose_heads,
                **drawn,
            )
            drawing_downloads(
                f"probe weights {letter}",
                lambda values=values, whole=whole, drawn=drawn: head_map_svg(  # type: ignore[misc]
                    values=values, title=whole, caption=provenance.caption(shown.facts), **drawn
                ),
            )
    rows = pd.MultiIndex.from_product([range(n_layers), range(n_heads)], names=["layer", "head"])
    table = pd.DataFrame({"w": weights[0].ravel(), "u": weights[1].ravel()}, index=rows).reset_index()
    table_downloads("probe weights", table, shown.facts)
    st.caption(wording.WEIGHTS_PAPER)
    state.put_in_link(heads)
    if heads:
        names = ", ".join(head_name(*head) for head in heads)
        st.page_link(st.session_state["pages"]["inspect"], label=f"Inspect {names}", icon=":material/search:")
