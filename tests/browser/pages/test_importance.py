"""Importance in Chromium: the kept result at once, heads chosen by a click, and a table that a tab keeps."""

import re

from looks import open_tab
from playwright.sync_api import expect
from steps import give_file, reviews, settle, shifted

from attention_sieve.dashboard.views.finetune import wording as labelled
from attention_sieve.dashboard.views.importance import by_role, two_sets

FOUND = re.compile("Over 128 texts, each of 72 heads was switched off in turn")


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
    open_tab(page, two_sets.TAB)
    dot = page.locator("svg.marks").last.locator("path[aria-label*='L4 H2']").first
    dot.dispatch_event("click")
    expect_chosen(page, "L4 H2")
    open_tab(page, by_role.TAB)
    expect(page.get_by_role("gridcell", name="Layer 4, head 2:")).to_have_attribute("aria-selected", "true")


def test_a_reload_brings_an_uploaded_table_back_and_no_other_tab_has_it(visit, classifier):
    page = visit(f"/importance?checkpoint={classifier}&metric=labelled+texts")
    give_file(page, "films.csv", reviews(40))
    found = page.get_by_text(re.compile("Over 40 texts, each of 6 heads was switched off in turn"))
    expect(found).to_be_visible()
    expect(page.get_by_text(labelled.IN_TAB)).to_be_visible()
    page.wait_for_url(lambda url: "in+this+tab=" in url)
    settle(page)
    page.reload()
    expect(page.get_by_text("Continuing with films.csv, which this tab has kept.")).to_be_visible()
    expect(found).to_be_visible()
    expect(page.get_by_role("progressbar")).to_have_count(0)
    there = visit(page.url)
    expect(there.get_by_text(labelled.TABLE_NOT_IN_THIS_TAB)).to_be_visible()
    expect(there.get_by_text(labelled.WAIT)).to_be_visible()
