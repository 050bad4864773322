"""How the scores of single texts are spread: by layer, by head of a layer, and for one head by role.

Scores are ratios from 0 upwards and a few are very large. They are drawn on a scale of log(1 + score), which has a
place for 0 and needs neither a floor nor a clipped tail: every score is inside the picture and inside its density.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache, lru_cache
from typing import Any, Final

import numpy as np
import pandas as pd
from jaxtyping import Float

from core.hypotheses import HeadTests
from dashboard.figures.appearance import LOOKS
from dashboard.figures.densities import outline
from dashboard.figures.figure import INK, MOST_MARKS, Figure, Spec, counted, layer, picture, score_position

LANE: Final = 46
"""Height of one role of one head, in pixels."""
GOLDEN: Final = 0.6180339887
"""Multiples of it, taken modulo 1, spread dots evenly and the same way each time."""
SHAPE: Final = {"fillOpacity": 0.75, "stroke": INK, "strokeWidth": 0.6, "strokeOpacity": 0.6}
READING: Final = ("shape: how often a score occurs", "bar: middle half of the scores; dot: median")
HEAD_READING: Final = (
    "shape: how often a score occurs; small dots: texts",
    "large dot and bar: mean and its interval; diamond: this text",
)


def scores_per_layer(
    scores: Float[np.ndarray, "text role layer head"], roles: Sequence[str], role: str, tau: float
) -> Figure:
    """One violin a layer: the scores of all its heads on all texts that take part.

    Each violin is as wide as its place allows, so widths compare within a layer only.

    Args:
        scores: sieve bias scores; NaN where a text takes no part.
        roles: names along the role axis.
        role: the one to show.
        tau: drawn as a line, as is 1 (uniform attention).

    Source: Pande et al. 2021, violins of the scores per layer.
    """
    by_layer = np.moveaxis(scores[:, roles.index(role)], 1, 0).reshape(scores.shape[2], -1)
    spec = _places_spec(f"Scores by layer: {LOOKS[role].label}", "layer (0 is next to the input)", role, len(by_layer))
    return Figure(spec, _violins(by_layer, tau, role), _description(by_layer, "layer", f"all heads, {role}", tau))


def scores_per_head(
    scores: Float[np.ndarray, "text role layer head"], roles: Sequence[str], role: str, layer: int, tau: float
) -> Figure:
    """One violin a head of a layer: its scores on all texts that take part.

    Each violin is as wide as its place allows, so widths compare within a head only.

    Args:
        scores: sieve bias scores; NaN where a text takes no part.
        roles: names along the role axis.
        role: the one to show.
        layer: the one to show.
        tau: drawn as a line, as is 1 (uniform attention).
    """
    by_head = scores[:, roles.index(role), layer].T
    spec = _places_spec(f"Scores by head of layer {layer}: {LOOKS[role].label}", "head", role, len(by_head))
    return Figure(spec, _violins(by_head, tau, role), _description(by_head, "head", f"layer {layer}, {role}", tau))


def head_scores(
    scores: Float[np.ndarray, "text role layer head"],
    tests: HeadTests,
    layer: int,
    head: int,
    here: Mapping[str, float] | None = None,
) -> Figure:
    """One head: its scores for every role, their mean with its interval, and where the text on screen stands.

    Args:
        scores: sieve bias scores; NaN where a text takes no part.
        tests: of these scores; they bring the roles, the means, the intervals and tau.
        layer: of the head.
        head: of the head.
        here: role -> score of the text on screen; a role it lacks, or a NaN, gets no diamond.

    Returns: the figure; dots for single texts only while they are 2,000 or fewer, the shapes hold all of them.
    """
    of_head = scores[:, :, layer, head]
    many = bool(np.count_nonzero(~np.isnan(of_head)) > MOST_MARKS)
    lanes = _lanes(tests.roles, of_head.tobytes(), of_head.dtype.str, not many)
    means = _means(tests, layer, head, here or {})
    data = pd.concat([lanes, means, _lines(tests.settings.tau)])
    return Figure(_roles_spec(tests.roles), data, _head_description(means, tests, f"L{layer} H{head}", many))


def _violins(by_place: Float[np.ndarray, "place score"], tau: float, role: str) -> pd.DataFrame:
    there = [values[~np.isnan(values)] for values in by_place]
    shapes = [_violin(values, place) for place, values in enumerate(there)]
    middles = [_middle(place, values) for place, values in enumerate(there) if len(values)]
    notes = [] if middles else [{"kind": "note", "label": _nothing(role)}]
    return pd.concat([*shapes, pd.DataFrame(middles + notes), _lines(tau)])


def _violin(values: Float[np.ndarray, "score"], place: int) -> pd.DataFrame:
    scores, half = outline(values)
    sides = {"left": place - half, "right": place + half}
    return pd.DataFrame({"kind": "shape", "place": place, "score": scores, **sides})


def _middle(place: int, values: Float[np.ndarray, "score"]) -> dict[str, Any]:
    low, median, high = np.quantile(values.astype(np.float64), (0.25, 0.5, 0.75)).tolist()
    return {"kind": "middle", "place": place, "low": low, "median": median, "high": high, "scores": len(values)}


@lru_cache(maxsize=64)
def _lanes(roles: tuple[str, ...], scores: bytes, dtype: str, with_dots: bool) -> pd.DataFrame:
    """The lanes of one head; kept, since a typed text or a moved tau draws the same ones again.

    Args:
        roles: top lane first.
        scores: bytes of an array [text role].
        dtype: of that array.
        with_dots: whether each text is a dot.
    """
    by_role = np.frombuffer(scores, dtype).reshape(-1, len(roles)).T
    return pd.concat(
        _lane(values[~np.isnan(values)], len(roles) - 1 - place, with_dots).assign(role=role)
        for place, (role, values) in enumerate(zip(roles, by_role, strict=True))
    )


def _lane(values: Float[np.ndarray, "score"], base: int, with_dots: bool) -> pd.DataFrame:
    """A role's shape above its base line and a dot for each text below it, spread over a band."""
    scores, height = outline(values)
    shape = pd.DataFrame({"kind": "shape", "score": scores, "base": base, "top": base + height})
    if not with_dots:
        return shape
    spread = np.arange(len(values)) * GOLDEN % 1
    dots = pd.DataFrame({"kind": "dot", "score": values, "base": base, "top": base - 0.12 - 0.26 * spread})
    return pd.concat([shape, dots])


