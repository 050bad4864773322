"""Similar heads in Chromium: clicks on marks choose heads, the link restores them, and everything fits and is named."""

import re
from io import BytesIO

import pandas as pd
from looks import expect_tabs_to_look_right, open_expanders
from playwright.sync_api import expect
from steps import download, expect_summary, settle

from attention_sieve.dashboard.views.similar import wording

TABS = ("Map", "Dendrogram", "Layers", "Two layers", "Table")
FOUND = re.compile("72 heads compared on 16 of 128 texts, evenly spaced")


def opened(visit, query=""):
    page = visit(f"/similar?similar+texts=16{query}")
    expect(page.get_by_text(FOUND)).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_role("tabpanel").first).to_be_visible()
    settle(page)
    return page


def charts(page):
    return page.get_by_test_id("stVegaLiteChart")


def expect_chosen(page, name):
    expect(page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {name}")).to_be_visible()
    settle(page)


def test_a_click_on_a_point_or_a_leaf_chooses_its_head_everywhere_and_inspect_shows_the_nearest_heads(visit):
    page = opened(visit, "&head=2-2")
    expect_chosen(page, "L2 H2")
    for place, mark in ((0, "L4 H7"), (1, "L1 H3"), (2, "L0 H5")):
        if place == 2:
            open_tab(page, "Dendrogram")
        marks = charts(page).nth(place % 2).locator("svg g[class*='view_'] path")  # the layer that a click chooses from
        if place == 2:
            marks = marks.and_(page.locator(f"[aria-label*='heads: {mark};']"))
        marks.nth(0 if place == 2 else 12 * int(mark[1]) + int(mark[4])).dispatch_event("click")
        expect_chosen(page, mark)
        expect(page).to_have_url(re.compile(f"head={mark[1]}-{mark[4]}"))
        expect(page.get_by_role("grid", name=re.compile(f"to {mark} "))).to_be_visible()
    page.get_by_test_id("stMain").get_by_role("link", name=f"Inspect {mark}").click()
    expect_summary(page, mark, "[0-9]+ texts")
    page.get_by_role("tab", name=wording.OPEN).click()
    expect(page.get_by_text(re.compile("^Looking at the same words: L"))).to_be_visible()


def test_the_link_restores_what_was_chosen_and_the_files_hold_every_pair(visit):
    query = "&head=3-3&similar+distance=authors%27+sum&similar+colour=role&similar+details=Table"
    page = opened(visit, query)
    expect_chosen(page, "L3 H3")
    expect(page.get_by_text("summed nats").first).to_be_visible()
    expect(page.get_by_role("tab", name="Table", exact=True)).to_have_attribute("aria-selected", "true")
    expect(page.get_by_role("radio", name="role")).to_be_checked()
    table = pd.read_parquet(BytesIO(download(page, "Parquet of distances of heads")))
    assert len(table) == 72 * 71 // 2
    assert table["divergence"].between(0, 0.6932).all()


def open_tab(page, tab):
    page.get_by_role("tab", name=tab, exact=True).click()
    expect(page.get_by_role("tabpanel", name=tab)).to_be_visible()
    settle(page)


def test_the_page_is_accessible_and_fits(visit):
    page = opened(visit, "&head=3-8,4-5,2-2")
    open_expanders(page.get_by_test_id("stMain"))
    expect_tabs_to_look_right(page, TABS, open_tab)
