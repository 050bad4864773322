"""How far scores and attention move from one checkpoint to another, by layer. A change is b − a everywhere."""

import json
from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.comparison import LayerShift
from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import GREY, INK, Figure, Spec, counted, layer, picture
from dashboard.figures.p_values import SHAPES

WIDTH: Final = 0.7
"""Part of a layer's place over which its marks are spread."""
CHANGE_AXIS: Final = "change of score, b − a (× uniform)"
DIVERGENCE_AXIS: Final = "nats (at most ln 2 = 0.693)"


def shift_by_layer(shifts: Sequence[LayerShift], alpha: float = 0.05) -> Figure:
    """Mean change of a role's score in each layer, with its interval and a line at no change.

    Args:
        shifts: one for each role to show, all of the same checkpoints.
        alpha: that their intervals were asked with.

    Source: Pande et al. 2021, attention to [SEP] falls in the later layers as part of fine-tuning.
    """
    spread = WIDTH * ((np.arange(len(shifts)) + 0.5) / len(shifts) - 0.5)
    points = pd.concat(
        pd.DataFrame(
            {
                **{"kind": "shift", "role": shift.role, "layer": range(len(shift.mean)), "texts": shift.texts},
                **{"mean": shift.mean, "low": shift.low, "high": shift.high},
            }
        ).assign(place=lambda table, aside=aside: table["layer"] + aside)
        for shift, aside in zip(shifts, spread, strict=True)
    )
    interval = points[points["low"].notna()].assign(kind="interval")
    nothing = points["mean"].isna().all()
    rest = pd.DataFrame([{"kind": "zero", "value": 0.0}, *_note(nothing, "No text gives a change of score.")])
    spec = _shift_spec(tuple(shift.role for shift in shifts), len(shifts[0].mean))
    # A layer without a change stays in the data, where it breaks the line.
    return Figure(spec, pd.concat([interval, points, rest]), _shift_description(shifts, alpha))


def divergence_by_layer(divergence: Float[np.ndarray, "text layer head"]) -> Figure:
    """How far apart the attention of the same head is under both checkpoints: a dot per head, a line for layer means.

    Args:
        divergence: mean Jensen-Shannon divergence of a head's rows, in nats, 0 to ln 2; NaN for a text that has none.
    """
    known = ~np.isnan(divergence)
    texts = known.sum(axis=0)
    means = np.divide(
        np.where(known, divergence, 0).sum(axis=0), texts, where=texts > 0, out=np.full(texts.shape, np.nan)
    )
    n_layers, n_heads = means.shape
    place, head = np.indices(means.shape).reshape(2, -1)
    heads = pd.DataFrame(
        {
            **{"kind": "head", "layer": place, "head": head, "divergence": means.ravel(), "texts": texts.ravel()},
            "place": place + WIDTH * ((head + 0.5) / n_heads - 0.5),
        }
    )
    heads = heads[heads["divergence"].notna()]
    layers = (
        heads.groupby("layer", as_index=False)["divergence"].mean().assign(kind="layer", place=lambda t: t["layer"])
    )
    note = pd.DataFrame(_note(not len(heads), "No text has the same tokens under both checkpoints."))
    spec = _divergence_spec(n_layers)
    return Figure(spec, pd.concat([heads, layers, note]), _divergence_description(heads, layers, known))


def by_role(roles: Sequence[str], looks: Sequence[str]) -> Spec:
    """A channel that tells roles apart, with a legend that names them and their letters where there are several."""
    labels = {role: f"{LOOKS[role].label} ({LOOKS[role].letter})" for role in roles}
    legend = {
        "orient": "bottom",
        "columns": 2,
        "title": None,
        "symbolOpacity": 1,
        "labelExpr": f"{json.dumps(labels)}[datum.label]",
    }
    return {
        "field": "role",
        "type": "nominal",
        "scale": {"domain": list(roles), "range": list(looks)},
        "legend": legend if len(roles) > 1 else None,
    }


def _note(is_empty: bool, label: str) -> list[dict[str, str]]:
    return [{"kind": "note", "label": label}] if is_empty else []


def _layers_axis(n_layers: int) -> Spec:
    return {
        "field": "place",
        "type": "quantitative",
        "title": "layer (0 is next to the input)",
        "scale": {"domain": [-0.6, n_layers - 0.4], "nice": False, "zero": False},
        "axis": {"values": list(range(n_layers)), "format": "d", "labelOverlap": "greedy", "grid": False},
    }


def note_layer() -> Spec:
    """Where a figure that has nothing to draw says so."""
    mark = {"type": "text", "color": INK, "fontSize": 13, "align": "left"}
    return layer("note", mark, x={"value": 8}, y={"value": 24}, text={"field": "label"})


