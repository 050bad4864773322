"""How many heads can go, in Chromium: curves begun by keyboard."""

import re

from looks import expect_accessible, expect_fits, resize
from playwright.sync_api import expect
from steps import give_file, reviews, settle

from attention_sieve.dashboard.views.importance.curves import wording

TAB = "metric=labelled+texts&importance+details=How+many+heads+can+go%3F"


def test_curves_are_begun_by_keyboard_and_fit_in_any_size(visit, classifier):
    page = visit(f"/importance?checkpoint={classifier}&{TAB}")
    give_file(page, "films.csv", reviews(40))
    settle(page)
    page.get_by_role("button", name=wording.BEGIN).focus()
    page.keyboard.press("Enter")
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"of 6 heads can go in the order of ablation"))).to_be_visible()
    settle(page)
    expect_fits(page)
    expect_accessible(page)
    resize(page, "narrow")
    expect_fits(page)
