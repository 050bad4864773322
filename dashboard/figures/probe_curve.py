"""How a probe learned: its loss, and how well it did on the texts held out, epoch by epoch."""

from functools import cache
from typing import Final

import pandas as pd

from core.probing import Training
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture

LOSS_HEIGHT: Final = 150
GAP: Final = 34
"""Pixels between the two panels."""
SCORE_HEIGHT: Final = 110
BLUE, ORANGE = HEAD_COLORS[:2]
"""Of texts learned from and of texts held out."""


def probe_curve(training: Training) -> Figure:
    """Loss of a word over epochs, below it UAS of the texts held out, and which epoch is kept."""
    epochs = training.epochs
    rows = [
        *(("loss", epoch.number, epoch.loss) for epoch in epochs if epoch.loss is not None),
        *(("held-out loss", epoch.number, epoch.held_out_loss) for epoch in epochs),
        *(("score", epoch.number, epoch.held_out_score) for epoch in epochs),
        ("best", training.best, None),
    ]
    return Figure(_spec(), pd.DataFrame(rows, columns=["kind", "epoch", "value"]), _description(training))


@cache
def _spec() -> Spec:
    height = LOSS_HEIGHT + GAP + SCORE_HEIGHT
    x = {
        "field": "epoch",
        "type": "quantitative",
        "title": "epoch",
        "scale": {"nice": False, "zero": True},
        "axis": {"tickMinStep": 1, "format": "d", "grid": False},
    }
    loss = {"title": "loss of a word (nats)", "scale": {"range": [LOSS_HEIGHT, 0]}, "axis": {"tickCount": 5}}
    score = {
        "title": "UAS, held out",
        "scale": {"domain": [0, 1], "range": [height, height - SCORE_HEIGHT], "nice": False},
        "axis": {"values": [0, 0.25, 0.5, 0.75, 1], "format": "%", "orient": "left", "grid": True},
    }

    def curve(kind: str, what: str, y: Spec, form: str, color: str, shape: str) -> list[Spec]:
        axes: Spec = {"x": x, "y": {"field": "value", "type": "quantitative", **y}}
        tooltip = [{"field": "epoch", "title": "epoch"}, {"field": "value", "title": what, "format": form}]
        dashes = {"strokeDash": [5, 3]} if shape == "square" else {}
        line = {"type": "line", "aria": False, "color": color, "strokeWidth": 2, **dashes}
        point = {"type": "point", "aria": False, "filled": True, "opacity": 1, "size": 30, "color": color}
        return [layer(kind, line, **axes), layer(kind, {**point, "shape": shape}, **axes, tooltip=tooltip)]

    best = {"type": "rule", "aria": False, "color": INK, "strokeDash": [2, 3]}
    return picture(
        [
            layer("best", best, x=x, y={"value": 0}, y2={"value": height}),
            {
                "layer": [
                    *curve("loss", "loss", loss, ".3~g", BLUE, "circle"),
                    *curve("held-out loss", "held-out loss", loss, ".3~g", ORANGE, "square"),
                ]
            },
            {"layer": curve("score", "UAS, held out", score, ".1%", ORANGE, "square")},
        ],
        title="Learning curve",
        reading=("blue, round: texts learned from; orange, square: texts held out", "dotted line: the epoch kept"),
        height=height,
        resolve={"scale": {"y": "independent"}},
    )


def _description(training: Training) -> str:
    first, best = training.epochs[0], training.epochs[training.best]
    return (
        f"Loss of a word on {counted(training.n_held_out, 'text')} held out, from {first.held_out_loss:.3g} nats at "
        f"first to {best.held_out_loss:.3g} after {counted(best.number, 'epoch')}, which is kept, of "
        f"{len(training.epochs) - 1:,}; UAS of these texts then {best.held_out_score:.1%}. Learned from "
        f"{counted(training.n_texts, 'text')}."
    )
