"""Kinds of heads, such as what they do or which role they hold, and how the figures tell them apart."""

from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Int

from core.roles import ROLES
from core.similar_heads import BEHAVIOURS
from dashboard.figures.appearance import HEAD_COLORS, LOOKS
from dashboard.figures.figure import GREY, Spec
from dashboard.figures.p_values import HEXAGON, PENTAGON, SHAPES

NO_KIND: Final = "none of these"


@dataclass(frozen=True)
class Look:
    """How heads of one kind are drawn."""

    label: str
    color: str
    shape: str
    """A Vega symbol, for whoever cannot tell the colours apart."""


NOTHING: Final = Look(NO_KIND, GREY, "circle")
_LABELS: Final = ("next token", "previous token", "broad", "[CLS]", "[SEP]", "punctuation")
_MARKS: Final = ("triangle-right", "triangle-left", HEXAGON, "square", "diamond", PENTAGON)
BEHAVIOUR_LOOKS: Final = tuple(map(Look, _LABELS, HEAD_COLORS[: len(BEHAVIOURS)], _MARKS))
"""By BEHAVIOURS."""
ROLE_LOOKS: Final = (
    *(Look(LOOKS[role].label, LOOKS[role].color, SHAPES[role]) for role in ROLES),
    Look("two or more", HEAD_COLORS[4], "wedge"),
)
"""By ROLES, then heads that hold several."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadKinds:
    """One kind of each head."""

    title: str
    """What tells kinds apart, such as "behaviour"."""
    looks: tuple[Look, ...]
    of: Int[np.ndarray, "layer head"]
    """Place among the looks; -1 for none of them."""

    def look(self, layer: int, head: int) -> Look:
        """How one head is drawn."""
        place = int(self.of[layer, head])
        return NOTHING if place < 0 else self.looks[place]

    def present(self) -> tuple[Look, ...]:
        """The looks of heads that there are, in order, none of them last."""
        found = tuple(look for place, look in enumerate(self.looks) if (self.of == place).any())
        return (*found, NOTHING) if (self.of < 0).any() else found


def head_rows(n_layers: int, n_heads: int) -> pd.DataFrame:
    """A row for each head: its layer, head and name."""
    layer, head = np.indices((n_layers, n_heads)).reshape(2, -1)
    names = [f"L{at} H{of}" for at, of in zip(layer.tolist(), head.tolist())]
    return pd.DataFrame({"layer": layer, "head": head, "name": names})


def by_kind(title: str, looks: tuple[Look, ...], values: tuple[str, ...]) -> Spec:
    """A channel that tells the labels of kinds apart.

    Args:
        title: of the legend.
        looks: of the kinds that there are.
        values: of the channel, such as their colours.
    """
    labels = [look.label for look in looks]
    legend = {
        "orient": "bottom",
        "columns": 3,
        "title": title,
        "symbolOpacity": 1,
        "symbolSize": 90,
        "labelLimit": 0,
    }
    return {
        "field": "kind of head",
        "type": "nominal",
        "scale": {"domain": labels, "range": list(values)},
        "legend": legend,
    }
