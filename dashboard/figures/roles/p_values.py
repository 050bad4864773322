"""The p-values of all tests: in the order of the heads, and against the score."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template

BINS: Final = 20
"""Number of bins of the histogram; the width of each is the default alpha."""
MARGIN_START: Final = 1.04
"""Start of the histogram on the head axis, as a multiple of the number of heads."""
MARGIN_WIDTH: Final = 0.24
MARGIN_END: Final = 1.4
MOST_EVIDENCE: Final = 16.0
"""-log10 of the smallest p-value that is distinguished, the precision of 1 - p in double precision."""
NAME_ROOM: Final = (0.09, 0.05)
"""Width and height of the name of a head, as parts of the axes."""
READING: Final = ("filled: the head holds the role", "hollow: it does not")
NOTHING: Final = "No test has a p-value."


def p_value_scatter(tests: HeadTests, roles: Sequence[str], scale: Scale = "score") -> Figure:
    """Every test's p-value in the order of the heads, with a histogram beside it that shares the p axis.

    Source: Pande et al. 2021, scatter of all p-values with marginal histogram.
    """
    points = _points(tests, roles)
    n_layers, n_heads = tests.p.shape[1:]
    parts = [points, _histogram(points, roles, n_layers * n_heads), _lines(alpha=tests.settings.alpha)]
    parts.append(axes.note_rows(points.empty, NOTHING))
    spec = _scatter_spec(tuple(roles), n_layers, n_heads, scale)
    return Figure(spec, pd.concat(parts), _description(tests, roles))


def p_value_against_score(tests: HeadTests, roles: Sequence[str], scale: Scale = "score") -> Figure:
    """As `p_value_scatter`, against the mean score; p-values of 1e-16 or less are drawn at 16 and counted."""
    points = _points(tests, roles)
    points["evidence"] = _evidence(points["p"].to_numpy())
    lines = _lines(tau=tests.settings.tau, alpha=tests.settings.alpha)
    lines["value"] = [tests.settings.tau, *_evidence(np.array([tests.settings.alpha]))]
    capped = int((points["evidence"] == MOST_EVIDENCE).sum())
    strong = f" {counted(capped, 'p-value')} of 1e-16 or less drawn at 16." if capped else ""
    ends = axes.score_ends(points, ("mean",), scale)
    data = pd.concat([points, _names(points), lines, axes.note_rows(points.empty, NOTHING)])
    return Figure(_evidence_spec(tuple(roles), scale, ends), data, _description(tests, roles) + strong)


def _points(tests: HeadTests, roles: Sequence[str]) -> pd.DataFrame:
    indices = [tests.roles.index(role) for role in roles]
    role, layer, head = np.indices(tests.p[indices].shape).reshape(3, -1)
    points = pd.DataFrame(
        {
            "kind": "test",
            "role": np.array(roles, dtype=object)[role],
            "name": [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())],
            # Roles are side by side within the place of a head.
            "number": layer * tests.p.shape[2] + head + (role + 0.5) / len(roles) - 0.5,
            "mean": tests.mean[indices].ravel(),
            "p": tests.p[indices].ravel(),
            "p_adjusted": tests.p_adjusted[indices].ravel(),
            "holds": tests.holds[indices].ravel(),
        }
    )
    # Drawn in the order of the heads, so that no role hides all others.
    return points[points["p"].notna()].sort_values("number", ignore_index=True)


def _names(points: pd.DataFrame) -> pd.DataFrame:
    """The names of heads that hold a role, those of rare roles and of high scores first, as many as have room."""
    held = points[points["holds"].astype(bool)]
    held = held.assign(n=held.groupby("role")["role"].transform("size")).sort_values(
        ["n", "mean"], ascending=[True, False]
    )
    across = np.log1p(held["mean"].to_numpy())
    places = np.column_stack([across / max(across.max(initial=0), 1), held["evidence"].to_numpy() / MOST_EVIDENCE])
    return held[axes.has_room(places, NAME_ROOM)].assign(kind="name")


def _evidence(p: Float[np.ndarray, "test"]) -> Float[np.ndarray, "test"]:
    return -np.log10(np.maximum(p, 10**-MOST_EVIDENCE))


def _histogram(points: pd.DataFrame, roles: Sequence[str], n_all: int) -> pd.DataFrame:
    """Stacked bars, on the head axis to the right of its `n_all` heads."""
    edges = np.linspace(0, 1, BINS + 1)
    counts = np.stack([np.histogram(points.loc[points["role"] == role, "p"], edges)[0] for role in roles])
    ends = counts.cumsum(axis=0)
    role, bin_index = np.nonzero(counts)
    start, unit = MARGIN_START * n_all, MARGIN_WIDTH * n_all / max(1, ends.max())
    bars = pd.DataFrame(
        {
            "role": np.array(roles, dtype=object)[role],
            "tests": counts[role, bin_index],
            "total": ends[-1][bin_index],
            "p_low": edges[bin_index],
            "p_middle": (edges[bin_index] + edges[bin_index + 1]) / 2,
            "p_high": edges[bin_index + 1],
            "left": start + unit * (ends - counts)[role, bin_index],
            "right": start + unit * ends[role, bin_index],
        }
    )
    numbers = bars.assign(left=start + unit * bars["total"]).drop_duplicates("p_middle")
    return pd.concat([bars.assign(kind="bin"), numbers[["p_middle", "total", "left"]].assign(kind="total")])


def _lines(**values: float) -> pd.DataFrame:
    lines = [{"kind": name, "value": value, "label": f"{name} {value:g}"} for name, value in values.items()]
    return pd.DataFrame(lines)


@cache
def _scatter_spec(roles: tuple[str, ...], n_layers: int, n_heads: int, scale: Scale) -> Spec:
    marks = _marks(roles, _head_position("number", n_layers, n_heads), _p_position("p"), scale)
    bars, totals = _histogram_layers(roles, _head_position("left", n_layers, n_heads))
    return template(
        alt.layer(_alpha_line(), marks, bars, totals, _alpha_label(), axes.note()),
        title="p-values of all heads",
        reading=READING,
        height=320,
    )


@cache
def _evidence_spec(roles: tuple[str, ...], scale: Scale, ends: axes.Ends) -> Spec:
    evidence = alt.Y(
        "evidence:Q",
        title="evidence: −log10 of the p-value",
        scale=alt.Scale(domain=[0, MOST_EVIDENCE + 0.6], nice=False),
        axis=alt.Axis(
            values=list(range(0, 17, 2)),
            labelExpr=f"datum.value == {MOST_EVIDENCE:g} ? '≥ {MOST_EVIDENCE:g}' : datum.label",
            grid=False,
        ),
    )
    x = axes.score_position(alt.X, "mean", scale, WORDS[scale].title("mean "), ends)
    marks = _marks(roles, x, evidence, scale)
    names = rows_of("name").mark_text(color=INK, fontSize=10, baseline="bottom", dy=-5)
    names = names.encode(x=x, y=evidence, text=alt.Text("name:N"))
    tau = rows_of("tau").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=alt.X("value:Q"))
    tau_label = rows_of("tau").mark_text(color=INK, fontSize=11, align="right", baseline="top", dx=-4, dy=4)
    tau_label = tau_label.encode(x=alt.X("value:Q"), y=alt.YValue(0), text=alt.Text("label:N"))
    return template(
        alt.layer(tau, _alpha_line(), marks, names, tau_label, _alpha_label(), axes.note()),
        title=f"Evidence by {WORDS[scale].noun}",
        reading=READING,
        height=320,
    )


def _head_position(field: str, n_layers: int, n_heads: int) -> "alt.X":
    n_all = n_layers * n_heads
    return alt.X(
        field,
        type="quantitative",
        title="layer, heads in order · right: number of tests",
        scale=alt.Scale(domain=[-0.02 * n_all, MARGIN_END * n_all], nice=False, zero=False),
        axis=alt.Axis(
            values=[place * n_heads for place in range(n_layers)],
            labelExpr=f"'L' + round(datum.value / {n_heads})",
            labelOverlap="greedy",
            grid=True,
        ),
    )


def _p_position(field: str) -> "alt.Y":
    return alt.Y(
        field,
        type="quantitative",
        title="p-value (0 to 1)",
        scale=alt.Scale(domain=[-0.02, 1.02], nice=False, zero=False),
        axis=alt.Axis(values=[0, 0.2, 0.4, 0.6, 0.8, 1], grid=False),
    )


def _marks(roles: Sequence[str], x: "alt.X", y: "alt.Y", scale: Scale) -> "alt.Chart":
    """A mark for each test, filled where the head holds the role."""
    tooltip = axes.tooltips(
        "role",
        ("name", "head"),
        ("mean", WORDS[scale].title("mean "), ".3~f"),
        ("p", "p", ".3~g"),
        ("p_adjusted", "p, corrected", ".3~g"),
        ("holds", "holds the role"),
    )
    legend = _legend(roles)
    marks = rows_of("test").mark_point(size=38, strokeWidth=1.2, opacity=0.85)
    return marks.encode(
        x=x,
        y=y,
        color=axes.role_colors(alt.Color, roles, legend),
        shape=axes.role_shapes(roles, legend),
        fill=axes.role_colors(alt.Fill, roles, legend),
        fillOpacity=alt.when("datum.holds").then(alt.value(1)).otherwise(alt.value(0)),
        tooltip=tooltip,
    )


def _histogram_layers(roles: Sequence[str], x: "alt.X") -> "tuple[alt.Chart, alt.Chart]":
    tooltip = axes.tooltips("role", "tests", ("p_low", "p from", ".2f"), ("p_high", "p to", ".2f"))
    bars = rows_of("bin").mark_bar(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    fill = axes.role_colors(alt.Fill, roles, _legend(roles))
    totals = rows_of("total").mark_text(color=INK, fontSize=10, align="left", dx=3)
    return (
        bars.encode(x=x, x2=alt.X2("right"), y=_p_position("p_low"), y2=alt.Y2("p_high"), fill=fill, tooltip=tooltip),
        totals.encode(x=x, y=_p_position("p_middle"), text=alt.Text("total:N", format=",d")),
    )


def _legend(roles: Sequence[str]) -> "alt.Legend":
    return axes.role_legend({role: LOOKS[role].label for role in roles}, "role")


def _alpha_line() -> "alt.Chart":
    return rows_of("alpha").mark_rule(color=INK, strokeDash=[5, 3]).encode(y=alt.Y("value:Q"))


def _alpha_label() -> "alt.Chart":
    label = rows_of("alpha").mark_text(color=INK, fontSize=11, align="right", baseline="bottom", dy=-2)
    return label.encode(x=alt.XValue("width"), y=alt.Y("value:Q"), text=alt.Text("label:N"))


def _description(tests: HeadTests, roles: Sequence[str]) -> str:
    indices = [tests.roles.index(role) for role in roles]
    p, holds, criterion = tests.p[indices], tests.holds[indices], tests.settings
    is_missing = np.isnan(p)
    if is_missing.all():
        return (
            f"{NOTHING} A test needs at least 2 texts, with scores that differ. "
            f"By the mean alone, roles are held {int(holds.sum()):,} times."
        )
    held = ", ".join(
        f"{LOOKS[role].label} {number}" for role, number in zip(roles, (holds & ~is_missing).sum(axis=(1, 2)))
    )
    left_out = f" {counted(int(is_missing.sum()), 'test')} without a p-value left out." if is_missing.any() else ""
    return (
        f"{counted(int((~is_missing).sum()), 'p-value')} of {counted(len(roles), 'role')}: "
        f"{int((p < criterion.alpha).sum())} below alpha {criterion.alpha:g}, {int((p > 1 - criterion.alpha).sum())} "
        f"above {1 - criterion.alpha:g}. Drawn filled, because the head holds the role: {held}.{left_out}"
    )
