"""Miniatures: small pictures without letters."""

import re
from base64 import b64decode
from io import BytesIO
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from attention_sieve.dashboard.figures.appearance import HEAD_COLORS, MUTED
from attention_sieve.dashboard.figures.miniatures import (
    HEIGHT,
    SHARPNESS,
    WIDTH,
    bars,
    cells,
    curve,
    fan,
    image,
    pattern_mark,
)

ATTENTION = np.array([[0.9, 0.1, 0], [0.02, 0.5, 0.48]])
SVG = "{http://www.w3.org/2000/svg}"


def drawn(svg, name):
    return ElementTree.fromstring(svg).findall(SVG + name)


def numbers(marks, name):
    return [float(mark.get(name)) for mark in marks]


def test_a_cell_is_filled_as_far_as_its_number_and_none_is_where_that_is_hardly_seen_or_unknown():
    filled = [rect for rect in drawn(cells(np.array([[1, 0.5, 0.01], [0, np.nan, 3]])), "rect") if rect.get("opacity")]
    assert numbers(filled, "opacity") == [1, 0.5, 1]


def test_matrices_side_by_side_share_the_width():
    frames = [rect for rect in drawn(cells(np.eye(2), np.eye(5)), "rect") if rect.get("fill") == "none"]
    (left, right), (first, second) = numbers(frames, "x"), numbers(frames, "width")
    assert left + first < right
    assert right + second <= WIDTH
    assert first == second


def test_a_fan_has_a_line_for_each_link_and_those_of_another_query_are_muted():
    assert {line.get("stroke") for line in drawn(fan(ATTENTION), "path")} == {HEAD_COLORS[0]}
    assert [line.get("stroke") for line in drawn(fan(ATTENTION, 1), "path")] == [MUTED, MUTED, *HEAD_COLORS[:1] * 2]
    assert len(drawn(fan(ATTENTION), "circle")) == sum(ATTENTION.shape)


def test_the_highest_bar_fills_the_picture_and_the_others_their_part_of_it():
    heights = numbers(drawn(bars(np.array([1.0, 4.0, 2.0])), "rect"), "height")
    assert heights == pytest.approx([(HEIGHT - 2) * share for share in (0.25, 1, 0.5)], abs=0.1)


def test_a_curve_that_falls_ends_below_where_it_began():
    (line,) = drawn(curve(np.array([0, 10, 40]), np.array([3.0, 2.0, 1.0])), "polyline")
    points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
    assert points == sorted(points)
    assert points[0][1] < points[-1][1]


@pytest.mark.parametrize("svg", ["", cells(np.eye(3))])
def test_the_place_of_a_picture_has_its_size_before_it_is_drawn(svg):
    assert re.search(f"width: {WIDTH}px; height: {HEIGHT}px", image(svg))


def test_a_mark_is_a_picture_whose_pixels_are_the_blacker_the_larger_a_weight():
    weights = np.array([[0, 255, 51], [102, 0, 204]], dtype=np.uint8)
    png = b64decode(pattern_mark(weights).removeprefix("data:image/png;base64,"))
    pixels = np.array(Image.open(BytesIO(png)))
    assert pixels.shape == (2 * SHARPNESS, 3 * SHARPNESS)
    np.testing.assert_array_equal(255 - pixels[::SHARPNESS, ::SHARPNESS], weights)
