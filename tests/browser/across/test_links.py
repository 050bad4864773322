"""A link restores the screen, and a change of page loses nothing."""

import io
import re

import numpy as np
from PIL import Image
from playwright.sync_api import expect
from steps import (
    arcs,
    cell,
    cells,
    choose,
    choose_sieve,
    chosen,
    expect_cells_other_than,
    fold_drawer,
    go_to,
    grid_of,
    settle,
    slider,
    steady,
    tokens,
    type_texts,
    unfold,
    unfolded,
    wait_for,
    wait_until_alike,
    wait_until_equal,
)

SENTENCE = "A tired pilot & her mosquitoes slowly left the + old plane. ||| 50 % of it: rust?"
SETTINGS = "Checkpoint", "Corpus", "Correction"


def what_is_shared(page):
    unfold(page, "Corpus")
    unfold(page, "Correction")
    settings = {name: page.get_by_role("combobox", name=name, exact=True).input_value() for name in SETTINGS}
    sliders = {name: slider(page, name).get_attribute("aria-valuetext") for name in ("tau", "alpha")}
    return {"cells": cells(page), "chosen": chosen(page).all_text_contents(), **settings, **sliders}


def move_settings(page):
    """Away from every default, in the drawer and the sidebar; wait for what the page says only once all are applied."""
    before = cells(page)
    slider(page, "tau").press("ArrowLeft")
    slider(page, "tau").press("ArrowLeft")
    expect(slider(page, "tau")).to_have_attribute("aria-valuetext", "2.80")
    slider(page, "alpha").press("ArrowLeft")
    choose(page, "Correction", "Holm")
    for part in ("tau=2.8", "alpha=0.01", "correction=Holm"):
        expect(page).to_have_url(re.compile(part))
    choose(page, "Corpus", "sample texts")
    expect(page.get_by_text("Over 64 texts")).to_be_visible()
    expect(page).to_have_url(re.compile("corpus=sample"))
    expect_cells_other_than(page, before)
    settle(page)


def set_arcs(page):
    """Away from every default, in the arcs alone."""
    for name in ("Words", "Hidden", "A to B"):
        unfolded(arcs(page)).get_by_role("radio", name=name, exact=True).check()
    arcs(page).get_by_role("slider").fill("0.8")
    tokens(page).filter(has_text="pilot").click()
    for part in ("rows=words", "specials=hidden", "segments=A-B", "share=0.8", "pin=from-3"):
        expect(page).to_have_url(re.compile(part))


def seen(page):
    """The pixels of the arcs and of the grid, once they rest."""
    page.mouse.move(0, 0)
    pictures = (steady(page, view.screenshot) for view in (arcs(page), grid_of(page)))
    return [np.asarray(Image.open(io.BytesIO(picture)).convert("RGB"), int) for picture in pictures]


def look_the_same(pictures):
    """Chromium may round the colour of an edge differently by 1 of 255."""
    pairs = zip(*pictures, strict=True)
    return all(one.shape == other.shape and abs(one - other).max() <= 1 for one, other in pairs)


def copy(page):
    """Press the button with the keyboard; give what the page then says."""
    page.get_by_role("button", name="Copy link").press("Enter")
    return page.locator(".st-key-copy-link").get_by_role("status")


def test_a_copied_link_to_inspect_gives_a_fresh_browser_the_same_picture(visit, server):
    page = visit("/inspect")
    expect(page).to_have_url(re.compile(f"^{server}/[?]"))
    before = cells(page)
    type_texts(page, SENTENCE)
    expect_cells_other_than(page, before)
    cell(page, 3, 7).click()
    expect(arcs(page, "L3 H7")).to_be_visible()
    cell(page, 2, 5).click(modifiers=["Shift"])
    expect(arcs(page, "L3 H7", "L2 H5")).to_be_visible()
    page.get_by_role("button", name="Test settings").click()
    page.get_by_role("switch", name="Finer roles").press("Space")
    page.keyboard.press("Escape")
    expect(cell(page, 0, 0).locator(".corner")).to_have_count(6)
    choose_sieve(page, "local")
    expect(arcs(page).get_by_text("In the local sieve:")).to_be_visible()
    move_settings(page)
    set_arcs(page)
    expect(copy(page)).to_contain_text("does not let the page copy")
    expect(page.get_by_role("textbox", name="Link to this view")).to_have_value(page.url)
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    expect(copy(page)).to_have_text("Link copied.")
    link = page.evaluate("navigator.clipboard.readText()")
    page.context.grant_permissions([])
    there = visit(link)
    expect(there.get_by_role("textbox", name="Your texts")).to_have_value(SENTENCE)
    expect(arcs(there, "L3 H7", "L2 H5")).to_be_visible()
    expect(tokens(there).filter(has_text="pilot")).to_have_attribute("aria-selected", "true")
    expect(arcs(there).get_by_text("In the local sieve:")).to_be_visible()
    expect(cell(there, 0, 0).locator(".corner")).to_have_count(6)
    unfolded(arcs(there))  # as on the page that was copied
    wait_until_alike(page, there, what_is_shared)
    wait_for(page, lambda: (seen(page), seen(there)), look_the_same)


def test_a_change_of_page_keeps_text_heads_and_settings_and_counts_right_after_one_was_made(visit):
    page = visit("/?corpus=sample+texts&correction=Holm")
    before = cells(page)
    type_texts(page, SENTENCE)
    expect_cells_other_than(page, before)
    cell(page, 3, 7).click()
    expect(arcs(page, "L3 H7")).to_be_visible()
    slider(page, "tau").press("ArrowLeft")
    expect(page).to_have_url(re.compile("tau=2.9"))
    settle(page)
    here = steady(page, lambda: what_is_shared(page))
    fold_drawer(page)
    go_to(page, "roles")
    expect(page.get_by_role("grid", name="Roles of the heads of bundled")).to_be_visible()
    expect(cell(page, 3, 7)).to_have_attribute("aria-selected", "true")
    wait_until_equal(page, lambda: what_is_shared(page) | {"cells": here["cells"]}, here)
    fold_drawer(page)
    cell(page, 1, 1).click()
    expect(page.get_by_role("link", name="Inspect L1 H1")).to_be_visible()
    go_to(page, "inspect")
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(SENTENCE)
    expect(arcs(page, "L1 H1")).to_be_visible()
    wait_until_equal(page, lambda: what_is_shared(page), here | {"chosen": ["L1 H1"]})
    fold_drawer(page)
    page.go_back()
    page.go_back()  # right after the first step, whose page must not come back
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(SENTENCE)
    expect(arcs(page, "L3 H7")).to_be_visible()
    settle(page)
    wait_until_equal(page, lambda: what_is_shared(page), here)
    page.reload()
    settle(page)
    wait_until_equal(page, lambda: what_is_shared(page), here)
    # A click on a page counts though a setting made just before is still to be told.
    fold_drawer(page)
    arcs(page).get_by_role("radio", name="Matrix").check()
    go_to(page, "roles")
    expect(page.get_by_role("grid", name=re.compile("^Roles of the heads of "))).to_be_visible()
