"""Scores of the heads of each layer: a violin per layer and checkpoint with a dot per head, and the heads sorted."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.figures.appearance import AMOUNT, HEAD_COLORS, LESS, STAR
from attention_sieve.dashboard.figures.axes import Ends, places_axis, series_channel, tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    drawable,
    head_choice,
    head_rows,
    rows_of,
    template,
)
from attention_sieve.dashboard.figures.knowledge.words import (
    NAME,
    Scores,
    baseline_marks,
    baseline_rows,
    score_axis,
    score_ends,
    written,
)

HEIGHT: Final = 320
WIDEST: Final = 0.38
"""Half the width of the widest violin, in layers."""
SPREAD: Final = 0.22
"""Maximum distance of a dot from the middle of its layer."""
LEAST_HEADS: Final = 4
FULL: Final = 0.2
"""Opacity of the violins of the first checkpoint; of others only the outline is drawn."""
POINTS: Final = 41
ROW: Final = 40
"""Height of a layer in pixels."""
LEAST_HEIGHT: Final = 220
MOST_HEIGHT: Final = 600
NAMED: Final = 16
"""Maximum number of heads per layer for which a cell has room for the name of its head."""
STRONGEST: Final = 0.8
"""Opacity of the largest number; text on it is still legible."""


def scores_by_layer(
    scores: Sequence[Scores],
    outputs: Float[np.ndarray, " layer"],
    baselines: Mapping[str, float],
    name: str,
    chosen: Sequence[Head] = (),
) -> Figure:
    """Violins of the heads of each layer, and for the first checkpoint a dot per head and the outputs of the layers.

    A click on a dot chooses its head.

    Args:
        outputs: scores of the outputs of the layers of the first one.
        baselines: score of each by its name, drawn across.

    Source: Jo and Myaeng 2020.
    """
    heads = scores[0].heads
    n_layers, n_heads = heads.shape
    dots = head_rows(n_layers, n_heads).assign(kind="head", value=heads.ravel())
    dots["at"] = dots["layer"] + SPREAD * (2 * dots["head"] / max(1, n_heads - 1) - 1 if n_heads > 1 else 0)
    dots = dots.dropna(subset="value")
    rings = dots[[head in chosen for head in zip(dots["layer"], dots["head"])]].assign(kind="chosen")
    layers = pd.DataFrame({"kind": "output", "layer": np.arange(n_layers), "at": np.arange(n_layers), "value": outputs})
    violins = [
        violin.assign(series=number)
        for number, checkpoint_scores in enumerate(scores)
        for violin in _violins(checkpoint_scores.heads)
    ]
    data = pd.concat([*violins, dots, rings, layers], ignore_index=True)
    ends = score_ends([*data["value"], *baselines.values()])
    data = pd.concat([data, baseline_rows(baselines, name, ends)], ignore_index=True)
    labels = tuple(drawable(checkpoint_scores.label, NAME) for checkpoint_scores in scores)
    spec = _violins_spec(
        max(len(checkpoint_scores.heads) for checkpoint_scores in scores),
        labels,
        name,
        ends,
    )
    return Figure(spec, data, _violins_description(scores, outputs, name))


def _violins(heads: Float[np.ndarray, "layer head"]) -> list[pd.DataFrame]:
    """Outlines of Gaussian kernel densities with Scott's bandwidth, each from the lowest to the highest score."""
    from scipy.stats import gaussian_kde

    outlines = []
    for layer, row in enumerate(heads):
        scores = row[~np.isnan(row)]
        if len(scores) < LEAST_HEADS or np.ptp(scores) == 0:
            continue
        at = np.linspace(scores.min(), scores.max(), POINTS)
        density = gaussian_kde(scores)(at)
        half = WIDEST * density / density.max()
        frame = {"kind": "violin", "layer": layer, "value": at, "left": layer - half, "right": layer + half}
        outlines.append(pd.DataFrame(frame))
    return outlines


def _violins_description(scores: Sequence[Scores], outputs: Float[np.ndarray, " layer"], name: str) -> str:
    layer_parts = [
        f"layer {layer}: heads up to {written(float(np.nanmax(row)), name)}, its output {written(float(output), name)}"
        for layer, (row, output) in enumerate(zip(scores[0].heads, outputs))
        if not np.isnan(row).all()
    ]
    other_checkpoints = [
        f" {checkpoint_scores.label}: median head by layer "
        + ", ".join(
            written(float(np.nanmedian(row)), name) for row in checkpoint_scores.heads if not np.isnan(row).all()
        )
        + "."
        for checkpoint_scores in scores[1:]
    ]
    return f"{name[:1].upper()}{name[1:]} by layer; {'; '.join(layer_parts)}.{''.join(other_checkpoints)}"


