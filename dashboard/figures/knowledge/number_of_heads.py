"""Score of the best heads together, by their number."""

from functools import lru_cache
from typing import Final, Literal

import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.knowledge.reconstruction import Reconstruction
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS
from attention_sieve.dashboard.figures.axes import Ends
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, of_kind, template
from attention_sieve.dashboard.figures.knowledge.words import rank_axis, score_axis, score_ends, score_tooltips, written

HEIGHT: Final = 300


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
    spec = _spec(int(reconstruction.n_heads.max()), name, ends, ends_above)
    return Figure(spec, data, _description(reconstruction, best_layer, name))


def _description(reconstruction: Reconstruction, best_layer: float, name: str) -> str:
    first, last = reconstruction.accuracy[0], reconstruction.accuracy[-1]
    enough = reconstruction.estimate(reconstruction.enough).value
    return (
        f"{name[:1].upper()}{name[1:]} with the best heads together: {written(first, name)} with one head, "
        f"{written(enough, name)} with {reconstruction.enough}, which is enough by the "
        f"validation part, {written(last, name)} with all {reconstruction.n_heads[-1]}. "
        f"Best layer: {written(best_layer, name)}."
    )


@lru_cache(maxsize=32)
def _spec(most: int, name: str, ends: Ends, ends_above: bool) -> Spec:
    x = rank_axis("n:Q", "heads together, the best first", most)
    step, layer, enough = of_kind("step"), of_kind("layer"), of_kind("enough")
    tooltip = [
        alt.Tooltip("n:Q", title="heads", format="d"),
        alt.Tooltip("last:N", title="the last one"),
        *score_tooltips(name),
    ]
    y = score_axis("value", name, ends)
    side: Literal["top", "bottom"] = "top" if ends_above else "bottom"  # the line of heads is on the other side
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
