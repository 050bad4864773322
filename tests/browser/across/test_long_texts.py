"""Texts of thousands of tokens: shown in a window that moves, and sent to the browser no larger than that."""

import re

from playwright.sync_api import expect
from steps import arcs, cell, error, settle, slider, type_texts, wait_for

from attention_sieve.dashboard import wording
from attention_sieve.dashboard.views.text.on_screen import EXAMPLE_TYPED

CLAUSE = "the dog sat on the red mat and ran to a coffee house. "
TEXT = CLAUSE * 86
"""A little over 2,048 tokens of the long checkpoint."""
WINDOW = re.compile(r"Queries ([\d,]+) to ([\d,]+) of ([\d,]+), keys ([\d,]+) to")
MOST_BYTES = 1_500_000
"""Sent for one click."""


def window(page):
    """First query, one of all queries, first key, once the page names them."""
    match = WINDOW.search(wait_for(page, arcs(page).inner_text, WINDOW.search))
    return tuple(int(match[group].replace(",", "")) for group in (1, 3, 4))


def maps(page):
    return page.get_by_role("application", name=re.compile("^Attention of .* in the whole text"))


def test_a_window_moves_over_two_thousand_tokens_and_only_it_is_sent(visit, long_checkpoint):
    page = visit(f"/?checkpoint={long_checkpoint}&text={CLAUSE}&head=1-3")
    sent = []
    page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: sent.append(len(frame))))
    page.reload()  # so that the page's socket is listened to
    expect(arcs(page)).to_be_visible()
    type_texts(page, TEXT)
    expect(arcs(page).get_by_text("Tokens 0 to 255 of 2,")).to_be_visible()
    before = cell(page, 1, 3).get_attribute("aria-label")
    map_of_head = maps(page).locator("canvas").first
    box = map_of_head.bounding_box()
    map_of_head.click(position={"x": box["width"] * 0.3, "y": box["height"] * 0.7})
    clicked = window(page)
    assert 0 < clicked[2] < clicked[0] < clicked[1]
    maps(page).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    wait_for(page, lambda: window(page), lambda moved: moved[0] > clicked[0] and moved[2] == clicked[2])
    settle(page)
    expect(cell(page, 1, 3)).to_have_attribute("aria-label", before)
    cell(page, 2, 5).click()
    expect(arcs(page, "L2 H5")).to_be_visible()
    slider(page, "tau").press("PageUp")
    expect(page).to_have_url(re.compile("tau="))
    settle(page)
    assert max(sent) < MOST_BYTES


def test_a_text_too_long_for_the_link_survives_a_reload_and_is_shown_to_nobody_else(visit):
    page = visit("/?tau=2.5&head=0-2")
    said = page.get_by_text(wording.NOT_IN_LINK)
    type_texts(page, TEXT)
    expect(said).to_be_visible()
    expect(error(page)).to_contain_text("this checkpoint takes 512")
    page.wait_for_url(lambda url: "text=" not in url and "in+this+tab=" in url and "tau=2.5" in url and len(url) < 400)
    settle(page)
    page.reload()
    expect(page.get_by_role("textbox", name="Your texts")).to_have_value(TEXT)
    expect(said).to_be_visible()
    there = visit(page.url)
    expect(there.get_by_text(wording.NOT_IN_THIS_TAB)).to_be_visible()
    expect(there.get_by_role("textbox", name="Your texts")).to_have_value(EXAMPLE_TYPED)
