"""The p-values of all tests: in the order of the heads, and against the score."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.hypotheses import HeadTests
from core.roles import ROLES
from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import INK, SCORE_AXIS, Figure, Spec, counted, layer, picture, score_position

PENTAGON: Final = "M0,-1L.95,-.31L.59,.81L-.59,.81L-.95,-.31Z"
STAR: Final = "M0,-1L.25,-.34L.95,-.31L.4,.13L.59,.81L0,.42L-.59,.81L-.4,.13L-.95,-.31L-.25,-.34Z"
HEXAGON: Final = "M0,-1L.87,-.5L.87,.5L0,1L-.87,.5L-.87,-.5Z"
_COARSE_MARKS = ("circle", "square", "triangle-up", "diamond")
_FINE_MARKS = ("cross", "triangle-down", "triangle-left", "triangle-right", PENTAGON, STAR)
SHAPES: Final = dict(zip(ROLES, (*_COARSE_MARKS, HEXAGON, *_FINE_MARKS), strict=True))
"""Mark of each role, for whoever cannot tell the colours apart."""
BINS: Final = 20
"""Of the histogram: each is as wide as the usual alpha."""
MARGIN_START: Final = 1.04
"""Where the histogram stands on the head axis, counted in all heads: the heads themselves end at 1."""
MARGIN_WIDTH: Final = 0.24
MARGIN_END: Final = 1.4
MOST_EVIDENCE: Final = 16.0
"""-log10 of the smallest p-value that is told apart; double precision loses the complement there."""
READING: Final = ("filled: the head holds the role", "hollow: it does not")
NOTHING: Final = "No test has a p-value."


def p_value_scatter(tests: HeadTests, roles: Sequence[str]) -> Figure:
    """Every test's p-value in the order of the heads, with a histogram beside it that shares the p axis.

    Args:
        tests: what to draw; what has no p-value is left out and counted in the description.
        roles: the roles to show.

    Source: Pande et al. 2021, scatter of all p-values with marginal histogram.
    """
    points = _points(tests, roles)
    n_layers, n_heads = tests.p.shape[1:]
    parts = [points, _histogram(points, roles, n_layers * n_heads), _lines(alpha=tests.settings.alpha), _note(points)]
    return Figure(_scatter_spec(tuple(roles), n_layers, n_heads), pd.concat(parts), _description(tests, roles))


def p_value_against_score(tests: HeadTests, roles: Sequence[str]) -> Figure:
    """Every test's -log10 p against its mean score: strong evidence stands on top, strong scores to the right.

    Args:
        tests: what to draw; what has no p-value is left out and counted in the description.
        roles: the roles to show.

    Returns: the figure; a p-value of 1e-16 or less, 0 included, is drawn at 16 and counted in the description.
    """
    points = _points(tests, roles)
    points["evidence"] = _evidence(points["p"].to_numpy())
    lines = _lines(tau=tests.settings.tau, alpha=tests.settings.alpha)
    lines["value"] = [tests.settings.tau, *_evidence(np.array([tests.settings.alpha]))]
    capped = int((points["evidence"] == MOST_EVIDENCE).sum())
    strong = f" {counted(capped, 'p-value')} of 1e-16 or less drawn at 16." if capped else ""
    return Figure(
        _evidence_spec(tuple(roles)),
        pd.concat([points, lines, _note(points)]),
        _description(tests, roles) + strong,
    )


def _points(tests: HeadTests, roles: Sequence[str]) -> pd.DataFrame:
    chosen = [tests.roles.index(role) for role in roles]
    role, place, head = np.indices(tests.p[chosen].shape).reshape(3, -1)
    points = pd.DataFrame(
        {
            "kind": "test",
            "role": np.array(roles, dtype=object)[role],
            "name": [f"L{at_layer} H{at_head}" for at_layer, at_head in zip(place.tolist(), head.tolist())],
            # Roles stand side by side within a head's place.
            "number": place * tests.p.shape[2] + head + (role + 0.5) / len(roles) - 0.5,
            **{name: getattr(tests, name)[chosen].ravel() for name in ("mean", "p", "p_adjusted", "holds")},
        }
    )
    # In the order of the heads no role hides all others.
    return points[points["p"].notna()].sort_values("number", ignore_index=True)


def _evidence(p: Float[np.ndarray, "test"]) -> Float[np.ndarray, "test"]:
    return -np.log10(np.maximum(p, 10**-MOST_EVIDENCE))


def _histogram(points: pd.DataFrame, roles: Sequence[str], n_all: int) -> pd.DataFrame:
    """Stacked bars, placed on the head axis right of its `n_all` heads."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = np.stack([np.histogram(points.loc[points["role"] == role, "p"], edges)[0] for role in roles])
    ends = counts.cumsum(axis=0)
    role, place = np.nonzero(counts)
    start, unit = MARGIN_START * n_all, MARGIN_WIDTH * n_all / max(1, ends.max())
    bars = pd.DataFrame(
        {
            "role": np.array(roles, dtype=object)[role],
            "tests": counts[role, place],
            "total": ends[-1][place],
            "p_low": edges[place],
            "p_middle": (edges[place] + edges[place + 1]) / 2,
            "p_high": edges[place + 1],
            "left": start + unit * (ends - counts)[role, place],
            "right": start + unit * ends[role, place],
        }
    )
    numbers = bars.assign(left=start + unit * bars["total"]).drop_duplicates("p_middle")
    return pd.concat([bars.assign(kind="bin"), numbers[["p_middle", "total", "left"]].assign(kind="total")])


