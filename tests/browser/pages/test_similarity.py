"""Similar heads in Chromium: clicks on marks choose heads."""

import re

from playwright.sync_api import expect
from steps import expect_summary, settle

from attention_sieve.dashboard.views.inspect import wording

FOUND = re.compile("72 heads compared on 16 of 128 texts")


def expect_chosen(page, name):
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {name}")).to_be_visible()
    settle(page)


def test_a_click_on_a_point_or_a_leaf_chooses_its_head_everywhere_and_inspect_shows_the_nearest_heads(visit):
    page = visit("/similarity?similarity+texts=16&head=2-2")
    expect(page.get_by_text(FOUND)).to_be_visible()
    settle(page)
    expect_chosen(page, "L2 H2")
    for place, mark in enumerate(("L4 H7", "L0 H5")):
        if place == 1:
            expect(page.get_by_role("grid", name=re.compile("to L4 H7 "))).to_be_visible()
            page.get_by_role("tab", name="Dendrogram", exact=True).click()
            expect(page.get_by_role("tabpanel", name="Dendrogram")).to_be_visible()
            settle(page)
        chart = page.get_by_test_id("stVegaLiteChart").nth(place)
        marks = chart.locator("svg g[class*='view_'] path")  # the layer that a click chooses from
        if place == 1:
            marks = marks.and_(page.locator(f"[aria-label*='heads: {mark};']"))
        marks.nth(0 if place == 1 else 12 * int(mark[1]) + int(mark[4])).dispatch_event("click")
        expect_chosen(page, mark)
        expect(page).to_have_url(re.compile(f"head={mark[1]}-{mark[4]}"))
    page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {mark}").click()
    expect_summary(page, mark, "[0-9]+ texts")
    page.get_by_role("tab", name=wording.SIMILAR).click()
    expect(page.get_by_text(re.compile("^Looking at the same words: L"))).to_be_visible()
