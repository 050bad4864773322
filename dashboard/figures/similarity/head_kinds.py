"""Kinds of heads, such as their behaviour or role, and their looks in figures."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from jaxtyping import Int

from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, HEXAGON, LOOKS, PENTAGON, TARGETS
from attention_sieve.dashboard.figures.figure import GREY, alt

NO_KIND: Final = "none of these"


@dataclass(frozen=True)
class KindLook:
    label: str
    color: str
    shape: str
    """A Vega symbol, to distinguish kinds without colours."""


NOTHING: Final = KindLook(NO_KIND, GREY, "circle")
_LABELS: Final = ("next token", "previous token", "broad", "[CLS]", "[SEP]", "punctuation")
_MARKS: Final = ("triangle-right", "triangle-left", HEXAGON, "square", "diamond", PENTAGON)
_COLORS: Final = (
    *(TARGETS[name][1] for name in ("next", "previous")),
    HEAD_COLORS[4],
    *(TARGETS[name][1] for name in ("first", "separator", "punctuation")),
)
BEHAVIOUR_LOOKS: Final = tuple(map(KindLook, _LABELS, _COLORS, _MARKS))
"""In the order of BEHAVIOURS."""


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadKinds:
    title: str
    """Name of the classification, such as "behaviour"."""
    looks: tuple[KindLook, ...]
    of: Int[np.ndarray, "layer head"]
    """Index into `looks`; -1 for none."""

    def look(self, layer: int, head: int) -> KindLook:
        place = int(self.of[layer, head])
        return NOTHING if place < 0 else self.looks[place]

    def present(self) -> tuple[KindLook, ...]:
        """The looks that occur, in order, with NOTHING last."""
        looks = tuple(look for place, look in enumerate(self.looks) if (self.of == place).any())
        return (*looks, NOTHING) if (self.of < 0).any() else looks


def role_looks(roles: Sequence[str]) -> tuple[KindLook, ...]:
    """The looks of roles, then of heads with several of them."""
    looks = [LOOKS[role] for role in roles]
    alone = (KindLook(look.label, look.color, look.shape) for look in looks)
    return (*alone, KindLook("two or more", HEAD_COLORS[4], "wedge"))


def by_kind(channel: Any, title: str, looks: Sequence[KindLook], values: Sequence[str]) -> Any:
    """A channel, `alt.Color` or `alt.Shape`, that distinguishes kinds."""
    return channel(
        "kind of head",
        type="nominal",
        scale=alt.Scale(domain=[look.label for look in looks], range=list(values)),
        legend=alt.Legend(
            orient="bottom",
            columns=alt.expr("width < 600 ? 3 : 0"),  # 0: all in one row
            title=title,
            symbolOpacity=1,
            symbolSize=90,
            labelLimit=0,
        ),
    )
