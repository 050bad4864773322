"""Heads joined to a tree, the closest first."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np
import pandas as pd

from core.head_layout import HeadTree, groups
from core.similar_heads import Head
from dashboard.figures.figure import INK, Figure, Spec, counted, layer, picture
from dashboard.figures.head_dots import CHOICE
from dashboard.figures.head_kinds import NOTHING, HeadKinds, Look, by_kind

LEAF: Final = 13
"""Pixels of the height of one leaf: its name can be read."""
ROOM: Final = 70
"""Pixels left of the tree for the names of heads."""
MORE_ROOM: Final = 130
"""The same where leaves hold several heads."""
MIXED: Final = Look("several kinds", NOTHING.color, "cross")


def dendrogram(tree: HeadTree, kinds: HeadKinds, chosen: Sequence[Head], unit: str) -> Figure:
    """The tree from its leaves on the left to the last merge on the right.

    Args:
        tree: of the heads.
        kinds: of the heads, drawn at the leaves.
        chosen: heads whose leaves are marked.
        unit: of the distances.
    """
    leaves = _leaves(tree, kinds, chosen)
    present = [look for look in (*kinds.present(), MIXED) if (leaves["kind of head"] == look.label).any()]
    rest = [{"kind": "cut", "distance": tree.cut}]
    room = ROOM if all(len(leaf) == 1 for leaf in tree.leaves) else MORE_ROOM
    spec = _spec(kinds.title, tuple(present), len(tree.leaves), float(tree.merges[-1, 2]), unit, room)
    data = pd.concat([_branches(tree), leaves, pd.DataFrame(rest)], ignore_index=True)
    return Figure(spec, data, _description(tree, unit))


def _leaves(tree: HeadTree, kinds: HeadKinds, chosen: Sequence[Head]) -> pd.DataFrame:
    rows = []
    for place, leaf in enumerate(tree.order.tolist()):
        heads = tree.leaves[leaf]
        looks = {kinds.look(*head).label for head in heads}
        first, n_more = heads[0], len(heads) - 1
        name = f"L{first[0]} H{first[1]}" + (f" and {n_more} more" if n_more else "")
        rows.append(
            {
                "kind": "leaf",
                "place": place,
                "distance": 0.0,
                "name": name,
                "heads": ", ".join(f"L{at} H{of}" for at, of in heads),
                "layer": first[0],
                "head": first[1],
                "kind of head": looks.pop() if len(looks) == 1 else MIXED.label,
                "chosen": any(head in chosen for head in heads),
            }
        )
    return pd.DataFrame(rows)


def _branches(tree: HeadTree) -> pd.DataFrame:
    """Each merge as a bracket: from one node up to the distance, across, and down to the other."""
    place = np.empty(2 * len(tree.leaves) - 1)
    place[tree.order] = np.arange(len(tree.leaves))
    height = np.zeros(len(place))
    rows = []
    for step, (one, other) in enumerate(tree.merges[:, :2].astype(int)):
        node, distance = len(tree.leaves) + step, float(tree.merges[step, 2])
        place[node], height[node] = (place[one] + place[other]) / 2, distance
        corners = [(one, height[one]), (one, distance), (other, distance), (other, height[other])]
        for corner, (at, of) in enumerate(corners):
            rows.append({"kind": "branch", "merge": step, "corner": corner, "place": place[at], "distance": of})
    return pd.DataFrame(rows)


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
def _spec(title: str, looks: tuple[Look, ...], n_leaves: int, most: float, unit: str, room: int) -> Spec:
    x = {
        "field": "distance",
        "type": "quantitative",
        "title": f"mean distance between the joined heads ({unit})",
        "scale": {"domain": [0, most or 1.0], "nice": False, "range": [room, {"expr": "width"}]},
        "axis": {"orient": "top", "grid": False, "tickCount": 5},
    }
    y = {
        "field": "place",
        "type": "quantitative",
        "axis": None,
        "scale": {"domain": [n_leaves - 0.5, -0.5], "nice": False, "zero": False},
    }
    branch = {"type": "line", "color": INK, "strokeWidth": 1.2, "strokeJoin": "miter", "tooltip": False}
    order = {"field": "corner", "type": "quantitative"}
    shown = {"field": "distance", "title": f"distance ({unit})", "format": ".3~g"}
    branches = layer("branch", branch, x=x, y=y, detail={"field": "merge"}, order=order, tooltip=[shown])
    color, shape = (
        by_kind(title, looks, tuple(values))
        for values in ([look.color for look in looks], [look.shape for look in looks])
    )
    about = [{"field": "heads", "title": "heads"}, {"field": "kind of head", "title": title}]
    mark = {"type": "point", "filled": True, "size": 60, "opacity": 1, "cursor": "pointer"}
    leaves = layer("leaf", mark, x=x, y=y, color=color, shape=shape, tooltip=about)
    leaves["params"] = [{"name": CHOICE, "select": {"type": "point", "fields": ["layer", "head"]}}]
    text = {"type": "text", "color": INK, "align": "right", "dx": -9, "fontSize": 10, "tooltip": False}
    size = {"condition": {"test": "datum.chosen", "value": 13}, "value": 10}
    names = layer("leaf", text, x=x, y=y, text={"field": "name"}, size=size)
    names["mark"]["fontWeight"] = {"expr": "datum.chosen ? 'bold' : 'normal'"}
    cut = layer("cut", {"type": "rule", "color": INK, "strokeDash": [5, 3], "strokeWidth": 1.5}, x=x)
    return picture(
        [branches, cut, leaves, names],
        title="Heads that attend alike, joined",
        reading=(
            "the further left two heads meet, the more alike they attend",
            "dashed: half the mean distance of all heads",
        ),
        height=LEAF * n_leaves,
    )
