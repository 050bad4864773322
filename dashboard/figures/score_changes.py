"""The mean scores of all heads under two checkpoints, one against the other."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from core.comparison import PairedTests
from dashboard.figures.appearance import LOOKS
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture, score_position
from dashboard.figures.p_values import SHAPES
from dashboard.figures.shifts import by_role, note_layer

NOTHING: Final = "No head has a score under both checkpoints."


def score_change_scatter(tests: PairedTests, roles: Sequence[str]) -> Figure:
    """Every head's mean score under the compared checkpoint against that under the reference, with the diagonal.

    Args:
        tests: what to draw; a head without a mean is left out and counted in the description.
        roles: the roles to show.
    """
    chosen = [tests.roles.index(role) for role in roles]
    role, place, head = np.indices(tests.mean_a[chosen].shape).reshape(3, -1)
    numbers = ("mean_a", "mean_b", "difference", "p_adjusted", "texts", "differs")
    points = pd.DataFrame(
        {
            "kind": "head",
            "role": np.array(roles, dtype=object)[role],
            "name": [f"L{at_layer} H{at_head}" for at_layer, at_head in zip(place.tolist(), head.tolist())],
            **{name: getattr(tests, name)[chosen].ravel() for name in numbers},
        }
    )
    there = points[points["difference"].notna()]
    # Heads that differ lie on top; among the others no role hides all of another.
    there = there.sort_values(["differs", "name"], kind="stable", ignore_index=True)
    most = float(there[["mean_a", "mean_b"]].max(axis=None)) if len(there) else 1.0
    diagonal = pd.DataFrame({"kind": "diagonal", "mean_a": [0.0, most], "mean_b": [0.0, most]})
    note = pd.DataFrame({"kind": [] if len(there) else ["note"], "label": [] if len(there) else [NOTHING]})
    spec = _spec(tuple(roles))
    return Figure(spec, pd.concat([diagonal, there, note]), _description(there, tests, roles, len(points)))


@cache
def _spec(roles: tuple[str, ...]) -> Spec:
    x = score_position("mean_a", "mean score under a, the reference (× uniform)")
    y = score_position("mean_b", "mean score under b (× uniform)")
    colors = [LOOKS[role].color for role in roles]
    differs = "datum.differs"
    color = by_role(roles, colors)
    point = layer(
        "head",
        {"type": "point", "size": 44, "opacity": 1},
        x=x,
        y=y,
        fill=color,
        shape=by_role(roles, [SHAPES[role] for role in roles]),
        stroke={"condition": {"test": differs, "value": INK}, **color},
        strokeWidth={"condition": {"test": differs, "value": 1.4}, "value": 1},
        fillOpacity={"condition": {"test": differs, "value": 1}, "value": 0},
        strokeOpacity={"condition": {"test": differs, "value": 1}, "value": 0.7},
        tooltip=[
            {"field": "role", "title": "role"},
            {"field": "name", "title": "head"},
            {"field": "mean_a", "title": "mean score, a", "format": ".3~f"},
            {"field": "mean_b", "title": "mean score, b", "format": ".3~f"},
            {"field": "difference", "title": "difference, b − a", "format": "+.3~f"},
            {"field": "p_adjusted", "title": "p, corrected", "format": ".3~g"},
            {"field": "texts", "title": "texts"},
            {"field": "differs", "title": "differs"},
        ],
    )
    return picture(
        [
            layer("diagonal", {"type": "line", "color": INK, "strokeDash": [5, 3], "strokeWidth": 1.2}, x=x, y=y),
            point,
            note_layer(),
        ],
        title="Mean scores of all heads: b against a",
        reading=("filled: differs significantly; hollow: does not", "above the dashed line: higher in b, so b − a > 0"),
        height=380,
    )


def _description(there: pd.DataFrame, tests: PairedTests, roles: Sequence[str], n_all: int) -> str:
    if not len(there):
        return f"No score to draw. {NOTHING}"
    parts = []
    for role in roles:
        of_role = there[there["role"] == role]
        apart = of_role[of_role["differs"]]
        up, down = int((apart["difference"] > 0).sum()), int((apart["difference"] < 0).sum())
        if len(of_role):
            parts.append(f"{LOOKS[role].label} {up} higher, {down} lower of {len(of_role)}")
    top = there.loc[there["difference"].abs().idxmax()]
    missing = n_all - len(there)
    left_out = f" {counted(missing, 'mean')} without a score left out." if missing else ""
    return (
        f"Mean score of each head and role under the compared checkpoint, b, against the reference, a. Significantly "
        f"different at alpha {tests.alpha:g}, drawn filled: {'; '.join(parts)}. Largest difference b − a: "
        f"{top['difference']:+.3g} for {top['name']}, {LOOKS[top['role']].label}.{left_out}"
    )
