"""A newcomer with no checkpoint of their own: Compare says how to get one, and Fine-tune leads back to its sentence."""

import re

import pytest
from playwright.sync_api import expect
from steps import give_file, number, reviews, set_number

pytestmark = pytest.mark.usefixtures("nothing_made")


def test_without_a_second_checkpoint_one_sentence_says_how_to_get_one_and_a_button_does_it(visit):
    page = visit("/compare")
    expect(page.get_by_text("Nothing was fine-tuned here yet: random weights stand in.")).to_be_visible()
    expect(page.get_by_role("link", name="Fine-tune on my own texts")).to_be_visible()
    page.get_by_role("button", name="Make the sample pair").click()
    # Here pip finds nothing, and that is said where the reader looks.
    expect(page.get_by_text("pip could not fetch vaderSentiment==2.5")).to_be_visible()


def test_from_200_texts_to_what_fine_tuning_changed(visit):
    page = visit("/compare")
    page.get_by_role("link", name="Fine-tune on my own texts").click()
    give_file(page, "films.csv", reviews())
    expect(page.get_by_text("200 texts, 2 classes: blame (100), praise (100).")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name of the new checkpoint")).to_have_value("films")
    expect(number(page, "Batch size")).to_have_value("8")
    set_number(page, "Epochs", 1)
    expect(page).to_have_url(re.compile("epochs=1"))
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Start from bundled").click()
    finished = page.get_by_text("Finished after 18 steps: validation accuracy")
    expect(finished).to_be_visible()
    expect(page.get_by_test_id("stMain").get_by_role("button", name="Stop")).to_have_count(0)
    listed = page.get_by_text("films, from bundled with films.csv (classes, 200 texts)")
    expect(listed).to_be_visible()
    page.get_by_role("button", name="Close").click()
    expect(page.get_by_role("button", name="Close")).to_have_count(0)
    expect(page.get_by_text("films was fine-tuned from bundled for 18 steps.")).to_be_visible()
    expect(page.get_by_role("textbox", name="Name of the new checkpoint")).to_have_value("films-2")
    page.reload()
    expect(listed).to_be_visible()
    expect(page.get_by_text("Continuing with films.csv")).to_be_visible()
    page.get_by_role("link", name="Compare with bundled").click()
    expect(page.get_by_role("heading", name="Compare", exact=True)).to_be_visible()
    expect(page.locator(".st-key-found p")).to_have_text(re.compile("^Fine-tuning (took|gave) the .* role"))
    expect(page).to_have_url(re.compile("[?&]with=films"))
