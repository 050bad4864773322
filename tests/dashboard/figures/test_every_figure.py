"""What holds of every figure: its chart is valid, readable in light and in dark, and becomes a picture."""

import json
import math
from functools import cache
from urllib.parse import quote
from xml.etree import ElementTree

import claim_figures
import comparison_figures
import gate_figures
import importance_comparison_figures
import importance_figures
import knowledge_figures
import laboratory_figures
import pyarrow as pa
import pytest
import relation_figures
import role_figures
import similarity_figures
import surface_figures
import tree_probe_figures
import vl_convert
from altair.vegalite.schema import core as vega_lite
from drawn import cut_off, layers, rows, smallest_letters, texts_of
from jsonschema_rs import Draft7Validator, ValidationError

from attention_sieve.dashboard.figures.figure import INK, Figure, interval, percent
from attention_sieve.dashboard.figures.sheet import COLUMN, ONE_COLUMN, figure_svg

SUBJECTS = {
    "claims": {"": claim_figures.FIGURES},
    "compare": comparison_figures.CASES,
    "importance": {"": importance_figures.FIGURES},
    "comparisons of importance": {"": importance_comparison_figures.FIGURES},
    "gates": {"": gate_figures.FIGURES},
    "knowledge": {"": knowledge_figures.FIGURES},
    "laboratory": {"": laboratory_figures.FIGURES},
    "probes": {"": tree_probe_figures.FIGURES},
    "relations": {"": relation_figures.FIGURES},
    "roles": role_figures.FIGURES,
    "similarity": {"": similarity_figures.FIGURES},
    "surface": {"": surface_figures.FIGURES, "not applicable": surface_figures.EMPTY},
}
EACH = [
    pytest.param((figures, name), id=" ".join(filter(None, (subject, name, case))))
    for subject, cases in SUBJECTS.items()
    for case, figures in cases.items()
    for name in figures
]
WHITE = "#FFFFFF"


@pytest.fixture(scope="module", params=EACH)
def figure(request: pytest.FixtureRequest) -> Figure:
    """Each figure; of a module, so that what holds of it is tested in one go, in the process that has drawn it."""
    figures, name = request.param
    return figures[name]


@pytest.fixture(scope="module")
def picture(figure: Figure) -> str:
    return figure_svg(figure, title="A title", caption=["checkpoint: bundled"], size=ONE_COLUMN)


@cache
def vega_lite_validator() -> Draft7Validator:
    """Altair's copy of the schema of Vega-Lite; Altair itself takes a thousand times as long to check a chart."""
    return Draft7Validator(with_escaped_references(vega_lite.load_schema()))


def with_escaped_references(schema: object) -> object:
    """The schema with references that are URLs: it names definitions such as `Dict<string>`."""
    if isinstance(schema, list):
        return [with_escaped_references(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: quote(part, safe="#/") if key == "$ref" else with_escaped_references(part) for key, part in schema.items()
    }


def test_a_chart_with_an_unknown_mark_is_not_valid():
    spec = {"layer": [{"mark": "bars", "encoding": {}}]}
    with pytest.raises(ValidationError):
        vega_lite_validator().validate(spec)


def test_a_share_is_written_in_one_way():
    assert [percent(0.07), percent(0.999), percent(1 - 0.05)] == ["7%", "99.9%", "95%"]
    assert [percent(0.6441, 1), percent(0.785, 0), percent(1, 1)] == ["64.4%", "78%", "100.0%"]


def test_both_ends_of_an_interval_have_as_many_digits():
    assert interval(0.13, 0.1512, ".3g") == "0.130 to 0.151"
    assert interval(0, 0.25, "+.2g") == "+0.00 to +0.25"
    assert interval(40, 100.4, ".3g") == "40 to 100"
    assert interval(1e-7, 0.5, ".2g") == "1e-07 to 0.5"
    assert interval(0.07, 0.5, ".1%") == "7.0% to 50.0%"
    assert interval(math.nan, math.nan, ".3g", "none") == "none"


def test_its_chart_is_valid_vega_lite_without_data(figure: Figure):
    vega_lite_validator().validate(figure.spec)
    written = json.dumps(figure.spec)
    assert '"data"' not in written
    assert '"datasets"' not in written
    assert figure.spec["width"] == "container"
    # Vega would draw many marks on a canvas, which takes no colour from the page around it.
    assert figure.spec["usermeta"]["embedOptions"]["renderer"] == "svg"


def test_its_axes_have_ends_before_its_data_come(figure: Figure):
    """A page hands the data over after the chart; of axes that take their ends from them, Vega warns until then."""
    chart = vl_convert.vegalite_to_vega({**figure.spec, "data": {"name": "rows"}})
    assert {scale["type"] for scale in chart["scales"] if "data" in _within(scale.get("domain"))} <= {"band", "point"}


def _within(domain: object) -> str:
    return json.dumps(domain) if isinstance(domain, dict) else ""


def test_no_text_or_line_has_a_colour_that_one_theme_swallows(figure: Figure):
    assert "black" not in json.dumps(figure.spec)
    for layer in layers(figure.spec):
        mark = layer["mark"]
        if mark["type"] in ("text", "rule") and mark.get("opacity") != 0 and "color" not in layer["encoding"]:
            on_fills = mark["type"] == "text" and mark.get("fontWeight") == "bold"
            assert mark["color"] == INK or (on_fills and mark["color"] == WHITE)


def test_each_field_of_a_tooltip_has_a_name_and_is_there(figure: Figure):
    for layer in layers(figure.spec):
        kind = layer["transform"][0]["filter"].split("'")[1]
        for field in layer["encoding"].get("tooltip", []):
            assert field["title"]
            assert field["field"] in figure.data.columns or rows(figure, kind).empty


def test_a_mark_is_named_by_its_tooltip_or_not_at_all(figure: Figure, picture: str):
    """Vega would name it by all that places it, such as `base: 9; top: 9.02026632589`."""
    marks = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}path")
    names = [mark.get("aria-label") for mark in marks if mark.get("role") == "graphics-symbol"]
    fields = {field["title"] for layer in layers(figure.spec) for field in layer["encoding"].get("tooltip", [])}
    for name in names:
        first, is_field, _ = name.partition(": ")
        assert not is_field or first in fields, name


def test_its_picture_names_its_axes_fits_a_column_of_a_paper_and_stays_legible(figure: Figure, picture: str):
    assert float(ElementTree.fromstring(picture).get("width")) == COLUMN
    assert smallest_letters(picture) >= 5.4 / 0.75, "in pixels"
    assert cut_off(picture) == []
    drawn = texts_of(picture)
    assert not {"A title", "checkpoint: bundled"} & set(drawn), "a paper has a caption of its own"
    axes = [
        layer["encoding"][channel] for layer in layers(figure.spec) for channel in "xy" if channel in layer["encoding"]
    ]
    titles = {axis.get("title") for axis in axes if "field" in axis and axis.get("axis", {}) is not None} - {None}
    assert all(any(title in text for text in drawn) for title in titles)
    assert [word for word in ("currentColor", "NaN", "undefined", "<img", "<script") if word in picture] == []
    assert "http" not in picture.replace("http://www.w3.org/", "")


def test_its_description_is_made_of_sentences_and_can_be_sent_with_its_data(figure: Figure):
    assert figure.description.encode().endswith(b".")
    assert pa.Table.from_pandas(figure.data).num_rows == len(figure.data)
    assert not any(part in figure.description for part in ("nan,", "None", "inf "))
