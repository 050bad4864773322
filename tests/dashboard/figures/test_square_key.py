"""The enlarged empty square: its fields, its words and what is marked."""

from xml.etree import ElementTree as ET

import numpy as np

from attention_sieve.dashboard.figures.text.arcs import ABOVE_SQUARES, BESIDE, CELL, square_key_svg

SVG = "{http://www.w3.org/2000/svg}"
TOKENS = ("[CLS]", "<b>my", "bro", "##ther", "his")
ATTENTION = np.arange(25).reshape(5, 5) / 25


def drawn():
    return ET.fromstring(square_key_svg(TOKENS, rows=(4,), columns=(2, 3), attention=ATTENTION))


def test_the_words_stand_down_the_side_and_across_the_top_and_those_asked_about_are_bold():
    words = drawn().findall(f"{SVG}text")
    assert [word.text for word in words[::2]] == [word.text for word in words[1::2]] == list(TOKENS)
    assert [word.text for word in words[::2] if word.get("font-weight") == "700"] == ["his"]
    assert [word.text for word in words[1::2] if word.get("font-weight") == "700"] == ["bro", "##ther"]


def test_the_fields_where_row_and_columns_meet_are_outlined():
    outlined = [rect for rect in drawn().findall(f"{SVG}rect") if rect.get("fill") == "none"]
    places = [
        ((float(rect.get("x")) - BESIDE) / CELL, (float(rect.get("y")) - ABOVE_SQUARES) / CELL) for rect in outlined
    ]
    assert places == [(2, 4), (3, 4)]


def test_each_field_is_as_dark_as_the_root_of_its_share_row_by_row():
    fields = [rect for rect in drawn().findall(f"{SVG}rect") if rect.get("data-field")]
    assert [rect.get("data-field") for rect in fields] == [str(number) for number in range(25)]
    assert [rect.get("opacity") for rect in fields] == [f"{share**0.5:.2f}" for share in ATTENTION.ravel()]
    last = fields[24]
    assert (float(last.get("x")), float(last.get("y"))) == (BESIDE + 4 * CELL, ABOVE_SQUARES + 4 * CELL)


def test_nothing_lies_outside_of_the_picture():
    svg = drawn()
    width, height = float(svg.get("width")), float(svg.get("height"))
    for rect in svg.findall(f"{SVG}rect"):
        x, y, wide, high = (float(rect.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 <= x <= x + wide <= width
        assert 0 <= y <= y + high <= height
