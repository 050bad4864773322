"""Changes of roles, scores and attention between two checkpoints, by layer and by head. All changes are b − a."""

import json
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from jaxtyping import Float, Int

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.statistics.means import half_interval, moments
from attention_sieve.core.wording import p_value
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, rows_of, template
from attention_sieve.dashboard.figures.roles.layers import NARROWEST
from attention_sieve.dashboard.figures.surface.head_dots import DotSeries, head_dots

if TYPE_CHECKING:  # imports SciPy, which the steps of other pages do without
    from attention_sieve.core.comparison.differences import LayerShift, PairedTests

WIDTH: Final = 0.7
"""Part of a layer's place over which its marks are spread."""
MARGIN: Final = 0.6
"""Room left and right of the layers, in layers."""
NO_SCORE: Final = "No head has a score under both checkpoints."
NO_CHANGE: Final = "No text has a score under both checkpoints."

LANE: Final = 84
"""Height of one role's row of bars, in pixels."""
REACH: Final = 0.35
"""Part of that height for the longest bar, up or down; the rest is for its number."""
FEWEST: Final = 3
"""Minimum end of the scale in heads, so that one head is not a full bar."""
NO_GAIN: Final = "No head gains or loses a role."


def roles_gained_and_lost(
    gained: Int[np.ndarray, "role layer"], lost: Int[np.ndarray, "role layer"], roles: Sequence[str], n_heads: int
) -> Figure:
    """Bars by layer, up for heads that gain a role and down for heads that lose it, one row of bars for each role.

    Args:
        gained: heads of each layer that hold a role in the compared checkpoint and not in the reference.
        lost: heads that hold it in the reference only.
        roles: names along the role axis, top first.
        n_heads: heads of a layer.

    Returns: the figure; all roles share one scale, which ends at the longest bar.
    Source: Pande et al. 2021, roles before and after fine-tuning, which they describe without a figure.
    """
    most = max(FEWEST, int(gained.max()), int(lost.max()))
    zeros = {role: len(roles) - lane - 0.5 for lane, role in enumerate(roles)}
    bars = pd.DataFrame(
        {
            "kind": kind,
            "role": role,
            "layer": layer,
            "heads": heads,
            "of": n_heads,
            "zero": zeros[role],
            "end": zeros[role] + sign * REACH * heads / most,
            "label": f"{'+' if sign > 0 else '−'}{heads}",
        }
        for kind, sign, counts in (("gained", 1, gained), ("lost", -1, lost))
        for role, row in zip(roles, counts, strict=True)
        for layer, heads in enumerate(row.tolist())
        if heads
    )
    scale = pd.DataFrame(
        {"kind": "scale", "end": zero + sign * REACH, "label": str(most if sign else 0)}
        for zero in zeros.values()
        for sign in (1, 0, -1)
    )
    spec = _gains_spec(tuple(roles), gained.shape[1])
    data = pd.concat([bars, scale, axes.note_rows(bars.empty, NO_GAIN)])
    return Figure(spec, data, _gains_description(gained, lost, roles, n_heads))


def change_axis(scale: Scale) -> str:
    return WORDS[scale].title("change of ", ", b − a")


def shift_by_layer(shifts: "Sequence[LayerShift]", alpha: float = 0.05, scale: Scale = "score") -> Figure:
    """Mean change of a role's score in each layer, with its interval and a line at no change.

    Args:
        shifts: one for each role to show, all of the same checkpoints.
        alpha: their intervals cover 1 - alpha.

    Source: Pande et al. 2021, attention to [SEP] falls in the later layers as part of fine-tuning.
    """
    spread = WIDTH * ((np.arange(len(shifts)) + 0.5) / len(shifts) - 0.5)
    points = pd.concat(
        pd.DataFrame(
            {
                "kind": "shift",
                "role": shift.role,
                "layer": range(len(shift.mean)),
                "texts": shift.texts,
                "mean": shift.mean,
                "low": shift.low,
                "high": shift.high,
            }
        ).assign(place=lambda table, offset=offset: table["layer"] + offset)
        for shift, offset in zip(shifts, spread, strict=True)
    )
    interval = points[points["low"].notna()].assign(kind="interval")
    zero = pd.DataFrame([{"kind": "zero", "value": 0.0}])
    ends = axes.round_ends(points[["mean", "low", "high"]].to_numpy(float).ravel())
    spec = _shift_spec(tuple(shift.role for shift in shifts), len(shifts[0].mean), scale, ends)
    # A layer without a change stays in the data, so that it interrupts the line.
    data = pd.concat([interval, points, zero, axes.note_rows(points["mean"].isna().all(), NO_CHANGE)])
    return Figure(
        spec,
        data,
        f"Mean {change_axis(scale)} by layer (compared checkpoint minus reference), with "
        f"{100 * (1 - alpha):g}% intervals over texts. {' '.join(map(_of_role, shifts))}",
    )


