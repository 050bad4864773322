"""Compare: what differs between two checkpoints, in all views at once."""

import re
import shutil

import pytest
from looks import expect_looks_right, resize
from playwright.sync_api import expect
from steps import chosen, reviews, saved_page, settle, slider, wait_for

from attention_sieve.__main__ import main
from attention_sieve.dashboard.views.comparison import wording


@pytest.fixture
def films(store_folder, tmp_path):
    """On the dashboard, a checkpoint that was fine-tuned from the bundled one, with its steps."""
    films, data = store_folder / "checkpoints" / "films", tmp_path / "films.csv"
    films.parent.mkdir(exist_ok=True)
    data.write_bytes(reviews(40))
    columns = ["--text-columns=sentence", "--label-column=label"]
    options = ["--epochs=1", "--batch-size=8", "--learning-rate=4e-4", "--save-steps=3"]
    assert main(["finetune", "--checkpoint=bundled", f"--data={data}", f"--output={films}", *columns, *options]) == 0
    yield
    shutil.rmtree(films)


def grid(page, name):
    return page.get_by_role("grid", name=re.compile(name))


def head(page, name, layer, number):
    return grid(page, name).get_by_role("gridcell", name=f"Layer {layer}, head {number}:")


PICTURES = (r"^Attention of .* in bundled", r"^Attention of .* in films", "^Difference of the attention of")


def region(page, name):
    return page.get_by_role("region", name=re.compile(name))


def expect_on_first_screen(page, element):
    """Wait until all of it can be seen without scrolling."""
    expect(element).to_be_visible()
    size = page.viewport_size
    wait_for(page, element.bounding_box, lambda box: box["y"] >= 0 and box["y"] + box["height"] <= size["height"])


def test_a_second_checkpoint_gives_views_which_share_one_choice_look_right_and_are_saved_with_both(
    visit, films, tmp_path
):
    page = visit("/compare")
    expect(grid(page, "^Roles gained, kept and lost by films against bundled")).to_be_visible()
    page.get_by_role("combobox", name=wording.WITH, exact=True).click()
    listed = page.get_by_test_id("stMultiSelectDropdown")
    expect(listed.get_by_role("option", name="films", exact=True)).to_be_visible()
    expect(listed.get_by_role("option", name="Select all")).to_have_count(0)
    listed.get_by_role("option", name="films", exact=True).click()
    expect(listed).to_have_count(0)
    finding = page.locator(".st-key-found p")
    expect(finding).to_have_text(re.compile(r"^Fine-tuning (took|gave|changed) .+\. \d+ of 72 heads changed a role"))
    expect(page).to_have_url(re.compile("[?&]with=films(&|$)"))
    settle(page)
    expect_on_first_screen(page, finding)
    arcs = region(page, "^Attention of .* in a mixture of bundled and films")
    expect_on_first_screen(page, arcs.get_by_role("option").last)
    expect(arcs.get_by_role("radio")).to_have_count(0)
    expect(page.get_by_text(re.compile(r"^L\d H\d+: its \w+ score changed most"))).to_be_visible()
    expect_the_slider_to_lead_from_one_to_the_other(page)
    page.get_by_role("tab", name=wording.SIDE_BY_SIDE).click()
    for name in PICTURES:
        expect(region(page, name).get_by_role("option").nth(4)).to_be_visible()
        expect(region(page, name).get_by_role("radio")).to_have_count(0)
    expect(region(page, f"^{wording.CONTROLS}").get_by_role("radio", name="Matrix")).to_have_count(1)
    page.get_by_role("tab", name=wording.EACH).click()
    expect(grid(page, r"^\(b\) Roles")).to_be_visible()
    for name, layer, number in (("^Roles gained", 2, 5), (r"^\(a\) Roles", 3, 1)):
        head(page, name, layer, number).click()
        expect(region(page, f"^Attention of L{layer} H{number} in a mixture")).to_be_visible()
        expect(chosen(page)).to_have_text([f"L{layer} H{number}"] * 3)
        expect(page).to_have_url(re.compile(f"head={layer}-{number}"))
    page.get_by_role("tab", name=wording.DIVERGENCE).click()
    head(page, "^Jensen", 5, 0).click()
    expect(region(page, "^Attention of L5 H0 in a mixture")).to_be_visible()
    page.get_by_role("tab").first.click()
    expect(head(page, "^Roles gained", 2, 5)).to_be_visible()
    expect_looks_right(page)
    data = saved_page(page, tmp_path)[1]
    assert [each["name"] for each in data["asked"]["checkpoints"]] == ["bundled", "films"]
    assert [table["kind"] for table in data["tables"]] == ["comparison", "roles", "roles"]
    resize(page, "wide")
    expect_steps_to_be_scrubbed_through_in_order(page)


def expect_the_slider_to_lead_from_one_to_the_other(page):
    between = slider(page, "From (a) to (b)")
    between.press("Home")
    expect(region(page, "^Attention of .* in bundled")).to_be_visible()
    expect(grid(page, "^Roles of the heads of bundled")).to_be_visible()
    between.press("End")
    expect(region(page, "^Attention of .* in films")).to_be_visible()
    between.press("ArrowLeft")
    lost = grid(page, "^Roles gained").locator(".corner.lost").first
    expect(lost).to_have_css("opacity", "0.25")
    between.press("ArrowLeft")
    expect(lost).to_have_css("opacity", "0.5")
    settle(page)


def expect_steps_to_be_scrubbed_through_in_order(page):
    page.get_by_role("button", name=re.compile("saved steps of films")).click()
    expect(page.get_by_text(wording.OVER_STEPS)).to_be_visible()
    slider(page, "Compared checkpoint").press("Home")
    expect(region(page, "^Attention of .* and films.checkpoint-3$")).to_be_visible()
