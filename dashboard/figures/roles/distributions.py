"""Distributions of the scores of single texts: by layer, by head of a layer, and for one head by role.

Scores are ratios from 0 upwards and a few are very large. They are drawn on a scale of log(1 + score), which includes 0
and needs neither a lower limit nor clipping: the figure and its density contain every score. Shares above chance are at
most 1 and are not transformed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from attention_sieve.core.attention.settings import Head, head_name
from attention_sieve.core.roles.hypotheses import HeadTests
from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures import axes
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.figure import (
    INK,
    MOST_MARKS,
    Figure,
    Spec,
    alt,
    counted,
    percent,
    rows_of,
    template,
)
from attention_sieve.dashboard.figures.roles.densities import outline

LANE: Final = 46
"""Height of one role of one head, in pixels."""
UNIFORM: Final[dict[Scale, float]] = {"score": 1.0, "share": 0.0}
"""Score of uniform attention, except for block, which is weighted."""
WEIGHTED_AXIS: Final = "score (× uniform × entropy in nats)"
LEGEND: Final = {
    "shape": ("how often a {} occurs", "M-1,.6C-.4,.6,-.4,-.7,0,-.7C.4,-.7,.4,.6,1,.6Z"),
    "dot": ("a text", "M-.35,0A.35,.35,0,1,1,.35,0A.35,.35,0,1,1,-.35,0Z"),
    "mean": ("mean", "circle"),
    "interval": ("interval of the mean", "M-1,-.2H1V.2H-1Z"),
    "here": ("this text", "diamond"),
    "uniform": ("uniform attention", "M-.1,-1H.1V-.5H-.1ZM-.1,-.25H.1V.25H-.1ZM-.1,.5H.1V1H-.1Z"),
}
"""Legend of the figure of one head: label and mark (SVG path or Vega symbol), by the kind of rows."""
SCORE_FIELDS: Final = ("score", "mean", "low", "high", "median")
"""Columns with values on the axis of scores."""
MARGIN: Final = 0.6
"""Room left and right of the violins, in places."""
GOLDEN: Final = 0.6180339887
"""Multiples of it, modulo 1, spread dots evenly and deterministically."""
SHAPE: Final = {"fillOpacity": 0.75, "stroke": INK, "strokeWidth": 0.6, "strokeOpacity": 0.6}


@dataclass(frozen=True)
class Violins:
    """The shapes of the scores of a role, side by side: one per layer, or one per head of a layer.

    All have the same maximum width, so widths are comparable within a shape only.
    """

    role: str
    layer: int | None = None
    """Whose heads have a shape each; None for one per layer."""
    scale: Scale = "score"

    @property
    def axis(self) -> str:
        return axes.LAYER_AXIS if self.layer is None else "head"

    @property
    def title(self) -> str:
        places = "layer" if self.layer is None else f"head of layer {self.layer}"
        return f"{WORDS[self.scale].nouns.capitalize()} by {places}: {LOOKS[self.role].label}"

    @property
    def subject(self) -> str:
        return f"{'all heads' if self.layer is None else f'layer {self.layer}'}, {self.role}"


@dataclass(frozen=True, eq=False, kw_only=True)
class HeadScores:
    scores: Float[np.ndarray, "text role"]
    """Sieve bias scores; NaN where a text takes no part."""
    tests: HeadTests
    """Of all heads on these texts; they contain the roles, the means, the intervals and tau."""
    head: Head
    uniform: Float[np.ndarray, " role"]
    """Mean score of uniform attention on the texts in the head's layer."""
    here: Mapping[str, float] = field(default_factory=dict)
    """Role -> score of the text on screen; missing roles and NaN get no mark."""
    scale: Scale = "score"


def score_violins(
    scores: Float[np.ndarray, "text layer head"], violins: Violins, tau: float, uniform: Float[np.ndarray, " layer"]
) -> Figure:
    """The scores on all texts with a score; uniform attention is a line, over layers with windows at its mean.

    Source: Pande et al. 2021, violin plots of the scores per layer.
    """
    layer, scale = violins.layer, violins.scale
    by_place = np.moveaxis(scores, 1, 0).reshape(scores.shape[1], -1) if layer is None else scores[:, layer].T
    level = float(uniform.mean() if layer is None else uniform[layer])
    scores_by_place = [values[~np.isnan(values)] for values in by_place]
    shapes = [_violin(values, place, scale) for place, values in enumerate(scores_by_place)]
    middles = [_middle(place, values) for place, values in enumerate(scores_by_place) if len(values)]
    return violins_figure(violins, shapes, middles, tau, level, _description(by_place, violins, tau, level))