def divergence_by_layer(
    divergence: Float[np.ndarray, "text layer head"], alpha: float = 0.05, chosen: Sequence[Head] = ()
) -> Figure:
    """Divergence of the attention of the same head under both checkpoints: a dot per head, a line for layer means.

    Args:
        divergence: mean Jensen-Shannon divergence of a head's rows, in nats, 0 to ln 2; NaN for a text that has none.
        alpha: the intervals of the heads cover 1 - alpha.
    """
    texts, mean, squares = moments(divergence)
    half = half_interval(texts, squares, alpha)
    n_known, n_all = int((~np.isnan(divergence)).any(axis=(1, 2)).sum()), len(divergence)
    series = DotSeries(label="divergence", mean=mean, low=mean - half, high=mean + half, n_texts=n_known)
    axis = axes.ValueAxis("nats (at most ln 2 = 0.693)", ".3~g", axes.round_ends(mean.ravel())[1])
    figure = head_dots([series], axis, title="Divergence of attention, by layer", chosen=chosen)
    without = f" {counted(n_all - n_known, 'text')} without one left out." if n_known < n_all else ""
    description = (
        "Mean Jensen-Shannon divergence between the attention of the same head under both checkpoints, in nats, 0 to "
        f"ln 2 = 0.693, over {counted(n_known, 'text')}, by layer. {figure.description}{without}"
    )
    return Figure(figure.spec, figure.data, description)


def score_change_scatter(tests: "PairedTests", roles: Sequence[str], scale: Scale = "score") -> Figure:
    """Every head's mean score under the compared checkpoint against that under the reference, with the diagonal.

    Args:
        tests: paired tests; heads without a mean are left out and counted in the description.
    """
    indices = [tests.roles.index(role) for role in roles]
    role, layer, head = np.indices(tests.mean_a[indices].shape).reshape(3, -1)
    points = pd.DataFrame(
        {
            "kind": "head",
            "role": np.array(roles, dtype=object)[role],
            "name": [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())],
        }
    )
    for name in ("mean_a", "mean_b", "difference", "p_adjusted", "texts", "differs"):
        points[name] = getattr(tests, name)[indices].ravel()
    known = points[points["difference"].notna()]
    # Heads that differ are on top; among the others, roles alternate so that none hides another.
    known = known.sort_values(["differs", "name"], kind="stable", ignore_index=True)
    means = known[["mean_a", "mean_b"]]
    ends = [min(0.0, float(means.min(axis=None))), float(means.max(axis=None))] if len(known) else [0.0, 1.0]
    diagonal = pd.DataFrame({"kind": "diagonal", "mean_a": ends, "mean_b": ends})
    data = pd.concat([diagonal, known, axes.note_rows(known.empty, NO_SCORE)])
    spec = _scatter_spec(tuple(roles), scale, axes.score_ends(data, ("mean_a", "mean_b"), scale))
    return Figure(spec, data, _scatter_description(known, tests, roles, len(points), scale))


@cache
def _shift_spec(roles: tuple[str, ...], n_layers: int, scale: Scale, ends: axes.Ends) -> Spec:
    def change(field: str) -> alt.Y:
        along = alt.Scale(domain=list(ends), nice=False)
        return alt.Y(field, type="quantitative", title=change_axis(scale), scale=along)

    subject = LOOKS[roles[0]].label if len(roles) == 1 else counted(len(roles), "role")
    x, y = axes.places_axis("place", n_layers, MARGIN), change("mean")
    legend = axes.lettered_legend(roles)
    tooltip = axes.tooltips(
        "role",
        "layer",
        ("mean", "mean change, b − a", "+.3~f"),
        ("low", "interval from", "+.3~f"),
        ("high", "to", "+.3~f"),
        "texts",
    )
    zero = rows_of("zero").mark_rule(color=INK).encode(y=change("value"))
    line = rows_of("shift").mark_line(strokeWidth=1.2, opacity=0.6)
    line = line.encode(x=x, y=y, stroke=axes.role_colors(alt.Stroke, roles, legend))
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=1.5)
    interval = interval.encode(x=x, y=change("low"), y2=alt.Y2("high"), tooltip=tooltip)
    point = rows_of("shift").mark_point(filled=True, opacity=1, size=70, stroke=INK, strokeWidth=1.2)
    fill, shape = axes.role_colors(alt.Fill, roles, legend), axes.role_shapes(roles, legend)
    point = point.encode(x=x, y=y, fill=fill, shape=shape, tooltip=tooltip)
    return template(
        alt.layer(zero, line, interval, point, axes.note()),
        title=f"Change by layer, b − a: {subject}",
        reading=("above 0: higher in b, the compared checkpoint; bar: interval",),
        height=260,
    )


