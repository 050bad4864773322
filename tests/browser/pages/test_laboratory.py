"""The page Laboratory in Chromium, with a model that has learnt to copy."""

import re

from looks import darken, expect_accessible, expect_contrast, expect_fits, resize
from PIL import Image
from playwright.sync_api import expect
from steps import grid_of, settle, shifted

from attention_sieve.dashboard.views.laboratory import wording

LETTER = re.compile("induction")


def test_the_slider_leads_through_the_training_by_keyboard_and_the_page_looks_right_in_any_size(visit, learnt_model):
    page = visit("/laboratory")
    grid = grid_of(page)
    last = grid.get_by_role("gridcell", name="Layer 1, head")
    expect(page.get_by_text("induction heads", exact=True)).to_be_visible()
    learnt = last.evaluate_all("cells => cells.map(cell => cell.getAttribute('aria-label'))")
    assert any(LETTER.search(label) for label in learnt)
    settle(page)
    assert shifted(page) < 0.1, "while the model is measured"
    slider = page.get_by_role("slider", name="Training step")
    slider.focus()
    page.keyboard.press("Home")
    expect(page.get_by_text(wording.NO_COPIES_DRAWN)).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]at=0\b"))
    settle(page)
    expect_accessible(page)
    expect_fits(page)
    darken(page)
    expect_contrast(page)
    resize(page, "narrow")
    expect_fits(page)
    page.reload()
    expect(page.get_by_text(wording.NO_COPIES_DRAWN)).to_be_visible()


def test_a_film_leads_through_the_saved_steps_and_is_not_offered_where_motion_is_not_wanted(visit, learnt_model):
    page = visit("/laboratory")
    play = page.get_by_role("button", name=wording.PLAY)
    play.click()
    expect(page).to_have_url(re.compile(r"[?&]at=0\b"))
    expect(page.get_by_text(wording.NO_COPIES_DRAWN)).to_be_visible()
    expect(page.locator(".st-key-found").get_by_text("the copying")).to_be_visible()  # at the last step
    expect(play).to_be_visible()
    settle(page)
    with page.expect_download() as waiting:
        page.get_by_role("button", name=wording.FILM_FILE).click()
    with Image.open(waiting.value.path()) as film:
        assert (film.format, film.n_frames) == ("GIF", len(list(learnt_model.glob("checkpoint-*"))))
        assert b"checkpoint: learnt" in film.info["comment"]
    page.emulate_media(reduced_motion="reduce")
    expect(play).to_be_hidden()