def violins_figure(
    violins: Violins,
    shapes: Sequence[pd.DataFrame],
    middles: Sequence[dict[str, Any]],
    tau: float,
    uniform: float,
    description: str,
) -> Figure:
    """Shapes side by side, one for each place, and the middles of those that have scores."""
    message = axes.note_rows(not middles, f"No text has a score for the role {LOOKS[violins.role].label}.")
    lines = [line("tau", tau), line("uniform", uniform), line_labels(tau, uniform)]
    data = pd.concat([*shapes, pd.DataFrame(middles), message, *lines])
    ends = axes.score_ends(data, SCORE_FIELDS, violins.scale)
    return Figure(places_spec(violins, len(shapes), score_axis(uniform, violins.scale), ends), data, description)


def head_scores(of_head: HeadScores, *, every_text: bool = False, has_legend: bool = True) -> Figure:
    """Scores of a head for every role; a dot for each text only up to MOST_MARKS scores, or where all are wanted."""
    scores, tests, scale = of_head.scores, of_head.tests, of_head.scale
    many = not every_text and bool(np.count_nonzero(~np.isnan(scores)) > MOST_MARKS)
    lanes = _lanes(tests.roles, scores.tobytes(), scores.dtype.str, not many, scale)
    means = _means(of_head)
    tau = tests.settings.tau
    lines = [line("tau", tau), _lane_lines(tests.roles, of_head.uniform), line_labels(tau, UNIFORM[scale])]
    description = _head_description(means, tests, head_name(*of_head.head), many, scale)
    data = pd.concat([lanes, means, *lines])
    kinds = frozenset(data["kind"]).intersection(LEGEND if has_legend else ())
    spec = _roles_spec(tests.roles, scale, axes.score_ends(data, SCORE_FIELDS, scale), kinds)
    return Figure(spec, data, description)


def head_reading(scale: Scale) -> tuple[str, str]:
    return (
        f"shape: how often a {WORDS[scale].short} occurs; small dots: texts; dotted: uniform attention",
        "large dot: mean; bar: its interval, where a test decides; diamond: this text",
    )


def head_title(scale: Scale) -> str:
    return f"{WORDS[scale].nouns.capitalize()} of this head, by role"


def score_axis(uniform: float, scale: Scale) -> str:
    """Title of the axis: if the score of uniform attention is not 1, scores are weighted by entropy."""
    return WORDS[scale].title() if np.isnan(uniform) or uniform == UNIFORM[scale] else WEIGHTED_AXIS


def _violin(values: Float[np.ndarray, "score"], place: int, scale: Scale) -> pd.DataFrame:
    scores, half = outline(values, scale)
    sides = {"left": place - half, "right": place + half}
    return pd.DataFrame({"kind": "shape", "place": place, "score": scores, **sides})


def _middle(place: int, values: Float[np.ndarray, "score"]) -> dict[str, Any]:
    low, median, high = np.quantile(values.astype(np.float64), (0.25, 0.5, 0.75)).tolist()
    return {"kind": "middle", "place": place, "low": low, "median": median, "high": high, "scores": len(values)}


@lru_cache(maxsize=64)
def _lanes(roles: tuple[str, ...], scores: bytes, dtype: str, with_dots: bool, scale: Scale) -> pd.DataFrame:
    """Cached, because they do not depend on the text on screen or on tau; `scores` are the bytes of [text role]."""
    by_role = np.frombuffer(scores, dtype).reshape(-1, len(roles)).T
    return pd.concat(
        _lane(values[~np.isnan(values)], len(roles) - 1 - place, with_dots, scale).assign(role=role)
        for place, (role, values) in enumerate(zip(roles, by_role, strict=True))
    )