def _lines(**values: float) -> pd.DataFrame:
    lines = [{"kind": name, "value": value, "label": f"{name} {value:g}"} for name, value in values.items()]
    return pd.DataFrame(lines)


def _note(points: pd.DataFrame) -> pd.DataFrame:
    return pd.DataFrame({"kind": [] if len(points) else ["note"], "label": [] if len(points) else [NOTHING]})


def _by_role(roles: Sequence[str], looks: Sequence[str]) -> Spec:
    labels = {role: LOOKS[role].label for role in roles}
    legend = {
        "orient": "bottom",
        "columns": 2,
        "title": "role",
        "symbolOpacity": 1,
        "labelExpr": f"{json.dumps(labels)}[datum.label]",
    }
    return {
        "field": "role",
        "type": "nominal",
        "scale": {"domain": list(roles), "range": list(looks)},
        "legend": legend,
    }


def _marks(roles: Sequence[str], x: Spec, y: Spec) -> Spec:
    colors = [LOOKS[role].color for role in roles]
    return layer(
        "test",
        {"type": "point", "size": 38, "strokeWidth": 1.2, "opacity": 0.85},
        x=x,
        y=y,
        color=_by_role(roles, colors),
        shape=_by_role(roles, [SHAPES[role] for role in roles]),
        fill=_by_role(roles, colors),
        fillOpacity={"condition": {"test": "datum.holds", "value": 1}, "value": 0},
        tooltip=[
            {"field": "role", "title": "role"},
            {"field": "name", "title": "head"},
            {"field": "mean", "title": "mean score (× uniform)", "format": ".3~f"},
            {"field": "p", "title": "p", "format": ".3~g"},
            {"field": "p_adjusted", "title": "p, corrected", "format": ".3~g"},
            {"field": "holds", "title": "holds the role"},
        ],
    )


def _rule(name: str, channel: str) -> Spec:
    rule = {"type": "rule", "color": INK, "strokeDash": [5, 3]}
    return layer(name, rule, **{channel: {"field": "value", "type": "quantitative"}})


def _label(kind: str, x: Spec, y: Spec, **mark: Any) -> Spec:
    return layer(kind, {"type": "text", "color": INK, "fontSize": 11, **mark}, x=x, y=y, text={"field": "label"})


