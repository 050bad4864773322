"""Scores per task of the last layer, the best layer, and the best heads together, with intervals."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.knowledge.report import Estimate
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_channel
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, drawable, of_kind, percent, template
from attention_sieve.dashboard.figures.knowledge.words import ACCURACY, score_ends, score_tooltips

ROW: Final = 44
"""Height of a task in pixels."""
LEAST_HEIGHT: Final = 3 * ROW
APART: Final = 11
"""Pixels between the marks of a task."""
LONGEST: Final = 24
SHAPES: Final = ("diamond", "square", "circle")


@dataclass(frozen=True, kw_only=True)
class TaskGain:
    task: str
    n_heads: int
    last: Estimate
    best: Estimate
    best_layer: int
    together: Estimate


def gain_dots(gains: Sequence[TaskGain]) -> Figure:
    """Three marks per task.

    Source: Jo and Myaeng 2020, their table of the last layer, the best layer and the best heads.
    """
    rows = []
    for gain in gains:
        marks = (
            ("last layer", gain.last),
            (f"layer {gain.best_layer}", gain.best),
            (f"best {gain.n_heads} heads", gain.together),
        )
        rows += [
            {
                "kind": "dot",
                "task": drawable(gain.task, LONGEST),
                "series": number,
                "what": label,
                **estimate._asdict(),
            }
            for number, (label, estimate) in enumerate(marks)
        ]
    data = pd.DataFrame(rows)
    values = data[["value", "low", "high"]].stack().tolist()
    names = tuple(drawable(gain.task, LONGEST) for gain in gains)
    parts = [
        f"{gain.task}: last layer {percent(gain.last.value, 0)}, best layer {percent(gain.best.value, 0)}, best "
        f"{gain.n_heads} heads {percent(gain.together.value, 0)}"
        for gain in gains
    ]
    return Figure(_spec(names, score_ends(values)), data, f"Accuracy on the test part. {'; '.join(parts)}.")


@lru_cache(maxsize=16)
def _spec(tasks: tuple[str, ...], ends: Ends) -> Spec:
    def x(field: str) -> alt.X:
        scale = alt.Scale(domain=list(ends), nice=False, zero=False)
        axis = alt.Axis(format="%", tickCount=6, gridColor=INK, gridOpacity=0.15)
        return alt.X(field, type="quantitative", title=f"{ACCURACY} on the test part", scale=scale, axis=axis)

    axis = alt.Axis(labelLimit=150, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("task:N", title=None, sort=None, scale=alt.Scale(domain=list(tasks)), axis=axis)
    labels = ("last layer", "best layer", "best heads together")
    color, shape = series_channel(alt.Color, labels, HEAD_COLORS), series_channel(alt.Shape, labels, SHAPES)
    tooltip = [
        alt.Tooltip("task:N", title="task"),
        alt.Tooltip("what:N", title="vector of"),
        *score_tooltips(ACCURACY, ".1%"),
    ]
    layers = []
    for number in range(3):
        offset = APART * (number - 1)
        series = of_kind("dot").transform_filter(f"datum.series == {number}")
        bar = series.mark_rule(strokeWidth=2, yOffset=offset, aria=False)
        layers.append(bar.encode(x=x("low"), x2=alt.X2("high"), y=y, color=color))
        dot = series.mark_point(filled=True, size=80, opacity=1, yOffset=offset)
        layers.append(dot.encode(x=x("value"), y=y, color=color, shape=shape, tooltip=tooltip))
    return template(
        alt.layer(*layers),
        title="A few heads against whole layers",
        reading=("line: 95% interval", "best: chosen on the validation part"),
        height=max(ROW * len(tasks), LEAST_HEIGHT),
    )
