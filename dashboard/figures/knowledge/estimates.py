"""Scores with their intervals: of layers and of the best heads together for each task, and of several checkpoints."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.knowledge.report import Estimate
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_channel, tooltips
from attention_sieve.dashboard.figures.comparison.steps import Axis, across, apart_at, axis_of
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, drawable, percent, rows_of, template
from attention_sieve.dashboard.figures.knowledge.words import ACCURACY, score_axis, score_ends, score_tooltips, written

ROW: Final = 44
"""Height of a task in pixels."""
LEAST_HEIGHT: Final = 3 * ROW
APART: Final = 11
"""Pixels between the marks of a task."""
LONGEST: Final = 24
SHAPES_OF_VECTORS: Final = ("diamond", "square", "circle")
HEIGHT: Final = 280
KINDS: Final = ("best head", "best layer", "best heads together")
SHAPES: Final = ("circle", "square", "diamond")


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
    return Figure(_gains_spec(names, score_ends(values)), data, f"Accuracy on the test part. {'; '.join(parts)}.")


@lru_cache(maxsize=16)
def _gains_spec(tasks: tuple[str, ...], ends: Ends) -> Spec:
    def x(field: str) -> alt.X:
        scale = alt.Scale(domain=list(ends), nice=False, zero=False)
        axis = alt.Axis(format="%", tickCount=6, gridColor=INK, gridOpacity=0.15)
        return alt.X(field, type="quantitative", title=f"{ACCURACY} on the test part", scale=scale, axis=axis)

    axis = alt.Axis(labelLimit=150, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("task:N", title=None, sort=None, scale=alt.Scale(domain=list(tasks)), axis=axis)
    labels = ("last layer", "best layer", "best heads together")
    color, shape = series_channel(alt.Color, labels, HEAD_COLORS), series_channel(alt.Shape, labels, SHAPES_OF_VECTORS)
    tooltip = [*tooltips("task", ("what", "vector of")), *score_tooltips(ACCURACY, ".1%")]
    layers = []
    for number in range(3):
        offset = APART * (number - 1)
        series = rows_of("dot").transform_filter(f"datum.series == {number}")
        bar = series.mark_rule(strokeWidth=2, yOffset=offset)
        layers.append(bar.encode(x=x("low"), x2=alt.X2("high"), y=y, color=color))
        dot = series.mark_point(filled=True, size=80, opacity=1, yOffset=offset)
        layers.append(dot.encode(x=x("value"), y=y, color=color, shape=shape, tooltip=tooltip))
    return template(
        alt.layer(*layers),
        title="A few heads against whole layers",
        reading=("line: 95% interval", "best: chosen on the validation part"),
        height=max(ROW * len(tasks), LEAST_HEIGHT),
    )


@dataclass(frozen=True, kw_only=True)
class CheckpointScores:
    """Scores of a checkpoint on a task; None if not computed."""

    label: str
    best_head: Estimate
    best_layer: Estimate
    together: Estimate | None


def scores_of_checkpoints(scores: Sequence[CheckpointScores], steps: Sequence[int] | None, name: str) -> Figure:
    """The best head, the best layer and the best heads together, each chosen on the validation part.

    Args:
        steps: training steps of the checkpoints; None for others than steps of one run, which no line joins.
    """
    positions = list(range(len(scores))) if steps is None else list(steps)
    rows = [
        {
            "kind": "score",
            "series": number,
            "what": KINDS[number],
            "checkpoint": drawable(shown.label),
            "at": position,
            **estimate._asdict(),
        }
        for position, shown in zip(positions, scores, strict=True)
        for number, estimate in enumerate((shown.best_head, shown.best_layer, shown.together))
        if estimate is not None
    ]
    axis = axis_of([checkpoint_scores.label for checkpoint_scores in scores], steps)
    data = pd.DataFrame(rows)
    data["at"] = apart_at(data["at"].to_numpy(), data["series"].to_numpy(), axis)
    ends = score_ends(data[["value", "low", "high"]].stack())
    kinds = KINDS if any(checkpoint_scores.together for checkpoint_scores in scores) else KINDS[:-1]
    spec = _checkpoints_spec(axis, kinds, name, ends)
    parts = [
        f"{checkpoint_scores.label}: best head {written(checkpoint_scores.best_head.value, name)}, best layer "
        f"{written(checkpoint_scores.best_layer.value, name)}"
        for checkpoint_scores in scores
    ]
    return Figure(spec, data, f"{name[:1].upper()}{name[1:]} of each checkpoint. {'; '.join(parts)}.")


@lru_cache(maxsize=16)
def _checkpoints_spec(axis: Axis, kinds: tuple[str, ...], name: str, ends: Ends) -> Spec:
    x, y = across(axis), score_axis("value", name, ends)
    color, shape = series_channel(alt.Color, kinds, HEAD_COLORS), series_channel(alt.Shape, kinds, SHAPES)
    tooltip = [*tooltips("checkpoint", ("what", "vector of")), *score_tooltips(name)]
    scores = rows_of("score")
    intervals = scores.mark_rule(strokeOpacity=0.7)
    line = scores.mark_line(strokeWidth=2).encode(x=x, y=y, color=color)
    points = scores.mark_point(filled=True, size=70, opacity=1)
    return template(
        alt.layer(
            intervals.encode(x=x, y=score_axis("low", name, ends), y2=alt.Y2("high"), color=color),
            *([line] if isinstance(axis, int) else []),
            points.encode(x=x, y=y, color=color, shape=shape, tooltip=tooltip),
        ),
        title="Scores over training" if isinstance(axis, int) else "Scores of each checkpoint",
        reading=("vertical line: 95% interval", "best: chosen on the validation part of the task"),
        height=HEIGHT,
    )