@lru_cache(maxsize=32)
def _violins_spec(n_layers: int, labels: tuple[str, ...], name: str, ends: Ends) -> Spec:
    x, y = places_axis("at", n_layers, 0.5), score_axis("value", name, ends)
    violin = rows_of("violin").mark_area(orient="horizontal", strokeOpacity=0.9, strokeWidth=1.2, tooltip=False)
    full = alt.when("datum.series == 0").then(alt.value(FULL)).otherwise(alt.value(0))
    edge, inside = (series_channel(channel, labels, HEAD_COLORS) for channel in (alt.Stroke, alt.Fill))
    tooltip = tooltips(("name", "head"), ("value", name, ".3f"))
    layer_tooltip = tooltips(("layer", "output of layer"), ("value", name, ".3f"))
    dots = rows_of("head").mark_point(
        shape="circle", filled=True, color=HEAD_COLORS[0], size=42, opacity=0.85, cursor="pointer"
    )
    ring = rows_of("chosen").mark_point(shape="circle", filled=False, color=INK, size=150, strokeWidth=2.2, opacity=1)
    names = rows_of("chosen").mark_text(color=INK, fontSize=11, dy=-13, tooltip=False)
    output = rows_of("output").mark_point(shape=STAR, filled=True, color=INK, size=110, opacity=1)
    return template(
        alt.layer(
            violin.encode(
                x=places_axis("left", n_layers, 0.5),
                x2=alt.X2("right"),
                y=y,
                stroke=edge,
                fill=inside,
                fillOpacity=full,
                detail=[alt.Detail("layer:N"), alt.Detail("series:N")],
            ),
            *baseline_marks(name, ends),
            output.encode(x=x, y=y, tooltip=layer_tooltip),
            dots.encode(x=x, y=y, tooltip=tooltip, description=alt.Description("name:N")).add_params(head_choice()),
            ring.encode(x=x, y=y),
            names.encode(x=x, y=y, text=alt.Text("name:N")),
        ),
        title="Where in the model it can be read",
        reading=("dot: a head; star: the output of the layer", "dashed: baselines"),
        height=HEIGHT,
    )


def sorted_heads(values: Float[np.ndarray, "layer head"], name: str, chosen: Sequence[Head] = ()) -> Figure:
    """A cell per head, the best of each layer on the left; a click chooses its head.

    Args:
        values: of each head; NaN for one that was removed.

    Source: Jo and Myaeng 2020, their sorted heat maps.
    """
    rows = head_rows(*values.shape).assign(kind="cell", value=values.ravel())
    rows["place"] = rows.groupby("layer")["value"].rank(method="first", ascending=False) - 1
    rows = rows.dropna(subset="value")
    rows["left"], rows["right"] = rows["place"] - 0.48, rows["place"] + 0.48
    rows["top"], rows["bottom"] = rows["layer"] - 0.46, rows["layer"] + 0.46
    rings = rows[[head in chosen for head in zip(rows["layer"], rows["head"])]].assign(kind="chosen")
    most = float(rows["value"].abs().max()) if len(rows) else 0.0
    spec = _sorted_spec(values.shape, name, most or 1.0)
    return Figure(spec, pd.concat([rows, rings], ignore_index=True), _sorted_description(values, name))


def _sorted_description(values: Float[np.ndarray, "layer head"], name: str) -> str:
    parts = [
        f"layer {layer}: {np.nanmax(row):.2f} to {np.nanmin(row):.2f}"
        for layer, row in enumerate(values)
        if not np.isnan(row).all()
    ]
    return f"Heads of each layer sorted by {name}, from the best to the worst; {'; '.join(parts)}."


@lru_cache(maxsize=32)
def _sorted_spec(shape: tuple[int, int], name: str, most: float) -> Spec:
    n_layers, n_heads = shape
    across = alt.Scale(domain=[-0.5, n_heads - 0.5], nice=False, zero=False)
    down = alt.Scale(domain=[n_layers - 0.5, -0.5], nice=False, zero=False)
    x_axis = alt.Axis(values=[0, n_heads - 1], labelExpr="datum.value == 0 ? 'best' : 'worst'", grid=False, ticks=False)
    y_axis = alt.Axis(values=list(range(n_layers)), format="d", labelOverlap="greedy", grid=False, ticks=False)

    def x(field: str) -> alt.X:
        return alt.X(field, type="quantitative", scale=across, title="heads of the layer, sorted", axis=x_axis)

    def y(field: str) -> alt.Y:
        return alt.Y(field, type="quantitative", scale=down, title="layer", axis=y_axis)

    tooltip = tooltips(("name", "head"), ("value", name, "+.3f"))
    sign = alt.when("datum.value < 0").then(alt.value(LESS)).otherwise(alt.value(AMOUNT))
    strength = alt.FillOpacity("strength:Q", scale=alt.Scale(domain=[0, most], range=[0, STRONGEST]), legend=None)
    area = {"x": x("left"), "x2": alt.X2("right"), "y": y("top"), "y2": alt.Y2("bottom")}
    cells = rows_of("cell").transform_calculate(strength="abs(datum.value)")
    cells = cells.mark_rect(cursor="pointer", stroke=INK, strokeOpacity=0.25, strokeWidth=1)
    ring = rows_of("chosen").mark_rect(fillOpacity=0, stroke=INK, strokeWidth=2.5, tooltip=False)
    layers = [
        cells.encode(
            **area, fill=sign, fillOpacity=strength, tooltip=tooltip, description=alt.Description("name:N")
        ).add_params(head_choice()),
        ring.encode(**area),
    ]
    if n_heads <= NAMED:
        text = rows_of("cell").transform_calculate(label="'H' + datum.head").mark_text(color=INK, fontSize=10)
        layers.append(text.encode(x=x("place"), y=y("layer"), text=alt.Text("label:N")))
    return template(
        alt.layer(*layers),
        title="Heads sorted in each layer",
        reading=(f"stronger colour: more {name}",),
        height=min(max(ROW * n_layers, LEAST_HEIGHT), MOST_HEIGHT),
    )
