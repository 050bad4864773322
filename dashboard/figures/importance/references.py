"""How large the effect of a head is: its damage beside a small and a large one."""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import pandas as pd

from attention_sieve.dashboard.figures.appearance import AMOUNT
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import GREY, HARDLY, INK, Figure, Spec, alt, rows_of, template

ROW: Final = 34
"""Height of a bar in pixels."""
ROOM: Final = 1.25
"""Length of the axis relative to the longest bar, for the number at its end."""


def damage_beside(damages: Mapping[str, float], head: str, name: str) -> Figure:
    """A bar for each damage.

    Args:
        damages: by what is switched off, from top to bottom.
        head: that of the damages which is that of the head itself.
        name: of the damage, such as "loss of accuracy".
    """
    data = pd.DataFrame({"off": list(damages), "damage": list(damages.values())})
    least = HARDLY * max(map(abs, damages.values()))
    numbers = {off: f"{damage:.2g}" if abs(damage) > least else "about 0" for off, damage in damages.items()}
    data = data.assign(label=list(numbers.values()))
    data = pd.concat([data.assign(kind=kind) for kind in ("bar", "label")])
    ends = tuple(ROOM * end(0.0, *damages.values()) for end in (min, max))
    said = "; ".join(f"{off} {number}" for off, number in numbers.items())
    return Figure(_spec(ends, head, len(damages), name), data, f"{name[:1].upper()}{name[1:]} without: {said}.")


@lru_cache(maxsize=32)
def _spec(ends: tuple[float, float], head: str, n_rows: int, name: str) -> Spec:
    x = alt.X("damage:Q", title=None, scale=alt.Scale(domain=list(ends), nice=False), axis=None)
    axis = alt.Axis(labelLimit=220, ticks=False, domain=False, labelPadding=6)
    y = alt.Y("off:N", title=None, sort=None, axis=axis)
    color = alt.condition(alt.datum.off == head, alt.value(AMOUNT), alt.value(GREY))
    bar = (
        rows_of("bar")
        .mark_bar(height=alt.RelativeBandSize(0.6))
        .encode(x=x, y=y, color=color, tooltip=tooltips(("off", "switched off"), ("damage", name, ".3~g")))
    )
    label = rows_of("label").mark_text(color=INK, align="left", dx=6, fontSize=12)
    label = label.encode(x=x, y=y, text=alt.Text("label:N"))
    return template(
        alt.layer(bar, label), title=f"{name[:1].upper()}{name[1:]} without ...", reading=(), height=ROW * n_rows
    )
