"""Scores of heads by layer: a violin per layer and checkpoint, a dot per head, and the output of the layer."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, STAR
from attention_sieve.dashboard.figures.axes import Ends, places_axis, series_channel
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, drawable, of_kind, template
from attention_sieve.dashboard.figures.heads import head_choice, head_rows
from attention_sieve.dashboard.figures.knowledge.words import NAME, Scores, score_axis, score_ends, written

HEIGHT: Final = 320
WIDEST: Final = 0.38
"""Half the width of the widest violin, in layers."""
SPREAD: Final = 0.22
"""Maximum distance of a dot from the middle of its layer."""
LEAST_HEADS: Final = 4
"""Minimum number of heads of a layer for a violin."""
FULL: Final = 0.2
"""Opacity of the violins of the first checkpoint; of others only the outline is drawn."""
POINTS: Final = 41
"""Number of points of the outline of a violin."""


def scores_by_layer(
    scores: Sequence[Scores],
    outputs: Float[np.ndarray, " layer"],
    floor: float,
    name: str,
    chosen: Sequence[Head] = (),
) -> Figure:
    """Violins of the heads of each layer, and for the first checkpoint a dot per head and the outputs of the layers.

    A click on a dot chooses its head.

    Args:
        outputs: scores of the outputs of the layers of the first one.
        floor: a baseline, drawn across; NaN for none.

    Source: Jo and Myaeng 2020.
    """
    heads = scores[0].heads
    n_layers, n_heads = heads.shape
    dots = head_rows(n_layers, n_heads).assign(kind="head", value=heads.ravel())
    dots["at"] = dots["layer"] + SPREAD * (2 * dots["head"] / max(1, n_heads - 1) - 1 if n_heads > 1 else 0)
    dots = dots.dropna(subset="value")
    rings = dots[[head in chosen for head in zip(dots["layer"], dots["head"])]].assign(kind="chosen")
    layers = pd.DataFrame({"kind": "output", "layer": np.arange(n_layers), "at": np.arange(n_layers), "value": outputs})
    floors = pd.DataFrame([] if np.isnan(floor) else [{"kind": "floor", "value": floor}])
    violins = [
        violin.assign(series=number)
        for number, checkpoint_scores in enumerate(scores)
        for violin in _violins(checkpoint_scores.heads)
    ]
    data = pd.concat([*violins, dots, rings, layers, floors], ignore_index=True)
    labels = tuple(drawable(checkpoint_scores.label, NAME) for checkpoint_scores in scores)
    spec = _spec(
        max(len(checkpoint_scores.heads) for checkpoint_scores in scores),
        labels,
        name,
        score_ends([*data["value"]]),
        not np.isnan(floor),
    )
    return Figure(spec, data, _description(scores, outputs, name))


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


def _description(scores: Sequence[Scores], outputs: Float[np.ndarray, " layer"], name: str) -> str:
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
def _spec(n_layers: int, labels: tuple[str, ...], name: str, ends: Ends, has_floor: bool) -> Spec:
    x, y = places_axis("at", n_layers, 0.5), score_axis("value", name, ends)
    violin = of_kind("violin").mark_area(
        orient="horizontal", strokeOpacity=0.9, strokeWidth=1.2, aria=False, tooltip=False
    )
    full = alt.when("datum.series == 0").then(alt.value(FULL)).otherwise(alt.value(0))
    edge, inside = (series_channel(channel, labels, HEAD_COLORS) for channel in (alt.Stroke, alt.Fill))
    tooltip = [alt.Tooltip("name:N", title="head"), alt.Tooltip("value:Q", title=name, format=".3f")]
    layer_tooltip = [alt.Tooltip("layer:Q", title="output of layer"), alt.Tooltip("value:Q", title=name, format=".3f")]
    dots = of_kind("head").mark_point(
        shape="circle", filled=True, color=HEAD_COLORS[0], size=42, opacity=0.85, cursor="pointer"
    )
    ring = of_kind("chosen").mark_point(shape="circle", filled=False, color=INK, size=150, strokeWidth=2.2, opacity=1)
    names = of_kind("chosen").mark_text(color=INK, fontSize=11, dy=-13, tooltip=False)
    output = of_kind("output").mark_point(shape=STAR, filled=True, color=INK, size=110, opacity=1)
    floor = of_kind("floor").mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7)
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
            *([floor.encode(y=y)] if has_floor else []),
            output.encode(x=x, y=y, tooltip=layer_tooltip),
            dots.encode(x=x, y=y, tooltip=tooltip, description=alt.Description("name:N")).add_params(head_choice()),
            ring.encode(x=x, y=y),
            names.encode(x=x, y=y, text=alt.Text("name:N")),
        ),
        title="Where in the model it can be read",
        reading=("dot: a head; star: the output of the layer", "dashed: always the most frequent class"),
        height=HEIGHT,
    )
