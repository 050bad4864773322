"""Bars of what a model says: as long as the probabilities, with a stroke where they ended before."""

from xml.etree import ElementTree as ET

import numpy as np
import pytest

from attention_sieve.dashboard.figures.text.bars import LENGTH, MOST, WORDS, bars_of, bars_svg, read_names

NAMES = ["Mary", "the", "<b>&", "x" * 40]
NOW, ALL_ON = np.array([0.06, 0.5, 0.25, 0.001]), np.array([0.9, 0.02, 0.01, 0.0])


def parts(svg, kind):
    return ET.fromstring(svg).findall(f"{{http://www.w3.org/2000/svg}}{kind}")


def test_bars_are_as_long_as_the_probabilities_and_strokes_stand_where_they_ended():
    svg = bars_svg(bars_of(NAMES, NOW, ALL_ON))
    widths = [float(bar.get("width")) for bar in parts(svg, "rect")]
    np.testing.assert_allclose(widths, np.maximum(LENGTH * NOW, 1), atol=0.01)
    strokes = [float(stroke.get("d")[1:].partition(",")[0]) for stroke in parts(svg, "path")]
    np.testing.assert_allclose(strokes, WORDS + 10 + LENGTH * ALL_ON, atol=0.01)
    texts = [text.text for text in parts(svg, "text")]
    assert texts[::2] == ["Mary", "the", "<b>&", "x" * 15 + "…"]
    assert texts[1::2] == ["6%", "50%", "25%", "0%"]
    bold = [text.text for text in parts(svg, "text") if text.get("font-weight") == "700"]
    assert bold == ["the", "50%"]


def test_with_all_heads_on_there_is_no_stroke_and_the_picture_is_as_high():
    one, many = (bars_svg(bars_of(NAMES[:n], NOW[:n], None)) for n in (1, 4))
    assert parts(many, "path") == []
    assert ET.fromstring(one).get("viewBox") == ET.fromstring(many).get("viewBox")


def test_the_likeliest_before_and_now_are_drawn_in_the_order_of_before():
    n_names = 2 * MOST
    now, all_on = np.zeros(n_names), np.linspace(0.2, 0.1, n_names)
    now[-1] = 0.9
    bars = bars_of([str(number) for number in range(n_names)], now, all_on)
    assert bars.names == [*map(str, range(MOST - 1)), str(n_names - 1)]
    assert bars.said == MOST - 1
    assert bars.description.endswith(f"{n_names - 1} 90%, was 10%")


@pytest.mark.parametrize(
    ("tokens", "names"),
    [
        ((" Mary", " the", ","), ["Mary", "the", ","]),
        ((" the", "the", "\n"), ["␣the", "the", "↵"]),
        ((" ", " a"), ["␣", "a"]),
    ],
)
def test_names_are_read_without_blanks_where_these_tell_nothing_apart(tokens, names):
    assert read_names(tokens) == names
