"""A figure as every page and every file takes it: a Vega-Lite chart, its data, and both in words."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

Spec = dict[str, Any]
"""Vega-Lite, as the dict that its JSON describes."""

INK: Final = "currentColor"
"""Text and lines take the colour of the text around the chart, so they can be read in light and in dark."""
GREY: Final = "#7A7A7A"
"""Fills that belong to no role; at least 3:1 on white and on near-black."""
MOST_MARKS: Final = 2000
"""Of single texts in one chart; more are not drawn, since each is an element that the browser keeps."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A result, drawn."""

    spec: Spec
    """The picture without its data. Shared between calls and never to be edited: it stays the same while tau moves."""
    data: "pd.DataFrame"
    """What the picture shows; `kind` says which of its layers draws a row."""
    description: str
    """The text alternative: what is drawn and the main numbers."""

    def marks(self) -> "pd.DataFrame":
        """The data as a browser is sent them: each word once instead of in every row, and no row numbers."""
        words = self.data.select_dtypes("str").columns
        return self.data.reset_index(drop=True).astype(dict.fromkeys(words, "category"))


@cache
def import_altair() -> None:
    """Import Altair in a thread, so that the first chart does not wait for it; nothing happens when called again."""
    Thread(target=import_module, args=("altair",), name="import altair", daemon=True).start()


def of_kind(kind: str) -> "alt.Chart":
    """The rows of one kind, as a chart without marks.

    Encode them with channels such as `alt.Text("label:N")`: for a bare string Altair looks through its whole schema to
    find the channel's class, which takes several milliseconds each.
    """
    import altair as alt

    return alt.Chart().transform_filter(f"datum.kind == '{kind}'")


def template(chart: "alt.LayerChart", *, title: str, reading: Sequence[str] = (), height: float) -> Spec:
    """The specification of a chart without its data, as wide as what holds it.

    To make one costs many times what it costs to draw it, so functions that call this keep what they return.

    Args:
        chart: its layers, bottom first, each of the rows `of_kind`.
        title: what is drawn.
        reading: short lines under the title that say how to read the marks.
        height: of the marks, in pixels, without title, axis and legend.
    """
    import altair as alt

    # Altair gives charts without data an empty table each, unless the chart that holds them names one.
    whole = chart.properties(
        data=alt.NamedData(name="rows"),
        title=alt.Title(title, subtitle=list(reading), subtitleColor=INK, anchor="start"),
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        usermeta={"embedOptions": {"renderer": "svg"}},
    )
    # The page's own theme draws these in a grey that is too faint to read.
    whole = whole.configure_axis(labelColor=INK, titleColor=INK).configure_legend(labelColor=INK, titleColor=INK)
    spec: Spec = whole.to_dict(validate=False)
    del spec["data"]
    return spec


def counted(number: int, noun: str) -> str:
    """A number and what it counts."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def percent(share: float, decimals: int | None = None) -> str:
    """A share as it is written everywhere, such as "79%".

    Args:
        share: 0 to 1.
        decimals: how many; None for as many as the number has, as for a threshold.
    """
    return f"{100 * share:g}%" if decimals is None else f"{share:.{decimals}%}"
