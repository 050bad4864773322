"""How many heads hold each role at other thresholds, and with fewer texts."""

from collections.abc import Sequence
from functools import cache
from typing import Any, Final

import pandas as pd

from attention_sieve.core.roles.measures import Scale
from attention_sieve.core.roles.uncertainty.sensitivity import BAND, RESAMPLES, CountsByTau, CountsByTexts
from attention_sieve.dashboard.figures.appearance import LOOKS, WORDS
from attention_sieve.dashboard.figures.axes import heads_axis, lettered_legend, role_colors, role_curves, tooltips
from attention_sieve.dashboard.figures.figure import INK, Figure, Spec, alt, percent, rows_of, template

HEIGHT: Final = 260
BAND_READING: Final = f"band: {percent(BAND)} of {RESAMPLES} bootstrap resamples of these texts; line: median"


def heads_by_tau(counts: CountsByTau, roles: Sequence[str], tau: float, n_heads: int, scale: Scale = "score") -> Figure:
    """A line for each role: the number of heads that hold it, by tau, with the current tau marked."""
    rows = [
        {"kind": "count", "role": role, "tau": value, "heads": heads}
        for value, counts_at_tau in zip(counts.taus, counts.heads.tolist(), strict=True)
        for role, heads in zip(roles, counts_at_tau, strict=True)
    ]
    rows.append({"kind": "tau", "tau": tau, "label": f"tau {tau:g}"})
    current = dict(zip(roles, counts.heads[counts.taus.index(tau)].tolist(), strict=True))
    ends = (dict(zip(roles, counts.heads[end].tolist())) for end in (0, -1))
    return Figure(
        _tau_spec(tuple(roles), n_heads, scale, (counts.taus[0], counts.taus[-1])),
        pd.DataFrame(rows),
        f"Number of heads of {n_heads} that hold each role, by {_axis(scale)}. At tau {tau:g}: {_named(current)}. "
        + " ".join(
            f"At tau {value:g}: {_named(role_counts)}."
            for value, role_counts in zip((counts.taus[0], counts.taus[-1]), ends)
        ),
    )


def heads_by_texts(counts: CountsByTexts, roles: Sequence[str], n_heads: int) -> Figure:
    """A line and a band for each role: the number of heads that hold it, by the number of texts."""
    ends = {name: getattr(counts, name).tolist() for name in ("low", "median", "high")}
    rows = [
        {"kind": "count", "role": role, "texts": size, **{name: ends[name][size_index][role_index] for name in ends}}
        for size_index, size in enumerate(counts.sizes)
        for role_index, role in enumerate(roles)
    ]
    parts = [
        f"over {size} texts {', '.join(map(_range, roles, counts.low[size_index], counts.high[size_index]))}"
        for size_index, size in ((0, counts.sizes[0]), (-1, counts.sizes[-1]))
    ]
    description = f"Number of heads of {n_heads} that hold each role, by the number of texts: {'; '.join(parts)}."
    return Figure(_texts_spec(tuple(roles), n_heads, tuple(counts.sizes)), pd.DataFrame(rows), description)


def _axis(scale: Scale) -> str:
    words = WORDS[scale]
    return f"tau ({words.unit or words.noun})"


def _named(counts: dict[str, Any]) -> str:
    return ", ".join(f"{LOOKS[role].label} {heads}" for role, heads in counts.items())


def _range(role: str, low: float, high: float) -> str:
    return f"{LOOKS[role].label} {low:g} to {high:g}"


@cache
def _tau_spec(roles: tuple[str, ...], n_heads: int, scale: Scale, ends: tuple[float, float]) -> Spec:
    along = alt.Scale(domain=list(ends), nice=False)
    x = alt.X("tau:Q", title=_axis(scale), scale=along, axis=alt.Axis(grid=False))
    tooltip = tooltips("role", ("tau", "tau", ".3~g"), "heads")
    line = rows_of("tau").mark_rule(color=INK, strokeDash=[6, 3]).encode(x=x)
    label = rows_of("tau").mark_text(color=INK, fontSize=11, align="left", baseline="top", dx=4)
    label = label.encode(x=x, y=alt.YValue(0), text=alt.Text("label:N"))
    counts = rows_of("count").encode(x=x, y=heads_axis(alt.Y, "heads", n_heads))
    curves = role_curves(counts, counts, roles, tooltip)
    return template(alt.layer(line, label, *curves), title="Heads by tau", height=HEIGHT)


@cache
def _texts_spec(roles: tuple[str, ...], n_heads: int, sizes: tuple[int, ...]) -> Spec:
    scale = alt.Scale(type="log", domain=[sizes[0], sizes[-1]], nice=False)
    axis = alt.Axis(grid=False, format=",d", values=list(sizes), labelOverlap="greedy")
    x = alt.X("texts:Q", title="number of texts, on a logarithmic scale", scale=scale, axis=axis)
    tooltip = tooltips(
        "role", "texts", ("median", "heads, median", ".3~g"), ("low", "from", ".3~g"), ("high", "to", ".3~g")
    )
    band = rows_of("count").mark_area(opacity=0.25)
    color = role_colors(alt.Color, roles, lettered_legend(roles))
    band = band.encode(x=x, y=heads_axis(alt.Y, "low", n_heads), y2=alt.Y2("high"), color=color)
    medians = rows_of("count").encode(x=x, y=heads_axis(alt.Y, "median", n_heads))
    return template(
        alt.layer(band, *role_curves(medians, medians, roles, tooltip)),
        title="Heads by number of texts",
        reading=(BAND_READING,),
        height=HEIGHT,
    )