def _means(tests: HeadTests, layer: int, head: int, here: Mapping[str, float]) -> pd.DataFrame:
    numbers = {name: getattr(tests, name)[:, layer, head] for name in ("mean", "low", "high", "texts")}
    lanes = pd.DataFrame({"role": tests.roles, "base": range(len(tests.roles) - 1, -1, -1), **numbers})
    lanes["score"] = [float(here.get(role, np.nan)) for role in tests.roles]
    kinds = {"mean": lanes["mean"].notna(), "interval": lanes["low"].notna(), "here": lanes["score"].notna()}
    none = lanes[~kinds["mean"]].assign(kind="none", label="no text takes part")
    return pd.concat([*(lanes[chosen].assign(kind=kind) for kind, chosen in kinds.items()), none])


def _lines(tau: float) -> pd.DataFrame:
    """Tau and 1 as lines; the label of the higher one stands above its line and that of the lower one below."""
    lines = [("tau", tau), ("uniform", 1.0)]
    labels = [(f"{name} {value:g}", value) for name, value in sorted(lines, key=lambda line: -line[1])]
    if tau == 1:
        labels = [("tau 1, uniform", tau)]
    sides = zip(("upper", "lower"), labels)
    return pd.DataFrame(
        [
            *({"kind": name, "value": value} for name, value in lines),
            *({"kind": side, "label": label, "value": value} for side, (label, value) in sides),
        ]
    )


