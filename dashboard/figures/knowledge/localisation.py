"""Heads in the order of their scores: steep if few heads encode a task, flat if many do."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_channel
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, drawable, of_kind, template
from attention_sieve.dashboard.figures.knowledge.words import NAME, Scores, rank_axis, score_axis, score_ends, written

HEIGHT: Final = 300
DASHES: Final = ([1, 0], [6, 3], [2, 2])


def localisation_curves(scores: Sequence[Scores], floor: float, floor_name: str, name: str) -> Figure:
    """A line for each checkpoint through the scores of its heads, the best first.

    Args:
        floor: a baseline, drawn across; NaN for none.

    Source: Jo and Myaeng 2020, their figure of scores in descending order.
    """
    lines = [_line(number, checkpoint_scores) for number, checkpoint_scores in enumerate(scores)]
    floors = [{"kind": "floor", "value": floor, "label": f"{floor_name}: {written(floor, name)}"}]
    data = pd.concat([*lines, pd.DataFrame([] if np.isnan(floor) else floors)], ignore_index=True)
    ends = score_ends([*data["value"], floor])
    most = max(len(line) for line in lines)
    spec = _spec(
        tuple(drawable(checkpoint_scores.label, NAME) for checkpoint_scores in scores),
        most,
        name,
        ends,
        not np.isnan(floor),
    )
    parts = []
    for line, checkpoint_scores in zip(lines, scores):
        best, middle = line["value"].iloc[0], line["value"].median()
        parts.append(
            f"{checkpoint_scores.label}: {counted(len(line), 'head')}, the best {written(best, name)}, the median "
            f"{written(middle, name)}"
        )
    return Figure(spec, data, f"{name[:1].upper()}{name[1:]} of heads in descending order. {'; '.join(parts)}.")


def _line(number: int, scores: Scores) -> pd.DataFrame:
    layer, head = np.indices(scores.heads.shape).reshape(2, -1)
    values = scores.heads.ravel()
    order = np.argsort(-values, kind="stable")
    order = order[~np.isnan(values[order])]
    return pd.DataFrame(
        {
            "kind": "head",
            "series": number,
            "checkpoint": drawable(scores.label),
            "rank": np.arange(1, len(order) + 1),
            "value": values[order],
            "name": [head_name(int(layer[index]), int(head[index])) for index in order],
        }
    )


@lru_cache(maxsize=32)
def _spec(labels: tuple[str, ...], most: int, name: str, ends: Ends, has_floor: bool) -> Spec:
    x = rank_axis("rank:Q", "heads of a checkpoint, the best first", most)
    y, color = score_axis("value", name, ends), series_channel(alt.Color, labels, HEAD_COLORS)
    tooltip = [
        alt.Tooltip("name:N", title="head"),
        alt.Tooltip("checkpoint:N", title="checkpoint"),
        alt.Tooltip("rank:Q", title="place", format="d"),
        alt.Tooltip("value:Q", title=name, format=".3f"),
    ]
    heads, floor = of_kind("head"), of_kind("floor")
    line = heads.mark_line(strokeWidth=2, aria=False)
    floors = [
        floor.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7).encode(y=y),
        floor.mark_text(color=INK, align="left", baseline="bottom", dx=4, dy=-3).encode(
            x=alt.XValue(0), y=y, text=alt.Text("label:N")
        ),
    ]
    return template(
        alt.layer(
            *(floors if has_floor else []),
            line.encode(x=x, y=y, color=color, strokeDash=series_channel(alt.StrokeDash, labels, DASHES)),
            heads.mark_point(filled=True, size=26, opacity=1).encode(x=x, y=y, color=color, tooltip=tooltip),
        ),
        title="Is the task known to few heads, or to many?",
        reading=("steep: few heads predict it; flat: many do",),
        height=HEIGHT,
    )
