"""Every page says what it found and shows its picture before it asks anything: few controls, few words."""

from pathlib import Path

import pytest
from playwright.sync_api import expect
from steps import shifted

from attention_sieve.dashboard.pages import PAGES

SEEN = (Path(__file__).parent / "first_screen.js").read_text("utf-8")
MOST_CONTROLS, MOST_WORDS, MOST_WORDS_OF_FINDING = 12, 80, 20
MOST_SHIFT = 0.1
"""Of the layout, from the first paint until nothing runs."""
PROJECTOR = {"width": 853, "height": 480}
PICTURED = ["importance", "similarity", "roles", "surface", "claims", "grammar", "compare"]
"""Pages whose picture stands in its place."""


@pytest.mark.parametrize("address", [page.address for page in PAGES])
def test_a_first_screen_has_few_controls_and_few_words_and_nothing_moves(visit, address):
    page = visit(f"/{address}")
    seen = page.evaluate(SEEN)
    assert len(seen["controls"]) <= MOST_CONTROLS, seen["controls"]
    assert len(seen["words"]) <= MOST_WORDS, " ".join(seen["words"])
    assert shifted(page) < MOST_SHIFT


@pytest.mark.parametrize("address", PICTURED)
def test_a_page_finds_something_and_its_whole_picture_is_on_a_projector(visit, address):
    page = visit(f"/{address}", **PROJECTOR)
    finding = page.locator(".st-key-found p")
    expect(finding).to_be_visible()
    sentence = finding.evaluate(
        "(p) => [...p.childNodes].filter((node) => node.nodeName !== 'SPAN').map((node) => node.textContent).join('')"
    )
    assert 1 <= len(sentence.split()) <= MOST_WORDS_OF_FINDING, sentence
    for drawn in page.locator(".st-key-picture").locator("svg.marks, canvas, [role=grid]").all():
        box = drawn.bounding_box()
        assert box["y"] + box["height"] <= PROJECTOR["height"], box


def test_a_page_has_a_shape_before_its_scripts_and_afterwards_its_own(visit, server, kept_context):
    expect(visit("/roles").locator("#skeleton")).to_be_hidden()
    page = kept_context.new_page()
    page.route("**/static/js/**", lambda route: route.abort())
    page.goto(f"{server}/roles")
    expect(page.locator("#skeleton > :visible")).to_have_count(3)
    page.goto(server)
    expect(page.locator("#skeleton > :visible")).to_have_count(4)
    page.close()