def _lane(values: Float[np.ndarray, "score"], base: int, with_dots: bool, scale: Scale) -> pd.DataFrame:
    """A role's shape above its base line and a dot for each text below it, spread over a band."""
    scores, height = outline(values, scale)
    shape = pd.DataFrame({"kind": "shape", "score": scores, "base": base, "top": base + height})
    if not with_dots:
        return shape
    spread = np.arange(len(values)) * GOLDEN % 1
    dots = pd.DataFrame({"kind": "dot", "score": values, "base": base, "top": base - 0.12 - 0.26 * spread})
    return pd.concat([shape, dots])


def _means(of_head: HeadScores) -> pd.DataFrame:
    tests = of_head.tests
    numbers = {name: getattr(tests, name)[:, *of_head.head] for name in ("mean", "low", "high", "texts")}
    lanes = pd.DataFrame({"role": tests.roles, "base": range(len(tests.roles) - 1, -1, -1), **numbers})
    lanes["score"] = [float(of_head.here.get(role, np.nan)) for role in tests.roles]
    kinds = {"mean": lanes["mean"].notna(), "interval": lanes["low"].notna(), "here": lanes["score"].notna()}
    missing = lanes[~kinds["mean"]].assign(kind="none", label="applies to no text")
    return pd.concat([*(lanes[selected].assign(kind=kind) for kind, selected in kinds.items()), missing])


def line(kind: str, value: float) -> pd.DataFrame:
    return pd.DataFrame({"kind": [kind], "value": [value]}).dropna()


def line_labels(tau: float, uniform: float) -> pd.DataFrame:
    """Labels of the lines at tau and at uniform attention; the label of the higher one is above its line."""
    lines = [(name, value) for name, value in (("tau", tau), ("uniform", uniform)) if not np.isnan(value)]
    labels = [(f"{name} {value:.3g}", value) for name, value in sorted(lines, key=lambda line: -line[1])]
    if tau == uniform:
        labels = [(f"tau {tau:g}, uniform", tau)]
    sides = zip(("upper", "lower"), labels)
    return pd.DataFrame([{"kind": side, "label": label, "value": value} for side, (label, value) in sides])


def _lane_lines(roles: Sequence[str], uniform: Float[np.ndarray, " role"]) -> pd.DataFrame:
    """Score of uniform attention as a line through each role's lane; that of block differs, because it is weighted."""
    base = np.arange(len(roles) - 1, -1, -1)
    lines = {"role": list(roles), "value": uniform, "base": base - 0.45, "top": base + 0.55}
    return pd.DataFrame({"kind": "uniform", **lines}).dropna()


def _rules() -> "tuple[alt.Chart, alt.Chart]":
    tau, uniform = ([6, 3], [1, 3])
    return (
        rows_of("tau").mark_rule(color=INK, strokeDash=tau),
        rows_of("uniform").mark_rule(color=INK, strokeDash=uniform),
    )


@cache
def places_spec(violins: Violins, n_places: int, score_axis: str, ends: axes.Ends) -> Spec:
    """Shapes side by side with their medians, and the lines at tau and at uniform attention."""
    scale, short = violins.scale, WORDS[violins.scale].short
    shapes = rows_of("shape").mark_area(orient="horizontal", color=LOOKS[violins.role].color, **SHAPE)
    shapes = shapes.encode(
        x=axes.places_axis("left", n_places, MARGIN, violins.axis),
        x2=alt.X2("right"),
        y=axes.score_position(alt.Y, "score", scale, score_axis, ends),
        # One area for each place; without this, all violins would be one area.
        detail=alt.Detail("place:N"),
    )
    upper = rows_of("upper").mark_text(color=INK, fontSize=11, align="left", baseline="bottom", dx=4, dy=3)
    lower = rows_of("lower").mark_text(color=INK, fontSize=11, align="left", baseline="top", dx=4, dy=-2)
    value = axes.score_position(alt.Y, "value", scale, score_axis, ends)
    labels = [side.encode(x=alt.XValue("width"), y=value, text=alt.Text("label:N")) for side in (upper, lower)]
    lines = [rule.encode(value) for rule in _rules()]
    return template(
        alt.layer(shapes, *lines, *labels, *_middles(violins, n_places, score_axis, ends), axes.note()),
        title=violins.title,
        reading=(f"shape: how often a {short} occurs", f"bar: middle half of the {short}s; dot: median"),
        height=300,
    )


