"""The mean scores of all heads under two checkpoints, one against the other."""

from collections.abc import Sequence
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.comparison.differences import PairedTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.axes import (
    Ends,
    lettered_legend,
    note,
    note_rows,
    role_colors,
    role_shapes,
    score_ends,
    score_position,
    tooltips,
)
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, counted, of_kind, template
from attention_sieve.dashboard.figures.scales import WORDS

NOTHING: Final = "No head has a score under both checkpoints."


def score_change_scatter(tests: PairedTests, roles: Sequence[str], scale: Scale = "score") -> Figure:
    """Every head's mean score under the compared checkpoint against that under the reference, with the diagonal.

    Args:
        tests: paired tests; heads without a mean are left out and counted in the description.
    """
    indices = [tests.roles.index(role) for role in roles]
    role, layer, head = np.indices(tests.mean_a[indices].shape).reshape(3, -1)
    points = pd.DataFrame(
        {
            "kind": "head",
            "role": np.array(roles, dtype=object)[role],
            "name": [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())],
        }
    )
    for name in ("mean_a", "mean_b", "difference", "p_adjusted", "texts", "differs"):
        points[name] = getattr(tests, name)[indices].ravel()
    known = points[points["difference"].notna()]
    # Heads that differ are on top; among the others, roles alternate so that none hides another.
    known = known.sort_values(["differs", "name"], kind="stable", ignore_index=True)
    means = known[["mean_a", "mean_b"]]
    ends = [min(0.0, float(means.min(axis=None))), float(means.max(axis=None))] if len(known) else [0.0, 1.0]
    diagonal = pd.DataFrame({"kind": "diagonal", "mean_a": ends, "mean_b": ends})
    data = pd.concat([diagonal, known, note_rows(known.empty, NOTHING)])
    spec = _spec(tuple(roles), scale, score_ends(data, ("mean_a", "mean_b"), scale))
    return Figure(spec, data, _description(known, tests, roles, len(points), scale))


@cache
def _spec(roles: tuple[str, ...], scale: Scale, ends: Ends) -> Spec:
    words = WORDS[scale]
    x = score_position(alt.X, "mean_a", scale, words.title("mean ", " under a, the reference"), ends)
    y = score_position(alt.Y, "mean_b", scale, words.title("mean ", " under b"), ends)
    legend, differs = lettered_legend(roles), alt.when("datum.differs")
    tooltip = tooltips(
        "role",
        ("name", "head"),
        ("mean_a", f"mean {words.short}, a", ".3~f"),
        ("mean_b", f"mean {words.short}, b", ".3~f"),
        ("difference", "difference, b − a", "+.3~f"),
        ("p_adjusted", "p, corrected", ".3~g"),
        "texts",
        "differs",
    )
    points = of_kind("head").mark_point(size=44, opacity=1)
    points = points.encode(
        x=x,
        y=y,
        fill=role_colors(alt.Fill, roles, legend),
        shape=role_shapes(roles, legend),
        stroke=differs.then(alt.value(INK)).otherwise(role_colors(alt.Stroke, roles, legend)),
        strokeWidth=differs.then(alt.value(1.4)).otherwise(alt.value(1)),
        fillOpacity=differs.then(alt.value(1)).otherwise(alt.value(0)),
        strokeOpacity=differs.then(alt.value(1)).otherwise(alt.value(0.7)),
        tooltip=tooltip,
    )
    diagonal = of_kind("diagonal").mark_line(color=INK, strokeDash=[5, 3], strokeWidth=1.2).encode(x=x, y=y)
    return template(
        alt.layer(diagonal, points, note()),
        title=f"Mean {words.nouns} of all heads: b against a",
        reading=("filled: differs significantly; hollow: does not", "above the dashed line: higher in b, so b − a > 0"),
        height=380,
    )


def _description(known: pd.DataFrame, tests: PairedTests, roles: Sequence[str], n_all: int, scale: Scale) -> str:
    words = WORDS[scale]
    if not len(known):
        return f"No {words.short} to draw. {NOTHING}"
    parts = []
    for role in roles:
        of_role = known[known["role"] == role]
        differing = of_role[of_role["differs"]]
        n_higher, n_lower = int((differing["difference"] > 0).sum()), int((differing["difference"] < 0).sum())
        if len(of_role):
            parts.append(f"{LOOKS[role].label} {n_higher} higher, {n_lower} lower of {len(of_role)}")
    top = known.loc[known["difference"].abs().idxmax()]
    missing = n_all - len(known)
    left_out = f" {counted(missing, 'mean')} without a {words.short} left out." if missing else ""
    return (
        f"Mean {words.noun} of each head and role under the compared checkpoint, b, against the reference, a. "
        f"Significantly different at alpha {tests.alpha:g}, drawn filled: {'; '.join(parts)}. Largest difference "
        f"b − a: {top['difference']:+.3g} for {top['name']}, {LOOKS[top['role']].label}.{left_out}"
    )
