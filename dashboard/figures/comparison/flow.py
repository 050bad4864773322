"""Flow of heads from their roles under one checkpoint to their roles under another."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np
import pandas as pd

from attention_sieve.core.attention.settings import Head, head_names
from attention_sieve.core.comparison.transitions import Transition
from attention_sieve.core.roles.roles import known_roles
from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, LOOKS
from attention_sieve.dashboard.figures.axes import note, tooltips
from attention_sieve.dashboard.figures.figure import (
    CHOICE,
    GREY,
    INK,
    Figure,
    Spec,
    alt,
    counted,
    drawable,
    rows_of,
    template,
)

NO_ROLE: Final = "no role"
SEVERAL: Final = HEAD_COLORS[4]
"""Colour of heads with two or more roles."""
GAP: Final = 16
"""Pixels between two sets of roles, so that their names never overlap."""
ROOM: Final = 32
"""Minimum height in pixels for each set of roles."""
LOWEST: Final = 300
BAR: Final = 16
"""Width of the bar of a set, in pixels."""
CHANGED: Final = 0.6
KEPT: Final = 0.25
POINTED_AT: Final = 0.85
"""Opacity of heads whose roles change, of heads that keep their roles, and of the band under the pointer."""
NAME: Final = 24
"""Characters of a checkpoint's name that fit on half the width of a phone."""
NAMED: Final = 12
"""Maximum number of heads in a tooltip; the list below the chart names all."""
SAID: Final = 6
"""Maximum number of transitions in the description."""
STEPS: Final = np.linspace(0, 1, 25)
"""Positions along a band at which its edges are computed."""
TITLE: Final = "From the roles under a to the roles under b"
READING: Final = ("width of a band: its number of heads", "strong colour: roles change; pale: roles stay")
NOTHING: Final = "No head to draw."


@dataclass(frozen=True)
class _Bar:
    roles: frozenset[str]
    n_heads: int
    top: float
    height: float
    """Top and height in pixels; the top is measured from the top of the flow."""


def roles_written(roles: Collection[str]) -> str:
    """A set of roles as text, such as "local + delimiter"."""
    return " + ".join(LOOKS[role].label for role in known_roles(roles)) or NO_ROLE


def transition_name(transition: Transition) -> str:
    """Name of a band in its tooltip and in the list of bands."""
    return f"{roles_written(transition.before)} → {roles_written(transition.after)}"


def heads_by_mark(transitions: Sequence[Transition]) -> dict[str, tuple[Head, ...]]:
    """Heads of each mark that can be clicked, by the name that the mark sends.

    Args:
        transitions: as `attention_sieve.core.comparison.transitions` orders them.

    Returns: the bands in the given order, then the sets of roles under a, then those under b; heads in reading order.
    """
    marks = {transition_name(transition): transition.heads for transition in transitions}
    for side in ("a", "b"):
        for roles in _sets(transitions, side):
            heads = (transition.heads for transition in transitions if _side(transition, side) == roles)
            marks[_set_name(roles, side)] = tuple(sorted(head for group in heads for head in group))
    return marks


def role_flow(transitions: Sequence[Transition], names: tuple[str, str]) -> Figure:
    """Draw all transitions as a Sankey diagram: sets of roles under a on the left, under b on the right.

    A click on a band or a bar selects its `mark`, a name of `heads_by_mark`.

    Args:
        transitions: every head in exactly one of them.
        names: of the reference and the compared checkpoint.
    """
    n_heads = sum(len(transition.heads) for transition in transitions)
    n_sets = max((len(_sets(transitions, side)) for side in ("a", "b")), default=0)
    height = max(LOWEST, ROOM * n_sets)
    scale = (height - GAP * (n_sets - 1)) / n_heads if n_heads else 0.0
    bars = {side: _bars(transitions, side, scale, height) for side in ("a", "b")}
    sides = [f"({side}) {drawable(name, NAME)}" for side, name in zip("ab", names)]
    return Figure(_spec(height), _flow_data(transitions, bars, sides, scale), _description(transitions, n_heads))


def _side(transition: Transition, side: str) -> frozenset[str]:
    return transition.before if side == "a" else transition.after


def _sets(transitions: Sequence[Transition], side: str) -> list[frozenset[str]]:
    """Single roles first, then combinations, and heads without a role last."""
    sets = {_side(transition, side) for transition in transitions}
    order = known_roles(frozenset().union(*sets))
    return sorted(sets, key=lambda roles: (not roles, len(roles), [order.index(role) for role in known_roles(roles)]))


def _set_name(roles: frozenset[str], side: str) -> str:
    return f"{roles_written(roles)} under {side}"


def _label(roles: frozenset[str]) -> str:
    """Names of up to two roles, or the letters of more."""
    return roles_written(roles) if len(roles) < 3 else " + ".join(LOOKS[role].letter for role in known_roles(roles))


def _color(roles: frozenset[str]) -> str:
    if len(roles) > 1:
        return SEVERAL
    return LOOKS[next(iter(roles))].color if roles else GREY


def _bars(transitions: Sequence[Transition], side: str, scale: float, height: float) -> list[_Bar]:
    """The sets of one side from top to bottom, vertically centred."""
    sets = _sets(transitions, side)
    counts = [
        sum(len(transition.heads) for transition in transitions if _side(transition, side) == roles) for roles in sets
    ]
    top = (height - scale * sum(counts) - GAP * (len(sets) - 1)) / 2
    bars = []
    for roles, count in zip(sets, counts):
        bars.append(_Bar(roles, count, top, scale * count))
        top += scale * count + GAP
    return bars


