"""Importance in Chromium: the kept result at once, and heads chosen by a click."""

import re

from looks import open_tab
from playwright.sync_api import expect
from steps import settle, shifted

from attention_sieve.dashboard.views.importance import by_role, two_sets

FOUND = re.compile("L5 H10 the text vector changes most: [0-9]+% as much as without all of layer 5")


def expect_chosen(page, name):
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {name}")).to_be_visible()
    settle(page)


def test_the_first_visit_shows_the_kept_result_and_clicks_choose_heads_on_every_tab(visit):
    page = visit("/importance")
    expect(page.get_by_text(FOUND)).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    expect_chosen(page, "L5 H10")
    assert shifted(page) < 0.1
    page.get_by_role("gridcell", name="Layer 3, head 7:").click()
    expect_chosen(page, "L3 H7")
    expect(page.locator(".st-key-picture svg.marks").get_by_text("all of layer 3", exact=True)).to_be_visible()
    open_tab(page, two_sets.TAB)
    dot = page.locator("svg.marks").last.locator("path[aria-label*='L4 H2']").first
    dot.dispatch_event("click")
    expect_chosen(page, "L4 H2")
    open_tab(page, by_role.TAB)
    of_tab = page.get_by_role("tabpanel").get_by_role("gridcell", name="Layer 4, head 2:")
    expect(of_tab).to_have_attribute("aria-selected", "true")
