"""Fine-tune: from a table of labelled texts to a checkpoint, stopped, and found again from any page."""

import re

from hostile import ALL, HOSTILE, expect_nothing_rendered, expect_said
from looks import SIZES, expect_accessible, expect_fits, expect_looks_right
from playwright.sync_api import expect
from steps import choose, give_file, go_to, reviews, settle, wait_for

STEP = re.compile(r"[Ss]tep ([\d,]+) of [\d,]+")
FOREVER = "epochs=1000&batch_size=128&save_steps=50"


def begin(page, name):
    """Upload a table and start; the run is then on."""
    give_file(page, name, reviews(2000))
    start = page.get_by_role("button", name="Start from")
    expect(start).to_be_enabled()
    start.click()
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_be_visible()


def step(page):
    """Number of the step that the bar names, once it does."""
    bars = wait_for(page, page.get_by_text(STEP).all_text_contents, bool)
    return int(STEP.search(bars[0])[1].replace(",", ""))


def curve(page):
    return page.locator("[data-testid=stVegaLiteChart] svg.marks")


def expect_curve_to_move(page):
    """Wait until the curve is drawn on, not anew."""
    expect(curve(page)).to_be_visible()
    curve(page).evaluate("drawing => { drawing.isTheFirst = true; }")
    before = curve(page).inner_html()
    wait_for(page, curve(page).inner_html, lambda now: now != before)
    assert curve(page).evaluate("drawing => drawing.isTheFirst")


def test_hostile_names_labels_and_columns_are_shown_as_text_and_with_a_name_that_cannot_be_they_look_right(
    visit, small_checkpoint
):
    page = visit(f"/fine-tune?checkpoint={small_checkpoint}")
    rows = [f"{ALL} {i},{HOSTILE[i % 3]}" for i in range(30)]
    give_file(page, f"..\\{HOSTILE[0]}.csv", "\n".join([f"{HOSTILE[3]},{HOSTILE[4]}", *rows]).encode())
    choose(page, "Column with the text", HOSTILE[3])
    choose(page, "Column with the label", HOSTILE[4])
    expect(page.get_by_text("30 texts, 3 classes:")).to_contain_text(HOSTILE[0])
    expect(page.get_by_role("button", name="Start from")).to_be_enabled()
    expect(page.locator("[data-testid=stDataFrame] canvas").first).to_be_visible()
    expect_nothing_rendered(page)
    explain(page)
    box = page.get_by_role("textbox", name="Name of the new checkpoint")
    expect(box).to_have_value("img-src-x-onerror-alert-1")
    box.fill("../up")
    box.press("Enter")
    expect_said(page, '"../up" cannot be a checkpoint\'s name.')
    settle(page)
    expect_looks_right(page)


def explain(page):
    """Unfold the page's explanation."""
    page.get_by_text("How it is computed").click()
    expect(page.get_by_text("are never trained on.")).to_be_visible()


def test_a_run_is_found_on_every_way_to_the_page_accessible_in_any_size_and_stopped_from_any(visit, small_checkpoint):
    page = visit(f"/fine-tune?checkpoint={small_checkpoint}&{FOREVER}")
    explain(page)
    begin(page, "long.csv")
    step(page)
    expect_curve_to_move(page)
    go_to(page, "roles")
    expect(page.get_by_role("heading", name="Roles")).to_be_visible()
    go_to(page, "fine-tune")
    expect(page.get_by_role("heading", name="Fine-tune", exact=True)).to_be_visible()
    step(page)
    page.reload()
    width, height = SIZES["narrow"]
    other = visit("/fine-tune", width=width, height=height)
    explain(other)
    for each in (page, other):
        step(each)
        expect(curve(each)).to_be_visible()
        expect_accessible(each)
    other.get_by_text("Data and settings").click()
    expect(other.get_by_text("long is being trained now")).to_be_visible()
    expect(other.get_by_role("button", name="Start from")).to_be_disabled()
    other.get_by_test_id("stMain").get_by_role("button", name="Stop").click()
    for each in (page, other):
        expect(each.get_by_text(re.compile("^Stopped at step"))).to_be_visible()
        expect(each.get_by_role("button", name="Resume long").first).to_be_visible()
        settle(each)
        expect_fits(each)
