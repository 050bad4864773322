"""How a fine-tuning run goes: its loss, and how well it does on the texts kept back."""

from functools import cache
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from core.training import Progress
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.step_axis import STEPS_AXIS

Measure = Literal["accuracy", "correlation"]

LOSS_HEIGHT: Final = 170
GAP: Final = 34
"""Pixels between the two panels."""
HELD_OUT_HEIGHT: Final = 120
TICK: Final = 8
"""Pixels that the mark of a saved checkpoint is high."""
BLUE, ORANGE = HEAD_COLORS[:2]
"""Of training texts and of held-out texts."""
SILENT: Final[Spec] = {"aria": False}
"""For marks, which there may be none of, and then nothing names them to a screen reader; the description says all."""
NOTHING: Final = "No step yet."


def training_curve(progress: Progress, n_classes: int | None = None) -> Figure:
    """Loss over steps, below it accuracy or correlation on the held-out texts, and where checkpoints were saved.

    Args:
        progress: of the run, so far.
        n_classes: of the data, which gives the accuracy of a guess; 0 for a regression, None where it is not known.

    Returns: the figure; a loss or a measure that is not a finite number is left out and counted in the description.
    """
    measure = _measure(progress, n_classes)
    reports = [
        *(("loss", step, loss) for step, loss in progress.losses),
        *(("held-out loss", at.step, at.loss) for at in progress.held_out),
        *(("measure", at.step, getattr(at, measure)) for at in progress.held_out),
    ]
    points = pd.DataFrame(reports, columns=["kind", "step", "value"]).astype({"step": int, "value": float})
    finite = np.isfinite(points["value"])
    data = pd.concat([points[finite], _fixed(progress, points[finite], measure, n_classes)])
    return Figure(_spec(measure), data, _description(progress, points, measure))


def _measure(progress: Progress, n_classes: int | None) -> Measure:
    if progress.held_out:
        return "correlation" if all(at.accuracy is None for at in progress.held_out) else "accuracy"
    return "correlation" if n_classes == 0 else "accuracy"


def _fixed(progress: Progress, points: pd.DataFrame, measure: Measure, n_classes: int | None) -> pd.DataFrame:
    """What holds the picture in place: all steps of the run, what a guess gives, what is saved."""
    rows: list[dict[str, Any]] = [{"kind": "span", "step": 0, "end": max(1, progress.steps, progress.step)}]
    rows += [{"kind": "saved", "step": step} for step in progress.saved]
    if measure == "correlation":
        rows.append({"kind": "guess", "value": 0.0, "label": "guess: 0"})
    elif n_classes:
        rows.append({"kind": "guess", "value": 1 / n_classes, "label": f"guess: {1 / n_classes:.2g}"})
    if not len(points):
        rows.append({"kind": "note", "value": 1.0, "label": NOTHING})
    return pd.DataFrame(rows)


@cache
def _spec(measure: Measure) -> Spec:
    height = LOSS_HEIGHT + GAP + HELD_OUT_HEIGHT
    x = {
        "field": "step",
        "type": "quantitative",
        "title": "training step",
        "scale": {"nice": False, "zero": True},
        "axis": STEPS_AXIS,
    }
    loss = {"title": "loss", "scale": {"range": [LOSS_HEIGHT, 0], "zero": True}, "axis": {"tickCount": 5}}
    lowest = -1 if measure == "correlation" else 0
    ticks = [-1, -0.5, 0, 0.5, 1] if lowest else [0, 0.25, 0.5, 0.75, 1]
    measured = {
        "title": measure,
        "scale": {"domain": [lowest, 1], "range": [height, height - HELD_OUT_HEIGHT], "nice": False},
        "axis": {"values": ticks, "format": ".2~f", "orient": "left", "grid": True},
    }

    def curve(kind: str, what: str, y: Spec, **look: Any) -> list[Spec]:
        axes: Spec = {"x": x, "y": {"field": "value", "type": "quantitative", **y}}
        tooltip = [
            {"field": "step", "title": "step", "format": ",d"},
            {"field": "value", "title": what, "format": ".3~g"},
        ]
        point = {
            "type": "point",
            **SILENT,
            "filled": True,
            "opacity": 1,
            "color": look["color"],
            "shape": look.pop("shape"),
        }
        return [
            layer(kind, {"type": "line", **SILENT, "strokeWidth": 2, **look}, **axes),
            layer(kind, {**point, "size": 30}, **axes, tooltip=tooltip),
        ]

    rule = {"type": "rule", **SILENT, "color": INK}
    text = {"type": "text", **SILENT, "color": INK, "fontSize": 11}
    lost, guess = ({"field": "value", "type": "quantitative", **axis} for axis in (loss, measured))
    below = {"align": "left", "baseline": "top", "dy": 12}
    place = {"align": "right", "baseline": "bottom", "dy": -2}
    saved = {"x": x, "y": {"value": height - TICK}, "y2": {"value": height}}
    return picture(
        [
            layer("span", {**rule, "strokeOpacity": 0.4}, x=x, x2={"field": "end"}, y={"value": LOSS_HEIGHT}),
            {
                "layer": [
                    *curve("loss", "training loss", loss, color=BLUE, shape="circle"),
                    *curve("held-out loss", "held-out loss", loss, color=ORANGE, strokeDash=[5, 3], shape="square"),
                    layer("note", {**text, **below}, x={"value": 8}, y=lost, text={"field": "label"}),
                ]
            },
            {
                "layer": [
                    layer("guess", {**rule, "strokeDash": [2, 3]}, y=guess),
                    layer("guess", {**text, **place}, x={"value": "width"}, y=guess, text={"field": "label"}),
                    *curve("measure", f"held-out {measure}", measured, color=ORANGE, shape="square"),
                ]
            },
            layer("saved", {**rule, "strokeWidth": 3}, **saved, tooltip=[{"field": "step", "title": "saved at step"}]),
        ],
        title="Fine-tuning so far",
        reading=(
            "blue, round: training texts; orange, square: held-out texts",
            "short bars on the axis: saved checkpoints",
        ),
        height=height,
        resolve={"scale": {"y": "independent"}},
    )


def _description(progress: Progress, points: pd.DataFrame, measure: Measure) -> str:
    finite = points[np.isfinite(points["value"])]
    losses, measures = finite[finite["kind"] == "loss"], finite[finite["kind"] == "measure"]
    steps = f"step {progress.step:,} of {progress.steps:,}" if progress.steps else f"step {progress.step:,}"
    sentences = [f"Loss and held-out {measure} over training steps, at {steps}."]
    if not len(finite):
        sentences = [f"{NOTHING} {sentences[0]}"]
    if len(losses):
        first, last = (f"{at.value:.3g} at step {at.step:,}" for at in losses.iloc[[0, -1]].itertuples())
        sentences.append(f"Training loss {first}, {last}.")
    if len(measures):
        best, last = measures.loc[measures["value"].idxmax()], measures.iloc[-1]
        sentences.append(
            f"Held-out {measure} {last['value']:.3g} at step {last['step']:,}, best {best['value']:.3g} at step "
            f"{best['step']:,}."
        )
    sentences.append(f"{counted(len(progress.saved), 'checkpoint')} saved.")
    if missing := len(points) - len(finite):
        sentences.append(f"{counted(missing, 'value')} that cannot be drawn left out.")
    return " ".join(sentences)
