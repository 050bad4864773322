"""One head's scores on every text, drawn by WebGL if they are too many for SVG."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from attention_sieve.core.roles.measures import Scale
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.axes import SCORE_TICKS
from attention_sieve.dashboard.figures.figure import Figure, counted
from attention_sieve.dashboard.figures.roles.densities import places_of
from attention_sieve.dashboard.figures.roles.distributions import (
    LANE,
    HeadScores,
    head_reading,
    head_scores,
    head_title,
)

if TYPE_CHECKING:
    import plotly.graph_objects as go

THEME_INK: Final = "#000037"
"""Placeholder that Streamlit replaces by the text colour of the user's theme, light or dark."""
MARGIN: Final = {"t": 104, "b": 48, "l": 84, "r": 8}
"""Margins in pixels; the top is for the title, two lines and the names of the lines."""


@dataclass(frozen=True, eq=False, kw_only=True)
class EveryScore:
    """Every score of a head: drawn by Plotly, as a table, and in Vega-Lite for files."""

    chart: "go.Figure"
    data: pd.DataFrame
    still: Figure


def every_head_score(of_head: HeadScores) -> EveryScore:
    """The figure of `head_scores` with a dot for every text, drawn by WebGL.

    The browser fetches Plotly's own code, 4.7 MB, when the first such figure is drawn: draw it only on request.
    """
    roles, scale = of_head.tests.roles, of_head.scale
    still = head_scores(of_head, every_text=True)
    table = pd.DataFrame(of_head.scores, columns=list(roles))
    table.insert(0, "text", range(1, len(table) + 1))
    n_scores = int((still.data["kind"] == "dot").sum())
    dots = f"Each of {counted(n_scores, WORDS[scale].short)} is a dot."
    figure = Figure(still.spec, still.data, f"{still.description} {dots}")
    return EveryScore(chart=_chart(still.data, roles, scale), data=table, still=figure)


def _chart(data: pd.DataFrame, roles: Sequence[str], scale: Scale) -> "go.Figure":
    import plotly.graph_objects as go  # imported only when every text is drawn

    def rows(kind: str, role: str) -> pd.DataFrame:
        return data[(data["kind"] == kind) & (data["role"] == role)]

    traces: list[Any] = []
    for role in roles:
        traces.append(go.Scatter(_shape(rows("shape", role), LOOKS[role].color, scale)))
        traces.append(go.Scattergl(_dots(rows("dot", role), role, scale)))
        for interval in rows("interval", role).itertuples():
            ends = {"x": places_of([interval.low, interval.high], scale), "y": [interval.base] * 2}
            traces.append(go.Scatter(ends, mode="lines", line={"color": THEME_INK, "width": 2.5}, hoverinfo="skip"))
        traces.append(go.Scatter(_mark(rows("mean", role), "mean", role, scale)))
        traces.append(go.Scatter(_mark(rows("here", role), "score", role, scale)))
    return go.Figure(traces, _layout(data, roles, scale))


def _shape(shape: pd.DataFrame, color: str, scale: Scale) -> dict[str, Any]:
    """The density, closed along its base line."""
    positions = places_of(shape["score"], scale)
    return {
        "x": np.concatenate([positions, positions[::-1]]),
        "y": np.concatenate([shape["top"], shape["base"]]),
        "mode": "lines",
        "fill": "toself",
        "fillcolor": color + "BF",
        "line": {"color": THEME_INK, "width": 0.6},
        "hoverinfo": "skip",
    }


def _dots(dots: pd.DataFrame, role: str, scale: Scale) -> dict[str, Any]:
    score = dots["score"].to_numpy(dtype=float)
    return {
        "x": places_of(score, scale),
        "y": dots["top"].to_numpy(dtype=float),
        "customdata": score,
        "mode": "markers",
        "marker": {"color": LOOKS[role].color, "size": 4, "opacity": 0.5},
        "hovertemplate": f"{LOOKS[role].label}: %{{customdata:.3~f}}<extra></extra>",
    }


