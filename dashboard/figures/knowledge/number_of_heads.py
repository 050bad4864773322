"""How a score grows as more of the best heads are put together."""

from functools import lru_cache
from typing import Final, Literal

import numpy as np
import pandas as pd

from core.attention.settings import head_name
from core.probing_tasks.reconstruction import Reconstruction
from dashboard.figures.appearance import HEAD_COLORS
from dashboard.figures.axes import Ends
from dashboard.figures.figure import INK, Figure, Spec, of_kind, template
from dashboard.figures.knowledge.words import score_axis, score_ends, written

HEIGHT: Final = 300


def effect_of_number(found: Reconstruction, best_layer: float, name: str) -> Figure:
    """The score of the best n heads together, with a band, and that of the best layer across.

    Args:
        found: the probes of the best heads.
        best_layer: score of the output of the best layer.
        name: what the scores are.

    Source: Jo and Myaeng 2020, their figure of the effect of n.
    """
    added = [head_name(*found.heads[int(count) - 1]) for count in found.n_heads]
    line = pd.DataFrame(
        {
            "kind": "step",
            "n": found.n_heads,
            "value": found.accuracy,
            "low": found.low,
            "high": found.high,
            "last": added,
        }
    )
    place = int(np.flatnonzero(found.n_heads == found.enough)[0])
    marks = [
        {"kind": "layer", "value": best_layer, "label": f"best layer: {written(best_layer, name)}"},
        {"kind": "enough", "n": found.enough, "value": found.accuracy[place], "label": _label(found.enough)},
    ]
    data = pd.concat([line, pd.DataFrame(marks)], ignore_index=True)
    ends = score_ends([*line[["value", "low", "high"]].stack(), best_layer])
    ends_above = bool(found.accuracy[-1] >= best_layer)
    spec = _spec(int(found.n_heads.max()), name, ends, ends_above)
    return Figure(spec, data, _description(found, best_layer, name))


def _label(n_heads: int) -> str:
    return "1 is enough" if n_heads == 1 else f"{n_heads} are enough"


def _description(found: Reconstruction, best_layer: float, name: str) -> str:
    one, whole = found.accuracy[0], found.accuracy[-1]
    place = int(np.flatnonzero(found.n_heads == found.enough)[0])
    return (
        f"{name[:1].upper()}{name[1:]} with the best heads together: {written(one, name)} with one head, "
        f"{written(found.accuracy[place], name)} with {found.enough}, which is enough by the validation part, "
        f"{written(whole, name)} with all {found.n_heads[-1]}. Best layer: {written(best_layer, name)}."
    )


@lru_cache(maxsize=32)
def _spec(most: int, name: str, ends: Ends, ends_above: bool) -> Spec:
    import altair as alt

    x = alt.X(
        "n:Q",
        title="heads together, the best first",
        scale=alt.Scale(domain=[1, max(2, most)], nice=False, zero=False),
        axis=alt.Axis(format="d", grid=False, tickMinStep=1, tickCount=8),
    )
    step, layer, enough = of_kind("step"), of_kind("layer"), of_kind("enough")
    tooltip = [
        alt.Tooltip("n:Q", title="heads", format="d"),
        alt.Tooltip("last:N", title="the last one"),
        alt.Tooltip("value:Q", title=name, format=".3f"),
        alt.Tooltip("low:Q", title="95% interval from", format=".3f"),
        alt.Tooltip("high:Q", title="to", format=".3f"),
    ]
    y = score_axis("value", name, ends)
    side: Literal["top", "bottom"] = "top" if ends_above else "bottom"  # the line of heads is on the other
    return template(
        alt.layer(
            step.mark_area(color=HEAD_COLORS[0], opacity=0.2, aria=False, tooltip=False).encode(
                x=x, y=score_axis("low", name, ends), y2=alt.Y2("high")
            ),
            layer.mark_rule(color=INK, strokeDash=[6, 4], strokeOpacity=0.7).encode(y=y),
            layer.mark_text(color=INK, align="right", baseline=side, dx=-4, dy=3 if ends_above else -3).encode(
                x=alt.XValue("width"), y=y, text=alt.Text("label:N")
            ),
            step.mark_line(color=HEAD_COLORS[0], strokeWidth=2, aria=False).encode(x=x, y=y),
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