@cache
def _shift_spec(roles: tuple[str, ...], n_layers: int) -> Spec:
    color = by_role(roles, [LOOKS[role].color for role in roles])
    shape = by_role(roles, [SHAPES[role] for role in roles])
    what = LOOKS[roles[0]].label if len(roles) == 1 else counted(len(roles), "role")
    x = _layers_axis(n_layers)
    y = {"field": "mean", "type": "quantitative", "title": CHANGE_AXIS}
    tooltip = [
        {"field": "role", "title": "role"},
        {"field": "layer", "title": "layer"},
        {"field": "mean", "title": "mean change, b − a", "format": "+.3~f"},
        {"field": "low", "title": "interval from", "format": "+.3~f"},
        {"field": "high", "title": "to", "format": "+.3~f"},
        {"field": "texts", "title": "texts"},
    ]
    point = {"type": "point", "filled": True, "opacity": 1, "size": 70, "stroke": INK, "strokeWidth": 1.2}
    return picture(
        [
            layer("zero", {"type": "rule", "color": INK}, y={"field": "value", "type": "quantitative"}),
            layer("shift", {"type": "line", "strokeWidth": 1.2, "opacity": 0.6}, x=x, y=y, stroke=color),
            layer(
                "interval",
                {"type": "rule", "color": INK, "strokeWidth": 1.5},
                x=x,
                y={**y, "field": "low"},
                y2={"field": "high"},
                tooltip=tooltip,
            ),
            layer("shift", point, x=x, y=y, fill=color, shape=shape, tooltip=tooltip),
            note_layer(),
        ],
        title=f"Change by layer, b − a: {what}",
        reading=("above 0: higher in b, the compared checkpoint; bar: interval",),
        height=260,
    )


@cache
def _divergence_spec(n_layers: int) -> Spec:
    x = _layers_axis(n_layers)
    y = {
        "field": "divergence",
        "type": "quantitative",
        "title": DIVERGENCE_AXIS,
        "scale": {"zero": True, "domainMin": 0},
    }
    number = {"field": "divergence", "format": ".3~g"}
    dots = [
        {"field": "layer", "title": "layer"},
        {"field": "head", "title": "head"},
        {**number, "title": "mean divergence (nats)"},
        {"field": "texts", "title": "texts"},
    ]
    means = [{"field": "layer", "title": "layer"}, {**number, "title": "mean of its heads (nats)"}]
    mean = {"type": "point", "filled": True, "color": INK, "size": 45, "opacity": 1, "shape": "diamond"}
    return picture(
        [
            layer("head", {"type": "circle", "size": 26, "color": GREY, "opacity": 0.75}, x=x, y=y, tooltip=dots),
            layer("layer", {"type": "line", "color": INK, "strokeWidth": 1.5}, x=x, y=y),
            layer("layer", mean, x=x, y=y, tooltip=means),
            note_layer(),
        ],
        title="Divergence of attention, by layer",
        reading=("Jensen-Shannon; dot: a head, mean over texts; line: layer mean",),
        height=260,
    )


def _shift_description(shifts: Sequence[LayerShift], alpha: float) -> str:
    return (
        "Mean change of score by layer, b − a (compared checkpoint minus reference), times uniform, with "
        f"{100 * (1 - alpha):g} % intervals over texts. {' '.join(map(_of_role, shifts))}"
    )


def _of_role(shift: LayerShift) -> str:
    name, mean = LOOKS[shift.role].label, shift.mean
    without = [str(place) for place in np.flatnonzero(np.isnan(mean))]
    if len(without) == len(mean):
        return f"{name}: no change of score to draw."
    p = "" if np.isnan(shift.p) else f", p {shift.p:.2g}"
    low, high = int(np.nanargmin(mean)), int(np.nanargmax(mean))
    clear = int(((shift.low > 0) | (shift.high < 0)).sum())
    missing = f" Without a change: layer {', '.join(without)}." if without else ""
    return (
        f"{name}: {shift.overall:+.3g} overall over {counted(shift.texts, 'text')}{p}; lowest {mean[low]:+.3g} in "
        f"layer {low}, highest {mean[high]:+.3g} in layer {high}; {counted(clear, 'interval')} without 0.{missing}"
    )


def _divergence_description(heads: pd.DataFrame, layers: pd.DataFrame, known: np.ndarray) -> str:
    n_heads, n_all = len(heads), known[0].size
    if not n_heads:
        return (
            f"No divergence to draw: none of {counted(len(known), 'text')} has the same tokens under both checkpoints."
        )
    used = int(known.any(axis=(1, 2)).sum())
    top, most = heads.loc[heads["divergence"].idxmax()], layers.loc[layers["divergence"].idxmax()]
    left_out = f" {counted(n_all - n_heads, 'head')} without a divergence left out." if n_heads < n_all else ""
    texts = f" {counted(len(known) - used, 'text')} without one left out." if used < len(known) else ""
    return (
        f"Mean Jensen-Shannon divergence between the attention of the same head under both checkpoints, in nats, 0 to "
        f"ln 2 = 0.693, over {counted(used, 'text')}: {heads['divergence'].mean():.3g} on average over "
        f"{counted(n_heads, 'head')}, highest layer mean {most['divergence']:.3g} in layer {most['layer']:.0f}, "
        f"highest head {top['divergence']:.3g} for L{top['layer']:.0f} H{top['head']:.0f}.{left_out}{texts}"
    )
