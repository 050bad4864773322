"""The settings of the arcs as a link writes them."""

import numpy as np
import pytest

from attention_sieve.dashboard.components.arcs.look import LONGEST, NAMES, ArcSettings, read_look
from attention_sieve.dashboard.figures.text.arcs import Side

SET = {
    "view": "matrix",
    "rows": "words",
    "colours": "words",
    "specials": "hidden",
    "sieve": "syntactic:amod",
    "segments": "A-B",
    "strongest": "2",
    "share": "0.65",
    "pin": "to-4",
    "hidden": "3-7,2-5",
}


def side(segments, start=0):
    n_tokens = len(segments)
    numbers = np.arange(n_tokens)
    special = np.array(segments) < 0
    return Side(
        tokens=["x"] * n_tokens,
        special=special,
        segments=np.array(segments),
        words=np.where(special, -1, numbers),
        start=start,
        n_whole=start + n_tokens,
    )


def test_every_setting_goes_to_the_link_and_back_and_none_is_written_that_is_as_it_was():
    assert set(SET) == set(NAMES)
    assert read_look(SET).parameters == SET
    assert read_look({}).parameters == {}


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("view", "arcs"),
        ("segments", "A-C"),
        ("colours", "heads"),
        ("share", "0.07"),
        ("share", "1.5"),
        ("pin", "from--1"),
        ("pin", "above-3"),
        ("hidden", "3-7,"),
        ("hidden", ",".join(["3-7"] * LONGEST)),
        ("hidden", ["3-7"]),
        ("sieve", None),
        ("sieve", "y"),
        ("sieve", "local."),
    ],
)
def test_what_is_no_setting_is_left_out_and_the_rest_stays(name, value):
    rest = {key: kept for key, kept in SET.items() if key != name}
    assert read_look({**SET, name: value}).parameters == rest


@pytest.mark.parametrize(("pin", "stays"), [("from-10", True), ("from-12", True), ("from-13", False), ("to-2", False)])
def test_a_pin_stays_only_on_tokens_that_are_there(pin, stays):
    window = side([-1, 0, 0], start=10)
    assert ArcSettings(pin=pin).on(window, window).pin == (pin if stays else "")


@pytest.mark.parametrize(
    ("queries", "keys", "stays"), [([-1, 0, 1], [-1, 0, 1], True), ([0, 0], [0, 0], False), ([0], [0, 1], True)]
)
def test_segments_stay_only_where_a_side_has_two(queries, keys, stays):
    assert bool(ArcSettings(segments="A-B").on(side(queries), side(keys)).segments) == (stays and 1 in keys)
