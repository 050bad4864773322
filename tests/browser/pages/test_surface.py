"""The page Where heads look, as a person meets it."""

import re

from looks import open_tab
from playwright.sync_api import expect
from steps import arcs, settle

from attention_sieve.dashboard.views.surface import wording as words


def test_marks_of_charts_choose_heads(visit):
    page = visit("/surface")
    settle(page)
    page.locator("svg.marks").first.locator("path[aria-roledescription=point]").nth(17).click()
    expect(page.get_by_role("link", name="Inspect L1 H5")).to_be_visible()
    expect(page).to_have_url(re.compile("[?&]head=1-5"))
    open_tab(page, words.FUNCTIONS)
    page.locator("svg.marks path[aria-label*='head: L1 H9;']").last.click()
    page.get_by_role("link", name="Inspect L1 H9").click()
    expect(arcs(page, "L1 H9")).to_be_visible()
