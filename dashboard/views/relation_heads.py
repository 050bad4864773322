"""All heads on one relation, and heads that are syntactic by argmax beside those that are by the sieve."""

from typing import Any, Final

import numpy as np
import streamlit as st
from jaxtyping import Float

from cache.inference import Inference
from core.parsing_heads import DIRECTIONS, argmax_and_sieve, beats_baseline
from core.roles import ROLES
from dashboard import parsing_wording as wording
from dashboard import provenance, state
from dashboard.components.head_map import Detail, head_map
from dashboard.downloads import drawing_downloads
from dashboard.figures.head_map_svg import head_map_svg, round_bound
from dashboard.figures.relation_bars import ARROWS
from dashboard.views.corpus import corpus
from dashboard.views.layout import halves
from dashboard.views.relation_results import Focus

SYNTACTIC: Final = ROLES.index("syntactic")


def grid(focus: Focus) -> None:
    """Accuracy of every head on the chosen relation and direction, less the baseline."""
    st.subheader(wording.GRID)
    one, way = focus.relation, DIRECTIONS.index(focus.direction)
    points = 100 * (one.accuracy - one.baseline.share)
    ends = zip(one.low[way].tolist(), one.high[way].tolist())
    shape = points[way].shape
    details: list[Detail] = [
        ("right", _shares(one.accuracy[way])),
        ("interval", [[f"{low:.1%} to {high:.1%}" for low, high in zip(*rows)] for rows in ends]),
        ("best fixed offset", np.full(shape, f"{one.baseline.share:.1%} ({one.baseline.offset:+d})").tolist()),
        ("cases", np.full(shape, f"{one.n_cases:,}").tolist()),
        ("p, corrected", one.p_values[way]),
    ]
    if way:
        details.insert(2, ("right, by the head's own row", _shares(focus.by_row.accuracy[way])))
    if off := focus.chosen.off:
        rows, columns = map(range, shape)
        details.append(("switched off", [["yes" if (row, at) in off else "no" for at in columns] for row in rows]))
    _map(
        focus,
        "accuracies",
        points[way],
        title=f"{one.relation}, {ARROWS[focus.direction]}: {wording.GRID_TITLE}",
        details=details,
        bound=round_bound(float(np.abs(points).max())),
        signed=True,
        outlined=beats_baseline(focus.by_row, margin=focus.asked.margin)[way],
        outline=wording.OUTLINE_ROW if way else wording.OUTLINE,
    )
    st.caption(wording.GRID_PAPER)


def two_rules(inference: Inference, focus: Focus) -> None:
    """Syntactic by argmax beside syntactic by the sieve: how many heads, how many by both, and which."""
    st.markdown(wording.TWO_RULES_SEE)
    argmax = focus.argmax
    if argmax is None:
        st.info(wording.NO_RULE_RELATION)
        return
    tested = corpus(inference, focus.engine, focus.chosen, focus.found.given)
    if tested is None:
        return
    by_sieve, score = tested.tests.holds[SYNTACTIC], tested.tests.mean[SYNTACTIC]
    st.markdown(wording.both_rules(argmax_and_sieve(argmax.heads, by_sieve), by_sieve.size))
    left, right = halves()
    with left:
        points = 100 * argmax.gain
        _map(
            focus,
            "syntactic by argmax",
            points,
            title=f"{wording.ARGMAX_GRID}: {wording.ARGMAX_TITLE}",
            details=[("best at", argmax.named), ("mean score by the sieve", score)],
            bound=round_bound(float(np.abs(points).max())),
            signed=True,
            outlined=argmax.heads,
            outline=wording.OUTLINE,
        )
    with right:
        _map(
            focus,
            "syntactic by the sieve",
            score,
            title=f"{wording.SIEVE_GRID}: {wording.SIEVE_TITLE}",
            details=[("by argmax", np.where(argmax.heads, argmax.named, "no").tolist())],
            bound=round_bound(float(np.nanmax(score, initial=0))),
            signed=False,
            outlined=by_sieve,
            outline=wording.SIEVE_OUTLINE,
        )
    st.caption(wording.TWO_RULES_PAPER)


def _shares(accuracy: Float[np.ndarray, "layer head"]) -> list[list[str]]:
    return [[f"{share:.1%}" for share in row] for row in accuracy.tolist()]


def _map(
    focus: Focus, name: str, values: Float[np.ndarray, "layer head"], *, title: str, details: Any, **drawn: Any
) -> None:
    """One number per head with its file."""
    ends: dict[str, Any] = {"low_label": wording.LOWER, "high_label": wording.HIGHER} if drawn["signed"] else {}
    whole = f"{title}, heads of {focus.engine.files.name}"
    head_map(
        key=f"relations {name}",
        values=values,
        label=whole,
        title=title,
        details=details,
        chosen=focus.heads,
        reset=focus.reset,
        on_change=state.choose_heads,
        **ends,
        **drawn,
    )
    drawing_downloads(
        f"map of {name}",
        lambda: head_map_svg(values=values, title=whole, caption=provenance.caption(focus.facts), **ends, **drawn),
    )
