"""Dendrogram of heads."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.similarity.layout import HeadTree, groups
from attention_sieve.dashboard.figures.axes import tooltips
from attention_sieve.dashboard.figures.figure import (
    INK,
    Figure,
    Spec,
    alt,
    counted,
    head_choice,
    rows_of,
    template,
)
from attention_sieve.dashboard.figures.similarity.head_kinds import NOTHING, HeadKinds, KindLook, by_kind

LEAF: Final = 13
"""Height of one leaf in pixels, enough for its name."""
ROOM: Final = 70
"""Pixels left of the tree for the names of heads."""
MORE_ROOM: Final = 130
"""The same if leaves have several heads."""
MIXED: Final = KindLook("several kinds", NOTHING.color, "cross")


def dendrogram(tree: HeadTree, kinds: HeadKinds, chosen: Sequence[Head], unit: str) -> Figure:
    """The tree from its leaves on the left, with the kinds of their heads, to the last merge on the right."""
    leaves = _leaves(tree, kinds, chosen)
    present = [look for look in (*kinds.present(), MIXED) if (leaves["kind of head"] == look.label).any()]
    room = ROOM if all(len(leaf) == 1 for leaf in tree.leaves) else MORE_ROOM
    spec = _spec(kinds.title, tuple(present), len(tree.leaves), float(tree.merges[-1, 2]), unit, room)
    cut = pd.DataFrame([{"kind": "cut", "distance": tree.cut}])
    data = pd.concat([_branches(tree), leaves, cut], ignore_index=True)
    return Figure(spec, data, _description(tree, unit))


def _leaves(tree: HeadTree, kinds: HeadKinds, chosen: Sequence[Head]) -> pd.DataFrame:
    leaves = []
    for place, leaf in enumerate(tree.order.tolist()):
        heads = tree.leaves[leaf]
        looks = {kinds.look(*head).label for head in heads}
        first, n_more = heads[0], len(heads) - 1
        leaves.append(
            {
                "kind": "leaf",
                "place": place,
                "distance": 0.0,
                "name": head_name(*first) + (f" and {n_more} more" if n_more else ""),
                "heads": ", ".join(head_name(*head) for head in heads),
                "layer": first[0],
                "head": first[1],
                "kind of head": looks.pop() if len(looks) == 1 else MIXED.label,
                "chosen": any(head in chosen for head in heads),
            }
        )
    return pd.DataFrame(leaves)


def _branches(tree: HeadTree) -> pd.DataFrame:
    """Each merge as a bracket: from one node up to the distance, across, and down to the other."""
    place = np.empty(2 * len(tree.leaves) - 1)
    place[tree.order] = np.arange(len(tree.leaves))
    height = np.zeros(len(place))
    ends = []
    for step, (left, right) in enumerate(tree.merges[:, :2].astype(int)):
        node, distance = len(tree.leaves) + step, float(tree.merges[step, 2])
        place[node], height[node] = (place[left] + place[right]) / 2, distance
        corners = [(left, height[left]), (left, distance), (right, distance), (right, height[right])]
        for corner, (child, height_of_corner) in enumerate(corners):
            ends.append(
                {"kind": "branch", "merge": step, "corner": corner, "place": place[child], "distance": height_of_corner}
            )
    return pd.DataFrame(ends)


def _description(tree: HeadTree, unit: str) -> str:
    parts = groups(tree)
    n_heads, n_alone = sum(map(len, parts)), sum(len(part) == 1 for part in parts)
    short = ""
    if n_heads > len(tree.leaves):
        short = f" Of {n_heads} heads the closest are drawn as one leaf; {len(tree.leaves)} leaves."
    return (
        f"Heads joined by their mean distance, the closest first; the last at {tree.merges[-1, 2]:.3g} {unit}. Cut at "
        f"half the mean distance of all heads (dashed, {tree.cut:.3g}): {counted(len(parts) - n_alone, 'group')} of "
        f"two or more heads and {counted(n_alone, 'single head')}; the largest part has "
        f"{counted(len(parts[0]), 'head')}.{short}"
    )


@lru_cache(maxsize=32)
def _spec(title: str, looks: tuple[KindLook, ...], n_leaves: int, most: float, unit: str, room: int) -> Spec:
    x = alt.X(
        "distance:Q",
        title=f"mean distance between the joined heads ({unit})",
        scale=alt.Scale(domain=[0, most or 1.0], nice=False, range=[room, alt.expr("width")]),
        axis=alt.Axis(orient="top", grid=False, tickCount=5),
    )
    y = alt.Y("place:Q", axis=None, scale=alt.Scale(domain=[n_leaves - 0.5, -0.5], nice=False, zero=False))
    branches = rows_of("branch").mark_line(color=INK, strokeWidth=1.2, strokeJoin="miter", tooltip=False)
    branches = branches.encode(
        x=x,
        y=y,
        detail=alt.Detail("merge:N"),
        order=alt.Order("corner:Q"),
        tooltip=tooltips(("distance", f"distance ({unit})", ".3~g")),
    )
    cut = rows_of("cut").mark_rule(color=INK, strokeDash=[5, 3], strokeWidth=1.5).encode(x=x)
    leaves, names = _leaf_layers(title, looks)
    return template(
        alt.layer(branches, cut, leaves.encode(x=x, y=y), names.encode(x=x, y=y)),
        title="Heads that attend alike, joined",
        reading=(
            "the further left two heads meet, the more alike they attend",
            "dashed: half the mean distance of all heads",
        ),
        height=LEAF * n_leaves,
    )


def _leaf_layers(title: str, looks: Sequence[KindLook]) -> "tuple[alt.Chart, alt.Chart]":
    marks = rows_of("leaf").mark_point(filled=True, size=60, opacity=1, cursor="pointer")
    marks = marks.encode(
        color=by_kind(alt.Color, title, looks, [look.color for look in looks]),
        shape=by_kind(alt.Shape, title, looks, [look.shape for look in looks]),
        tooltip=tooltips("heads", ("kind of head", title)),
    )
    names = rows_of("leaf").mark_text(
        color=INK,
        align="right",
        dx=-9,
        fontSize=10,
        fontWeight=alt.expr("datum.chosen ? 'bold' : 'normal'"),
        tooltip=False,
    )
    size = alt.when("datum.chosen").then(alt.value(13)).otherwise(alt.value(10))
    return marks.add_params(head_choice()), names.encode(text=alt.Text("name:N"), size=size)