def _rules(channel: str, across: Spec, **label: Mapping[str, Any]) -> list[Spec]:
    value = score_position("value")
    rule = {"type": "rule", "color": INK}
    text = {"type": "text", "color": INK, "fontSize": 11}
    return [
        layer("tau", {**rule, "strokeDash": [6, 3]}, **{channel: value}),
        layer("uniform", {**rule, "strokeDash": [1, 3]}, **{channel: value}),
        *(
            layer(side, {**text, **label[side]}, **across, **{channel: value}, text={"field": "label"})
            for side in label
        ),
    ]


@cache
def _places_spec(title: str, axis: str, role: str, n_places: int) -> Spec:
    x = {
        "field": "place",
        "type": "quantitative",
        "title": axis,
        "scale": {"domain": [-0.6, n_places - 0.4], "nice": False, "zero": False},
        "axis": {"values": list(range(n_places)), "format": "d", "labelOverlap": "greedy", "grid": False},
    }
    tooltip = [
        {"field": "place", "title": axis.split()[0]},
        {"field": "median", "title": "median", "format": ".3~f"},
        {"field": "low", "title": "lower quartile", "format": ".3~f"},
        {"field": "high", "title": "upper quartile", "format": ".3~f"},
        {"field": "scores", "title": "scores"},
    ]
    median = {
        "type": "point",
        "filled": True,
        "color": LOOKS[role].color,
        "stroke": INK,
        "strokeWidth": 1.5,
        "size": 50,
    }
    return picture(
        [
            layer(
                "shape",
                {"type": "area", "orient": "horizontal", "color": LOOKS[role].color, **SHAPE},
                x={**x, "field": "left"},
                x2={"field": "right"},
                y=score_position("score"),
                # One area for each place: without this the violins would be strung on one line.
                detail={"field": "place"},
            ),
            *_rules(
                "y",
                {"x": {"value": "width"}},
                upper={"align": "left", "baseline": "bottom", "dx": 4, "dy": 3},
                lower={"align": "left", "baseline": "top", "dx": 4, "dy": -2},
            ),
            layer(
                "middle",
                {"type": "rule", "color": INK, "strokeWidth": 2.5},
                x=x,
                y=score_position("low"),
                y2={"field": "high"},
                tooltip=tooltip,
            ),
            layer("middle", {**median, "opacity": 1}, x=x, y=score_position("median"), tooltip=tooltip),
            layer(
                "note",
                {"type": "text", "color": INK, "fontSize": 13, "align": "left"},
                x={"value": 8},
                y={"value": 24},
                text={"field": "label"},
            ),
        ],
        title=title,
        reading=READING,
        height=300,
    )


