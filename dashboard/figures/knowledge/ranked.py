"""Heads in the order of their scores, alone and together: steep or flat, and how many it takes."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.knowledge.reconstruction import Reconstruction
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends, series_line, series_points, tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    counted,
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
    rank_axis,
    score_axis,
    score_ends,
    score_tooltips,
    written,
)

HEIGHT: Final = 300
PALE: Final = 0.4
"""Opacity of what is no finding."""
RANKS: Final = "heads of a checkpoint, the best first"


def localisation_curves(
    scores: Sequence[Scores], baselines: Mapping[str, float], name: str, chosen: Sequence[Head] = ()
) -> Figure:
    """A line for each checkpoint through the scores of its heads, the best first, beside every baseline.

    A click on a head of the first checkpoint chooses it; heads that do not beat every baseline are pale.

    Args:
        baselines: score of each by its name, drawn across.

    Source: Jo and Myaeng 2020, their figure of scores in descending order.
    """
    lines = [_line(number, checkpoint_scores) for number, checkpoint_scores in enumerate(scores)]
    rings = lines[0][[head in chosen for head in zip(lines[0]["layer"], lines[0]["head"])]].assign(kind="chosen")
    data = pd.concat([*lines, rings], ignore_index=True)
    ends = score_ends([*data["value"], *baselines.values()])
    spec = _curves_spec(
        tuple(drawable(checkpoint_scores.label, NAME) for checkpoint_scores in scores),
        max(len(line) for line in lines),
        name,
        ends,
        any(checkpoint_scores.beats is not None for checkpoint_scores in scores),
    )
    parts = []
    for line, checkpoint_scores in zip(lines, scores):
        best, middle = line["value"].iloc[0], line["value"].median()
        parts.append(
            f"{checkpoint_scores.label}: {counted(len(line), 'head')}, the best {written(best, name)}, the median "
            f"{written(middle, name)}"
        )
    return Figure(
        spec,
        pd.concat([data, baseline_rows(baselines, name, ends)], ignore_index=True),
        f"{name[:1].upper()}{name[1:]} of heads in descending order. {'; '.join(parts)}.",
    )


def _line(number: int, scores: Scores) -> pd.DataFrame:
    beats = np.ones(scores.heads.shape, bool) if scores.beats is None else scores.beats
    rows = head_rows(*scores.heads.shape).assign(value=scores.heads.ravel(), pale=~beats.ravel())
    rows = rows.dropna(subset="value").sort_values("value", ascending=False, kind="stable")
    looks = {"kind": "head", "series": number, "checkpoint": drawable(scores.label)}
    return rows.assign(rank=np.arange(1, len(rows) + 1), **looks)


@lru_cache(maxsize=32)
def _curves_spec(labels: tuple[str, ...], most: int, name: str, ends: Ends, is_tested: bool) -> Spec:
    x = rank_axis("rank:Q", RANKS, most)
    y = score_axis("value", name, ends)
    tooltip = tooltips(("name", "head"), "checkpoint", ("rank", "place", "d"), ("value", name, ".3f"))
    heads, chosen = rows_of("head").encode(x=x, y=y), rows_of("chosen").encode(x=x, y=y)
    opacity = alt.condition(alt.datum.pale, alt.value(PALE), alt.value(1))
    points = series_points(heads, labels, tooltip, 36).encode(opacity=opacity, description=alt.Description("name:N"))
    return template(
        alt.layer(
            *baseline_marks(name, ends),
            series_line(heads, labels).encode(opacity=alt.value(PALE)),
            points.add_params(head_choice()),
            chosen.mark_point(filled=False, color=INK, size=170, strokeWidth=2.2, opacity=1, tooltip=False),
            chosen.mark_text(color=INK, align="left", dx=12, dy=-6, tooltip=False).encode(text=alt.Text("name:N")),
        ),
        title="Is the task known to few heads, or to many?",
        reading=(
            *(["pale: does not beat every baseline"] if is_tested else []),
            "steep: few heads predict it; flat: many",
        ),
        height=HEIGHT,
    )


def effect_of_number(reconstruction: Reconstruction, best_layer: float, name: str) -> Figure:
    """The score of the best n heads together, with a band, and that of the best layer across.

    Args:
        best_layer: score of the output of the best layer.

    Source: Jo and Myaeng 2020, their figure of the effect of n.
    """
    added = [head_name(*reconstruction.heads[int(count) - 1]) for count in reconstruction.n_heads]
    line = pd.DataFrame(
        {
            "kind": "step",
            "n": reconstruction.n_heads,
            "value": reconstruction.accuracy,
            "low": reconstruction.low,
            "high": reconstruction.high,
            "last": added,
        }
    )
    enough = reconstruction.estimate(reconstruction.enough)
    marks = [
        {"kind": "layer", "value": best_layer, "label": f"best layer: {written(best_layer, name)}"},
        {
            "kind": "enough",
            "n": reconstruction.enough,
            "value": enough.value,
            "label": "1 is enough" if reconstruction.enough == 1 else f"{reconstruction.enough} are enough",
        },
    ]
    data = pd.concat([line, pd.DataFrame(marks)], ignore_index=True)
    ends = score_ends([*line[["value", "low", "high"]].stack(), best_layer])
    ends_above = bool(reconstruction.accuracy[-1] >= best_layer)
    spec = _number_spec(int(reconstruction.n_heads.max()), name, ends, ends_above)
    return Figure(spec, data, _number_description(reconstruction, best_layer, name))


def _number_description(reconstruction: Reconstruction, best_layer: float, name: str) -> str:
    first, last = reconstruction.accuracy[0], reconstruction.accuracy[-1]
    enough = reconstruction.estimate(reconstruction.enough).value
    return (
        f"{name[:1].upper()}{name[1:]} with the best heads together: {written(first, name)} with one head, "
        f"{written(enough, name)} with {reconstruction.enough}, which is enough by the "
        f"validation part, {written(last, name)} with all {reconstruction.n_heads[-1]}. "
        f"Best layer: {written(best_layer, name)}."
    )


@lru_cache(maxsize=32)
def _number_spec(most: int, name: str, ends: Ends, ends_above: bool) -> Spec:
    x = rank_axis("n:Q", "heads together, the best first", most)
    step, layer, enough = rows_of("step"), rows_of("layer"), rows_of("enough")
    tooltip = [*tooltips(("n", "heads", "d"), ("last", "the last one")), *score_tooltips(name)]
    y = score_axis("value", name, ends)
    side: Literal["top", "bottom"] = "top" if ends_above else "bottom"  # the line of heads is on the other side
    return template(
        alt.layer(
            step.mark_area(color=HEAD_COLORS[0], opacity=0.2, tooltip=False).encode(
                x=x, y=score_axis("low", name, ends), y2=alt.Y2("high")
            ),
            layer.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7).encode(y=y),
            layer.mark_text(color=INK, align="right", baseline=side, dx=-4, dy=3 if ends_above else -3).encode(
                x=alt.XValue("width"), y=y, text=alt.Text("label:N")
            ),
            step.mark_line(color=HEAD_COLORS[0], strokeWidth=2).encode(x=x, y=y),
            step.mark_point(color=HEAD_COLORS[0], filled=True, size=26, opacity=1).encode(x=x, y=y, tooltip=tooltip),
            enough.mark_point(color=INK, filled=False, size=170, strokeWidth=2).encode(x=x, y=y),
            enough.mark_text(color=INK, align="left", baseline="top", dx=6, dy=10).encode(
                x=x, y=y, text=alt.Text("label:N")
            ),
        ),
        title="How many heads it takes",
        reading=("band: 95% interval", "ring: enough heads, by the validation part"),
        height=HEIGHT,
    )
