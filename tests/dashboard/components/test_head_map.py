"""One number per head: the scale, what the page gets, what a choice makes of the browser’s word, and the file."""

import io
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
import vl_convert
from colours import contrast
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from reading import data_of, numbers
from streamlit.testing.v1 import AppTest

from attention_sieve.dashboard.figures.appearance import AMOUNT, HEAD_COLORS, LESS, MORE, MUTED, ink_on, mixed
from attention_sieve.dashboard.figures.head_map import HeadMap, HeadMatrix, head_map_svg, round_bound, short_number

SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = '<img src=x onerror=alert(1)> & "quotes" </script> \x00'
VALUES = np.array([[0.5, -2.0, np.nan], [3.0, 0.0, -0.01]])
MARKED = np.array([[False, True, False], [True, False, False]])


def page() -> None:
    """Two views of one choice: a map and a grid; session state says what differs between runs."""
    import numpy as np
    import streamlit as st

    from attention_sieve.dashboard.components.grid import role_grid
    from attention_sieve.dashboard.components.head_map import head_map
    from attention_sieve.dashboard.components.source import Selection
    from attention_sieve.dashboard.figures.head_map import HeadMap
    from attention_sieve.dashboard.figures.roles.grid import RoleGrid

    def take(heads: list[tuple[int, int]]) -> None:
        st.session_state["heads"] = heads
        st.session_state["told"] = [*st.session_state.get("told", []), heads]

    heads = st.session_state.setdefault("heads", [(0, 2)])
    found = head_map(HeadMap(**st.session_state["given"]), Selection("map", heads, tuple(heads), take))
    scores = np.zeros((1, 2, 3))
    grid = RoleGrid(roles=["local"], scores=scores, holds=scores > 1, tau=3.0, label="Grid")
    other = role_grid(grid, Selection("grid", heads, tuple(heads), take))
    st.session_state["results"] = [found, other]


def given_map(**changes: Any) -> dict[str, Any]:
    details = [("difference", VALUES), ("p", [["0.1", "< 0.001", "no test"], ["0.2", "1", "0.5"]])]
    given = {"values": VALUES, "bound": 2.0, "signed": True, "marked": MARKED, "mark": "differs"}
    return given | {"details": details, "label": "Change of local", "title": "local, b - a"} | changes


def run(**changes: Any) -> AppTest:
    app = AppTest.from_function(page)
    app.session_state["given"] = given_map(**changes)
    app.run()
    assert not app.exception
    return app


def payloads(app: AppTest) -> list[str]:
    return [component.proto.json for component in app.get("bidi_component")]


def sent(**changes: Any) -> dict[str, Any]:
    return data_of(payloads(run(**changes))[0])


# The scale


@pytest.mark.parametrize(
    ("value", "bound", "signed", "text"),
    [
        (0.83, 2.0, True, "+0.8"),
        (-0.83, 2.0, True, "−0.8"),
        (-0.01, 2.0, True, "0"),
        (0.0, 2.0, True, "0"),
        (12.4, 20.0, True, "+12"),
        (0.074, 0.3, False, ".07"),
        (-0.074, 0.3, True, "−.07"),
        (0.0074, 0.05, False, ".007"),
        (3.2, 2.0, False, "3.2"),
        (float("nan"), 2.0, True, ""),
    ],
)
def test_a_number_is_as_short_as_its_cell(value, bound, signed, text):
    assert short_number(value, bound, signed) == text


@pytest.mark.parametrize(
    ("largest", "bound"),
    [(0.0, 1.0), (float("nan"), 1.0), (0.7, 0.75), (1.0, 1.0), (1.2, 1.5), (9.0, 10.0), (0.0031, 0.004), (26.0, 30.0)],
)
def test_a_scale_ends_at_a_round_number(largest, bound):
    assert round_bound(largest) == pytest.approx(bound)


@given(st.floats(1e-6, 1e6))
def test_a_round_number_is_never_below_and_never_twice_as_large(largest):
    assert largest * (1 - 1e-8) <= round_bound(largest) < 2 * largest


def test_an_end_of_the_scale_says_where_values_lie_beyond_it():
    assert HeadMap(**given_map(bound=2.0)).ends == ("−2", "≥ +2")
    assert HeadMap(**given_map(bound=3.0)).ends == ("−3", "+3")
    assert HeadMap(**given_map(bound=1.5)).ends == ("≤ −1.5", "≥ +1.5")
    assert HeadMap(**given_map(values=np.abs(VALUES), signed=False)).ends == ("0", "≥ 2")


