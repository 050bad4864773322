"""Evidence for a head's roles by the number of texts."""

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.roles.uncertainty.anytime import odds
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import note, note_rows, role_curves, tooltips
from attention_sieve.dashboard.figures.figure import INK, MOST_MARKS, Figure, Spec, alt, counted, rows_of, template

HEIGHT: Final = 260
READING: Final = (
    "dashed: the least odds that a role needs, and odds that always suffice;",
    "in between, it depends on the other heads",
)
NOTHING: Final = "These roles do not apply to any text."
AXIS_LABELS: Final = (
    "datum.value > 6 ? '10^' + datum.value + ' : 1' : datum.value < -6 ? '1 : 10^' + -datum.value : "
    "datum.value >= 0 ? format(pow(10, datum.value), ',.0f') + ' : 1' : "
    "'1 : ' + format(pow(10, -datum.value), ',.0f')"
)


def evidence_by_texts(
    path: Float[np.ndarray, "text role"], roles: Sequence[str], needed: tuple[float, float], alpha: float, name: str
) -> Figure:
    """From natural logarithms of evidence by text; `needed` are the least for a role, and what always suffices."""
    role_indices = [
        role_index for role_index, role in enumerate(roles) if len(path) and not np.isnan(path[0, role_index])
    ]
    evidence = np.vstack([np.zeros(path.shape[1]), path])
    lines = [
        {"role": roles[role_index], "texts": n_texts, "value": log / math.log(10), "odds": odds(log)}
        for role_index in role_indices
        for n_texts, log in enumerate(evidence[:, role_index].tolist())
    ]
    rows = [{"kind": "evidence", **line} for line in lines]
    rows += [{"kind": "point", **line} for line in lines] if len(lines) <= MOST_MARKS else []
    rows += [
        {"kind": "needed", "value": threshold / math.log(10), "label": label}
        for threshold, label in zip(needed, _labels(needed, alpha), strict=False)
    ]
    final = ", ".join(
        f"{LOOKS[roles[role_index]].label} {odds(evidence[-1, role_index])}" for role_index in role_indices
    )
    description = (
        f"Evidence for the roles of {name} after each of {counted(len(path), 'text')}, as odds on a logarithmic "
        f"scale. Now: {final or 'no role applies to any text'}. A role needs {odds(needed[0])} at least, and "
        f"{odds(needed[1])} suffice."
    )
    data = pd.concat([pd.DataFrame(rows), note_rows(not role_indices, NOTHING)])
    values = data["value"].dropna()
    ends = (min(0, math.floor(values.min())), math.ceil(values.max()))
    return Figure(
        _spec(tuple(roles[role_index] for role_index in role_indices), name, len(path), ends), data, description
    )


def _labels(needed: tuple[float, float], alpha: float) -> list[str]:
    least = f"{odds(needed[0])} (1 / alpha, {alpha:g})"
    return [least] if needed[0] == needed[1] else [least, f"{odds(needed[1])} (always enough)"]


@lru_cache(maxsize=64)
def _spec(roles: tuple[str, ...], name: str, n_texts: int, ends: tuple[int, int]) -> Spec:
    x = alt.X(
        "texts:Q",
        title="number of texts",
        scale=alt.Scale(domain=[0, max(1, n_texts)], nice=False),
        axis=alt.Axis(grid=False, tickMinStep=1, format=",d"),
    )
    y = alt.Y(
        "value:Q",
        title="evidence (odds)",
        scale=alt.Scale(domain=list(ends), nice=False, padding=12),
        axis=alt.Axis(labelExpr=AXIS_LABELS, tickMinStep=1, tickCount=6),
    )
    tooltip = tooltips("role", "texts", ("odds", "evidence"))
    line = rows_of("needed").mark_rule(color=INK, strokeDash=[6, 3]).encode(y=y)
    label = rows_of("needed").mark_text(color=INK, fontSize=11, align="left", baseline="bottom", dx=4, dy=-2)
    label = label.encode(x=alt.XValue(0), y=y, text=alt.Text("label:N"))
    curves, points = (rows_of(kind).encode(x=x, y=y) for kind in ("evidence", "point"))
    return template(
        alt.layer(line, *role_curves(curves, points, roles, tooltip), label, note()),
        title=f"Evidence for {name}",
        reading=READING,
        height=HEIGHT,
    )