@cache
def _scatter_spec(roles: tuple[str, ...], n_layers: int, n_heads: int) -> Spec:
    n_all = n_layers * n_heads
    x = {
        "type": "quantitative",
        "title": "layer, heads in order · right: number of tests",
        "scale": {"domain": [-0.02 * n_all, MARGIN_END * n_all], "nice": False, "zero": False},
        "axis": {
            "values": [place * n_heads for place in range(n_layers)],
            "labelExpr": f"'L' + round(datum.value / {n_heads})",
            "labelOverlap": "greedy",
            "grid": True,
        },
    }
    y = {
        "type": "quantitative",
        "title": "p-value (0 to 1)",
        "scale": {"domain": [-0.02, 1.02], "nice": False, "zero": False},
        "axis": {"values": [0, 0.2, 0.4, 0.6, 0.8, 1], "grid": False},
    }
    bars = layer(
        "bin",
        {"type": "bar", "stroke": INK, "strokeWidth": 0.5, "strokeOpacity": 0.5},
        x={**x, "field": "left"},
        x2={"field": "right"},
        y={**y, "field": "p_low"},
        y2={"field": "p_high"},
        fill=_by_role(roles, [LOOKS[role].color for role in roles]),
        tooltip=[
            {"field": "role", "title": "role"},
            {"field": "tests", "title": "tests"},
            {"field": "p_low", "title": "p from", "format": ".2f"},
            {"field": "p_high", "title": "p to", "format": ".2f"},
        ],
    )
    numbers = _label("total", {**x, "field": "left"}, {**y, "field": "p_middle"}, fontSize=10, align="left", dx=3)
    numbers["encoding"]["text"] = {"field": "total", "format": ",d"}
    alpha = {"field": "value", "type": "quantitative"}
    return picture(
        [
            _rule("alpha", "y"),
            _marks(roles, {**x, "field": "number"}, {**y, "field": "p"}),
            bars,
            numbers,
            _label("alpha", {"value": "width"}, alpha, align="right", baseline="bottom", dy=-2),
            _label("note", {"value": 8}, {"value": 24}, align="left"),
        ],
        title="p-values of all heads",
        reading=READING,
        height=320,
    )


@cache
def _evidence_spec(roles: tuple[str, ...]) -> Spec:
    y = {
        "field": "evidence",
        "type": "quantitative",
        "title": "evidence: −log10 of the p-value",
        "scale": {"domain": [0, MOST_EVIDENCE + 0.6], "nice": False},
        "axis": {
            "values": list(range(0, 17, 2)),
            "labelExpr": f"datum.value == {MOST_EVIDENCE:g} ? '≥ {MOST_EVIDENCE:g}' : datum.label",
            "grid": False,
        },
    }
    value = {"field": "value", "type": "quantitative"}
    return picture(
        [
            _rule("tau", "x"),
            _rule("alpha", "y"),
            _marks(roles, score_position("mean", "mean " + SCORE_AXIS), y),
            _label("tau", value, {"value": 0}, align="right", baseline="top", dx=-4, dy=4),
            _label("alpha", {"value": "width"}, value, align="right", baseline="bottom", dy=-2),
            _label("note", {"value": 8}, {"value": 24}, align="left"),
        ],
        title="Evidence against score",
        reading=READING,
        height=320,
    )


def _description(tests: HeadTests, roles: Sequence[str]) -> str:
    chosen = [tests.roles.index(role) for role in roles]
    p, holds, asked = tests.p[chosen], tests.holds[chosen], tests.settings
    without = np.isnan(p)
    if without.all():
        return (
            f"{NOTHING} A test needs at least 2 texts, with scores that differ. "
            f"By the mean alone, roles are held {int(holds.sum()):,} times."
        )
    held = ", ".join(
        f"{LOOKS[role].label} {number}" for role, number in zip(roles, (holds & ~without).sum(axis=(1, 2)))
    )
    left_out = f" {counted(int(without.sum()), 'test')} without a p-value left out." if without.any() else ""
    return (
        f"{counted(int((~without).sum()), 'p-value')} of {counted(len(roles), 'role')}: "
        f"{int((p < asked.alpha).sum())} below alpha {asked.alpha:g}, {int((p > 1 - asked.alpha).sum())} above "
        f"{1 - asked.alpha:g}. Drawn filled, because the head holds the role: {held}.{left_out}"
    )
