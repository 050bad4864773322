"""Figures for pages and files: a Vega-Lite chart, its data, and a description as text; what is written in them, and
heads that a click on a mark selects."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from math import isnan
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from attention_sieve.core.attention.settings import head_name
from attention_sieve.core.roles.roles import role_title
from attention_sieve.core.roles.rules import PREFIX

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd
else:

    class _Altair:
        """Imported when the first chart is made, because pages that draw none should not wait for it."""

        def __getattr__(self, name: str) -> Any:
            return getattr(import_module("altair"), name)

    alt = _Altair()

Spec = dict[str, Any]
"""A Vega-Lite specification as a dict."""

INK: Final = "currentColor"
"""Text and lines have the colour of the text around the chart, so they are legible in light and dark themes."""
GREY: Final = "#7A7A7A"
"""Fill for marks without a role; at least 3:1 on white and on near-black."""
WRITTEN: Final = re.compile(f"{PREFIX}[A-Za-z0-9_-]+")
HARDLY: Final = 0.001
"""Share of the greatest of some numbers up to which one is about 0."""
MOST_MARKS: Final = 2000
"""Maximum number of marks of single texts in one chart, since each is an element in the browser."""
NOT_IN_XML: Final = re.compile("[^\t\n\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML does not allow; vl_convert aborts the process if a title contains one."""


@dataclass(frozen=True, eq=False)
class Figure:
    """A chart of a result."""

    spec: Spec
    """The chart without its data. Shared between calls and must not be edited; independent of tau."""
    data: "pd.DataFrame"
    """Rows of the chart; the column `kind` says which layer draws a row."""
    description: str
    """The text alternative: what is drawn and the main numbers."""

    def with_titles(self) -> "Figure":
        """The same, with the titles of written roles in place of their names, which hold their rules."""
        named = self.data.select_dtypes("str").columns
        names = {each for column in named for each in self.data[column].unique() if str(each).startswith(PREFIX)}
        if not names:
            return self
        spec = WRITTEN.sub(lambda name: role_title(name[0]), json.dumps(self.spec))
        return Figure(json.loads(spec), self.data.replace({name: role_title(name) for name in names}), self.description)

    def marks(self) -> "pd.DataFrame":
        """The data as sent to the browser: text as categories, so that each word is sent once, and without row
        numbers."""
        words = self.data.select_dtypes("str").columns
        return self.data.reset_index(drop=True).astype(dict.fromkeys(words, "category"))


@cache
def import_altair() -> None:
    """Import Altair in a thread, so that the first chart does not wait for it; later calls do nothing."""
    Thread(target=import_module, args=("altair",), name="import altair", daemon=True).start()


def rows_of(kind: str) -> "alt.Chart":
    """The rows of one kind, as a chart without marks.

    Encode them with channels such as `alt.Text("label:N")`: for a bare string Altair looks through its whole schema to
    find the channel's class, which takes several milliseconds each.
    """
    return alt.Chart().transform_filter(f"datum.kind == '{kind}'")


def template(chart: "alt.LayerChart", *, title: str, reading: Sequence[str] = (), height: float) -> Spec:
    """The specification of a chart without its data, as wide as its container.

    Creating a specification is much slower than drawing it, so callers cache the result.
    """
    # Altair gives each chart without data an empty table, unless the outer chart names one.
    styled = chart.properties(
        data=alt.NamedData(name="rows"),
        title=alt.Title(title, subtitle=list(reading), subtitleColor=INK, anchor="start"),
        width="container",
        height=height,
        autosize=alt.AutoSizeParams(type="fit-x", contains="padding"),
        usermeta={"embedOptions": {"renderer": "svg"}},
    )
    # Streamlit's theme draws these in a grey that is too faint to read.
    styled = styled.configure_axis(labelColor=INK, titleColor=INK).configure_legend(labelColor=INK, titleColor=INK)
    spec: Spec = styled.to_dict(validate=False)
    del spec["data"]
    for unit in _units(spec):
        _name_marks(unit)
    return spec


def _units(spec: Spec) -> Iterator[Spec]:
    """The parts of a chart that draw marks of one kind each."""
    for part in spec.get("layer", ()):
        yield from _units(part)
    if "mark" in spec:
        yield spec


def _name_marks(unit: Spec) -> None:
    """Give marks what their tooltip says as their name for screen readers; those without one have none.

    Vega would name each by all that places it, unrounded.
    """
    encoding = unit["encoding"]
    if "description" in encoding:
        return
    said = [_of_tooltip(field) for field in encoding.get("tooltip") or ()]
    if said:
        encoding["description"] = {"value": {"expr": " + '; ' + ".join(said)}}
    else:
        unit["mark"]["aria"] = False


def _of_tooltip(field: Spec) -> str:
    """A line of a tooltip as an expression of Vega."""
    value = f"datum[{json.dumps(field['field'])}]"
    number = f"format({value}, {json.dumps(field['format'])})" if "format" in field else value
    return f"{json.dumps(field['title'] + ': ')} + (isValid({value}) ? {number} : '')"


def counted(number: int, noun: str) -> str:
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def interval(low: float, high: float, number: str, missing: str = "") -> str:
    """Both ends of an interval in a number format, or what stands for an interval that there is not (NaN); with as many
    decimals each, so 0.130 to 0.151."""
    if isnan(low):
        return missing
    ends = [f"{end:{number}}".partition(".") for end in (low, high)]
    decimals = max(len(part) for _, _, part in ends)
    is_padded = decimals and not any("e" in "".join(end) for end in ends)
    return " to ".join(f"{whole}.{part:0<{decimals}}" if is_padded else whole + dot + part for whole, dot, part in ends)


def percent(share: float, decimals: int | None = None) -> str:
    """A share as text, such as "79%"; with as many decimals as it has where none are given."""
    return f"{100 * share:g}%" if decimals is None else f"{share:.{decimals}%}"


def drawable(name: str, most: int | None = None) -> str:
    """Replace characters that cannot be drawn; longer names are cut at the start."""
    clean = NOT_IN_XML.sub("\N{REPLACEMENT CHARACTER}", name)
    return clean if most is None or len(clean) <= most else "…" + clean[1 - most :]


SHARED: Final = "heads that share keys and values"
"""What a bracket over the columns of a grid means."""
CHOICE: Final = "head"
"""Name of the selection that a click on a mark makes; its fields are `layer` and `head`, or the `mark` of a flow."""


def head_rows(n_layers: int, n_heads: int) -> "pd.DataFrame":
    """A row for each head: its layer, head and name."""
    import pandas as pd

    layer, head = np.indices((n_layers, n_heads)).reshape(2, -1)
    names = [head_name(*layer_and_head) for layer_and_head in zip(layer.tolist(), head.tolist())]
    return pd.DataFrame({"layer": layer, "head": head, "name": names})


def head_choice() -> "alt.Parameter":
    """The selection that a click on a mark makes, to be added to the marks of heads."""
    return alt.selection_point(name=CHOICE, fields=["layer", "head"])