@cache
def _roles_spec(roles: tuple[str, ...]) -> Spec:
    n_roles = len(roles)
    labels = [f"{LOOKS[role].label} ({LOOKS[role].letter})".split(" ", 1) for role in reversed(roles)]
    y = {
        "field": "base",
        "type": "quantitative",
        "scale": {"domain": [-0.45, n_roles - 0.4], "nice": False, "zero": False},
        "axis": {
            "values": list(range(n_roles)),
            "labelExpr": f"{json.dumps(labels)}[datum.value]",
            **{"title": None, "grid": False, "ticks": False, "domain": False, "labelPadding": 6, "labelLimit": 0},
        },
    }
    by_role = {"domain": list(roles), "range": [LOOKS[role].color for role in roles]}
    color = {"field": "role", "type": "nominal", "scale": by_role, "legend": None}
    tooltip = [
        {"field": "role", "title": "role"},
        {"field": "mean", "title": "mean score (× uniform)", "format": ".3~f"},
        {"field": "low", "title": "interval from", "format": ".3~f"},
        {"field": "high", "title": "to", "format": ".3~f"},
        {"field": "texts", "title": "texts"},
        {"field": "score", "title": "this text", "format": ".3~f"},
    ]
    dot = {"field": "score", "title": "score (× uniform)", "format": ".3~f"}
    large = {"type": "point", "filled": True, "stroke": INK, "strokeWidth": 1.5, "opacity": 1}
    return picture(
        [
            layer(
                "shape",
                {"type": "area", "orient": "vertical", **SHAPE},
                x=score_position("score"),
                y=y,
                y2={"field": "top"},
                color=color,
            ),
            layer(
                "dot",
                {"type": "circle", "size": 12, "opacity": 0.7},
                x=score_position("score"),
                y={**y, "field": "top"},
                color=color,
                tooltip=[dot],
            ),
            *_rules(
                "x",
                {"y": {"value": 0}},
                upper={"align": "left", "baseline": "bottom", "dx": -3, "dy": -3},
                lower={"align": "right", "baseline": "bottom", "dx": 3, "dy": -3},
            ),
            layer(
                "interval",
                {"type": "rule", "color": INK, "strokeWidth": 2.5},
                x=score_position("low"),
                x2={"field": "high"},
                y=y,
                tooltip=tooltip,
            ),
            layer("mean", {**large, "size": 60}, x=score_position("mean"), y=y, color=color, tooltip=tooltip),
            layer(
                "here",
                {**large, "shape": "diamond", "size": 130},
                x=score_position("score"),
                y=y,
                color=color,
                tooltip=tooltip,
            ),
            layer(
                "none",
                {"type": "text", "color": INK, "align": "left", "fontSize": 11},
                x={"value": 8},
                y=y,
                text={"field": "label"},
            ),
        ],
        title="Scores of this head, by role",
        reading=HEAD_READING,
        height=LANE * n_roles,
    )


def _nothing(role: str) -> str:
    return f"No text takes part in the role {LOOKS[role].label}."


def _description(by_place: Float[np.ndarray, "place score"], noun: str, what: str, tau: float) -> str:
    values = by_place[~np.isnan(by_place)]
    empty = [place for place, row in enumerate(by_place) if np.isnan(row).all()]
    if not len(values):
        return f"No score to draw ({what}): no text takes part."
    medians = {place: float(np.nanmedian(row)) for place, row in enumerate(by_place) if place not in empty}
    low, high = min(medians, key=medians.__getitem__), max(medians, key=medians.__getitem__)
    missing = f" Without scores: {noun} {', '.join(map(str, empty))}." if empty else ""
    return (
        f"Violins by {noun} ({what}) of {counted(len(values), 'score')} from {values.min():.3g} to {values.max():.3g} "
        f"times uniform. The highest median is {medians[high]:.3g} in {noun} {high}, the lowest {medians[low]:.3g} in "
        f"{noun} {low}; {100 * np.mean(values > tau):.0f} % of the scores are above tau {tau:g}.{missing}"
    )


def _head_description(means: pd.DataFrame, tests: HeadTests, name: str, many: bool) -> str:
    heres = means[means["kind"] == "here"].set_index("role")["score"]
    parts = [
        f"{LOOKS[row.role].label} {row.mean:.3g}" + (f" (this text {heres[row.role]:.3g})" if row.role in heres else "")
        for row in means[means["kind"] == "mean"].itertuples()
    ]
    without = means.loc[means["kind"] == "none", "role"]
    missing = f" No text takes part in: {', '.join(LOOKS[role].label for role in without)}." if len(without) else ""
    hidden = f" Single texts are not drawn, because they are more than {MOST_MARKS:,}." if many else ""
    if not parts:
        return f"No score to draw for {name}.{missing}"
    return (
        f"Scores of {name} by role, with tau at {tests.settings.tau:g} and {100 * (1 - tests.settings.alpha):g} % "
        f"intervals of the mean. Mean scores, times uniform: {'; '.join(parts)}.{missing}{hidden}"
    )