def _flow_data(
    transitions: Sequence[Transition], bars: dict[str, list[_Bar]], names: Sequence[str], scale: float
) -> pd.DataFrame:
    """The edges of the bands, the bars and the names."""
    next_top = {(side, bar.roles): bar.top for side in ("a", "b") for bar in bars[side]}
    order = {(side, bar.roles): number for side in ("a", "b") for number, bar in enumerate(bars[side])}
    tops = np.zeros((len(transitions), 2))
    for column, (side, other) in enumerate((("a", "b"), ("b", "a"))):
        # Within a bar, bands are in the order of the bars at their other end, so that they do not cross.
        for number in sorted(range(len(transitions)), key=lambda index: order[other, _side(transitions[index], other)]):
            transition = transitions[number]
            tops[number, column] = next_top[side, _side(transition, side)]
            next_top[side, _side(transition, side)] += scale * len(transition.heads)
    bend = STEPS**2 * (3 - 2 * STEPS)
    bands = [
        pd.DataFrame(
            {
                "kind": "band",
                "mark": transition_name(transition),
                "heads": len(transition.heads),
                "which": _some_heads(transition.heads),
                "color": _color(transition.before),
                "x": STEPS,
                "top": top_a + bend * (top_b - top_a),
                "opacity": KEPT if transition.before == transition.after else CHANGED,
            }
        ).assign(bottom=lambda band, transition=transition: band["top"] + scale * len(transition.heads))
        for transition, (top_a, top_b) in zip(transitions, tops)
    ]
    other_rows = [
        {
            "kind": f"bar {side}",
            "label": _label(bar.roles),
            "mark": _set_name(bar.roles, side),
            "heads": bar.n_heads,
            "color": _color(bar.roles),
            "x": float(side == "b"),
            "top": bar.top,
            "bottom": bar.top + bar.height,
            "middle": bar.top + bar.height / 2,
        }
        for side in ("a", "b")
        for bar in bars[side]
    ]
    other_rows += [{"kind": f"name {side}", "label": name} for side, name in zip("ab", names)]
    other_rows += [] if transitions else [{"kind": "note", "label": NOTHING}]
    return pd.concat([*bands, pd.DataFrame(other_rows)])


@cache
def _spec(height: int) -> Spec:
    return template(
        alt.layer(_band_marks(height), *_side_marks("a", height), *_side_marks("b", height), note()),
        title=TITLE,
        reading=READING,
        height=height,
    )


def _band_marks(height: int) -> "alt.Chart":
    bands = rows_of("band").mark_area(orient="vertical", interpolate="monotone", line=False, cursor="pointer")
    pointed_at = alt.selection_point(name="pointed", fields=["mark"], on="pointerover", clear="pointerout", empty=False)
    return bands.add_params(pointed_at, alt.selection_point(name=CHOICE, fields=["mark"])).encode(
        x=_across(),
        y=_down("top", height),
        y2=alt.Y2("bottom"),
        color=alt.Color("color:N", scale=None),
        opacity=alt.when(pointed_at).then(alt.value(POINTED_AT)).otherwise(alt.Opacity("opacity:Q", scale=None)),
        detail=alt.Detail("mark:N"),
        tooltip=tooltips(("mark", "roles"), "heads", "which"),
        description=alt.Description("mark:N"),
    )


def _side_marks(side: str, height: int) -> "tuple[alt.Chart, alt.Chart, alt.Chart]":
    """The bars of one side, their names, and the name of the checkpoint above them."""
    inwards, align = (1, "left") if side == "a" else (-1, "right")
    bars = rows_of(f"bar {side}")
    names = bars.mark_text(color=INK, fontSize=12, align=align, dx=inwards * (BAR + 4))
    title = rows_of(f"name {side}").mark_text(
        color=INK, fontSize=12, align=align, fontWeight="bold", baseline="bottom", dy=-6
    )
    return (
        bars.mark_bar(size=BAR, xOffset=inwards * BAR / 2, cursor="pointer").encode(
            x=_across(),
            y=_down("top", height),
            y2=alt.Y2("bottom"),
            color=alt.Color("color:N", scale=None),
            tooltip=tooltips(("mark", "roles"), "heads"),
            description=alt.Description("mark:N"),
        ),
        names.encode(x=_across(), y=_down("middle", height), text=alt.Text("label:N")),
        title.encode(x=alt.XValue(0 if side == "a" else "width"), y=alt.YValue(0), text=alt.Text("label:N")),
    )


def _across() -> "alt.X":
    return alt.X("x:Q", axis=None, scale=alt.Scale(domain=[0, 1], nice=False))


def _down(field: str, height: int) -> "alt.Y":
    return alt.Y(field, type="quantitative", axis=None, scale=alt.Scale(domain=[height, 0], nice=False, zero=False))


def _some_heads(heads: Sequence[Head]) -> str:
    return head_names(heads[:NAMED]) + (f" and {len(heads) - NAMED:,} more" if len(heads) > NAMED else "")


def _description(transitions: Sequence[Transition], n_heads: int) -> str:
    if not transitions:
        return NOTHING
    changes = [transition for transition in transitions if transition.before != transition.after]
    n_changed = sum(len(transition.heads) for transition in changes)
    start = f"Flow of {counted(n_heads, 'head')} from the roles they hold under a to those they hold under b."
    if not changes:
        return f"{start} No head changes its roles."
    named = "; ".join(f"{transition_name(transition)} {len(transition.heads):,}" for transition in changes[:SAID])
    n_other = sum(len(transition.heads) for transition in changes[SAID:])
    other_changes = f"; other changes {n_other:,}" if n_other else ""
    return f"{start} {n_changed:,} change: {named}{other_changes}."
