"""How many heads can go, in Chromium: curves drawn, stopped and gone on with by keyboard."""

import re

from looks import expect_accessible, expect_fits, resize
from playwright.sync_api import expect
from steps import give_file, reviews, settle

from attention_sieve.dashboard import wording as shared_wording
from attention_sieve.dashboard.views.importance.curves import wording

TAB = "metric=labelled+texts&importance+details=How+many+heads+can+go%3F"


def press(page, element):
    settle(page)
    element.focus()
    element.press("Enter")


def test_curves_are_stopped_and_gone_on_with_by_keyboard_and_drawn_in_any_size(visit, classifier):
    page = visit(f"/importance?checkpoint={classifier}&{TAB}")
    # So many that a slow browser, too, draws the first curves and is told to stop while the others are computed.
    give_file(page, "films.csv", reviews(400))
    charts = page.get_by_test_id("stVegaLiteChart")
    press(page, page.get_by_role("button", name=wording.BEGIN))
    expect(charts).to_have_count(1)
    page.get_by_role("button", name=shared_wording.STOP).click()
    expect(page.get_by_text(shared_wording.STOPPED)).to_be_visible()
    press(page, page.get_by_role("button", name=shared_wording.GO_ON))
    expect(page.get_by_text(re.compile(r"of 6 heads can go in the order of ablation"))).to_be_visible()
    settle(page)
    expect_fits(page)
    expect_accessible(page)
    resize(page, "narrow")
    expect_fits(page)
