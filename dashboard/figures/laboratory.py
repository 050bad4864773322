"""How heads form while a small model learns: the loss of copied tokens, and the strongest head of each role."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import log
from typing import Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.running import ValidationResult
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, rows_of, template

LOSS_HEIGHT, GAP, SHARE_HEIGHT = 90, 26, 130
ALONE, IN_LESSON = 190, 120
"""Heights of the losses without heads; below the text of a lesson a projector has less room."""
HEIGHT: Final = LOSS_HEIGHT + GAP + SHARE_HEIGHT
LINE: Final = 13
"""Pixels between the names of two lines."""
LEAST: Final = -0.1
"""Lower end of the axis of shares above chance: no strongest head is far below 0."""


@dataclass(frozen=True, eq=False, kw_only=True)
class Strongest:
    """The strongest head of each role at the saved steps of a run."""

    roles: Sequence[str]
    steps: Sequence[int]
    shares: Float[np.ndarray, "step role"]
    """Its share above chance."""
    heads: Sequence[Sequence[Head]]
    """Which head it is, by step and role."""


NO_HEADS: Final = Strongest(roles=(), steps=(), shares=np.empty((0, 0)), heads=())


def formation(
    measured: Sequence[ValidationResult],
    strongest: Strongest,
    shown: int,
    last: int,
    n_choices: int,
    alone: int = ALONE,
) -> Figure:
    """Loss of copied tokens over training steps, and below it how strong the strongest head of each role is.

    Args:
        strongest: NO_HEADS for the loss alone.
        shown: the step that is shown elsewhere, marked by a line.
        last: step at which the run ends.
        n_choices: size of the vocabulary, whose logarithm is the loss of a guess.
        alone: height of the losses without heads, in pixels.
    """
    rows = [
        *({"kind": "loss", "step": at.step, "value": at.loss, "accuracy": at.accuracy} for at in measured),
        *(
            {"kind": "share", "step": step, "value": share, "role": role, "head": head_name(*head)}
            for step, shares, heads in zip(strongest.steps, strongest.shares.tolist(), strongest.heads, strict=True)
            for role, share, head in zip(strongest.roles, shares, heads, strict=True)
        ),
        {"kind": "guess", "value": log(n_choices), "label": f"a guess: {log(n_choices):.2f}"},
        {"kind": "shown", "step": shown},
        {"kind": "zero", "value": 0.0},
    ]
    points = pd.DataFrame(rows)
    ends = points[(points["kind"] == "share") & (points["step"] == max(strongest.steps, default=0))]
    if len(ends):
        heights = axes.apart(ends["value"].to_numpy(float), (LEAST, 1), LINE * (1 - LEAST) / SHARE_HEIGHT)
        labels = [LOOKS[role].lettered for role in ends["role"]]
        points = pd.concat([points, ends.assign(kind="end", label=labels, value=heights)])
    most = axes.round_ends([log(n_choices), *(at.loss for at in measured)])[1]
    return Figure(_spec(tuple(strongest.roles), last, most, alone), points, _description(measured, strongest))


@lru_cache(maxsize=16)
def _spec(roles: tuple[str, ...], last: int, most: float, alone: int) -> Spec:
    x = axes.steps_position("step", "training step", last)
    height = HEIGHT if roles else alone
    shown = (
        rows_of("shown").mark_rule(color=INK, strokeDash=[5, 3]).encode(x=x, y=alt.YValue(0), y2=alt.Y2Value(height))
    )
    if not roles:
        return template(
            alt.layer(shown, _losses(x, most, alone)),
            title="How the model learns",
            reading=("how surprising copied tokens are; dashed: the step shown",),
            height=height,
        )
    return template(
        alt.layer(shown, _losses(x, most, LOSS_HEIGHT), _shares(x, roles)).resolve_scale(y="independent"),
        title="Heads in formation",
        reading=(
            "above: how surprising copied tokens are",
            "below: the strongest head of each role; dashed: the step shown",
        ),
        height=height,
    )


def _losses(x: "alt.X", most: float, height: int) -> "alt.LayerChart":
    scale = alt.Scale(domain=[0, most], range=[height, 0], nice=False)
    y = alt.Y("value:Q", title="loss (nats)", scale=scale, axis=alt.Axis(tickCount=4))
    losses = rows_of("loss").encode(x=x, y=y)
    tooltip = axes.tooltips(
        ("step", "step", ",d"),
        ("value", "loss of copied tokens", ".2f"),
        ("accuracy", "copied tokens predicted", ".0%"),
    )
    label = rows_of("guess").mark_text(color=INK, fontSize=11, align="right", baseline="bottom", dx=-6, dy=-2)
    return alt.layer(
        rows_of("guess").mark_rule(color=INK, strokeDash=[2, 3]).encode(y=y),
        label.encode(x=alt.XValue("width"), y=y, text=alt.Text("label:N")),
        *axes.learning_curve(losses, False, tooltip),
    )


def _shares(x: "alt.X", roles: tuple[str, ...]) -> "alt.LayerChart":
    scale = alt.Scale(domain=[LEAST, 1], range=[HEIGHT, HEIGHT - SHARE_HEIGHT], nice=False)
    axis = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", orient="left", grid=True)
    y = alt.Y("value:Q", title="share above chance", scale=scale, axis=axis)
    shares = rows_of("share").encode(x=x, y=y)
    tooltip = axes.tooltips(
        "role", ("head", "strongest head"), ("step", "step", ",d"), ("value", "share above chance", ".2f")
    )
    points = shares.mark_point(size=50, stroke=INK, strokeWidth=1, opacity=1)
    name = rows_of("end").mark_text(color=INK, align="right", dx=-9, dy=-9, fontSize=11)
    return alt.layer(
        rows_of("zero").mark_rule(color=INK, strokeOpacity=0.4).encode(y=y),
        shares.mark_line(strokeWidth=2).encode(stroke=axes.role_colors(alt.Stroke, roles)),
        points.encode(fill=axes.role_colors(alt.Fill, roles), shape=axes.role_shapes(roles), tooltip=tooltip),
        name.encode(x=x, y=y, text=alt.Text("label:N")),
    )


def _description(measured: Sequence[ValidationResult], strongest: Strongest) -> str:
    heads = ", and the share above chance of the strongest head by role" if strongest.roles else ""
    sentences = [f"Loss of copied tokens over training steps{heads}."]
    if measured:
        first, last = (f"{at.loss:.2f} nats at step {at.step:,}" for at in (measured[0], measured[-1]))
        sentences.append(f"Loss {first}, {last}.")
    for index, role in enumerate(strongest.roles if len(strongest.steps) else ()):
        first, last = (
            f"{strongest.shares[row, index]:.2f} ({head_name(*strongest.heads[row][index])}) at step "
            f"{strongest.steps[row]:,}"
            for row in (0, -1)
        )
        sentences.append(f"{LOOKS[role].label[:1].upper()}{LOOKS[role].label[1:]}: {first}, {last}.")
    return " ".join(sentences)