def _of_role(shift: "LayerShift") -> str:
    name, mean = LOOKS[shift.role].label, shift.mean
    without = [str(layer) for layer in np.flatnonzero(np.isnan(mean))]
    if len(without) == len(mean):
        return f"{name}: no change to draw."
    p = "" if np.isnan(shift.p) else f", {p_value(shift.p)}"
    low, high = int(np.nanargmin(mean)), int(np.nanargmax(mean))
    clear = int(((shift.low > 0) | (shift.high < 0)).sum())
    missing = f" No value: layer {', '.join(without)}." if without else ""
    return (
        f"{name}: {shift.overall:+.3g} overall over {counted(shift.texts, 'text')}{p}; lowest {mean[low]:+.3g} in "
        f"layer {low}, highest {mean[high]:+.3g} in layer {high}; {counted(clear, 'interval')} without 0.{missing}"
    )


@cache
def _gains_spec(roles: tuple[str, ...], n_layers: int) -> Spec:
    bars, numbers = _bars(roles, n_layers), _bar_numbers(len(roles), n_layers)
    return template(
        alt.layer(alt.layer(*bars), alt.layer(*numbers), axes.note()).resolve_axis(y="independent"),
        title="Roles gained and lost, by layer",
        reading=("up, solid: gained; down, dashed: lost",),
        height=LANE * len(roles),
    )


def _bars(roles: tuple[str, ...], n_layers: int) -> "list[alt.Chart]":
    """Bars up and down, and the names of the roles on the left."""
    names = alt.Axis(
        values=[lane + 0.5 for lane in range(len(roles))],
        labelExpr=f"{json.dumps([LOOKS[role].lines for role in reversed(roles)])}[floor(datum.value)]",
        title=None,
        grid=True,
        gridColor=INK,
        gridOpacity=0.7,
        ticks=False,
        domain=False,
        labelPadding=8,
    )
    x, y = _layer_position(n_layers), alt.Y("zero:Q", scale=axes.lane_scale(len(roles)), axis=names)
    color = axes.role_colors(alt.Color, roles)
    tooltip = axes.tooltips("role", "layer", ("kind", "change"), "heads", ("of", "of heads"))
    gained = rows_of("gained").mark_bar(stroke=INK, strokeWidth=0.5, strokeOpacity=0.5)
    lost = rows_of("lost").mark_bar(stroke=INK, strokeWidth=1.5, strokeDash=[3, 2], fillOpacity=0.25)
    return [bars.encode(x=x, y=y, y2=alt.Y2("end"), color=color, tooltip=tooltip) for bars in (gained, lost)]


def _bar_numbers(n_roles: int, n_layers: int) -> "list[alt.Chart]":
    """Numbers at the ends of the bars, and the scale on the right."""
    ends = alt.Axis(
        values=[lane + 0.5 + sign * REACH for lane in range(n_roles) for sign in (1, -1)],
        orient="right",
        title="heads in the layer",
        titlePadding=26,
        grid=True,
        gridColor=INK,
        gridOpacity=0.15,
        ticks=False,
        domain=False,
        labels=False,
    )
    x, y = _layer_position(n_layers), alt.Y("end:Q", scale=axes.lane_scale(n_roles), axis=ends)
    fits = alt.expr(f"width / {n_layers} < {2 * NARROWEST} ? 0 : 1")
    gained = rows_of("gained").mark_text(color=INK, fontSize=10, opacity=fits, baseline="bottom", dy=-2)
    lost = rows_of("lost").mark_text(color=INK, fontSize=10, opacity=fits, baseline="top", dy=3)
    scale = rows_of("scale").mark_text(color=INK, fontSize=10, align="left", baseline="middle", dx=6)
    return [
        *(numbers.encode(x=x, y=y, text=alt.Text("label:N")) for numbers in (gained, lost)),
        scale.encode(x=alt.XValue("width"), y=y, text=alt.Text("label:N")),
    ]