def _middles(violins: Violins, n_places: int, score_axis: str, ends: axes.Ends) -> "tuple[alt.Chart, alt.Chart]":
    low, median = (axes.score_position(alt.Y, name, violins.scale, score_axis, ends) for name in ("low", "median"))
    x = axes.places_axis("place", n_places, MARGIN, violins.axis)
    tooltip = axes.tooltips(
        ("place", violins.axis.split()[0]),
        ("median", "median", ".3~f"),
        ("low", "lower quartile", ".3~f"),
        ("high", "upper quartile", ".3~f"),
        ("scores", f"{WORDS[violins.scale].short}s"),
    )
    half = rows_of("middle").mark_rule(color=INK, strokeWidth=2.5)
    dot = rows_of("middle").mark_point(
        filled=True, color=LOOKS[violins.role].color, stroke=INK, strokeWidth=1.5, size=50, opacity=1
    )
    return half.encode(x=x, y=low, y2=alt.Y2("high"), tooltip=tooltip), dot.encode(x=x, y=median, tooltip=tooltip)


@cache
def _roles_spec(roles: tuple[str, ...], scale: Scale, ends: axes.Ends, drawn: frozenset[str]) -> Spec:
    axis = WORDS[scale].title()
    score, value = (axes.score_position(alt.X, field, scale, axis, ends) for field in ("score", "value"))
    shapes = rows_of("shape").mark_area(orient="vertical", **SHAPE)
    shapes = shapes.encode(
        x=score,
        y=_role_position("base", roles),
        y2=alt.Y2("top"),
        color=axes.role_colors(alt.Color, roles),
    )
    dots = rows_of("dot").mark_circle(size=12, opacity=0.7)
    dots = dots.encode(
        x=score,
        y=_role_position("top", roles),
        color=axes.role_colors(alt.Color, roles),
        tooltip=axes.tooltips(("score", axis, ".3~f")),
    )
    upper = rows_of("upper").mark_text(color=INK, fontSize=11, align="left", baseline="bottom", dx=-3, dy=-3)
    lower = rows_of("lower").mark_text(color=INK, fontSize=11, align="right", baseline="bottom", dx=3, dy=-3)
    labels = [side.encode(x=value, y=alt.YValue(0), text=alt.Text("label:N")) for side in (upper, lower)]
    tau, uniform = _rules()
    uniform = uniform.encode(x=value, y=_role_position("base", roles), y2=alt.Y2("top"))
    missing = rows_of("none").mark_text(color=INK, align="left", fontSize=11)
    missing = missing.encode(x=alt.XValue(8), y=_role_position("base", roles), text=alt.Text("label:N"))
    return template(
        alt.layer(
            shapes,
            dots,
            tau.encode(value),
            uniform,
            *labels,
            *_mean_layers(roles, scale, ends),
            missing,
            *([_legend(scale, drawn)] if drawn else ()),
        ),
        title=head_title(scale),
        height=LANE * len(roles),
    )


def _legend(scale: Scale, drawn: frozenset[str]) -> "alt.Chart":
    marks = {name.format(WORDS[scale].short): shape for kind, (name, shape) in LEGEND.items() if kind in drawn}
    legend = alt.Legend(
        orient="top",
        direction="horizontal",
        columns=alt.expr("width < 330 ? 1 : width < 480 ? 2 : 3"),
        title=None,
        symbolOpacity=1,
        symbolFillColor=INK,
        symbolStrokeWidth=0,
        symbolSize=130,
        labelLimit=0,
    )
    scale_of_marks = alt.Scale(domain=list(marks), range=list(marks.values()))
    shape = alt.Shape("mark", type="nominal", scale=scale_of_marks, legend=legend)
    return rows_of("legend").mark_point(filled=True, color=INK, opacity=0).encode(shape=shape)