@given(st.sampled_from([MORE, LESS, AMOUNT]), st.floats(0, 1), st.sampled_from(["#FFFFFF", "#101418"]))
def test_numbers_are_readable_anywhere_on_a_scale(end, part, background):
    color = mixed(end, part, background)
    assert contrast(color, ink_on(color)) >= 4.5


@pytest.mark.parametrize("end", [MORE, LESS, AMOUNT])
@pytest.mark.parametrize("background", ["#FFFFFF", "#101418"])
def test_the_ends_of_a_scale_stand_out_on_light_and_dark(end, background):
    assert contrast(end, background) >= 3
    assert mixed(end, 0.0, background) == background
    assert mixed(end, 1.0, background) == end


# What the browser gets


def test_values_travel_as_parts_of_the_bound_and_details_with_three_digits_and_not_applicable_stays_so():
    data = sent()
    parts = numbers(data["parts"], "<f4").reshape(2, 3)
    np.testing.assert_allclose(parts, [[0.25, -1, np.nan], [1, 0, -0.005]], rtol=1e-6)
    assert data["texts"] == [["+0.5", "−2.0", ""], ["+3.0", "0", "0"]]
    assert numbers(data["marked"]).reshape(2, 3).tolist() == MARKED.astype(int).tolist()
    assert (data["low"], data["high"]) == (["", "−2"], ["≥ +2", ""])
    details = data["details"]
    assert details[0] == {"label": "difference", "texts": [["0.5", "−2", "not applicable"], ["3", "0", "−0.01"]]}
    assert details[1]["texts"][0] == ["0.1", "< 0.001", "no test"]


def test_a_scale_from_zero_has_one_hue_and_a_signed_one_two():
    assert sent()["ends"] == {"more": MORE, "less": LESS}
    unsigned = sent(values=np.abs(VALUES), signed=False, marked=None)
    assert unsigned["ends"] == {"more": AMOUNT, "less": None}
    assert unsigned["marked"] is None


def test_a_muted_map_is_a_faint_grey_below_0_on_the_page_and_in_the_file():
    ends = sent(muted=True)["ends"]
    assert ends["more"] == MORE
    assert ends["less"] == f"color-mix(in srgb, {MUTED} 25%, var(--st-background-color))"
    found = fills(drawn(muted=True))
    assert found == [mixed(MORE, 0.25), mixed(MUTED, 0.25), "url(#hatch)", MORE, "#FFFFFF", mixed(MUTED, 0.00125)]


def test_hostile_text_travels_as_data():
    data = sent(title=HOSTILE, details=[(HOSTILE, [[HOSTILE] * 3] * 2)])
    assert (data["title"], data["details"][0]["label"]) == (HOSTILE, HOSTILE)
    assert data["details"][0]["texts"][1][2] == HOSTILE


def test_a_map_of_1024_heads_and_eight_details_stays_below_150_kilobytes():
    values = np.random.default_rng(0).normal(size=(32, 32))
    changes = {"values": values, "marked": values > 1, "details": [(str(number), values) for number in range(8)]}
    assert len(payloads(run(**changes))[0]) < 150_000


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bound": 0.0}, "bound must be above 0 and finite, got 0.0"),
        ({"bound": float("nan")}, "bound must be above 0 and finite, got nan"),
        ({"values": np.array([[np.inf, 1, -np.inf], [0, 0, 0]])}, "2 values are infinite"),
        ({"signed": False}, "A scale from 0 has no place for -2"),
    ],
)
def test_what_does_not_fit_is_named(changes, message):
    with pytest.raises(ValueError, match=message):
        HeadMap(**given_map(**changes))


# One choice in several views


def chosen_by_the_reader(app: AppTest, key: str, rev: int, heads: list[list[int]]) -> None:
    app.session_state[key] = {"chosen": {"rev": rev, "value": heads}}
    app.run()
    assert not app.exception


def revs(app: AppTest) -> list[int]:
    return [data_of(each)["rev"] for each in payloads(app)]


def test_a_head_that_python_chooses_is_chosen_in_every_view():
    app = run()
    app.session_state["heads"] = [(1, 1)]
    app.run()
    assert app.session_state["results"] == [[(1, 1)], [(1, 1)]]
    assert revs(app) == [2, 2]


