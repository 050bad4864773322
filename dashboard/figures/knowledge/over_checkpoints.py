"""Scores of several checkpoints on a task, side by side or over the saved steps of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.core.knowledge.report import Estimate
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_channel
from attention_sieve.dashboard.figures.comparison.steps import Axis, across, apart_at, axis_of
from attention_sieve.dashboard.figures.figure import Figure, Spec, alt, drawable, of_kind, template
from attention_sieve.dashboard.figures.knowledge.words import score_axis, score_ends, score_tooltips, written

HEIGHT: Final = 280
KINDS: Final = ("best head", "best layer", "best heads together")
SHAPES: Final = ("circle", "square", "diamond")


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
    rows = []
    for position, checkpoint_scores in zip(positions, scores, strict=True):
        for number, estimate in enumerate(
            (checkpoint_scores.best_head, checkpoint_scores.best_layer, checkpoint_scores.together)
        ):
            if estimate is not None:
                rows.append(
                    {
                        "kind": "score",
                        "series": number,
                        "what": KINDS[number],
                        "checkpoint": drawable(checkpoint_scores.label),
                        "at": position,
                        **estimate._asdict(),
                    }
                )
    axis = axis_of([checkpoint_scores.label for checkpoint_scores in scores], steps)
    data = pd.DataFrame(rows)
    data["at"] = apart_at(data["at"].to_numpy(), data["series"].to_numpy(), axis)
    ends = score_ends(data[["value", "low", "high"]].stack())
    kinds = KINDS if any(checkpoint_scores.together for checkpoint_scores in scores) else KINDS[:-1]
    spec = _spec(axis, kinds, name, ends)
    parts = [
        f"{checkpoint_scores.label}: best head {written(checkpoint_scores.best_head.value, name)}, best layer "
        f"{written(checkpoint_scores.best_layer.value, name)}"
        for checkpoint_scores in scores
    ]
    return Figure(spec, data, f"{name[:1].upper()}{name[1:]} of each checkpoint. {'; '.join(parts)}.")


@lru_cache(maxsize=16)
def _spec(axis: Axis, kinds: tuple[str, ...], name: str, ends: Ends) -> Spec:
    x, y = across(axis), score_axis("value", name, ends)
    color, shape = series_channel(alt.Color, kinds, HEAD_COLORS), series_channel(alt.Shape, kinds, SHAPES)
    tooltip = [
        alt.Tooltip("checkpoint:N", title="checkpoint"),
        alt.Tooltip("what:N", title="vector of"),
        *score_tooltips(name),
    ]
    scores = of_kind("score")
    intervals = scores.mark_rule(strokeOpacity=0.7, aria=False)
    line = scores.mark_line(strokeWidth=2, aria=False).encode(x=x, y=y, color=color)
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