def _role_position(field: str, roles: Sequence[str]) -> "alt.Y":
    labels = [LOOKS[role].lettered.split(" ", 1) for role in reversed(roles)]
    return alt.Y(
        field,
        type="quantitative",
        scale=alt.Scale(domain=[-0.45, len(roles) - 0.4], nice=False, zero=False),
        axis=alt.Axis(
            values=list(range(len(roles))),
            labelExpr=f"{json.dumps(labels)}[datum.value]",
            title=None,
            grid=False,
            ticks=False,
            domain=False,
            labelPadding=6,
            labelLimit=0,
        ),
    )


def _mean_layers(roles: Sequence[str], scale: Scale, ends: axes.Ends) -> "tuple[alt.Chart, alt.Chart, alt.Chart]":
    """Intervals of the means, the means, and the scores of the text on screen."""
    y, color, axis = _role_position("base", roles), axes.role_colors(alt.Color, roles), WORDS[scale].title()
    low, middle, score = (axes.score_position(alt.X, field, scale, axis, ends) for field in ("low", "mean", "score"))
    tooltip = axes.tooltips(
        "role",
        ("mean", WORDS[scale].title("mean "), ".3~f"),
        ("low", "interval from", ".3~f"),
        ("high", "to", ".3~f"),
        "texts",
        ("score", "this text", ".3~f"),
    )
    interval = rows_of("interval").mark_rule(color=INK, strokeWidth=2.5)
    mean = rows_of("mean").mark_point(filled=True, stroke=INK, strokeWidth=1.5, opacity=1, size=60)
    here = rows_of("here").mark_point(filled=True, stroke=INK, strokeWidth=1.5, opacity=1, size=130, shape="diamond")
    return (
        interval.encode(x=low, x2=alt.X2("high"), y=y, tooltip=tooltip),
        mean.encode(x=middle, y=y, color=color, tooltip=tooltip),
        here.encode(x=score, y=y, color=color, tooltip=tooltip),
    )


def _description(by_place: Float[np.ndarray, "place score"], violins: Violins, tau: float, uniform: float) -> str:
    words, noun, subject = WORDS[violins.scale], violins.axis.split()[0], violins.subject
    values = by_place[~np.isnan(by_place)]
    empty = [place for place, row in enumerate(by_place) if np.isnan(row).all()]
    if not len(values):
        return f"No {words.noun} to draw ({subject}): the role applies to no text."
    medians = {place: float(np.nanmedian(row)) for place, row in enumerate(by_place) if place not in empty}
    low, high = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    missing = f" Without {words.short}s: {noun} {', '.join(map(str, empty))}." if empty else ""
    return (
        f"Violins by {noun} ({subject}) of {counted(len(values), words.short)}{words.rest} from {values.min():.3g} to "
        f"{values.max():.3g} (uniform attention: {uniform:.3g}). The highest median is {medians[high]:.3g} in "
        f"{noun} {high}, the lowest {medians[low]:.3g} in {noun} {low}; {percent(float(np.mean(values > tau)), 0)} of "
        f"the {words.short}s are above tau {tau:g}.{missing}"
    )


def _head_description(means: pd.DataFrame, tests: HeadTests, name: str, many: bool, scale: Scale) -> str:
    short = WORDS[scale].short
    heres = means[means["kind"] == "here"].set_index("role")["score"]
    parts = [
        f"{LOOKS[row.role].label} {row.mean:.3g}" + (f" (this text {heres[row.role]:.3g})" if row.role in heres else "")
        for row in means[means["kind"] == "mean"].itertuples()
    ]
    without = means.loc[means["kind"] == "none", "role"]
    missing = f" Not applicable here: {', '.join(LOOKS[role].label for role in without)}." if len(without) else ""
    hidden = f" Single texts are not drawn, because there are more than {MOST_MARKS:,} of them." if many else ""
    if not parts:
        return f"No {short} to draw for {name}.{missing}"
    level = percent(1 - tests.settings.alpha)
    intervals = f" and {level} intervals of the mean" if (means["kind"] == "interval").any() else ""
    return (
        f"{WORDS[scale].nouns.capitalize()} of {name} by role, with tau at {tests.settings.tau:g}{intervals}. "
        f"Mean {short}s: {'; '.join(parts)}."
        f"{missing}{hidden}"
    )
