"""Compare: from a checkpoint of one's own to what fine-tuning changed, in all views at once."""

import re
import shutil

import pytest
from looks import expect_looks_right
from playwright.sync_api import expect
from steps import SUMMARY, chosen, saved_page, settle, slider, wait_for

from attention_sieve.__main__ import main
from attention_sieve.dashboard.views.comparison import wording


@pytest.fixture(scope="module", autouse=True)
def films(store_folder, tmp_path_factory):
    """On the dashboard, a checkpoint that was fine-tuned from the bundled one, with its steps."""
    films = store_folder / "checkpoints" / "films"
    data = tmp_path_factory.mktemp("data") / "films.csv"
    rows = [
        f"The film of number {i} is {'lovely' if i % 2 else 'dull'}.,{'good' if i % 2 else 'bad'}" for i in range(80)
    ]
    data.write_text("\n".join(["sentence,label", *rows]))
    finetune(data, films, "--epochs", "1", "--save-steps", "5", "--learning-rate", "4e-4")
    yield
    shutil.rmtree(films)


def finetune(data, output, *options):
    output.parent.mkdir(exist_ok=True)
    columns = ["--text-columns", "sentence", "--label-column", "label"]
    given = ["--checkpoint", "bundled", "--data", str(data), "--output", str(output), "--batch-size", "8", *columns]
    assert main(["finetune", *given, *options]) == 0


def summary(page):
    """The sentence of what differs, once all of the page is there."""
    sentence = page.get_by_text(SUMMARY).first
    expect(sentence).to_be_visible()
    settle(page)
    return sentence


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


def test_a_second_checkpoint_gives_sentence_grids_maps_and_arcs_which_share_one_choice(visit):
    page = visit("/compare")
    expect(page.get_by_text(wording.NOTHING_CHOSEN)).to_be_visible()
    page.get_by_role("combobox", name=wording.WITH, exact=True).click()
    listed = page.get_by_test_id("stMultiSelectDropdown")
    expect(listed.get_by_role("option", name="films", exact=True)).to_be_visible()
    expect(listed.get_by_role("option", name="Select all")).to_have_count(0)
    listed.get_by_role("option", name="films", exact=True).click()
    expect(listed).to_have_count(0)
    expect(summary(page)).to_have_text(
        re.compile(r"^Fine-tuning (took|gave|changed) .+\. \d+ of 72 heads changed a role")
    )
    expect(page).to_have_url(re.compile("[?&]with=films(&|$)"))
    expect_on_first_screen(page, summary(page))
    for name in PICTURES:
        # Titles and the first words of each, side by side below the one set of switches.
        expect_on_first_screen(page, region(page, name).get_by_role("option").nth(4))
        expect(region(page, name).get_by_role("radio")).to_have_count(0)
    expect(region(page, f"^{wording.CONTROLS}").get_by_role("radio", name="Matrix")).to_have_count(1)
    expect(page.get_by_text(re.compile(r"^L\d H\d+: its \w+ score changed most"))).to_be_visible()
    for name, layer, number in (("^Roles gained", 2, 5), (r"^\(a\) Roles", 3, 1), (r"^\w+, b − a", 4, 7)):
        head(page, name, layer, number).click()
        expect(page.get_by_role("region", name=f"Attention of L{layer} H{number} in films")).to_be_visible()
        expect(chosen(page)).to_have_text([f"L{layer} H{number}"] * 4)
        expect(page).to_have_url(re.compile(f"head={layer}-{number}"))
    page.get_by_role("tab", name=wording.DIVERGENCE).click()
    head(page, "^Jensen", 5, 0).click()
    expect(page.get_by_role("region", name="Attention of L5 H0 in films")).to_be_visible()


def test_the_saved_steps_are_scrubbed_through_in_order(visit):
    page = visit("/compare?corpus=sample+texts")
    page.get_by_role("button", name=re.compile("saved steps of films")).click()
    expect(page.get_by_text(wording.OVER_STEPS)).to_be_visible()
    at_the_end = summary(page).inner_text()
    slider(page, "Compared checkpoint").press("Home")
    expect(region(page, "^Attention of .* in films.checkpoint-5$")).to_be_visible()
    expect(summary(page)).not_to_have_text(at_the_end)


def test_it_fits_is_accessible_and_is_saved_with_both_checkpoints(visit, tmp_path):
    page = visit("/compare?with=films")
    summary(page)
    expect(page.get_by_role("region", name=re.compile("^Difference"))).to_be_visible()
    expect_looks_right(page)
    data = saved_page(page, tmp_path)[1]
    assert [each["name"] for each in data["asked"]["checkpoints"]] == ["bundled", "films"]
    assert [table["kind"] for table in data["tables"]] == ["comparison", "roles", "roles"]
