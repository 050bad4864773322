"""The second riddle by mouse and keyboard: a click switches a head off, another one on, and the bars follow."""

import re
import shutil

import pytest
from looks import expect_looks_right
from playwright.sync_api import expect
from small_checkpoints import save_with_head
from steps import go_to, grid_of, settle

from attention_sieve.core.checkpoints.examples import SAMPLE_DECODER

FINDING = ".st-key-found"


@pytest.fixture
def decoder(store_folder, request):
    """A small random decoder in the place of the downloaded one, with heads of the same names, while a test runs."""
    folder = store_folder / "checkpoints" / SAMPLE_DECODER
    sizes = {"num_attention_heads": 9, "num_key_value_heads": 3, "head_dim": 4, "hidden_size": 36}
    sizes["num_hidden_layers"] = getattr(request, "param", 2)
    save_with_head("llama", folder, "CausalLM", seed=0, max_position_embeddings=128, **sizes)
    yield folder
    shutil.rmtree(folder)


def bars(page):
    return page.get_by_role("region", name=re.compile("^What it says: "))


def cell(page, layer, head):
    return grid_of(page).get_by_role("gridcell", name=f"Layer {layer}, head {head}:")


def test_it_is_offered_once_the_decoder_is_there_and_a_click_switches_a_head_off_and_on(visit, decoder):
    page = visit("/")
    go_to(page, "second-riddle")
    expect(page.locator(FINDING)).to_contain_text("Find two heads without which it does not.")
    before = bars(page).get_attribute("aria-label")
    assert ", was " not in before
    cell(page, 1, 5).click()
    expect(page.locator(FINDING)).to_contain_text("L1 H5")
    expect(bars(page)).to_have_attribute("aria-label", re.compile(", was "))
    cell(page, 1, 5).click()
    expect(bars(page)).to_have_attribute("aria-label", before)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    expect(page.locator(FINDING)).to_contain_text("L0 H5")
    page.get_by_role("button", name="All heads on").click()
    expect(bars(page)).to_have_attribute("aria-label", before)


def test_an_own_sentence_is_answered_and_the_page_looks_right(visit, decoder):
    page = visit("/second-riddle")
    page.get_by_role("button", name="A hint").click()
    expect(page.locator(FINDING)).to_contain_text("One such pair is in layer 1.")
    settle(page)
    expect_looks_right(page)
    page.get_by_role("textbox", name="A sentence of your own").fill("the dog sat on <b>the")
    page.get_by_role("button", name="Search").click()
    expect(page.get_by_text("sets of heads were switched off to find this")).to_be_visible()
    assert "sentence=" in page.url
    settle(page)


@pytest.mark.parametrize("decoder", [30], indirect=True)
def test_on_a_projector_no_layer_of_thirty_has_to_be_scrolled_to_and_a_reload_keeps_what_is_off(visit, decoder):
    page = visit("/second-riddle", width=853, height=480)
    settle(page)
    box = cell(page, 29, 8).bounding_box()
    assert box["x"] + box["width"] <= 853
    assert min(box["width"], box["height"]) >= 24
    cell(page, 29, 0).click()
    expect(page.locator(FINDING)).to_contain_text("L29 H0")
    page.reload()
    expect(page.locator(FINDING)).to_contain_text("L29 H0")