def test_the_view_that_the_reader_used_is_pushed_nothing():
    app = run()
    before = payloads(app)
    app.session_state["heads"] = [(1, 0)]
    chosen_by_the_reader(app, "map", 1, [[1, 0]])
    assert app.session_state["results"] == [[(1, 0)], [(1, 0)]]
    assert payloads(app)[0] == before[0]
    assert revs(app) == [1, 2]


def test_what_a_browser_says_of_an_earlier_push_counts_no_more():
    app = run()
    app.session_state["heads"] = [(1, 1)]
    app.run()
    chosen_by_the_reader(app, "map", 1, [[0, 0]])
    assert app.session_state["results"][0] == [(1, 1)]
    chosen_by_the_reader(app, "map", 2, [[0, 0]])
    assert app.session_state["results"][0] == [(0, 0)]
    chosen_by_the_reader(app, "map", 2, [])
    assert app.session_state["results"][0] == [], "a cleared choice is no heads at all"


# The file


def drawn(caption: Any = ("64 texts",), chosen: Any = (), **changes: Any) -> ET.Element:
    return ET.fromstring(head_map_svg(HeadMap(**given_map(**changes)), caption=caption, chosen=chosen))


def texts(svg: ET.Element) -> list[str | None]:
    return [text.text for text in svg.iter(f"{SVG}text")]


def fills(svg: ET.Element) -> list[str]:
    """Of the cells, layer by layer."""
    return [box.get("fill", "") for box in svg.iter(f"{SVG}rect") if box.get("width") == "44"]


def test_the_file_colours_each_cell_by_its_part_of_the_bound():
    found = fills(drawn())
    assert found == [mixed(MORE, 0.25), LESS, "url(#hatch)", MORE, "#FFFFFF", mixed(LESS, 0.005)]
    assert fills(drawn(values=np.abs(VALUES), signed=False, marked=None))[3] == AMOUNT


def test_the_file_says_in_words_what_signs_and_ends_mean():
    found = texts(drawn(low_label="lower", high_label="higher"))
    for expected in (
        "Change of local",
        "lower −2",
        "≥ +2 higher",
        "differs",
        "not applicable",
        "64 texts",
        "+3.0",
        "0",
    ):
        assert expected in found
    plain = texts(drawn(values=np.ones((2, 3)), marked=None))
    assert not {"differs", "not applicable"} & set(plain)


def test_in_the_file_an_outline_means_chosen_and_a_dot_marks_a_head():
    def strokes(chosen):
        boxes = drawn(chosen=chosen).iter(f"{SVG}rect")
        return [box.get("stroke") for box in boxes if float(box.get("stroke-width", 0)) > 1]

    assert strokes([]) == []
    assert strokes([(0, 0)]) == ["#1A1A1A"]
    assert strokes([(0, 0), (1, 2)]) == [*HEAD_COLORS[:2]]
    in_the_legend, *dots = drawn().iter(f"{SVG}circle")
    assert in_the_legend.get("fill") == "#1A1A1A"
    cells = [HeadMatrix(2, 3).cell(*head) for head in ((0, 1), (1, 0))]
    assert [(float(dot.get("cx")), float(dot.get("cy"))) for dot in dots] == [
        (cell.x + cell.width - 6, cell.y + 6) for cell in cells
    ]


def test_equal_checkpoints_give_a_map_of_zeros():
    svg = drawn(values=np.zeros((2, 3)), bound=round_bound(0.0), marked=np.zeros((2, 3), bool))
    assert texts(svg).count("0") == 6 + 2
    assert set(fills(svg)) == {"#FFFFFF"}


def test_the_file_escapes_hostile_text_and_is_drawn():
    svg = drawn(label=HOSTILE, caption=[HOSTILE], low_label=HOSTILE, high_label=HOSTILE, mark=HOSTILE)
    assert HOSTILE.replace("\x00", "\ufffd") in texts(svg)
    tags = {element.tag.removeprefix(SVG) for element in svg.iter()}
    assert tags == {"svg", "g", "title", "rect", "text", "defs", "pattern", "line", "circle"}
    image = Image.open(io.BytesIO(vl_convert.svg_to_png(ET.tostring(drawn(), encoding="unicode")))).convert("RGB")
    colors = {color for _, color in image.getcolors(1 << 20)}
    assert {tuple(bytes.fromhex(end[1:])) for end in (MORE, LESS)} <= colors