def _layer_position(n_layers: int) -> "alt.X":
    scale, axis = alt.Scale(domain=list(range(n_layers))), alt.Axis(labelAngle=0, labelOverlap=True)
    return alt.X("layer:O", title=axes.LAYER_AXIS, scale=scale, axis=axis)


def _gains_description(
    gained: Int[np.ndarray, "role layer"], lost: Int[np.ndarray, "role layer"], roles: Sequence[str], n_heads: int
) -> str:
    n_layers = gained.shape[1]
    start = (
        f"Bars by layer: how many of the {counted(n_layers * n_heads, 'head')} in {counted(n_layers, 'layer')} "
        "gain or lose each role"
    )
    changes = gained + lost
    if not changes.any():
        return f"{start}. {NO_GAIN}"
    parts = [
        f"{LOOKS[role].label} gained by {n_gained.sum()}, lost by {n_lost.sum()}"
        + (f" (most changes in layer {n_changed.argmax()}, {n_changed.max()})" if n_changed.any() else "")
        for role, n_gained, n_lost, n_changed in zip(roles, gained, lost, changes, strict=True)
    ]
    return f"{start}. {'; '.join(parts)}."


@cache
def _scatter_spec(roles: tuple[str, ...], scale: Scale, ends: axes.Ends) -> Spec:
    words = WORDS[scale]
    x = axes.score_position(alt.X, "mean_a", scale, words.title("mean ", " under a, the reference"), ends)
    y = axes.score_position(alt.Y, "mean_b", scale, words.title("mean ", " under b"), ends)
    legend, differs = axes.lettered_legend(roles), alt.when("datum.differs")
    tooltip = axes.tooltips(
        "role",
        ("name", "head"),
        ("mean_a", f"mean {words.short}, a", ".3~f"),
        ("mean_b", f"mean {words.short}, b", ".3~f"),
        ("difference", "difference, b − a", "+.3~f"),
        ("p_adjusted", "p, corrected", ".3~g"),
        "texts",
        "differs",
    )
    points = rows_of("head").mark_point(size=44, opacity=1)
    points = points.encode(
        x=x,
        y=y,
        fill=axes.role_colors(alt.Fill, roles, legend),
        shape=axes.role_shapes(roles, legend),
        stroke=differs.then(alt.value(INK)).otherwise(axes.role_colors(alt.Stroke, roles, legend)),
        strokeWidth=differs.then(alt.value(1.4)).otherwise(alt.value(1)),
        fillOpacity=differs.then(alt.value(1)).otherwise(alt.value(0)),
        strokeOpacity=differs.then(alt.value(1)).otherwise(alt.value(0.7)),
        tooltip=tooltip,
    )
    diagonal = rows_of("diagonal").mark_line(color=INK, strokeDash=[5, 3], strokeWidth=1.2).encode(x=x, y=y)
    return template(
        alt.layer(diagonal, points, axes.note()),
        title=f"Mean {words.nouns} of all heads: b against a",
        reading=("filled: differs significantly; hollow: does not", "above the dashed line: higher in b, so b − a > 0"),
        height=380,
    )


def _scatter_description(
    known: pd.DataFrame, tests: "PairedTests", roles: Sequence[str], n_all: int, scale: Scale
) -> str:
    words = WORDS[scale]
    if not len(known):
        return f"No {words.short} to draw. {NO_SCORE}"
    parts = []
    for role in roles:
        of_role = known[known["role"] == role]
        differing = of_role[of_role["differs"]]
        n_higher, n_lower = int((differing["difference"] > 0).sum()), int((differing["difference"] < 0).sum())
        if len(of_role):
            parts.append(f"{LOOKS[role].label} {n_higher} higher, {n_lower} lower of {len(of_role)}")
    top = known.loc[known["difference"].abs().idxmax()]
    missing = n_all - len(known)
    left_out = f" {counted(missing, 'mean')} without a {words.short} left out." if missing else ""
    return (
        f"Mean {words.noun} of each head and role under the compared checkpoint, b, against the reference, a. "
        f"Significantly different at alpha {tests.alpha:g}, drawn filled: {'; '.join(parts)}. Largest difference "
        f"b − a: {top['difference']:+.3g} for {top['name']}, {LOOKS[top['role']].label}.{left_out}"
    )