def _mark(row: pd.DataFrame, field: str, role: str, scale: Scale) -> dict[str, Any]:
    """Mark of the mean, or of the text on screen; empty without one."""
    about = "mean %{customdata[0]:.3~f}, interval %{customdata[1]:.3~f} to %{customdata[2]:.3~f}"
    here = "<br>this text %{customdata[3]:.3~f}" if field == "score" else ""
    return {
        "x": places_of(row[field], scale),
        "y": row["base"],
        "customdata": row[["mean", "low", "high", "score"]],
        "mode": "markers",
        "marker": {
            "color": LOOKS[role].color,
            "symbol": "circle" if field == "mean" else "diamond",
            "size": 9 if field == "mean" else 12,
            "line": {"color": THEME_INK, "width": 1.5},
        },
        "hovertemplate": f"{LOOKS[role].label}: {about}{here}<extra></extra>",
    }


def _lines(data: pd.DataFrame, scale: Scale) -> list[dict[str, Any]]:
    def line(value: float, dash: str, **ends: Any) -> dict[str, Any]:
        (position,) = places_of(value, scale).tolist()
        style = {"color": THEME_INK, "width": 1, "dash": dash}
        return {"type": "line", "x0": position, "x1": position, "line": style, **ends}

    tau, uniform = (data[data["kind"] == kind] for kind in ("tau", "uniform"))
    return [
        *(line(row.value, "6px,3px", y0=0, y1=1, yref="paper") for row in tau.itertuples()),
        *(line(row.value, "1px,3px", y0=row.base, y1=row.top) for row in uniform.itertuples()),
    ]


def _names(data: pd.DataFrame, scale: Scale) -> list[dict[str, Any]]:
    def name(row: Any, **place: Any) -> dict[str, Any]:
        return {"text": row.label, "font": {"color": THEME_INK, "size": 11}, "showarrow": False, **place}

    # As in the figure for few texts, the label of the higher line is on its right and that of the lower on its left.
    sides = {"upper": "left", "lower": "right"}
    above = {"y": 1, "yref": "paper", "yanchor": "bottom"}
    beside = {"x": 0, "xref": "paper", "xanchor": "left", "xshift": 8}
    return [
        *(
            name(label, x=float(places_of(label.value, scale)[0]), xanchor=sides[label.kind], **above)
            for label in data[data["kind"].isin(sides)].itertuples()
        ),
        *(name(lane, y=lane.base, **beside) for lane in data[data["kind"] == "none"].itertuples()),
    ]


def _layout(data: pd.DataFrame, roles: Sequence[str], scale: Scale) -> dict[str, Any]:
    n_roles = len(roles)
    scores = data[["score", "value", "low", "high"]].to_numpy(dtype=float)
    least, most = min(0.0, float(np.nanmin(scores))), float(np.nanmax(scores))
    most = 1.0 if scale == "share" else most
    left, right = places_of([least, most], scale).tolist()
    ticks = [tick for tick in SCORE_TICKS[scale] if least <= tick <= most]
    subtitle = {"text": "<br>".join(head_reading(scale)), "font": {"color": THEME_INK}}
    top = {"y": 1, "yref": "container", "yanchor": "top", "pad": {"t": 12}}
    return {
        "height": LANE * n_roles + MARGIN["t"] + MARGIN["b"],
        "margin": MARGIN,
        "showlegend": False,
        "title": {"text": head_title(scale), "subtitle": subtitle, **top},
        "xaxis": {
            "title": {"text": WORDS[scale].title(), "font": {"color": THEME_INK}},
            "tickvals": places_of(ticks, scale),
            "ticktext": [f"{tick:g}" for tick in ticks],
            "tickfont": {"color": THEME_INK},
            "range": [left - 0.02, 1.02 * right],
            "showgrid": False,
        },
        "yaxis": {
            "tickvals": list(range(n_roles)),
            "ticktext": [
                "<br>".join(f"{LOOKS[role].label} ({LOOKS[role].letter})".split(" ", 1)) for role in reversed(roles)
            ],
            "tickfont": {"color": THEME_INK},
            "range": [-0.45, n_roles - 0.4],
            "showgrid": False,
            "zeroline": False,
        },
        "shapes": _lines(data, scale),
        "annotations": _names(data, scale),
        "uirevision": "zoomed",
    }
