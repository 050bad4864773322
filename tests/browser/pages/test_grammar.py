"""The page Grammar, as a person meets it: a relation and a head that are chosen."""

import re

from playwright.sync_api import expect
from steps import settle, wait_for

HEADER, ROW = 36, 36
"""Heights in the table, in pixels."""


def drawn(page):
    """Wait until everything is there, also what follows below."""
    settle(page)
    expect(arcs(page).locator("svg")).to_be_visible()


def arcs(page):
    return page.get_by_role("region", name=re.compile("^L[0-9]+ H[0-9]+, .* on a sentence$"))


def grid(page):
    return page.get_by_role("grid", name=re.compile(": accuracy − baseline"))


def test_a_row_of_the_table_chooses_its_relation_and_best_head_and_a_click_any_head(visit):
    page = visit("/grammar?relation=nsubj")
    drawn(page)
    frame = page.get_by_test_id("stDataFrame").first
    frame.scroll_into_view_if_needed()
    frame.click(position={"x": 16, "y": HEADER + ROW / 2})
    expect(page.get_by_role("combobox", name="Relation", exact=True)).to_have_value("all")
    expect(grid(page)).to_have_accessible_name(re.compile("^all, "))
    drawn(page)
    before = arcs(page).text_content()
    grid(page).get_by_role("gridcell", name="Layer 0, head 2:").click()
    expect(arcs(page)).to_have_attribute("aria-label", re.compile("^L0 H2, "))
    wait_for(page, arcs(page).text_content, lambda now: now != before or "✓" not in before)
