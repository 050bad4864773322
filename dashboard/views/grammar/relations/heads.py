"""All heads on one relation, and the heads that are syntactic by argmax next to those that are by the sieve."""

from typing import Final

import numpy as np
import streamlit as st
from jaxtyping import Bool, Float

from attention_sieve.core.relations.cases import beats_baseline
from attention_sieve.core.relations.finding import ByArgmax
from attention_sieve.core.relations.settings import DIRECTIONS
from attention_sieve.core.roles.roles import ROLES
from attention_sieve.core.statistics.by_role import overlap
from attention_sieve.dashboard.figures.appearance import WORDS
from attention_sieve.dashboard.figures.head_map import Detail, HeadMap, intervals, percents, round_bound
from attention_sieve.dashboard.figures.relations.bars import DIRECTION_NAMES
from attention_sieve.dashboard.plain import plain
from attention_sieve.dashboard.views.charts import head_selection, show_head_map
from attention_sieve.dashboard.views.grammar import wording as shared_wording
from attention_sieve.dashboard.views.grammar.relations import wording
from attention_sieve.dashboard.views.grammar.relations.focus import RelationFocus
from attention_sieve.dashboard.views.layout import halves

SYNTACTIC: Final = ROLES.index("syntactic")


def grid(focus: RelationFocus) -> None:
    relation, direction = focus.relation, DIRECTIONS.index(focus.direction)
    points = 100 * (relation.accuracy - relation.baseline.share)[direction]
    baseline = f"{relation.baseline.share:.1%} ({relation.baseline.offset:+d})"
    details: list[Detail] = [
        ("right", percents(relation.accuracy[direction])),
        (
            "interval",
            intervals(relation.low[direction], relation.high[direction], ".1%", "none"),
        ),
        ("best fixed offset", np.full(points.shape, baseline).tolist()),
        ("cases", np.full(points.shape, f"{relation.n_cases:,}").tolist()),
        ("p, corrected", relation.p_values[direction]),
        *shared_wording.control_details(relation.key_matched, direction),
    ]
    if direction:
        details.insert(2, ("right, by the head's own row", percents(focus.by_row.accuracy[direction])))
    if off := focus.visit.choice.off:
        layers, heads = map(range, points.shape)
        details.append(
            ("switched off", [["yes" if (layer, head) in off else "no" for head in heads] for layer in layers])
        )
    title = f"{relation.relation}, {DIRECTION_NAMES[focus.direction]}: {wording.GRID_TITLE}"
    picture = HeadMap(
        title=title,
        label=_label(focus, title),
        values=points,
        bound=round_bound(float(np.abs(points).max())),
        signed=True,
        low_label=wording.LOWER,
        high_label=wording.HIGHER,
        outlined=beats_baseline(focus.by_row, margin=focus.finding.settings.margin)[direction],
        outline=wording.OUTLINE_ROW if direction else wording.OUTLINE,
        details=details,
    )
    _show(focus, "accuracies", picture, wording.GRID_PAPER)


def two_rules(focus: RelationFocus) -> None:
    from attention_sieve.dashboard.views.corpus import corpus  # which readers of the other tabs do without

    st.markdown(wording.TWO_RULES_SEE)
    argmax = focus.finding.by_argmax
    if argmax is None:
        st.info(wording.NO_RULE_RELATION)
        return
    tested = corpus(focus.visit)
    if tested is None:
        return
    by_sieve, score = tested.tests.holds[SYNTACTIC], tested.tests.mean[SYNTACTIC]
    rule = wording.POINTS if focus.finding.settings.margin == "points" else wording.RELATIVE
    n_all = argmax.heads.size - len(focus.visit.removed)
    n_heads = {plain(relation): n for relation, n in argmax.n_heads.items()}
    by_argmax = wording.n_syntactic(int(argmax.heads.sum()), n_all, n_heads, rule)
    both = overlap(np.stack([argmax.heads, by_sieve]), ("argmax", "sieve"), "argmax", "sieve")
    st.markdown(f"{by_argmax} {wording.both_rules(both, n_all)}")
    _maps_of_both(focus, argmax, by_sieve, score)
    st.caption(wording.TWO_RULES_PAPER)


def _maps_of_both(
    focus: RelationFocus,
    argmax: ByArgmax,
    by_sieve: Bool[np.ndarray, "layer head"],
    score: Float[np.ndarray, "layer head"],
) -> None:
    scale, points = focus.visit.choice.scale, 100 * argmax.gain
    best = [[wording.best_at(at) for at in of_layer] for of_layer in argmax.best]
    left, right = halves()
    with left:
        title = f"{wording.ARGMAX_GRID}: {wording.ARGMAX_TITLE}"
        picture = HeadMap(
            title=title,
            label=_label(focus, title),
            values=points,
            bound=round_bound(float(np.abs(points).max())),
            signed=True,
            low_label=wording.LOWER,
            high_label=wording.HIGHER,
            outlined=argmax.heads,
            outline=wording.OUTLINE,
            details=[("best at", best), (f"mean {WORDS[scale].noun} by the sieve", score)],
        )
        _show(focus, "syntactic by argmax", picture)
    with right:
        title = f"{wording.SIEVE_GRID}: {wording.sieve_title(scale)}"
        picture = HeadMap(
            title=title,
            label=_label(focus, title),
            values=score,
            bound=round_bound(float(np.nanmax(np.abs(score), initial=0))),
            signed=scale == "share",
            outlined=by_sieve,
            outline=wording.SIEVE_OUTLINE,
            details=[("by argmax", np.where(argmax.heads, best, "no").tolist())],
        )
        _show(focus, "syntactic by the sieve", picture)


def _label(focus: RelationFocus, title: str) -> str:
    return f"{title}, heads of {focus.visit.engine.files.name}"


def _show(focus: RelationFocus, name: str, picture: HeadMap, paper: str = "") -> None:
    show_head_map(
        picture,
        head_selection(f"relations {name}", focus.heads, focus.reset),
        file=f"map of {name}",
        facts=focus.facts,
        paper=paper,
    )
