"""The tab on gates in Chromium: a sweep from its table to its chart, a step back, and everything fits and is named."""

import re

from looks import expect_accessible, expect_fits, resize
from playwright.sync_api import expect
from steps import give_file, reviews, settle

TAB = "metric=labelled+texts&importance+details=Train+gates&penalties=0.1&gates+epochs=2&gates+batch_size=10"


def test_gates_are_trained_looked_at_step_by_step_and_deleted(visit, classifier, store_folder):
    page = visit(f"/importance?checkpoint={classifier}&{TAB}")
    give_file(page, "films.csv", reviews(40))
    page.get_by_role("button", name="Train gates (1 run)").click()
    expect(page.get_by_text(re.compile("^Penalty 0.1 leaves"))).to_be_visible()
    settle(page)
    cells = page.get_by_role("grid", name=re.compile("^Gates of the heads of")).get_by_role("gridcell")
    expect(cells).to_have_count(6)
    last = cells.all_text_contents()
    slider = page.get_by_role("slider", name="Training step")
    slider.focus()
    slider.press("Home")
    expect(page.get_by_text("penalty 0.1, step 0")).to_be_visible()
    expect(cells).to_have_text(["0.9"] * 6)
    assert len(last) == 6
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)  # two of gates, and the picture's
    expect_fits(page)
    expect_accessible(page)
    resize(page, "narrow")
    expect_fits(page)
    (sweep,) = (store_folder / "gates").iterdir()
    page.get_by_role("button", name="Delete …").click()
    page.get_by_role("button", name="Delete", exact=True).click()
    expect(page.get_by_text("No gates of this checkpoint have been trained on this table yet.")).to_be_visible()
    assert not sweep.exists()
